package decide

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/canonical"
)

// SetList maps the objects of one revision of a bundle to the digests of their contents. A second list of the revision
// maps the same objects to the digests of their override rules.
type SetList map[hubv1.ObjectIdentity]string

// ContentKey is the key of a Payload in the data of its Secret.
const ContentKey = "content"

// SetListSecret returns the name of the Secret that stores the list with this digest.
func SetListSecret(digest string) string { return "set-list-" + digest }

// SetPartSecret returns the name of the Secret that stores the object, or the override rules, with this digest.
func SetPartSecret(digest string) string { return "set-part-" + digest }

// setEntry is an entry of a stored SetList.
type setEntry struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Digest    string `json:"digest"`
}

// Objects returns the objects of the list, sorted.
func (l SetList) Objects() []hubv1.ObjectIdentity {
	out := make([]hubv1.ObjectIdentity, 0, len(l))
	for id := range l {
		out = append(out, id)
	}
	slices.SortFunc(out, byIdentity)
	return out
}

func byIdentity(a, b hubv1.ObjectIdentity) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// Pack returns the list in its stored form. The digest of equal lists is equal.
func (l SetList) Pack(key canonical.Key) (Payload, error) {
	entries := []setEntry{}
	for _, id := range l.Objects() {
		entries = append(entries, setEntry{id.Group, id.Kind, id.Namespace, id.Name, l[id]})
	}
	return Pack(digest(key, entries), entries)
}

// ReadSetList returns the list in a Payload.
func ReadSetList(content []byte) (SetList, error) {
	text, err := unpack(content)
	if err != nil {
		return nil, err
	}
	var entries []setEntry
	if err := json.Unmarshal(text, &entries); err != nil {
		return nil, fmt.Errorf("reading the list of the objects of a bundle: %w", err)
	}
	out := make(SetList, len(entries))
	for _, e := range entries {
		out[hubv1.ObjectIdentity{Group: e.Group, Kind: e.Kind, Namespace: e.Namespace, Name: e.Name}] = e.Digest
	}
	return out, nil
}

// PartDigest returns the digest of the content of one object of a bundle.
func PartDigest(key canonical.Key, manifest *unstructured.Unstructured) string {
	return digest(key, manifest.Object)
}

// PackPart returns the content of one object of a bundle in its stored form. ReadTemplate is its inverse.
func PackPart(key canonical.Key, manifest *unstructured.Unstructured) (Payload, error) {
	return Pack(PartDigest(key, manifest), manifest.Object)
}
