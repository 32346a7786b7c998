package bundles

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/manifest"
	"github.com/hanse-dev/hanse/hub/store/scopes"
	"github.com/hanse-dev/hanse/placement/decide"
)

// A bundle that is rolled out as a whole has a SetRollout, which names the list of the objects that the bundle has now.
// All FederatedOperators have one, and each bundle whose objects follow a rollout. The hub stores the list and the
// objects first, then names the list in one write, and changes the stored objects of the bundle only then. A hub that
// stops in between thus leaves either the earlier list or the new one, and never a part of it.

// newSet is a list of the objects of a bundle that the SetRollout of the bundle does not name yet.
type newSet struct {
	list   decide.Payload
	parts  []decide.Payload
	record *hubv1.SetRollout // nil if the bundle has no SetRollout yet
}

// setOf returns the list of the objects of a bundle. It returns nil if the bundle's SetRollout names this list already,
// or if the bundle needs no SetRollout. The error is a *refusal if the list cannot be stored.
func (c *Controller) setOf(ctx context.Context, b hubv1.BundleObject, objects []*unstructured.Unstructured) (*newSet, error) {
	of := hubv1.ReferenceTo(b)
	record, err := c.setRollout(ctx, c.opts.Client, of)
	if err != nil {
		return nil, err
	}
	if record == nil {
		if needed, err := c.needsSet(ctx, of); err != nil || !needed {
			return nil, err
		}
	} else if record.Spec.BundleUID != b.GetUID() { // of an earlier bundle of this name
		if err := c.deleteSet(ctx, record); err != nil {
			return nil, err
		}
		return nil, errBehind
	}
	list := decide.SetList{}
	for _, o := range objects {
		list[hubv1.IdentityOf(o)] = decide.PartDigest(c.opts.Key, o)
	}
	out := &newSet{record: record}
	if out.list, err = list.Pack(c.opts.Key); err != nil {
		return nil, tooLarge(err)
	}
	if record != nil && record.Spec.Newest.List == out.list.Digest && !c.opts.Sets.SetLost(out.list.Digest) {
		return nil, nil
	}
	for _, o := range objects {
		part, err := decide.PackPart(c.opts.Key, o)
		if err != nil {
			return nil, tooLarge(fmt.Errorf("%s: %w", hubv1.IdentityOf(o), err))
		}
		out.parts = append(out.parts, part)
	}
	return out, nil
}

// writeSet stores the list of the objects of a bundle, and names it in the bundle's SetRollout. Nothing is written if
// the list is nil.
func (c *Controller) writeSet(ctx context.Context, b hubv1.BundleObject, set *newSet) error {
	if set == nil {
		return nil
	}
	of := hubv1.ReferenceTo(b)
	if err := c.opts.Sets.EnsureSet(ctx, set.list, set.parts); err != nil {
		return fmt.Errorf("storing the list of the objects of %s: %w", of, err)
	}
	if set.record != nil && set.record.Spec.Newest.List == set.list.Digest {
		return nil // the list was lost
	}
	newest := hubv1.SetList{List: set.list.Digest, Generation: b.GetGeneration(), Time: metav1.NewTime(c.opts.Clock.Now())}
	if set.record == nil {
		key := of.SetRolloutKey(c.opts.Namespace)
		record := &hubv1.SetRollout{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
			Spec:       hubv1.SetRolloutSpec{Bundle: of, BundleUID: b.GetUID(), Newest: newest},
		}
		if err := c.opts.Client.Create(ctx, record); err != nil {
			return fmt.Errorf("creating the SetRollout of %s: %w", of, err)
		}
		return nil
	}
	next := set.record.DeepCopy()
	next.Spec.Newest = newest
	if err := c.opts.Client.Patch(ctx, next, client.MergeFromWithOptions(set.record, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("naming the list of the objects of %s in its SetRollout: %w", of, err)
	}
	return nil
}

// tooLarge returns a refusal for an object that is too large to be stored. It returns any other error as it is.
func tooLarge(err error) error {
	if errors.Is(err, decide.ErrPayloadTooLarge) {
		return &refusal{hubv1.ReasonManifestInvalid, err.Error() + "; the stored objects stay"}
	}
	return err
}

// heldBySets returns a function that reports whether a cluster may hold an object of a bundle although the bundle no
// longer has it: a revision in the bundle's SetRollout that is in use has the object. The SetRollout is read uncached,
// because the leader may just have begun to decide on the bundle as a whole. If a list of a revision cannot be read, or
// the SetRollout is lost, the function returns true for all objects, because nothing is removed then. While the hub
// does not decide on the bundle as a whole, it returns false for all objects.
func (c *Controller) heldBySets(ctx context.Context, of hubv1.BundleReference) (func(hubv1.ObjectIdentity) bool, error) {
	record, err := c.setRollout(ctx, c.opts.APIReader, of)
	if err != nil {
		return nil, err
	}
	held := map[hubv1.ObjectIdentity]bool{}
	if record == nil || record.Spec.Rollout == nil {
		if record != nil && record.Spec.PlacementRef != nil { // the placement has no rollout any more
			return func(hubv1.ObjectIdentity) bool { return false }, nil
		}
		lost, err := c.lostSet(ctx, of)
		return func(hubv1.ObjectIdentity) bool { return lost }, err
	}
	for _, n := range decide.SetInUse(&record.Spec) {
		r := record.Spec.Revision(n)
		list, err := c.opts.Sets.SetList(ctx, r.List)
		if errors.Is(err, decide.ErrRevisionMissing) {
			return func(hubv1.ObjectIdentity) bool { return true }, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading revision %d of %s: %w", r.Number, of, err)
		}
		for id := range list {
			held[id] = true
		}
	}
	return func(id hubv1.ObjectIdentity) bool { return held[id] }, nil
}

// restored returns the changes that store objects again which the bundle no longer has, but a revision in use has: a
// rollout has returned to the revision after the hub had dropped the object, or a user has deleted the Secret. names
// are the objects that the bundle has. An object that belongs to another bundle by now is left out.
func (c *Controller) restored(ctx context.Context, b hubv1.BundleObject, names map[hubv1.ObjectIdentity]bool) (out []change, err error) {
	of := hubv1.OfBundle(b)
	record, err := c.setRollout(ctx, c.opts.Client, of.BundleReference)
	if err != nil || record == nil || record.Spec.Rollout == nil || record.Spec.BundleUID != b.GetUID() {
		return nil, err
	}
	done := map[hubv1.ObjectIdentity]bool{}
	for _, n := range slices.Backward(decide.SetInUse(&record.Spec)) { // the newest content of the object
		list, err := c.opts.Sets.SetList(ctx, record.Spec.Revision(n).List)
		if errors.Is(err, decide.ErrRevisionMissing) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("reading revision %d of %s: %w", n, of, err)
		}
		for _, id := range list.Objects() {
			if names[id] || done[id] {
				continue
			}
			done[id] = true
			ch, err := c.restore(ctx, b, id, list[id])
			if err != nil {
				return nil, err
			}
			out = append(out, ch...)
		}
	}
	return out, nil
}

// restore returns the change that stores an object of a revision of a bundle again, if it is not stored.
func (c *Controller) restore(ctx context.Context, b hubv1.BundleObject, id hubv1.ObjectIdentity, part string) ([]change, error) {
	before, sent, err := c.taken(ctx, hubv1.OfBundle(b), id)
	if refused := (*refusal)(nil); errors.As(err, &refused) || err == nil && before != nil && before.GetDeletionTimestamp() == nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	content, err := c.opts.Sets.SetPart(ctx, part)
	if errors.Is(err, decide.ErrRevisionMissing) {
		return nil, nil // the SetRollout stops with this error
	}
	if err != nil {
		return nil, fmt.Errorf("reading an earlier content of %s: %w", id, err)
	}
	next := manifest.Stored{Bundle: hubv1.OfBundle(b), UID: b.GetUID(), Generation: max(b.GetGeneration(), sent+1), Manifest: content.DeepCopy()}
	if before != nil {
		next.Generation = max(before.GetGeneration()+1, b.GetGeneration())
	}
	return []change{{next, before}}, nil
}

// lostSet reports whether a binding of a bundle without revisions has followed revisions of the bundle before. Their
// SetRollout is then lost.
func (c *Controller) lostSet(ctx context.Context, of hubv1.BundleReference) (bool, error) {
	bindings, err := scopes.Bindings(ctx, c.opts.Client, of.Namespace, client.MatchingFields{bundleIndex: of.String()}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return false, fmt.Errorf("listing the bindings of the objects of %s: %w", of, err)
	}
	return slices.ContainsFunc(bindings, func(b hubv1.BindingObject) bool { return b.GetAnnotations()[hubv1.SetFollowedAnnotation] != "" }), nil
}

// setRollout returns the SetRollout of a bundle, or nil.
func (c *Controller) setRollout(ctx context.Context, from client.Reader, of hubv1.BundleReference) (*hubv1.SetRollout, error) {
	record := &hubv1.SetRollout{}
	err := from.Get(ctx, of.SetRolloutKey(c.opts.Namespace), record)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the SetRollout of %s: %w", of, err)
	}
	return record, nil
}

// needsSet reports whether a bundle without a SetRollout needs one: it is an operator, or one of its objects follows a
// rollout.
func (c *Controller) needsSet(ctx context.Context, of hubv1.BundleReference) (bool, error) {
	if of.Kind == hubv1.FederatedOperatorKind {
		return true, nil
	}
	bindings, err := scopes.Bindings(ctx, c.opts.Client, of.Namespace, client.MatchingFields{bundleIndex: of.String()}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return false, fmt.Errorf("listing the bindings of the objects of %s: %w", of, err)
	}
	for _, b := range bindings {
		if b.BindingSpec().Rollout != nil {
			return true, nil
		}
	}
	return false, nil
}

// dropSet deletes the SetRollout of a deleted bundle. Its objects are then removed as those of a bundle without one.
func (c *Controller) dropSet(ctx context.Context, of hubv1.BundleReference) error {
	record, err := c.setRollout(ctx, c.opts.APIReader, of)
	if err != nil || record == nil {
		return err
	}
	live := of.New()
	if err := c.opts.APIReader.Get(ctx, of.Key(), live); err == nil && live.GetDeletionTimestamp() == nil {
		return errBehind // a new bundle of this name
	} else if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading %s uncached: %w", of, err)
	}
	return c.deleteSet(ctx, record)
}

func (c *Controller) deleteSet(ctx context.Context, record *hubv1.SetRollout) error {
	err := c.opts.Client.Delete(ctx, record, client.Preconditions{UID: &record.UID, ResourceVersion: &record.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting SetRollout %s: %w", record.Name, err)
	}
	return nil
}
