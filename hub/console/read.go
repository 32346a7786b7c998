package console

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/scopes"
	"github.com/hanse-dev/hanse/hub/views"
)

// unlessForbidden turns a Forbidden error into a note on the page and returns nil, so that the user sees the rest of
// the page. `so` is the part of the note that says what is missing.
func (u *user) unlessForbidden(err error, so string) error {
	if apierrors.IsForbidden(err) {
		u.note(so + ": " + lacking(err))
		return nil
	}
	return err
}

// lacking returns the part of a Forbidden error that says which right is missing, such as "you cannot list resource
// "events" in API group "" in the namespace "shop"". For an error of another form, it returns the whole text.
func lacking(err error) string {
	if _, what, found := strings.Cut(err.Error(), " cannot "); found {
		return "you cannot " + what
	}
	return err.Error()
}

// members lists the MemberClusters that the user may list.
func (u *user) members(ctx context.Context) ([]hubv1.MemberCluster, error) {
	var list hubv1.MemberClusterList
	if err := u.unlessForbidden(u.List(ctx, &list), "You do not see the clusters"); err != nil {
		return nil, fmt.Errorf("listing MemberClusters: %w", err)
	}
	return list.Items, nil
}

// member reads a MemberCluster. A user who may see only one namespace gets the fields that concern this namespace.
func (u *user) member(ctx context.Context, name string) (*hubv1.MemberCluster, error) {
	m := &hubv1.MemberCluster{}
	err := u.Get(ctx, client.ObjectKey{Name: name}, m)
	if err == nil {
		return m, nil
	}
	narrowed, ok := u.Client.(*views.Narrowed)
	switch {
	case apierrors.IsForbidden(err) && !ok:
		return nil, fmt.Errorf("%w: %w", errNeedsNamespace, err)
	case !apierrors.IsForbidden(err):
		return nil, fmt.Errorf("reading MemberCluster %s: %w", name, err)
	}
	var list hubv1.MemberClusterList
	if err := narrowed.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("reading MemberCluster %s: %w", name, err)
	}
	for i := range list.Items {
		if list.Items[i].Name == name {
			u.note("You see the part of the cluster that concerns namespace " + narrowed.Namespace + ".")
			return &list.Items[i], nil
		}
	}
	return nil, fmt.Errorf("%w cluster %s for namespace %s", errNotFound, name, narrowed.Namespace)
}

// errNeedsNamespace is the error for a user who may see only single namespaces and has not named one.
var errNeedsNamespace = errors.New("you have no right to see all namespaces")

// pageSize is the page size of list requests. It is small, because a binding with 2,000 clusters has about 1 MB.
const pageSize = 100

// eachBinding calls visit for the bindings of a namespace, or for all bindings if namespace is empty. visit must not
// change a binding.
func (u *user) eachBinding(ctx context.Context, namespace string, visit func(hubv1.BindingObject)) error {
	if namespace != "" {
		return u.eachIn(ctx, in(namespace), visit)
	}
	if err := u.eachIn(ctx, everywhere, visit); apierrors.IsForbidden(err) {
		return fmt.Errorf("%w: %w", errNeedsNamespace, err)
	} else if err != nil {
		return err
	}
	return u.unlessForbidden(u.eachIn(ctx, inCluster, visit), "You do not see objects without a namespace")
}

// eachIn calls visit for the bindings of a scope. For an action, it reads them from the API server. For a page, it
// reads them from the hub's cache, so that many open pages do not load the API server. In this case, it first checks
// the user's rights with a small list request to the API server.
func (u *user) eachIn(ctx context.Context, of scope, visit func(hubv1.BindingObject)) error {
	if u.cache != nil {
		if err := u.mayList(ctx, of); err != nil {
			return err
		}
		list, options := bindingsOf(of)
		if err := u.cache.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
			return fmt.Errorf("reading the hub's bindings of %s: %w", of, err)
		}
		return meta.EachListItem(list, func(o runtime.Object) error {
			visit(o.(hubv1.BindingObject))
			return nil
		})
	}
	switch of {
	case inCluster:
		return scopes.EachClusterBinding(ctx, u, pageSize, visit)
	case everywhere:
		return scopes.EachBinding(ctx, u, "", pageSize, visit)
	}
	return scopes.EachBinding(ctx, u, string(of), pageSize, visit)
}

// placements lists the placements of a namespace and the ClusterPlacements, or all of them if namespace is empty. A
// user of one namespace may read only its placements.
func (u *user) placements(ctx context.Context, namespace string) ([]hubv1.PlacementObject, error) {
	placements, err := scopes.Placements(ctx, u, client.InNamespace(namespace))
	if err := u.unlessForbidden(err, "You do not see all placements"); err != nil {
		return nil, fmt.Errorf("listing placements: %w", err)
	}
	if len(placements) > 0 || namespace == "" {
		return placements, nil
	}
	var here hubv1.PlacementList
	if err := u.unlessForbidden(u.List(ctx, &here, client.InNamespace(namespace)), "You do not see placements"); err != nil {
		return nil, fmt.Errorf("listing Placements: %w", err)
	}
	for i := range here.Items {
		placements = append(placements, &here.Items[i])
	}
	return placements, nil
}

// eachPolicy calls visit with the conditions of each placement and override policy of a namespace. If namespace is
// empty, it visits all policies, including cluster-scoped ones. It returns the placements.
func (u *user) eachPolicy(ctx context.Context, namespace string, visit func(of string, conditions []metav1.Condition)) ([]hubv1.PlacementObject, error) {
	placements, err := u.placements(ctx, namespace)
	if err != nil {
		return nil, err
	}
	for _, p := range placements {
		visit(kindOf(p, "Placement")+" "+nameOf(p), p.PlacementStatus().Conditions)
	}
	overrides, err := scopes.OverridePolicies(ctx, u, client.InNamespace(namespace))
	if err := u.unlessForbidden(err, "You do not see all override policies"); err != nil {
		return nil, fmt.Errorf("listing override policies: %w", err)
	}
	for _, p := range overrides {
		visit(kindOf(p, "OverridePolicy")+" "+nameOf(p), p.OverrideStatus().Conditions)
	}
	return placements, nil
}

// eachBundle calls visit for each Bundle and FederatedOperator of a namespace. If namespace is empty, it visits all of
// them, including cluster-scoped ones.
func (u *user) eachBundle(ctx context.Context, namespace string, visit func(hubv1.BundleObject)) error {
	bundles, err := scopes.Bundles(ctx, u, client.InNamespace(namespace))
	if apierrors.IsForbidden(err) && namespace != "" { // a user of one namespace may read only its Bundles
		err, bundles = nil, nil
		var here hubv1.BundleList
		if err := u.unlessForbidden(u.List(ctx, &here, client.InNamespace(namespace)), "You do not see Bundles"); err != nil {
			return fmt.Errorf("listing Bundles: %w", err)
		}
		for i := range here.Items {
			bundles = append(bundles, &here.Items[i])
		}
	}
	if err := u.unlessForbidden(err, "You do not see all bundles"); err != nil {
		return fmt.Errorf("listing bundles: %w", err)
	}
	for _, b := range bundles {
		visit(b)
	}
	return nil
}

// kindOf returns the kind of an object. If the object has a namespace, this is the argument `namespaced`, such as
// Placement. Otherwise it is the cluster-scoped kind, such as ClusterPlacement.
func kindOf(o metav1.Object, namespaced string) string {
	if o.GetNamespace() == "" {
		return "Cluster" + namespaced
	}
	return namespaced
}

// nameOf returns NAMESPACE/NAME, or NAME for a cluster-scoped object.
func nameOf(o metav1.Object) string {
	return strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
}

// mayList returns an error if the user may not list the bindings of a scope.
func (u *user) mayList(ctx context.Context, of scope) error {
	if of != everywhere && of != inCluster && len(validation.IsDNS1123Label(string(of))) > 0 {
		return apierrors.NewBadRequest("the scope is not a namespace")
	}
	list, options := bindingsOf(of)
	if err := u.List(ctx, list, append(options, client.Limit(1))...); err != nil {
		return fmt.Errorf("listing the bindings of %s: %w", of, err)
	}
	return nil
}

// bindingsOf returns an empty list object for the bindings of a scope, and the options with which to list these
// bindings.
func bindingsOf(of scope) (client.ObjectList, []client.ListOption) {
	switch of {
	case inCluster:
		return &hubv1.ClusterResourceBindingList{}, nil
	case everywhere:
		return &hubv1.ResourceBindingList{}, nil
	}
	return &hubv1.ResourceBindingList{}, []client.ListOption{client.InNamespace(string(of))}
}

// mayNotWatch reports whether the user may no longer see the objects of the scope. It returns false if the check fails
// for another reason than a missing right or an invalid token.
func (c *Console) mayNotWatch(ctx context.Context, v *visit, of scope) bool {
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	err := v.user.mayList(ctx, of)
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}
