package command

import (
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view/preview"
)

// federatedRole is the name of the ClusterRole and the Roles by which the chart hanse-hub lets the hub read kinds.
const federatedRole = hubName + "-federated-kinds"

// federated has the kinds that the hub may list and watch, by the roles of its chart.
type federated struct {
	everywhere []rbacv1.PolicyRule
	in         map[string][]rbacv1.PolicyRule // by namespace
	// all is true if the rules of all namespaces are known that matter.
	all bool
	// accepted are the placements with kinds that the hub has read. They show rights that the chart did not grant.
	accepted []hubv1.PlacementObject
	resource func(schema.GroupKind) (resource string, served bool)
}

// readFederated reads the roles of the hub. It returns nil if the hub was not installed by the chart, or if the user
// may not read the roles. namespace is the namespace of the command, or empty for all.
func readFederated(ctx context.Context, c client.Client, namespace string) (*federated, error) {
	if err := c.Get(ctx, client.ObjectKey{Name: hubName}, &rbacv1.ClusterRole{}); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading ClusterRole %s: %w", hubName, err)
	}
	f := &federated{in: map[string][]rbacv1.PolicyRule{}}
	var role rbacv1.ClusterRole
	if err := client.IgnoreNotFound(c.Get(ctx, client.ObjectKey{Name: federatedRole}, &role)); err != nil {
		return nil, fmt.Errorf("reading ClusterRole %s: %w", federatedRole, err)
	}
	f.everywhere = role.Rules
	var roles rbacv1.RoleList
	err := c.List(ctx, &roles, client.InNamespace(namespace), client.MatchingFields{metav1.ObjectNameField: federatedRole})
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("listing the Roles %s: %w", federatedRole, err)
	}
	f.all = err == nil
	for _, r := range roles.Items {
		f.in[r.Namespace] = r.Rules
	}
	return f, nil
}

// unreadable reports whether the hub is known to lack the right to list and watch a kind, as preview.Rights asks.
func (f *federated) unreadable(kind schema.GroupKind, namespace string) bool {
	name, served := f.resource(kind)
	resource := schema.GroupResource{Group: kind.Group, Resource: name}
	if !served || !f.all || mayList(f.everywhere, resource) || mayList(f.in[namespace], resource) {
		return false
	}
	if namespace == "" {
		for _, rules := range f.in {
			if mayList(rules, resource) {
				return false
			}
		}
	}
	return !slices.ContainsFunc(f.accepted, func(p hubv1.PlacementObject) bool {
		in := p.GetNamespace()
		return (in == "" || in == namespace || namespace == "") &&
			slices.ContainsFunc(preview.AskedKinds(p.PlacementSpec(), false), func(a preview.AskedKind) bool { return a.Kind == kind })
	})
}

func mayList(rules []rbacv1.PolicyRule, resource schema.GroupResource) bool {
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.APIGroups, resource.Group) && slices.Contains(r.Resources, resource.Resource) &&
			slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "watch")
	})
}

// rights returns what the hub may read, for a plan. definitions are the CustomResourceDefinitions of the files.
func (r *fleetReader) rights(placements []hubv1.PlacementObject, definitions map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition) (preview.Rights, error) {
	f, err := readFederated(r.ctx, r.Client, r.Namespace)
	switch {
	case apierrors.IsForbidden(err):
		r.notes = append(r.notes, "not checked: which kinds the hub may read, because you may not get its ClusterRoles")
		return preview.Rights{}, nil
	case err != nil || f == nil:
		return preview.Rights{}, err
	}
	f.resource = func(kind schema.GroupKind) (string, bool) {
		if mapping, err := r.RESTMapper().RESTMapping(kind); err == nil {
			return mapping.Resource.Resource, true
		}
		if d := definitions[kind]; d != nil {
			return d.Spec.Names.Plural, true
		}
		return "", false
	}
	return f.known(placements), nil
}

// known returns the rights for a plan. placements are those of the hub, with their status.
func (f *federated) known(placements []hubv1.PlacementObject) preview.Rights {
	for _, p := range placements {
		if c := meta.FindStatusCondition(p.PlacementStatus().Conditions, hubv1.ConditionAccepted); c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == p.GetGeneration() {
			f.accepted = append(f.accepted, p)
		}
	}
	return preview.Rights{Unreadable: f.unreadable, Resource: func(kind schema.GroupKind) string { name, _ := f.resource(kind); return name }}
}

// federatedInFiles returns what the hub may read by the roles of its chart in the files that replace the hub. It
// returns nil if the files have no such role.
func federatedInFiles(files *fleetFiles) (*federated, error) {
	f := &federated{in: map[string][]rbacv1.PolicyRule{}, all: true}
	found := false
	for _, u := range files.objects {
		gk := u.GroupVersionKind().GroupKind()
		if u.GetName() != federatedRole || gk.Group != rbacv1.GroupName || gk.Kind != "ClusterRole" && gk.Kind != "Role" {
			continue
		}
		var role rbacv1.ClusterRole // a Role has its rules in the same field
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &role); err != nil {
			return nil, fmt.Errorf("reading %s %s in the files: %w", gk.Kind, federatedRole, err)
		}
		if found = true; gk.Kind == "ClusterRole" {
			f.everywhere = role.Rules
		} else {
			f.in[u.GetNamespace()] = role.Rules
		}
	}
	if !found {
		return nil, nil
	}
	return f, nil
}

// resourceIn returns a function that finds the resource of a kind: by a CustomResourceDefinition, or by the name of a
// kind of Kubernetes.
func resourceIn(definitions ...map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition) func(schema.GroupKind) (string, bool) {
	return func(kind schema.GroupKind) (string, bool) {
		for _, known := range definitions {
			if d := known[kind]; d != nil {
				return d.Spec.Names.Plural, true
			}
		}
		for gvk := range clientgoscheme.Scheme.AllKnownTypes() {
			if gvk.GroupKind() == kind {
				plural, _ := meta.UnsafeGuessKindToResource(gvk)
				return plural.Resource, true
			}
		}
		return "", false
	}
}
