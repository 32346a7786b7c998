package overrides

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/canonical"
)

// DigestLeaving returns the digest of a manifest in which members own some fields after the copy is created. pointers
// are the JSON pointers of these fields. The values of these fields do not affect the digest, because only new copies
// get them. The list of pointers affects the digest.
func DigestLeaving(key canonical.Key, manifest *unstructured.Unstructured, pointers []string, salt string) string {
	if len(pointers) == 0 {
		return Digest(key, manifest, salt)
	}
	counted := manifest.DeepCopy()
	for _, pointer := range pointers {
		unstructured.RemoveNestedField(counted.Object, hubv1.PointerKeys(pointer)...)
	}
	return Digest(key, counted, append([]string{salt}, pointers...)...)
}

// Without returns the object without the field at a JSON pointer. The result shares all other fields with the object.
func Without(object map[string]any, pointer string) map[string]any {
	return without(object, hubv1.PointerKeys(pointer))
}

func without(object map[string]any, path []string) map[string]any {
	value, has := object[path[0]]
	if !has {
		return object
	}
	out := maps.Clone(object)
	if inner, isObject := value.(map[string]any); len(path) > 1 && isObject {
		out[path[0]] = without(inner, path[1:])
	} else if len(path) == 1 {
		delete(out, path[0])
	}
	return out
}

// Digest returns, in hex, the first half of a SHA-256. The SHA-256 is computed from the manifest as sorted JSON and
// from the salt. The digest identifies the content of a manifest. The salt contains settings that change how the
// manifest is applied, so that a change of these settings changes the digest. The digest of a Secret is keyed, because
// its values could be guessed from a plain digest.
func Digest(key canonical.Key, manifest *unstructured.Unstructured, salt ...string) string {
	h := sha256.New()
	h.Write(append(canonical.Bytes(manifest.Object), '\n')) // for compatibility: older digests include the newline
	for _, s := range salt {
		h.Write(strconv.AppendQuote(nil, s)) // quoted: ("a", "b") is not ("ab")
	}
	sum := h.Sum(nil)
	if hubv1.IsSecret(manifest.GroupVersionKind().GroupKind()) {
		sum = key.Sum(sum)
	}
	return hex.EncodeToString(sum[:16])
}
