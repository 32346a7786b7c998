package manifest

import (
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/hanse-dev/hanse/member/system"
)

// scopes checks and sets the namespaces of the objects of a bundle.
type scopes struct {
	// namespace is the namespace of a Bundle. It is empty for a ClusterBundle or FederatedOperator.
	namespace  string
	namespaced Namespaced
	// defined has the kinds that the CustomResourceDefinitions of the bundle define. The value is true for a namespaced
	// kind.
	defined map[schema.GroupKind]bool
	// operator is true for a FederatedOperator.
	operator bool
	// systemRoles has the names of the Roles that the bundle has in system.Namespace. It is nil if they are unknown.
	systemRoles map[string]bool
}

// systemRoles returns the names of the Roles in system.Namespace among the objects.
func systemRoles(found []manifest) map[string]bool {
	out := map[string]bool{}
	for _, m := range found {
		if m.object.GroupVersionKind().GroupKind() == roleKind && m.object.GetNamespace() == system.Namespace {
			out[m.object.GetName()] = true
		}
	}
	return out
}

// definedKinds returns the kinds that the CustomResourceDefinitions among the objects define. The value is true for a
// namespaced kind.
func definedKinds(found []manifest) map[schema.GroupKind]bool {
	out := map[schema.GroupKind]bool{}
	for _, m := range found {
		if gk, namespaced, ok := DefinedKind(m.object); ok {
			out[gk] = out[gk] || namespaced // if two definitions differ, the kind counts as namespaced
		}
	}
	return out
}

// IsDefinition reports whether an object is a CustomResourceDefinition.
func IsDefinition(o *unstructured.Unstructured) bool {
	return o.GroupVersionKind().GroupKind() == schema.GroupKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}
}

// DefinedKind returns the kind that a CustomResourceDefinition defines, and whether this kind is namespaced. ok is
// false for an object of another kind. It is also false if spec.scope has an invalid value, because members refuse such
// a definition.
func DefinedKind(o *unstructured.Unstructured) (gk schema.GroupKind, namespaced, ok bool) {
	if !IsDefinition(o) {
		return gk, false, false
	}
	gk.Group, _, _ = unstructured.NestedString(o.Object, "spec", "group")
	gk.Kind, _, _ = unstructured.NestedString(o.Object, "spec", "names", "kind")
	scope, _, _ := unstructured.NestedString(o.Object, "spec", "scope")
	namespaced = scope == string(apiextensionsv1.NamespaceScoped)
	return gk, namespaced, namespaced || scope == string(apiextensionsv1.ClusterScoped)
}

// place checks the namespace of an object. It sets the namespace if the object belongs to a Bundle, which has objects
// of its own namespace only.
func (s scopes) place(object *unstructured.Unstructured) error {
	gk := object.GroupVersionKind().GroupKind()
	namespaced, known, err := s.of(gk)
	if err != nil {
		return err
	}
	if s.namespace != "" {
		if known && !namespaced {
			return fmt.Errorf("%s is a cluster-scoped kind: use a ClusterBundle", gk)
		}
		if namespace := object.GetNamespace(); namespace != "" && namespace != s.namespace {
			return fmt.Errorf("the namespace is %q: a Bundle has objects of its own namespace %s only; remove metadata.namespace or use a ClusterBundle",
				namespace, s.namespace)
		}
		object.SetNamespace(s.namespace)
		return system.Refused(object, s.operator)
	}
	namespace := object.GetNamespace()
	switch {
	case known && namespaced && namespace == "":
		return fmt.Errorf("%s is a namespaced kind: set metadata.namespace", gk)
	case known && !namespaced && namespace != "":
		return fmt.Errorf("%s is a cluster-scoped kind: remove metadata.namespace", gk)
	}
	if gk == namespaceKind {
		namespace = object.GetName()
	} else if namespace == "" {
		return nil
	}
	if err := s.inSystem(object); err != nil {
		return err
	}
	if len(validation.IsDNS1123Label(namespace)) > 0 {
		return fmt.Errorf("the namespace is %q: use lower case letters, digits and -, at most 63", namespace)
	}
	return nil
}

// inSystem returns why an object may not be in its system namespace. It returns nil for other namespaces.
func (s scopes) inSystem(object *unstructured.Unstructured) error {
	if err := system.Refused(object, s.operator); err != nil {
		return err
	}
	if role := system.RoleOf(object); role != "" && role != system.AuthenticationReader && s.systemRoles != nil && !s.systemRoles[role] {
		return fmt.Errorf("roleRef names the Role %s, which the operator does not have in %s: name a Role of the operator, or %s", role, system.Namespace, system.AuthenticationReader)
	}
	return nil
}

var (
	namespaceKind = schema.GroupKind{Kind: "Namespace"}
	roleKind      = schema.GroupKind{Group: rbacv1.GroupName, Kind: "Role"}
)

// of reports whether a kind is namespaced. If the hub does not serve the kind, the CustomResourceDefinitions in the
// bundle decide. A Bundle cannot contain CustomResourceDefinitions, so for a Bundle only the hub decides. known is
// false if neither the hub nor the bundle defines the kind. If the hub has not answered, the error wraps ErrScope.
func (s scopes) of(gk schema.GroupKind) (namespaced, known bool, err error) {
	if gk == namespaceKind {
		return false, true, nil
	}
	namespaced, known, err = s.namespaced(gk)
	if err != nil {
		return false, false, fmt.Errorf("%w: %s: %w", ErrScope, gk, err)
	}
	if !known && s.namespace == "" {
		namespaced, known = s.defined[gk]
	}
	return namespaced, known, nil
}
