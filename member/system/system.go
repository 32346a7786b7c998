// Package system decides what Hanse may write in the system namespaces of members: kube-* and hanse-system.
//
// Nothing, with one exception: the Roles and RoleBindings by which an operator elects its leader in kube-system, and
// the RoleBindings by which its API server reads how requests are authenticated. They must belong to a
// FederatedOperator (ADR 36). The chart hanse-member has the same limits for the member's side.
package system

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

const (
	// Namespace is the only system namespace with objects of operators.
	Namespace = metav1.NamespaceSystem
	// AuthenticationReader is the Role of Kubernetes in Namespace that every aggregated API server needs. Its rules only
	// read a ConfigMap with public certificates.
	AuthenticationReader = "extension-apiserver-authentication-reader"
)

// ReadAuthentication is the rule of AuthenticationReader. The hub needs it on a member to bind to this Role.
var ReadAuthentication = rbacv1.PolicyRule{
	APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"extension-apiserver-authentication"}, Verbs: []string{"get", "list", "watch"},
}

// Use returns the rule by which a member allows the hub to write a Role of Namespace, and RoleBindings to it. The
// admission policy of the chart hanse-member reads the rule.
func Use(role string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}, ResourceNames: []string{role}, Verbs: []string{"use"}}
}

// RefusedPlace returns why Hanse does not write an object of this name. It is nil outside of system namespaces, and for
// Roles and RoleBindings of a FederatedOperator in Namespace, whose content Refused checks.
func RefusedPlace(id hubv1.ObjectIdentity, ofOperator bool) error {
	place := placeOf(id)
	switch {
	case !hubv1.IsSystemNamespace(place):
		return nil
	case ofOperator && place == Namespace && id.Group == rbacv1.GroupName && (id.Kind == "Role" || id.Kind == "RoleBinding"):
		return nil
	}
	return fmt.Errorf("the namespace is %s: use another one, since Hanse writes nothing in kube-* and %s of members, except Roles and RoleBindings of "+
		"a FederatedOperator in %s for leader election", place, hubv1.SystemNamespace, Namespace)
}

// placeOf returns the namespace of an object. For a Namespace, this is its own name.
func placeOf(id hubv1.ObjectIdentity) string {
	if id.Group == "" && id.Kind == "Namespace" {
		return id.Name
	}
	return id.Namespace
}

// Refused returns why Hanse does not write an object, by its name and its content. The error contains no values, except
// names.
func Refused(o *unstructured.Unstructured, ofOperator bool) error {
	id := hubv1.IdentityOf(o)
	if err := RefusedPlace(id, ofOperator); err != nil || !hubv1.IsSystemNamespace(placeOf(id)) {
		return err
	}
	if err := content(o); err != nil {
		return fmt.Errorf("the namespace is %s, where Hanse writes Roles and RoleBindings for leader election only: %w", Namespace, err)
	}
	return nil
}

func content(o *unstructured.Unstructured) error {
	if isOfKubernetes(o.GetName()) {
		return fmt.Errorf("the prefix of the name %s belongs to Kubernetes: use another name", o.GetName())
	}
	if o.GetKind() == "RoleBinding" {
		var binding rbacv1.RoleBinding
		if err := read(o, &binding); err != nil {
			return err
		}
		return refusedBinding(&binding)
	}
	var role rbacv1.Role
	if err := read(o, &role); err != nil {
		return err
	}
	for i, rule := range role.Rules {
		if err := RefusedRule(rule); err != nil {
			return fmt.Errorf("rules[%d] %w", i, err)
		}
	}
	return nil
}

// read reads the object with its known fields only.
func read(o *unstructured.Unstructured, into runtime.Object) error {
	if o.GetAPIVersion() != rbacv1.SchemeGroupVersion.String() {
		return fmt.Errorf("the apiVersion is %s: use %s", o.GetAPIVersion(), rbacv1.SchemeGroupVersion)
	}
	if runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, into, true) != nil {
		return fmt.Errorf("it has unknown or invalid fields: write it as a %s of %s", o.GetKind(), rbacv1.SchemeGroupVersion) // the cause may contain a value
	}
	return nil
}

// isOfKubernetes reports whether a name belongs to a Role, RoleBinding or Lease of Kubernetes itself.
func isOfKubernetes(name string) bool {
	return slices.Contains([]string{AuthenticationReader, "cloud-controller-manager", "cloud-provider-extraction-migration"}, name) ||
		slices.ContainsFunc([]string{"system:", "kube-", "kubeadm:", "apiserver-"}, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// refusedBinding returns why a RoleBinding is refused. It cannot tell whether the Role belongs to the operator: see
// RoleOf.
func refusedBinding(b *rbacv1.RoleBinding) error {
	switch {
	case b.RoleRef.Name == "":
		return fmt.Errorf("roleRef has no name: name a Role of the operator in %s", Namespace)
	case b.RoleRef.APIGroup != rbacv1.GroupName || b.RoleRef.Kind != "Role":
		return fmt.Errorf("roleRef names the %s %s: name a Role of the operator in %s", b.RoleRef.Kind, b.RoleRef.Name, Namespace)
	case b.RoleRef.Name != AuthenticationReader && isOfKubernetes(b.RoleRef.Name):
		return fmt.Errorf("roleRef names the Role %s of Kubernetes: name a Role of the operator, or %s", b.RoleRef.Name, AuthenticationReader)
	}
	for i, s := range b.Subjects {
		switch {
		case s.Kind != rbacv1.ServiceAccountKind || s.APIGroup != "":
			return fmt.Errorf("subjects[%d] is a %s: name a ServiceAccount of the operator", i, s.Kind)
		case s.Namespace == "":
			return fmt.Errorf("subjects[%d] has no namespace: set the namespace of the ServiceAccount", i)
		case hubv1.IsSystemNamespace(s.Namespace):
			return fmt.Errorf("subjects[%d] is a ServiceAccount of %s: name one of the operator's namespace", i, s.Namespace)
		}
	}
	return nil
}

// RoleOf returns the Role to which a RoleBinding of Namespace binds. It is empty for any other object.
func RoleOf(o *unstructured.Unstructured) string {
	if o.GroupVersionKind().Group != rbacv1.GroupName || o.GetKind() != "RoleBinding" || o.GetNamespace() != Namespace {
		return ""
	}
	name, _, _ := unstructured.NestedString(o.Object, "roleRef", "name")
	return name
}

var errNoResource = errors.New("names no resource: name leases of coordination.k8s.io, or events")

// RefusedRule returns why a Role in Namespace may not have a rule.
func RefusedRule(rule rbacv1.PolicyRule) error {
	if len(rule.APIGroups) == 0 || len(rule.Resources) == 0 || len(rule.NonResourceURLs) > 0 {
		return errNoResource
	}
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			if err := refusedResource(rule, group, resource); err != nil {
				return err
			}
		}
	}
	return nil
}

func refusedResource(rule rbacv1.PolicyRule, group, resource string) error {
	other := func(allowed ...string) string {
		i := slices.IndexFunc(rule.Verbs, func(verb string) bool { return !slices.Contains(allowed, verb) })
		if i < 0 {
			return ""
		}
		return rule.Verbs[i]
	}
	switch {
	case resource == "events" && (group == "" || group == "events.k8s.io"):
		if verb := other("create", "patch"); verb != "" {
			return fmt.Errorf("has the verb %s on events: only create and patch are allowed", verb)
		}
		return nil
	case resource != "leases" || group != "coordination.k8s.io":
		return fmt.Errorf("is about %s: only leases of coordination.k8s.io and events are allowed", strings.TrimSuffix(resource+"."+group, "."))
	}
	if verb := other("create", "get", "list", "watch"); verb != "" && len(rule.ResourceNames) == 0 {
		return fmt.Errorf("has the verb %s on all leases: name the Leases of the operator in resourceNames", verb)
	}
	for _, name := range rule.ResourceNames {
		// Kubernetes compares an empty name with requests that have none, such as the deletion of all Leases.
		if name == "" || isOfKubernetes(name) {
			return fmt.Errorf("names the Lease %q, which is not of an operator: name the Leases of the operator", name)
		}
	}
	return nil
}
