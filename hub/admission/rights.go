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
	"github.com/hanse-dev/hanse/hub/access"
)

// author has the data that the API server sends about the user who changes a policy.
type author authenticationv1.UserInfo

const (
	whySelected   = "the hub writes and deletes the selected objects on members for the author"
	whyReferenced = "spec.references also sends the objects to which selected objects refer"
	whyBundle     = "the hub writes the objects of the selected bundle with the rights of this ServiceAccount"
	whyOverride   = "the policy changes objects that others placed; the ClusterRole hanse-override has this right"
	whyAdopt      = "spec.apply.adoption takes over objects that exist on members"
	whyPlace      = "spec.requirePlaceVerb of the MemberCluster requires it; or exclude the cluster with spec.clusters.excludedNames"
	whyEscalate   = "the policy changes the rights of others on members"
)

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
func adoption(spec *hubv1.PlacementSpec) []access.Need {
	if spec.Apply.Adoption == "" || spec.Apply.Adoption == hubv1.AdoptionNever {
		return nil
	}
	names := spec.Clusters.Names
	if len(names) == 0 {
		names = []string{""}
	}
	var out []access.Need
	for _, name := range names {
		out = append(out, access.Need{Why: whyAdopt, Right: authorizationv1.ResourceAttributes{
			Verb: "adopt", Group: hubv1.GroupVersion.Group, Resource: "memberclusters", Name: name,
		}})
	}
	return out
}

// placing returns the rights to place objects on clusters that require the verb place. It considers clusters that the
// placement selects by name or label. It ignores the expression, because its result can change.
func (r *Reviewer) placing(ctx context.Context, selection *hubv1.ClusterSelection) ([]access.Need, error) {
	var all hubv1.MemberClusterList
	if err := r.options.Client.List(ctx, &all); err != nil {
		return nil, fmt.Errorf("listing MemberClusters: %w", err)
	}
	var out []access.Need
	for i := range all.Items {
		c := &all.Items[i]
		if !c.Spec.RequirePlaceVerb || !selection.MaySelect(c) {
			continue
		}
		out = append(out, access.Need{Why: whyPlace, Right: authorizationv1.ResourceAttributes{
			Verb: "place", Group: hubv1.GroupVersion.Group, Resource: "memberclusters", Name: c.Name,
		}})
	}
	return out, nil
}

// overriding returns the right to change the objects of others by overrides. For kinds of admission it includes the
// verb escalate on ClusterRoles, because such an object can change every request to a member.
func overriding(p hubv1.OverridePolicyObject) []access.Need {
	out := []access.Need{{Why: whyOverride, Right: authorizationv1.ResourceAttributes{
		Namespace: p.GetNamespace(), Verb: "override", Group: hubv1.GroupVersion.Group, Resource: "placements",
	}}}
	if slices.ContainsFunc(p.OverrideSpec().ResourceSelectors, func(s hubv1.ResourceSelector) bool { return s.APIGroup == "admissionregistration.k8s.io" }) {
		for _, right := range access.Granting(schema.GroupKind{Group: rbacv1.GroupName, Kind: "ClusterRole"}, "") {
			out = append(out, access.Need{Why: whyEscalate, Right: right})
		}
	}
	return out
}

// demand returns a refusal if the author lacks a right.
func (r *Reviewer) demand(ctx context.Context, who author, needs []access.Need) error {
	missing, err := access.Missing(ctx, r.options.Client, authenticationv1.UserInfo(who), needs)
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
	const maxNamed = 5
	if len(all) <= maxNamed {
		return strings.Join(all, separator)
	}
	return fmt.Sprintf("%s%sand %d more", strings.Join(all[:maxNamed], separator), separator, len(all)-maxNamed)
}
