package bundles

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// asksAtOnce is how many rights are asked for at a time.
const asksAtOnce = 8

// right is a right on the objects of one resource in one namespace; an empty namespace means the whole cluster.
type right struct{ verb, group, resource, namespace string }

// allowed returns a refusal unless the ServiceAccount of the bundle may make the changes itself on the hub. A bundle is
// no way to send an object to members that its author may not create.
func (c *Controller) allowed(ctx context.Context, b hubv1.BundleObject, changed []change) error {
	var needed []right
	for _, ch := range changed {
		if ch.Removed.IsZero() {
			needed = append(needed, c.rightsOn(ch.id())...)
		}
	}
	slices.SortFunc(needed, func(a, b right) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.group, b.group), cmp.Compare(a.resource, b.resource), cmp.Compare(a.verb, b.verb))
	})
	needed = slices.Compact(needed)
	account := fmt.Sprintf("system:serviceaccount:%s:%s", c.home(b), b.BundleSpec().ServiceAccountName)
	groups := []string{"system:serviceaccounts", "system:serviceaccounts:" + c.home(b), "system:authenticated"}
	lacks := make([]bool, len(needed))
	asking, ctx := errgroup.WithContext(ctx)
	asking.SetLimit(asksAtOnce)
	for i, r := range needed {
		asking.Go(func() error {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: account, Groups: groups,
				ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: r.namespace, Verb: r.verb, Group: r.group, Resource: r.resource},
			}}
			if err := c.Client.Create(ctx, review); err != nil {
				return fmt.Errorf("asking whether %s may %s %s: %w", account, r.verb, r.resource, err)
			}
			lacks[i] = !review.Status.Allowed
			return nil
		})
	}
	if err := asking.Wait(); err != nil {
		return err
	}
	if missing := missing(needed, lacks); len(missing) > 0 {
		return &refusal{hubv1.ReasonAccountMayNot, fmt.Sprintf("ServiceAccount %s/%s of the hub needs the right to %s; the stored objects stay",
			c.home(b), b.BundleSpec().ServiceAccountName, strings.Join(missing, "; "))}
	}
	return nil
}

// missing returns the lacking rights, the verbs of one resource together, such as "create, delete deployments.apps in
// namespace shop".
func missing(needed []right, lacks []bool) []string {
	var out []string
	for i := 0; i < len(needed); {
		first := needed[i]
		var verbs []string
		for ; i < len(needed) && needed[i].namespace == first.namespace && needed[i].group == first.group && needed[i].resource == first.resource; i++ {
			if lacks[i] {
				verbs = append(verbs, needed[i].verb)
			}
		}
		if len(verbs) == 0 {
			continue
		}
		where := "in the whole cluster"
		if first.namespace != "" {
			where = "in namespace " + first.namespace
		}
		out = append(out, fmt.Sprintf("%s %s %s", strings.Join(verbs, ", "), schema.GroupResource{Group: first.group, Resource: first.resource}, where))
	}
	return out
}

// rightsOn returns the rights that the API server would ask for if the account wrote the object itself. RBAC also asks
// for escalate and bind.
func (c *Controller) rightsOn(id hubv1.ObjectIdentity) []right {
	gk := id.GroupKind()
	plural, _ := meta.UnsafeGuessKindToResource(gk.WithVersion("v1"))
	resource := plural.Resource // of a kind that the hub does not serve
	if mapping, err := c.Mapper.RESTMapping(gk); err == nil {
		resource = mapping.Resource.Resource
	}
	var out []right
	for _, verb := range []string{"get", "create", "update", "delete"} {
		out = append(out, right{verb, gk.Group, resource, id.Namespace})
	}
	if gk.Group != "rbac.authorization.k8s.io" {
		return out
	}
	switch gk.Kind {
	case "Role", "ClusterRole":
		out = append(out, right{"escalate", gk.Group, resource, id.Namespace})
	case "RoleBinding", "ClusterRoleBinding":
		out = append(out, right{"bind", gk.Group, "clusterroles", id.Namespace}, right{"bind", gk.Group, "roles", id.Namespace})
	}
	return out
}
