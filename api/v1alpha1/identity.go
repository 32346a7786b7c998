package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// ObjectIdentity identifies one hub object. It has no version, because an object has the same identity at all versions
// of its API.
type ObjectIdentity struct {
	Group     string
	Kind      string
	Namespace string // namespace of the object; empty for a cluster-scoped object
	Name      string
}

// IdentityOf returns the identity of an object.
func IdentityOf(o *unstructured.Unstructured) ObjectIdentity {
	gk := o.GroupVersionKind().GroupKind()
	return ObjectIdentity{Group: gk.Group, Kind: gk.Kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}

// GroupKind returns group and kind.
func (o ObjectIdentity) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: o.Group, Kind: o.Kind}
}

// String returns the identity as text: "Prometheus.monitoring.coreos.com monitoring/web".
func (o ObjectIdentity) String() string {
	name := o.Name
	if o.Namespace != "" {
		name = o.Namespace + "/" + o.Name
	}
	return o.GroupKind().String() + " " + name
}

// Owner returns the value of OwnerAnnotation for the hub object with this identity and UID. The value is
// "<group>/<kind>/<namespace>/<name>/<uid>". The group and the namespace in it may be empty.
func (o ObjectIdentity) Owner(uid types.UID) string {
	return strings.Join([]string{o.Group, o.Kind, o.Namespace, o.Name, string(uid)}, "/")
}

var errOwnerShape = errors.New("want <group>/<kind>/<namespace>/<name>/<uid>")

// ParseOwner returns the identity and the UID of the hub object that the value of an OwnerAnnotation names. An invalid
// value is an error.
func ParseOwner(value string) (ObjectIdentity, types.UID, error) {
	p := strings.Split(value, "/")
	if len(p) != 5 || p[1] == "" || p[3] == "" || p[4] == "" {
		return ObjectIdentity{}, "", fmt.Errorf("parsing annotation %s %.80q: %w", OwnerAnnotation, value, errOwnerShape)
	}
	return ObjectIdentity{Group: p[0], Kind: p[1], Namespace: p[2], Name: p[3]}, types.UID(p[4]), nil
}

// BindingName returns the name of this object's binding. It joins three parts with hyphens: the object's name, its kind
// in lower case, and 10 hex digits of the SHA-256 of the identity. The name is cut to 200 characters. The binding is in
// the object's namespace, or cluster-scoped like the object.
func (o ObjectIdentity) BindingName() string {
	sum := o.sum()
	kind := strings.ToLower(o.Kind)
	if len(kind) > 40 {
		kind = kind[:40]
	}
	name := o.Name
	if len(name) > 200 {
		name = name[:200]
	}
	// Names of RBAC objects may contain colons and upper-case letters. The name of a binding may not.
	return dnsSafe(name) + "-" + kind + "-" + hex.EncodeToString(sum[:5])
}

// ManifestName returns the name of the Secret that stores this object of a bundle. The name is "manifest-" and 20 hex
// digits of the SHA-256 of the identity. All such Secrets are in the hub's namespace, so the object's namespace is part
// of the hash.
func (o ObjectIdentity) ManifestName() string {
	sum := o.sum()
	return "manifest-" + hex.EncodeToString(sum[:10])
}

// GeneratedValuesName returns the name of the Secret that keeps the generated values of a FederatedOperator. The name
// is "generated-" and 20 hex digits of the SHA-256 of the identity.
func (o ObjectIdentity) GeneratedValuesName() string {
	sum := o.sum()
	return "generated-" + hex.EncodeToString(sum[:10])
}

func (o ObjectIdentity) sum() [sha256.Size]byte {
	return sha256.Sum256([]byte(strings.Join([]string{o.Group, o.Kind, o.Namespace, o.Name}, "\x00")))
}

// BindingKey returns the namespace and name of this object's binding.
func (o ObjectIdentity) BindingKey() types.NamespacedName {
	return types.NamespacedName{Namespace: o.Namespace, Name: o.BindingName()}
}

func dnsSafe(name string) string {
	safe := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '.':
			return r
		case r >= 'A' && r <= 'Z':
			return r + ('a' - 'A')
		}
		return '-'
	}, name)
	// Each label of a DNS subdomain, which is a part between dots, must start and end with a letter or digit.
	labels := strings.Split(safe, ".")
	kept := labels[:0]
	for _, l := range labels {
		if l = strings.Trim(l, "-"); l != "" {
			kept = append(kept, l)
		}
	}
	if len(kept) == 0 {
		return "x"
	}
	return strings.Join(kept, ".")
}
