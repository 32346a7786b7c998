package views

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/answer"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/view/wire"
)

const (
	// MaxListed is the maximum number of objects in the answer to one ListRequest.
	MaxListed = 500
	// listWithin is the timeout of the requests to the member for one list. A member that hangs therefore does not block
	// the requests of other users for long.
	listWithin = 5 * time.Second
	// maxSelectorLength is the maximum length of a label selector.
	maxSelectorLength = 4 << 10
)

// list handles a ListRequest. It returns objects of a member, whether or not they are copies.
func (v *View) list(ctx context.Context, q *question) (any, error) {
	var in wire.ListRequest
	if err := q.read(&in); err != nil {
		return nil, err
	}
	if err := checkList(q, &in); err != nil {
		return nil, err
	}
	// This check comes first, because a user without the verb read must not learn which kinds the hub serves.
	if err := v.mayRead(ctx, q); err != nil {
		return nil, err
	}
	mapping, err := v.listed(in)
	if err != nil {
		return nil, err
	}
	namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace
	if !namespaced && q.namespace != "" {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s is cluster-scoped: leave out the namespace", mapping.Resource.Resource))
	}
	resource := mapping.Resource
	err = v.demand(ctx, q.who, authorizationv1.ResourceAttributes{
		Verb: "list", Group: resource.Group, Version: resource.Version, Resource: resource.Resource, Namespace: q.namespace, Name: in.Name,
	})
	if err != nil {
		return nil, err
	}
	m, err := v.reader(ctx, q)
	if err != nil {
		return nil, err
	}
	kind, err := v.kindOn(ctx, q.cluster, mapping.GroupVersionKind)
	if err != nil {
		return nil, err
	}
	asking, cancel := context.WithTimeout(q.keep(ctx), listWithin)
	defer cancel()
	found, err := m.List(asking, member.ListIntent{
		Kind: kind, Resource: resource.Resource, Namespace: q.namespace, Name: in.Name,
		LabelSelector: in.LabelSelector, Whole: in.Whole, Limit: in.Most,
	})
	switch {
	case apierrors.IsNotFound(err):
		return wire.ListAnswer{NotServed: true}, nil
	case err != nil:
		return nil, v.unread(q.cluster, resource.GroupResource(), err)
	}
	for _, o := range found.Objects {
		withoutSecrets(&unstructured.Unstructured{Object: o})
	}
	return wire.ListAnswer{Listed: found}, nil
}

// kindOn returns the kind in the version of the hub. If the member does not serve this version, it returns the kind in
// the version that the member prefers.
func (v *View) kindOn(ctx context.Context, cluster string, gvk schema.GroupVersionKind) (schema.GroupVersionKind, error) {
	c, err := v.memberCluster(ctx, cluster)
	if err != nil {
		return gvk, err
	}
	if served := c.ServedVersions(gvk.GroupKind()); len(served) > 0 && !slices.Contains(served, gvk.Version) {
		gvk.Version = served[0]
	}
	return gvk, nil
}

// checkList validates the request, and sets Most to its default if it is 0.
func checkList(q *question, in *wire.ListRequest) error {
	if in.Kind == "" || max(len(in.Group), len(in.Kind), len(in.Version), len(in.Name), len(q.namespace)) > maxNameLength {
		return apierrors.NewBadRequest("the request names no kind")
	}
	if in.Name != "" {
		if err := checkSegment("name", in.Name); err != nil {
			return err
		}
	}
	if in.Most = cmp.Or(in.Most, MaxListed); in.Most < 1 || in.Most > MaxListed {
		return apierrors.NewBadRequest(fmt.Sprintf("a list may have at most %d objects", MaxListed))
	}
	if len(in.LabelSelector) > maxSelectorLength {
		return apierrors.NewBadRequest(fmt.Sprintf("the label selector has more than %d bytes: use a shorter one", maxSelectorLength))
	}
	if _, err := labels.Parse(in.LabelSelector); err != nil {
		return apierrors.NewBadRequest("the label selector is invalid: " + err.Error())
	}
	q.who.asked = append(q.who.asked, schema.GroupKind{Group: in.Group, Kind: in.Kind}.String()+" "+in.Name)
	return nil
}

// listed returns the resource of the requested kind. The hub must serve the kind, because the user's rights are checked
// for its resource.
func (v *View) listed(in wire.ListRequest) (*meta.RESTMapping, error) {
	kind := schema.GroupKind{Group: in.Group, Kind: in.Kind}
	mapping, err := v.opts.Mapper.RESTMapping(kind, in.Version)
	switch {
	case meta.IsNoMatchError(err):
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the hub does not serve %s at version %q", kind, in.Version))
	case err != nil:
		return nil, v.resourceUnknown(kind, err)
	}
	return mapping, nil
}

// mayRead returns an error if the user lacks the verb read on the MemberCluster. For a request about a namespace, the
// verb read on the bindings of the namespace is enough, too. The verb view is not enough, because it is for copies
// only, and a list also has other objects.
func (v *View) mayRead(ctx context.Context, q *question) error {
	own := hubv1.GroupVersion.Group
	rights := []authorizationv1.ResourceAttributes{{Verb: "read", Group: own, Resource: "memberclusters", Name: q.cluster}}
	if q.namespace != "" {
		rights = append(rights, authorizationv1.ResourceAttributes{Verb: "read", Group: own, Resource: "resourcebindings", Namespace: q.namespace})
	}
	for _, right := range rights {
		if allowed, err := v.may(ctx, q.who, right); allowed || err != nil {
			return err
		}
	}
	which := ": ask for the ClusterRole hanse-read"
	if q.namespace != "" {
		which = ", or on resourcebindings in namespace " + q.namespace + ": ask for the ClusterRole hanse-read in namespace " + q.namespace
	}
	members := schema.GroupResource{Group: own, Resource: "memberclusters"}
	return apierrors.NewForbidden(members, q.cluster, fmt.Errorf("user %q needs the verb read on the MemberCluster%s", q.who.name, which))
}

// demand returns a Forbidden error if the user lacks a right on the hub.
func (v *View) demand(ctx context.Context, user who, right authorizationv1.ResourceAttributes) error {
	allowed, err := v.may(ctx, user, right)
	if err == nil && !allowed {
		resource := schema.GroupResource{Group: right.Group, Resource: right.Resource}
		if right.Subresource != "" {
			resource.Resource += "/" + right.Subresource
		}
		err = apierrors.NewForbidden(resource, right.Name, fmt.Errorf("user %q may not %s %s%s on the hub", user.name, right.Verb, resource, in(right.Namespace)))
	}
	return err
}

// reader waits until a request that is not about a hub object may be sent. It then returns the member for the request.
func (v *View) reader(ctx context.Context, q *question) (Member, error) {
	return v.member(ctx, q, false, placed{id: hubv1.ObjectIdentity{Namespace: q.namespace}})
}

// unread returns the error that the user gets for a list request that the member has refused or not answered. The error
// does not contain the text of the member.
func (v *View) unread(cluster string, resource schema.GroupResource, err error) error {
	failed := func(code int32, reason metav1.StatusReason, why string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: code, Reason: reason, Message: fmt.Sprintf("%s of cluster %s: %s", resource, cluster, why),
		}}
	}
	switch {
	case errors.Is(err, member.ErrNotConnected):
		return err
	case answer.IsTooLarge(err):
		return failed(http.StatusBadGateway, metav1.StatusReasonRequestEntityTooLarge, err.Error()+": narrow the request")
	case errors.Is(err, member.ErrUnreadable):
		return failed(http.StatusBadGateway, metav1.StatusReasonInternalError, err.Error())
	case apierrors.IsForbidden(err):
		return failed(http.StatusForbidden, metav1.StatusReasonForbidden, "not granted to the hub: see the values of the chart hanse-member")
	}
	return failed(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, causeOf(err))
}
