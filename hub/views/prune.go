package views

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/epoch"
	"github.com/hanse-dev/hanse/placement"
	"github.com/hanse-dev/hanse/view/wire"
)

const (
	// maxUnclaimed is the maximum number of copies in the answer to one UnclaimedRequest. maxPruned is the maximum
	// number of copies in one PruneRequest.
	maxUnclaimed = 5000
	maxPruned    = 25
	// workWithin is the timeout of all requests to the member for one request of a user. The time that is left until
	// answerWithin is for sending the answer.
	workWithin = 15 * time.Second
	// maxReviews is the maximum number of access reviews for one request. By these reviews, the hub finds the kinds that
	// the user may list. Beyond this number, the user counts as a user without the right.
	maxReviews = 200
)

// unclaimed handles an UnclaimedRequest. It lists the copies on a member that no binding claims: the object of the copy
// has no binding, or its binding does not name the member. It omits kinds that the user may not list on the hub.
func (v *View) unclaimed(ctx context.Context, q *question) (any, error) {
	if q.bounded {
		return nil, needsView(q)
	}
	if err := q.read(&wire.UnclaimedRequest{}); err != nil {
		return nil, err
	}
	m, err := v.member(ctx, q, true)
	if err != nil {
		return nil, err
	}
	epochs, rights, hidden := v.opts.Epochs.Current(), v.listRights(q.who), 0
	asking, cancel := context.WithTimeout(ctx, workWithin)
	defer cancel()
	var failed error // an error of the hub, not of the member
	found, err := m.Copies(asking, maxUnclaimed, func(c member.Copy) (bool, error) {
		_, claimed, err := claims(ctx, v.opts.Client, c.Object, q.cluster)
		if err != nil {
			failed = v.internal("reading a binding", err)
		}
		if claimed || failed != nil {
			return false, failed
		}
		var visible bool
		if visible, failed = rights.allow(ctx, c.Object); !visible {
			hidden++
		}
		return visible, failed
	})
	switch {
	case failed != nil:
		return nil, failed
	case err != nil: // the error's text comes from the member and is not shown
		return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("cluster %q did not say which kinds it serves: try again", q.cluster))
	}
	answer := wire.UnclaimedAnswer{Notes: found.Notes}
	if hidden > 0 {
		answer.Notes = append(answer.Notes, fmt.Sprintf("%d more copies of kinds that you may not list on the hub", hidden))
	}
	v.sortForRemoval(found.Copies)
	for _, c := range found.Copies {
		answer.Copies = append(answer.Copies, wire.UnclaimedCopy{
			ShownCopy: wire.ShownCopy{Object: wire.ObjectOf(c.Object), Version: c.GVK.Version, UID: c.UID, ResourceVersion: c.ResourceVersion},
			Created:   metav1.NewTime(c.Created), Removal: removalOf(c.Object, c.Adopted),
			Newer: epoch.State{Epochs: epochs}.Newer(c.Source, false),
		})
	}
	return answer, nil
}

// sortForRemoval sorts copies so that a copy comes before the copies on which it depends.
func (v *View) sortForRemoval(copies []member.Copy) {
	slices.SortFunc(copies, func(a, b member.Copy) int {
		return cmp.Or(
			cmp.Compare(v.opts.Rank(a.Object.GroupKind()), v.opts.Rank(b.Object.GroupKind())), cmp.Compare(a.Object.Kind, b.Object.Kind),
			cmp.Compare(a.Object.Group, b.Object.Group), cmp.Compare(a.Object.Namespace, b.Object.Namespace), cmp.Compare(a.Object.Name, b.Object.Name))
	})
}

// removalOf returns whether Prune deletes a copy, or orphans it (the object stays without the hub's labels and
// annotations). An adopted copy is always orphaned. Other copies get the default of their kind: most kinds are deleted,
// and kinds such as Namespace are orphaned.
func removalOf(id hubv1.ObjectIdentity, adopted bool) hubv1.RemovalPolicy {
	policy, _ := placement.DefaultRemoval(id.GroupKind(), hubv1.DeletionPolicy{})
	if adopted {
		policy = hubv1.RemovalOrphan
	}
	return policy
}

// claims reads the binding of an object. bound is true if the object has a binding. claimed is true if this binding
// names the cluster, even if only to remove the copy there.
func claims(ctx context.Context, bindings client.Reader, id hubv1.ObjectIdentity, cluster string) (bound, claimed bool, err error) {
	b := hubv1.NewBinding(id.BindingKey())
	if err := bindings.Get(ctx, id.BindingKey(), b, client.UnsafeDisableDeepCopy); err != nil {
		return false, false, client.IgnoreNotFound(err)
	}
	return true, b.BindingSpec().Target(cluster) != nil, nil
}

// prune handles a PruneRequest. It removes copies that no binding claims.
func (v *View) prune(ctx context.Context, q *question) (any, error) {
	if q.bounded {
		return nil, needsView(q)
	}
	var in wire.PruneRequest
	if err := q.read(&in); err != nil {
		return nil, err
	}
	if len(in.Copies) > maxPruned {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("at most %d copies can be pruned at a time", maxPruned))
	}
	for _, c := range in.Copies {
		if err := checkCopy(c); err != nil {
			return nil, err
		}
		q.who.asked = append(q.who.asked, c.Object.Identity().String())
	}
	members := hubv1.GroupVersion.WithResource("memberclusters").GroupResource()
	allowed, err := v.may(ctx, q.who, authorizationv1.ResourceAttributes{Verb: "prune", Group: members.Group, Resource: members.Resource, Name: q.cluster})
	switch {
	case err != nil:
		return nil, err
	case !allowed:
		return nil, apierrors.NewForbidden(members, q.cluster, fmt.Errorf("user %q needs the verb prune on the MemberCluster", q.who.name))
	}
	m, err := v.member(ctx, q, false)
	if err != nil {
		return nil, err
	}
	working, cancel := context.WithTimeout(ctx, workWithin)
	defer cancel()
	rights, answer := v.listRights(q.who), wire.PruneAnswer{}
	for _, c := range in.Copies {
		out := wire.PrunedCopy{Object: c.Object, Outcome: wire.PruneFailed, Message: "not tried, because the request took too long: run the command again"}
		if working.Err() == nil {
			out.Outcome, out.Message = v.pruneOne(working, q.cluster, m, rights, c)
		}
		v.opts.Logger.Info("Pruned a copy", "user", q.who.name, "cluster", q.cluster, "object", c.Object.Identity().String(), "uid", c.UID,
			"outcome", out.Outcome, "message", out.Message)
		answer.Copies = append(answer.Copies, out)
	}
	return answer, nil
}

// checkCopy returns an error if the request does not identify a copy. Group and version become parts of paths in
// requests to the member.
func checkCopy(c wire.ShownCopy) error {
	if err := checkName(c.Object); err != nil {
		return err
	}
	if err := checkSegment("version", c.Version); err != nil {
		return err
	}
	if c.UID == "" || c.ResourceVersion == "" || c.Version == "" || max(len(c.UID), len(c.ResourceVersion), len(c.Version)) > maxNameLength {
		return apierrors.NewBadRequest("the request lacks the UID, resourceVersion or version of a copy")
	}
	return nil
}

// pruneOne removes one copy, if an uncached read confirms that no binding claims it.
func (v *View) pruneOne(ctx context.Context, cluster string, m Member, rights *listRights, c wire.ShownCopy) (outcome wire.PruneOutcome, message string) {
	id := c.Object.Identity()
	visible, err := rights.allow(ctx, id)
	switch {
	case err != nil:
		return wire.PruneFailed, err.Error()
	case !visible:
		return wire.PruneFailed, fmt.Sprintf("you may not list %s on the hub", id.GroupKind())
	}
	bound, claimed, err := claims(ctx, v.opts.APIReader, id, cluster)
	switch {
	case err != nil:
		return wire.PruneFailed, v.internal("reading a binding uncached", err).Error()
	case claimed:
		return wire.PruneClaimed, "a binding claims the copy now"
	}
	in := member.PruneIntent{
		GVK: id.GroupKind().WithVersion(c.Version), Owner: id, UID: c.UID, ResourceVersion: c.ResourceVersion, Policy: removalOf(id, false),
	}
	in.Source.Epochs = v.opts.Epochs.Current()
	if err := v.describeHubObject(ctx, &in); err != nil {
		return wire.PruneFailed, v.internal("reading a hub object uncached", err).Error()
	}
	if in.OwnerUID != "" && !bound { // not pruned yet: the scheduler may soon create a binding
		return wire.PruneFailed, "the hub has the object, but no binding yet: place the object, or delete it on the hub"
	}
	o := m.Prune(ctx, in)
	if o.Reason == hubv1.ReasonHubIsOlder && in.Source.Epochs.Foreign(o.Newer.Mark.Epoch) {
		epochs, err := v.opts.Epochs.Confirm(ctx, o.Newer.Mark.Epoch)
		if err != nil {
			return wire.PruneFailed, v.internal("reading the epochs of the hub uncached", err).Error()
		}
		if !epochs.Foreign(o.Newer.Mark.Epoch) { // not foreign: another replica of this hub wrote the copy
			in.Source.Epochs = epochs
			o = m.Prune(ctx, in)
		}
	}
	return outcomeOf(&o), o.Message
}

// describeHubObject sets the UID and generation of the hub object in the intent. If the object does not exist, or if
// the hub has no right to read it, the generation is math.MaxInt64. No copy then counts as newer than the hub object.
func (v *View) describeHubObject(ctx context.Context, in *member.PruneIntent) error {
	in.Source.Mark.Generation = math.MaxInt64
	object := &metav1.PartialObjectMetadata{}
	mapping, err := v.opts.Mapper.RESTMapping(in.GVK.GroupKind())
	if meta.IsNoMatchError(err) {
		return nil
	} else if err != nil {
		return err
	}
	object.SetGroupVersionKind(mapping.GroupVersionKind)
	err = v.opts.APIReader.Get(ctx, types.NamespacedName{Namespace: in.Owner.Namespace, Name: in.Owner.Name}, object)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return nil
	case err != nil:
		return err
	}
	in.OwnerUID, in.Source.Mark.Generation = object.UID, object.Generation
	in.Source.Accepted = object.Annotations[hubv1.AcceptSourceAnnotation]
	return nil
}

func outcomeOf(o *member.Outcome) wire.PruneOutcome {
	switch {
	case o.Orphaned != nil:
		return wire.PruneOrphaned
	case o.Applied == metav1.ConditionTrue && o.Message == "":
		return wire.PruneRemoved
	case o.Applied == metav1.ConditionTrue:
		return wire.PruneNotOurs
	case o.Reason == hubv1.ReasonDeleting, o.Reason == hubv1.ReasonFinalizersRemain:
		return wire.PruneDeleting
	case o.Reason == hubv1.ReasonHubIsOlder:
		return wire.PruneHeld
	}
	return wire.PruneFailed
}

// listRights finds which kinds a user may list on the hub, and caches the results.
type listRights struct {
	view      *View
	who       who
	resources map[schema.GroupKind]schema.GroupVersionResource
	answers   map[authorizationv1.ResourceAttributes]bool
}

func (v *View) listRights(user who) *listRights {
	return &listRights{view: v, who: user, resources: map[schema.GroupKind]schema.GroupVersionResource{}, answers: map[authorizationv1.ResourceAttributes]bool{}}
}

// allow reports whether the user may list the object's kind, in all namespaces or in the object's namespace.
func (l *listRights) allow(ctx context.Context, id hubv1.ObjectIdentity) (bool, error) {
	resource, err := l.resource(id.GroupKind())
	if err != nil {
		return false, err
	}
	for _, namespace := range []string{"", id.Namespace} {
		allowed, err := l.ask(ctx, authorizationv1.ResourceAttributes{
			Verb: "list", Group: resource.Group, Version: resource.Version, Resource: resource.Resource, Namespace: namespace,
		})
		if err != nil || allowed {
			return allowed, err
		}
	}
	return false, nil
}

func (l *listRights) ask(ctx context.Context, what authorizationv1.ResourceAttributes) (bool, error) {
	if allowed, asked := l.answers[what]; asked || len(l.answers) >= maxReviews {
		return allowed, nil
	}
	allowed, err := l.view.may(ctx, l.who, what)
	if err == nil {
		l.answers[what] = allowed
	}
	return allowed, err
}

// resource returns the resource of a kind on the hub. If the hub does not serve the kind, the result is the wildcard
// for all resources of the kind's API group. The user then needs the right to list all resources of this group.
func (l *listRights) resource(kind schema.GroupKind) (schema.GroupVersionResource, error) {
	if known, asked := l.resources[kind]; asked {
		return known, nil
	}
	found := schema.GroupVersionResource{Group: kind.Group, Version: "*", Resource: "*"}
	mapping, err := l.view.opts.Mapper.RESTMapping(kind)
	switch {
	case err == nil:
		found = mapping.Resource
	case !meta.IsNoMatchError(err):
		return found, l.view.resourceUnknown(kind, err)
	}
	l.resources[kind] = found
	return found, nil
}
