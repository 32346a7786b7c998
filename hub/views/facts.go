package views

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/scopes"
	"github.com/hanse-dev/hanse/view/wire"
)

// mayViewNamespace reports whether the user has the verb view on the bindings of a namespace. The ClusterRole
// hanse-view has this verb.
func (v *View) mayViewNamespace(ctx context.Context, user who, namespace string) (bool, error) {
	bindings := hubv1.GroupVersion.WithResource("resourcebindings")
	return v.may(ctx, user, authorizationv1.ResourceAttributes{Verb: "view", Group: bindings.Group, Resource: bindings.Resource, Namespace: namespace})
}

// facts handles a FactsRequest. It returns the clusters and policies that affect the objects of a namespace, without
// the fields that do not concern the namespace, see narrow.go.
func (v *View) facts(ctx context.Context, q *question) (any, error) {
	if err := q.read(&wire.FactsRequest{}); err != nil {
		return nil, err
	}
	if q.namespace == "" {
		return nil, apierrors.NewBadRequest("the request names no namespace")
	}
	n, err := v.readNamespace(ctx, q.namespace)
	if err != nil {
		return nil, err
	}
	rights := v.listRights(q.who)
	if n.readable, err = rights.mayGet(ctx, q.namespace, n.kinds()); err != nil {
		return nil, err
	}
	return n.narrow(), nil
}

// readNamespace reads the policies, bindings and clusters that affect a namespace from the cache.
func (v *View) readNamespace(ctx context.Context, namespace string) (*namespaceFacts, error) {
	n := &namespaceFacts{name: namespace}
	var ns corev1.Namespace
	err := v.opts.Client.Get(ctx, client.ObjectKey{Name: namespace}, &ns)
	if client.IgnoreNotFound(err) != nil {
		return nil, v.internal("reading a namespace", err)
	}
	n.labels = ns.Labels
	if n.bindings, err = scopes.Bindings(ctx, v.opts.Client, namespace, client.UnsafeDisableDeepCopy); err != nil {
		return nil, v.internal("reading the policies and clusters of a namespace", err)
	}
	if n.placements, err = scopes.PlacementsFor(ctx, v.opts.Client, namespace, client.UnsafeDisableDeepCopy); err != nil {
		return nil, v.internal("reading the policies and clusters of a namespace", err)
	}
	if n.overrides, err = scopes.OverridePoliciesFor(ctx, v.opts.Client, namespace, client.UnsafeDisableDeepCopy); err != nil {
		return nil, v.internal("reading the policies and clusters of a namespace", err)
	}
	var clusters hubv1.MemberClusterList
	if err := v.opts.Client.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
		return nil, v.internal("reading the policies and clusters of a namespace", err)
	}
	n.clusters = clusters.Items
	return n, nil
}

// mayGet reports for each kind whether the user may get its objects in the namespace. Kinds that the hub does not serve
// are left out.
func (l *listRights) mayGet(ctx context.Context, namespace string, kinds []schema.GroupKind) (map[schema.GroupKind]bool, error) {
	out := map[schema.GroupKind]bool{}
	for _, kind := range kinds {
		mapping, err := l.view.opts.Mapper.RESTMapping(kind)
		switch {
		case meta.IsNoMatchError(err):
			continue // the hub does not serve the kind
		case err != nil:
			return nil, l.view.resourceUnknown(kind, err)
		}
		allowed, err := l.ask(ctx, authorizationv1.ResourceAttributes{
			Verb: "get", Group: kind.Group, Version: mapping.Resource.Version, Resource: mapping.Resource.Resource, Namespace: namespace,
		})
		if err != nil {
			return nil, err
		}
		out[kind] = allowed
	}
	return out, nil
}

// needsRole returns the error for a user who may not view the namespace. It names the needed ClusterRole.
func needsRole(user who, namespace string) error {
	return apierrors.NewForbidden(hubv1.GroupVersion.WithResource("resourcebindings").GroupResource(), "", fmt.Errorf(
		"user %q needs the verb view on resourcebindings in namespace %s: ask for the ClusterRole hanse-view in namespace %s", user.name, namespace, namespace))
}
