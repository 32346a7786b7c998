package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/decide"
	"github.com/hanse-dev/hanse/hub/rights"
)

// author has the data that the API server sends about the user who changes a policy.
type author authenticationv1.UserInfo

const (
	whySelected   = "the hub writes and deletes the selected objects on members for the author"
	whyReferenced = "spec.references sends the objects that selected objects name to members"
	whyOverride   = "the policy changes objects that others placed"
	whyAdopt      = "spec.apply.adoption takes over objects that exist on members"
	whyPlace      = "spec.requirePlaceVerb of the MemberCluster requires it; or exclude the cluster with spec.clusters.excludedNames"
	whyEscalate   = "the policy changes the rights of others on members"
)

// selected returns the rights that the author of a policy needs: to get, create, update and delete objects of every
// selected kind. An empty namespace means all namespaces.
func (r *Reviewer) selected(selectors []hubv1.ResourceSelector, namespace string) ([]rights.Need, error) {
	if len(selectors) > mostSelectors {
		return nil, &refusal{text: fmt.Sprintf("spec.resourceSelectors: more than %d", mostSelectors)}
	}
	var out []rights.Need
	for _, s := range selectors {
		resource, err := r.resource(s)
		if err != nil {
			return nil, err
		}
		for _, verb := range []string{"get", "create", "update", "delete"} {
			name := s.Name
			if verb == "create" {
				name = "" // a create is authorized without the object's name
			}
			n := rights.Need{Why: whySelected, Right: authorizationv1.ResourceAttributes{
				Namespace: namespace, Verb: verb, Group: s.APIGroup, Resource: resource, Name: name,
			}}
			if !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	return out, nil
}

// referenced returns the rights to read the objects that the selected objects name, such as a Secret. The author of the
// policy needs these rights, because the policy sends these objects to members, too.
func (r *Reviewer) referenced(rules []hubv1.ReferenceRule, namespace string) ([]rights.Need, error) {
	var out []rights.Need
	for _, kind := range decide.ReferencedKinds(rules) {
		resource, err := r.resource(hubv1.ResourceSelector{APIGroup: kind.Group, Kind: kind.Kind})
		if err != nil {
			return nil, err
		}
		n := rights.Need{Why: whyReferenced, Right: authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: "get", Group: kind.Group, Resource: resource,
		}}
		if !slices.Contains(out, n) { // the kinds of a group that the hub does not serve need the same right
			out = append(out, n)
		}
	}
	return out, nil
}

// resource returns the resource of a selected kind. If the hub does not serve the kind, or the selector selects every
// kind of a group, it returns "*" for all resources of the group.
func (r *Reviewer) resource(s hubv1.ResourceSelector) (string, error) {
	if s.Kind == "*" {
		return "*", nil
	}
	mapping, served, err := r.mapping(schema.GroupKind{Group: s.APIGroup, Kind: s.Kind})
	if err != nil || !served {
		return "*", err
	}
	return mapping.Resource.Resource, nil
}

// mapping returns the REST mapping of a kind. It returns false if the hub does not serve the kind. If the request
// fails, it returns an error instead.
func (r *Reviewer) mapping(gk schema.GroupKind) (*meta.RESTMapping, bool, error) {
	mapping, err := r.options.Mapper.RESTMapping(gk)
	switch {
	case meta.IsNoMatchError(err):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("finding the resource of %s: %w", gk, err)
	}
	return mapping, true, nil
}

// adoption returns the rights to adopt existing objects on the named members, or on all members.
func adoption(spec *hubv1.PlacementSpec) []rights.Need {
	if spec.Apply.Adoption == "" || spec.Apply.Adoption == hubv1.AdoptionNever {
		return nil
	}
	names := spec.Clusters.Names
	if len(names) == 0 {
		names = []string{""}
	}
	var out []rights.Need
	for _, name := range names {
		out = append(out, rights.Need{Why: whyAdopt, Right: authorizationv1.ResourceAttributes{
			Verb: "adopt", Group: hubv1.GroupVersion.Group, Resource: "memberclusters", Name: name,
		}})
	}
	return out
}

// placing returns the rights to place objects on clusters that require the verb place. It considers clusters that the
// placement selects by name or label. It ignores the expression, because its result can change.
func (r *Reviewer) placing(ctx context.Context, selection *hubv1.ClusterSelection) ([]rights.Need, error) {
	var all hubv1.MemberClusterList
	if err := r.options.Client.List(ctx, &all); err != nil {
		return nil, fmt.Errorf("listing MemberClusters: %w", err)
	}
	var out []rights.Need
	for i := range all.Items {
		c := &all.Items[i]
		if !c.Spec.RequirePlaceVerb || !selection.MaySelect(c) {
			continue
		}
		out = append(out, rights.Need{Why: whyPlace, Right: authorizationv1.ResourceAttributes{
			Verb: "place", Group: hubv1.GroupVersion.Group, Resource: "memberclusters", Name: c.Name,
		}})
	}
	return out, nil
}

// overriding returns the rights to change the selected objects by overrides. For RBAC kinds, it includes escalate and
// bind, which the hub's API server requires for a direct change. For admission kinds, it includes escalate.
func overriding(p hubv1.OverridePolicyObject) []rights.Need {
	namespace := p.GetNamespace()
	out := []rights.Need{{Why: whyOverride, Right: authorizationv1.ResourceAttributes{
		Namespace: namespace, Verb: "override", Group: hubv1.GroupVersion.Group, Resource: "placements",
	}}}
	add := func(granting []authorizationv1.ResourceAttributes) {
		for _, right := range granting {
			if n := (rights.Need{Why: whyEscalate, Right: right}); !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	for _, s := range p.OverrideSpec().ResourceSelectors {
		switch s.APIGroup {
		case rbacv1.GroupName:
			for _, kind := range []string{"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"} {
				if s.Kind != kind && s.Kind != "*" {
					continue
				}
				in := namespace
				if strings.HasPrefix(kind, "Cluster") {
					in = ""
				}
				add(rights.Granting(schema.GroupKind{Group: rbacv1.GroupName, Kind: kind}, in))
			}
		case "admissionregistration.k8s.io":
			add(rights.Granting(schema.GroupKind{Group: rbacv1.GroupName, Kind: "ClusterRole"}, ""))
		}
	}
	return out
}

// demand returns a refusal if the author lacks a right.
func (r *Reviewer) demand(ctx context.Context, who author, needs []rights.Need) error {
	missing, err := rights.Missing(ctx, r.options.Client, authenticationv1.UserInfo(who), needs)
	if err != nil {
		return err
	}
	if len(missing) == 0 {
		return nil
	}
	return &refusal{forbidden: true, text: fmt.Sprintf("%s needs the right to %s", who.Username, someOf(missing, "; "))}
}

// someOf joins the first five texts, and adds the number of the other texts.
func someOf(all []string, separator string) string {
	const most = 5
	if len(all) <= most {
		return strings.Join(all, separator)
	}
	return fmt.Sprintf("%s%sand %d more", strings.Join(all[:most], separator), separator, len(all)-most)
}
