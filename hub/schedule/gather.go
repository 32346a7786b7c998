package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/scopes"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/placement/replicas"
)

var (
	errNotListed   = errors.New("the hub has not listed the objects of this kind yet")
	errOtherObject = errors.New("the binding belongs to another object")
	errNoNamespace = errors.New("the hub has not read the namespace yet")
)

// gather reads the inputs of the decision on an object. If a read fails, it returns an error, or marks the object with
// a State such as Unreadable. It never treats a failed read as a missing object.
func (s *Scheduler) gather(ctx context.Context, id hubv1.ObjectIdentity) (decide.Input, error) {
	in := decide.Input{
		Object:  decide.Object{ID: id, HubRuns: s.Refused(id.GroupKind())},
		Objects: s.inputs.counts.objectsByCluster(), Removals: s.shared.removals.of(id), Now: s.opts.Clock.Now(), Memo: &s.inputs.memo,
	}
	binding := hubv1.NewBinding(id.BindingKey())
	switch err := s.opts.Client.Get(ctx, id.BindingKey(), binding, client.UnsafeDisableDeepCopy); {
	case client.IgnoreNotFound(err) != nil:
		return decide.Input{}, fmt.Errorf("reading the binding of %s: %w", id, err)
	case err == nil:
		in.Binding, in.Withdrawn = binding, s.inputs.gone.copies.cover(binding)
	default:
		s.inputs.gone.copies.forget(id.BindingKey())
	}
	if in.Binding != nil && hubv1.ObjectOf(in.Binding) != id {
		return decide.Input{}, fmt.Errorf("reading the binding %s of %s: %w", id.BindingKey(), id, errOtherObject)
	}
	var err error
	if in.Object, err = s.find(ctx, in.Object, in.Binding); err != nil {
		return decide.Input{}, err
	}
	if in.Object.Template != nil && hubv1.BundleOf(in.Object.Template) != nil {
		in.Object.HubRuns = false // the hub does not have the object
	}
	if in.Facts, err = s.facts(ctx, id.Namespace); err != nil {
		return decide.Input{}, fmt.Errorf("gathering the inputs for %s: %w", id, err)
	}
	if in.Object.State == decide.Exists && id.Namespace != "" && !in.Facts.NamespaceRead {
		return decide.Input{}, fmt.Errorf("gathering the inputs for %s: %w", id, errNoNamespace)
	}
	if in.Referrers, err = s.referrers(ctx, id); err != nil {
		return decide.Input{}, fmt.Errorf("gathering the inputs for %s: %w", id, err)
	}
	in.Capacities = s.capacitiesFor(id.GroupKind(), in.Facts, in.Now)
	in.Object.ScalePath = s.suggestion(ctx, id.GroupKind(), in.Facts.Placements)
	if in.Object.State == decide.Exists && s.opts.Kinds.HubObject != nil {
		o, err := s.opts.Kinds.HubObject(ctx, hubv1.ObjectReference{}, in.Object.Template)
		if err != nil {
			return decide.Input{}, fmt.Errorf("gathering the inputs for %s: %w", id, err)
		}
		in.Object.OtherVersions = o.OtherVersions
	}
	if in, err = s.follow(ctx, in); err != nil {
		return decide.Input{}, fmt.Errorf("gathering the inputs for %s: %w", id, err)
	}
	return in, nil
}

// facts reads the inputs that the decisions on all objects of a namespace share, from memory.
func (s *Scheduler) facts(ctx context.Context, namespace string) (decide.Facts, error) {
	now, err := s.opts.Clusters.Current(ctx)
	if err != nil {
		return decide.Facts{}, err
	}
	return scopes.FactsOf(ctx, s.opts.Client, now.Clusters, namespace, client.UnsafeDisableDeepCopy)
}

// find sets the State of an object, which tells whether the object exists. If the object is not in memory, find asks
// the API server.
func (s *Scheduler) find(ctx context.Context, o decide.Object, binding hubv1.BindingObject) (decide.Object, error) {
	template, found := s.opts.Templates.Get(o.ID)
	if found && template.GetDeletionTimestamp() == nil {
		o.Template = template
		s.inputs.gone.objects.forget(o.ID)
		return s.sinceItsKind(ctx, o, binding)
	}
	if binding == nil {
		o.State = decide.Deleted // counts as deleted: without a binding, nothing changes
		s.inputs.gone.objects.forget(o.ID)
		return o, nil
	}
	if bundle := binding.BindingSpec().ObjectRef.Bundle; bundle != nil && !found {
		return s.missing(o, bundle)
	}
	if !found {
		if known, err := s.unlisted(&o); known || err != nil {
			return o, err
		}
	}
	if s.inputs.gone.objects.knows(o.ID, binding) && !hasCopies(binding.BindingSpec()) {
		o.State = decide.Deleted
		return o, nil
	}
	asked := s.opts.Clock.Now()
	live, isGone, err := s.opts.Templates.Live(ctx, o.ID, knownSince(binding))
	switch {
	case isUndecided(err):
		o.State, o.Problem = decide.Undecided, err.Error()
	case err != nil:
		return o, fmt.Errorf("gathering the inputs for %s: %w", o.ID, err)
	case isGone && binding.BindingSpec().ObjectRef.Bundle != nil:
		return s.missing(o, binding.BindingSpec().ObjectRef.Bundle) // the Secret was deleted after the object was found
	case isGone || live.GetDeletionTimestamp() != nil:
		o.State = decide.Deleted
		s.inputs.gone.objects.learn(o.ID, binding, asked)
		if o.CutFrom, err = s.cutFrom(ctx, live, binding); err != nil {
			return o, fmt.Errorf("gathering the inputs for %s: %w", o.ID, err)
		}
	default:
		o.Template = live
	}
	return o, nil
}

// sinceItsKind sets KindRecreated and DeletionSeen of an object that was created again. An object that was lost with
// its kind was not deleted by a user.
func (s *Scheduler) sinceItsKind(ctx context.Context, o decide.Object, binding hubv1.BindingObject) (decide.Object, error) {
	if binding == nil || o.Template.GetUID() == binding.BindingSpec().ObjectRef.UID || hubv1.BundleOf(o.Template) != nil {
		return o, nil
	}
	err := s.opts.Templates.KindStays(ctx, o.ID.GroupKind(), knownSince(binding))
	if err != nil && !isUndecided(err) {
		return o, fmt.Errorf("gathering the inputs for %s: %w", o.ID, err)
	}
	o.KindRecreated, o.DeletionSeen = err != nil, s.inputs.gone.objects.sawDeletion(o.ID)
	return o, nil
}

// unlisted is called for an object that is not in memory. If the watch has listed the kind, known is false without an
// error: the object has probably been deleted. If the watch has failed, unlisted sets the State, and known is true. The
// error is errNotListed if the kind is not listed yet.
func (s *Scheduler) unlisted(o *decide.Object) (known bool, err error) {
	state, watched := s.opts.Templates.StateOf(o.ID)
	switch {
	case !watched || (!state.Synced && state.Reason == ""):
		return false, errNotListed
	case state.Synced:
		return false, nil
	}
	o.State, o.Problem = decide.Unreadable, fmt.Sprintf("%s: %s", state.Reason, state.Message)
	if state.Reason == hubv1.ReasonKindNotServed || state.Reason == hubv1.ReasonForbidden {
		o.State = decide.Undecided
	}
	return true, nil
}

// missing sets the State of an object of a bundle that is not in memory to Undecided. The hub stores each object of a
// bundle in a Secret. Only an object whose Secret has a removal time counts as deleted.
func (s *Scheduler) missing(o decide.Object, bundle *hubv1.BundleReference) (decide.Object, error) {
	if !s.opts.Templates.StoredState().Synced {
		return o, errNotListed
	}
	o.State = decide.Undecided
	o.Problem = fmt.Sprintf("the hub has not stored the object for the %s", bundle)
	return o, nil
}

// cutFrom returns the bundle that no longer contains the object, if this bundle exists and is not being deleted. live
// is the object with its removal time, or nil for a missing hub object. If the binding shows that a removal is held,
// the cache alone does not prove that a user has deleted the bundle: an uncached read must prove it.
func (s *Scheduler) cutFrom(ctx context.Context, live *unstructured.Unstructured, binding hubv1.BindingObject) (*hubv1.BundleReference, error) {
	if live == nil {
		return nil, nil
	}
	of := hubv1.BundleOf(live)
	if of == nil {
		return nil, nil
	}
	b := of.New()
	switch err := s.opts.Client.Get(ctx, of.Key(), b, client.UnsafeDisableDeepCopy); {
	case client.IgnoreNotFound(err) != nil:
		return nil, fmt.Errorf("reading %s: %w", of.BundleReference, err)
	case err == nil && b.GetDeletionTimestamp() == nil:
		return &of.BundleReference, nil
	case !holdsRemoval(binding.BindingSpec()):
		return nil, nil
	}
	found, isGone, err := s.opts.Templates.Live(ctx, of.Identity(), binding.GetCreationTimestamp().Time)
	switch {
	case isUndecided(err):
		return &of.BundleReference, nil
	case err != nil:
		return nil, err
	case isGone || found.GetDeletionTimestamp() != nil:
		return nil, nil
	}
	return &of.BundleReference, nil
}

// holdsRemoval reports whether the recorded decision holds the removal of a copy, because the object's bundle no longer
// contains the object.
func holdsRemoval(spec *hubv1.BindingSpec) bool {
	return slices.ContainsFunc(spec.Clusters, func(e hubv1.BindingTarget) bool {
		return e.Removal != nil && e.Removal.Reason == hubv1.ReasonObjectDeleted
	})
}

// hasCopies reports whether the recorded decision keeps a copy on a cluster. Such a copy is never withdrawn without an
// uncached read.
func hasCopies(spec *hubv1.BindingSpec) bool {
	return slices.ContainsFunc(spec.Clusters, func(e hubv1.BindingTarget) bool { return e.State != hubv1.TargetAbsent })
}

// isUndecided reports whether the error means that the object is missing, and no read can tell whether a user has
// deleted it.
func isUndecided(err error) bool {
	var u interface{ Undecided() bool }
	return errors.As(err, &u) && u.Undecided()
}

// knownSince returns a time at which the object of the binding existed. It is the creation time of the binding, or the
// creation time of the object if that is later.
func knownSince(b hubv1.BindingObject) time.Time {
	since := b.GetCreationTimestamp().Time
	if back, err := time.Parse(time.RFC3339, b.GetAnnotations()[objectSinceAnnotation]); err == nil && back.After(since) {
		since = back
	}
	return since
}

// suggestion returns the path of the replicas field from the scale subresource of the object's kind. It reads the path
// only if a placement of the namespace divides objects of the kind and does not set a path itself.
func (s *Scheduler) suggestion(ctx context.Context, kind schema.GroupKind, placements []hubv1.PlacementObject) string {
	if s.opts.Kinds.ScalePath == nil {
		return ""
	}
	if slices.ContainsFunc(placements, func(p hubv1.PlacementObject) bool {
		return replicas.NeedsPath(kind, &p.PlacementSpec().Replicas) && mentions(p, kind)
	}) {
		return s.opts.Kinds.ScalePath(ctx, kind)
	}
	return ""
}

// mentions reports whether a selector of the placement names the kind.
func mentions(p hubv1.PlacementObject, kind schema.GroupKind) bool {
	return slices.ContainsFunc(p.PlacementSpec().ResourceSelectors, func(r hubv1.ResourceSelector) bool {
		return r.APIGroup == kind.Group && (r.Kind == kind.Kind || r.Kind == everyKind)
	})
}
