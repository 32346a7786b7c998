package views

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/overrides"
)

// maxPolicies is the maximum number of policies in a request. overrides.Validate limits the number of rules in each
// policy.
const maxPolicies = 64

// mayTry returns an error if the user may not create these override policies, or may not change the object by means of
// them. Without these rights, the hub does not render the policies or send the result to a member. The webhook in
// hub/admission checks the same rights for all objects that a policy selects.
func (v *View) mayTry(ctx context.Context, q *question, object placed, policies []hubv1.OverridePolicyObject) error {
	var needs []authorizationv1.ResourceAttributes
	for _, p := range policies {
		for _, need := range needed(object, p) {
			if !slices.Contains(needs, need) {
				needs = append(needs, need)
			}
		}
	}
	for _, need := range needs {
		allowed, err := v.may(ctx, q.who, need)
		if err != nil {
			return err
		}
		if !allowed {
			return apierrors.NewForbidden(schema.GroupResource{Group: need.Group, Resource: need.Resource}, need.Name, fmt.Errorf(
				"user %q may not %s the object%s, and so may not see what a policy would change", q.who.name, need.Verb, in(need.Namespace)))
		}
	}
	return nil
}

func in(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " in namespace " + namespace
}

// needed returns the rights that a user needs to change an object by means of an override policy.
func needed(object placed, p hubv1.OverridePolicyObject) []authorizationv1.ResourceAttributes {
	own := hubv1.GroupVersion.Group
	policies := "overridepolicies"
	if p.GetNamespace() == "" {
		policies = "clusteroverridepolicies"
	}
	out := []authorizationv1.ResourceAttributes{
		{Verb: "create", Group: own, Resource: policies, Namespace: p.GetNamespace(), Name: p.GetName()},
		{Verb: "override", Group: own, Resource: "placements", Namespace: p.GetNamespace()},
		{Verb: "update", Group: object.resource.Group, Version: object.resource.Version, Resource: object.resource.Resource, Namespace: object.id.Namespace, Name: object.id.Name},
	}
	// rbac is the API group of Roles and RoleBindings, which grant rights to others.
	const rbac = "rbac.authorization.k8s.io"
	add := func(verb, namespace string, resources ...string) {
		for _, resource := range resources {
			out = append(out, authorizationv1.ResourceAttributes{Verb: verb, Group: rbac, Resource: resource, Namespace: namespace})
		}
	}
	switch object.id.GroupKind() {
	case schema.GroupKind{Group: rbac, Kind: "Role"}:
		add("escalate", p.GetNamespace(), "roles")
	case schema.GroupKind{Group: rbac, Kind: "ClusterRole"}:
		add("escalate", "", "clusterroles")
	case schema.GroupKind{Group: rbac, Kind: "RoleBinding"}:
		add("bind", p.GetNamespace(), "roles", "clusterroles")
	case schema.GroupKind{Group: rbac, Kind: "ClusterRoleBinding"}:
		add("bind", "", "clusterroles")
	}
	if object.id.Group == "admissionregistration.k8s.io" {
		add("escalate", "", "clusterroles")
	}
	return out
}

// readable returns an error if a policy is invalid for every object. The hub's API server or its webhook would refuse
// to store such a policy.
func readable(policies []hubv1.OverridePolicyObject) error {
	for _, p := range policies {
		var faults []string
		if _, err := metav1.LabelSelectorAsSelector(p.SelectedNamespaces()); err != nil {
			faults = append(faults, "spec.namespaceSelector: "+err.Error())
		}
		for _, err := range overrides.Validate(p.OverrideSpec(), field.NewPath("spec")) {
			faults = append(faults, err.Error())
		}
		const maxNamed = 5
		if len(faults) > 0 {
			return apierrors.NewBadRequest(fmt.Sprintf("policy %q: %s", p.GetName(), strings.Join(faults[:min(len(faults), maxNamed)], "; ")))
		}
	}
	return nil
}
