package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// author of a change, as the API server sends it.
type author authenticationv1.UserInfo

// need is a right that the author must have on the hub, and why.
type need struct {
	attributes authorizationv1.ResourceAttributes
	why        string
}

const (
	whySelected = "the hub writes and deletes the selected objects on members for the author"
	whyOverride = "the policy changes objects that others placed"
	whyAdopt    = "spec.apply.adoption takes over objects that exist on members"
	whyPlace    = "spec.requirePlaceVerb of the MemberCluster requires it; or exclude the cluster with spec.clusters.excludedNames"
	whyEscalate = "the policy changes the rights of others on members"
)

// selected returns the rights on every selected kind. An empty namespace means all namespaces.
func (r *Reviewer) selected(selectors []hubv1.ResourceSelector, namespace string) ([]need, error) {
	if len(selectors) > mostSelectors {
		return nil, &refusal{text: fmt.Sprintf("spec.resourceSelectors: more than %d", mostSelectors)}
	}
	var out []need
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
			n := need{why: whySelected, attributes: authorizationv1.ResourceAttributes{
				Namespace: namespace, Verb: verb, Group: s.APIGroup, Resource: resource, Name: name,
			}}
			if !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	return out, nil
}

// resource returns the resource of a selected kind. For a kind that the hub does not serve, and for every kind of a
// group, it is all resources of the group.
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

// mapping of a kind; false if the hub does not serve the kind. A failed request is an error, not a missing kind.
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

// adoption returns the rights to take over objects on the named members, or on all members.
func adoption(spec *hubv1.PlacementSpec) []need {
	if spec.Apply.Adoption == "" || spec.Apply.Adoption == hubv1.AdoptionNever {
		return nil
	}
	names := spec.Clusters.Names
	if len(names) == 0 {
		names = []string{""}
	}
	var out []need
	for _, name := range names {
		out = append(out, need{why: whyAdopt, attributes: authorizationv1.ResourceAttributes{
			Verb: "adopt", Group: hubv1.GroupVersion.Group, Resource: "memberclusters", Name: name,
		}})
	}
	return out
}

// placing returns the rights to place objects on clusters with requirePlaceVerb that the names and labels of a
// placement select. The expression is ignored, because its result can change.
func (r *Reviewer) placing(ctx context.Context, selection *hubv1.ClusterSelection) ([]need, error) {
	var all hubv1.MemberClusterList
	if err := r.options.Client.List(ctx, &all); err != nil {
		return nil, fmt.Errorf("listing MemberClusters: %w", err)
	}
	var out []need
	for i := range all.Items {
		c := &all.Items[i]
		if !c.Spec.RequirePlaceVerb || !selection.MaySelect(c) {
			continue
		}
		out = append(out, need{why: whyPlace, attributes: authorizationv1.ResourceAttributes{
			Verb: "place", Group: hubv1.GroupVersion.Group, Resource: "memberclusters", Name: c.Name,
		}})
	}
	return out, nil
}

// overriding returns the rights to change placed objects. Overrides of RBAC or admission kinds need the rights that the
// hub's API server requires for a direct change: escalate and bind.
func overriding(p hubv1.OverridePolicyObject) []need {
	namespace := p.GetNamespace()
	out := []need{{why: whyOverride, attributes: authorizationv1.ResourceAttributes{
		Namespace: namespace, Verb: "override", Group: hubv1.GroupVersion.Group, Resource: "placements",
	}}}
	const rbac = "rbac.authorization.k8s.io"
	add := func(verb, namespace string, resources ...string) {
		for _, resource := range resources {
			n := need{why: whyEscalate, attributes: authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: rbac, Resource: resource}}
			if !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	for _, s := range p.OverrideSpec().ResourceSelectors {
		is := func(kind string) bool { return s.Kind == kind || s.Kind == "*" }
		switch s.APIGroup {
		case rbac:
			if is("Role") {
				add("escalate", namespace, "roles")
			}
			if is("ClusterRole") {
				add("escalate", "", "clusterroles")
			}
			if is("RoleBinding") {
				add("bind", namespace, "roles", "clusterroles")
			}
			if is("ClusterRoleBinding") {
				add("bind", "", "clusterroles")
			}
		case "admissionregistration.k8s.io":
			add("escalate", "", "clusterroles")
		}
	}
	return out
}

// asksAtOnce is how many rights are asked for at a time.
const asksAtOnce = 8

// demand refuses if the author lacks a right.
func (r *Reviewer) demand(ctx context.Context, who author, needs []need) error {
	lacks := make([]bool, len(needs))
	asking, ctx := errgroup.WithContext(ctx)
	asking.SetLimit(asksAtOnce)
	for i, n := range needs {
		asking.Go(func() (err error) {
			lacks[i], err = r.lacks(ctx, who, n)
			return err
		})
	}
	if err := asking.Wait(); err != nil {
		return err
	}
	// In the order of the policy; the verbs of one resource together.
	var missing []string
	for i := 0; i < len(needs); i++ {
		if !lacks[i] {
			continue
		}
		first, verbs := needs[i], []string{needs[i].attributes.Verb}
		for i+1 < len(needs) && sameBut(needs[i+1], first) {
			if i++; lacks[i] {
				verbs = append(verbs, needs[i].attributes.Verb)
			}
		}
		missing = append(missing, fmt.Sprintf("%s %s: %s", strings.Join(verbs, ", "), placeOf(first.attributes), first.why))
	}
	if len(missing) == 0 {
		return nil
	}
	return &refusal{forbidden: true, text: fmt.Sprintf("%s needs the right to %s", who.Username, someOf(missing, "; "))}
}

func sameBut(a, b need) bool {
	return a.why == b.why && a.attributes.Group == b.attributes.Group && a.attributes.Resource == b.attributes.Resource &&
		a.attributes.Namespace == b.attributes.Namespace && (a.attributes.Name == b.attributes.Name || a.attributes.Verb == "create" || b.attributes.Verb == "create")
}

// placeOf is such as "prometheuses.monitoring.coreos.com in namespace a".
func placeOf(a authorizationv1.ResourceAttributes) string {
	out := schema.GroupResource{Group: a.Group, Resource: a.Resource}.String()
	if a.Name != "" {
		out += " " + a.Name
	}
	if a.Namespace != "" {
		return out + " in namespace " + a.Namespace
	}
	return out + " in the whole cluster"
}

func (r *Reviewer) lacks(ctx context.Context, who author, n need) (bool, error) {
	extra := map[string]authorizationv1.ExtraValue{}
	for key, value := range who.Extra {
		extra[key] = authorizationv1.ExtraValue(value)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		ResourceAttributes: &n.attributes, User: who.Username, Groups: who.Groups, UID: who.UID, Extra: extra,
	}}
	if err := r.options.Client.Create(ctx, review); err != nil {
		return false, fmt.Errorf("asking whether %s may %s %s: %w", who.Username, n.attributes.Verb, placeOf(n.attributes), err)
	}
	return !review.Status.Allowed, nil
}

// someOf joins the first five texts, with the number of the others.
func someOf(all []string, separator string) string {
	const most = 5
	if len(all) <= most {
		return strings.Join(all, separator)
	}
	return fmt.Sprintf("%s%sand %d more", strings.Join(all[:most], separator), separator, len(all)-most)
}
