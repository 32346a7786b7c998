package access

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Has reports whether a user has a right.
func Has(ctx context.Context, c client.Writer, user authenticationv1.UserInfo, right authorizationv1.ResourceAttributes) (bool, error) {
	extra := map[string]authorizationv1.ExtraValue{}
	for key, value := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(value)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		ResourceAttributes: &right, User: user.Username, Groups: user.Groups, UID: user.UID, Extra: extra,
	}}
	if err := c.Create(ctx, review); err != nil {
		return false, fmt.Errorf("asking whether %s may %s %s: %w", user.Username, right.Verb, placeOf(right), err)
	}
	return review.Status.Allowed, nil
}

// Need is a right that a user must have, and the reason why. The reason may be empty.
type Need struct {
	Right authorizationv1.ResourceAttributes
	Why   string
}

// asksAtOnce is the maximum number of concurrent reviews.
const asksAtOnce = 8

// Missing returns texts about the rights that a user lacks, in the order of needs. The verbs of one resource are in one
// text, such as "create, delete deployments.apps in namespace shop: the reason".
func Missing(ctx context.Context, c client.Writer, user authenticationv1.UserInfo, needs []Need) ([]string, error) {
	lacks := make([]bool, len(needs))
	asking, ctx := errgroup.WithContext(ctx)
	asking.SetLimit(asksAtOnce)
	for i, n := range needs {
		asking.Go(func() error {
			has, err := Has(ctx, c, user, n.Right)
			lacks[i] = !has
			return err
		})
	}
	if err := asking.Wait(); err != nil {
		return nil, err
	}
	var missing []string
	for i := 0; i < len(needs); i++ {
		if !lacks[i] {
			continue
		}
		first, verbs := needs[i], []string{needs[i].Right.Verb}
		for i+1 < len(needs) && sameBut(needs[i+1], first) {
			if i++; lacks[i] {
				verbs = append(verbs, needs[i].Right.Verb)
			}
		}
		text := strings.Join(verbs, ", ") + " " + placeOf(first.Right)
		if first.Why != "" {
			text += ": " + first.Why
		}
		missing = append(missing, text)
	}
	return missing, nil
}

// sameBut reports whether two needs differ only in the verb. For the verb create, the name of the object does not
// count, because authorization ignores it.
func sameBut(a, b Need) bool {
	return a.Why == b.Why && a.Right.Group == b.Right.Group && a.Right.Resource == b.Right.Resource && a.Right.Namespace == b.Right.Namespace &&
		(a.Right.Name == b.Right.Name || a.Right.Verb == "create" || b.Right.Verb == "create")
}

// placeOf returns the resource and namespace of a right as text, such as "prometheuses.monitoring.coreos.com in
// namespace a".
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

// ToWrite returns the rights that a user needs to write objects of a kind directly: get first, then create, update and
// delete, and the rights of Granting. A resource "*" stands for all resources of the group. A name that is not empty
// limits the rights to one object, except create, which is authorized without the name.
func ToWrite(kind schema.GroupKind, resource, namespace, name string) []authorizationv1.ResourceAttributes {
	var out []authorizationv1.ResourceAttributes
	for _, verb := range []string{"get", "create", "update", "delete"} {
		right := authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: kind.Group, Resource: resource, Name: name}
		if verb == "create" {
			right.Name = ""
		}
		out = append(out, right)
	}
	return append(out, Granting(kind, namespace)...)
}

// Granting returns the additional rights that the API server requires to write an object that gives rights to others:
// escalate for roles, and bind for role bindings. The kind "*" stands for all kinds of the group. It returns none for
// other kinds.
func Granting(kind schema.GroupKind, namespace string) []authorizationv1.ResourceAttributes {
	if kind.Group != rbacv1.GroupName {
		return nil
	}
	var out []authorizationv1.ResourceAttributes
	add := func(namespace, verb string, resources ...string) {
		for _, resource := range resources {
			right := authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: rbacv1.GroupName, Resource: resource}
			if !slices.Contains(out, right) {
				out = append(out, right)
			}
		}
	}
	of := func(name string) bool { return kind.Kind == name || kind.Kind == "*" }
	if of("Role") {
		add(namespace, "escalate", "roles")
	}
	if of("ClusterRole") {
		add("", "escalate", "clusterroles")
	}
	if of("RoleBinding") {
		add(namespace, "bind", "roles", "clusterroles")
	}
	if of("ClusterRoleBinding") {
		add("", "bind", "clusterroles")
	}
	return out
}
