package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/operator"
	"github.com/hanse-dev/hanse/hub/store/changes"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/placement/decide"
)

// The SetRollout of a bundle says which revision of the bundle a cluster shall hold, and thus which objects. Objects
// that only other revisions have delay nothing on this cluster. The bindings of the objects follow the SetRollout one
// by one. An object whose binding has not followed yet is therefore not written in full, whatever its copy has.

// Sets reads the lists of objects in the revisions of bundles, and the objects in these lists. Callers must not change
// the results, because they are shared. An error other than decide.ErrRevisionMissing may be temporary.
type Sets interface {
	SetList(ctx context.Context, digest string) (decide.SetList, error)
	SetPart(ctx context.Context, digest string) (*unstructured.Unstructured, error)
}

// setHere is the revision of a bundle that the run's cluster shall hold.
type setHere struct {
	spec *hubv1.SetRolloutSpec
	// lists has the lists of the revisions in use, by digest, and view is the view of spec with them.
	lists map[string]decide.SetList
	view  *decide.SetView
	// holds has the objects that the cluster shall hold, each with its revision of the bundle. CustomResourceDefinitions
	// may be of a later revision than the others.
	holds map[hubv1.ObjectIdentity]int64
	// since is the time at which the cluster got the revision. It may be zero.
	since time.Time
}

// setHere returns the revision of a bundle that the run's cluster shall hold. It returns nil if the hub does not decide
// on the bundle as a whole, or not yet on this cluster, or if a list is lost. All objects of the bundle then count.
func (r *run) setHere(ctx context.Context, of hubv1.BundleReference) (*setHere, error) {
	opts := r.queue.opts
	record := &hubv1.SetRollout{}
	found, err := get(ctx, opts.Client, of.SetRolloutKey(opts.Namespace), record)
	if err != nil || !found || opts.Sets == nil || record.Spec.Rollout == nil {
		return nil, err
	}
	here := record.Spec.Cluster(r.target.Name)
	if here == nil {
		return nil, nil
	}
	s := &setHere{spec: &record.Spec, lists: map[string]decide.SetList{}, holds: map[hubv1.ObjectIdentity]int64{}}
	if here.Since != nil {
		s.since = here.Since.Time
	}
	for _, n := range decide.SetInUse(s.spec) {
		revision := s.spec.Revision(n)
		for _, digest := range []string{revision.List, revision.Policies} {
			if digest == "" {
				continue
			}
			if s.lists[digest], err = opts.Sets.SetList(ctx, digest); errors.Is(err, decide.ErrRevisionMissing) {
				return nil, nil
			} else if err != nil {
				return nil, fmt.Errorf("reading revision %d of %s: %w", n, of, err)
			}
		}
	}
	s.view = decide.ViewSet(s.spec, s.lists)
	s.add(here.Revision, func(hubv1.ObjectIdentity) bool { return true })
	s.add(here.Definitions, decide.NoRollback)
	return s, nil
}

func (s *setHere) add(revision int64, which func(hubv1.ObjectIdentity) bool) {
	if r := s.spec.Revision(revision); r != nil {
		for id := range s.lists[r.List] {
			if which(id) {
				s.holds[id] = revision
			}
		}
	}
}

// here returns the objects of a bundle that the run's cluster shall hold, and for which counts returns true. set is the
// result of setHere. It leaves out objects that are being removed everywhere.
func (r *run) here(of hubv1.BundleReference, set *setHere, counts func(hubv1.ObjectIdentity) bool) []hubv1.ObjectIdentity {
	templates := r.queue.opts.Templates
	return slices.DeleteFunc(templates.StoredOf(of), func(id hubv1.ObjectIdentity) bool {
		if !counts(id) || set != nil && set.holds[id] == 0 {
			return true
		}
		template, ok := templates.Get(id)
		return !ok || template.GetDeletionTimestamp() != nil
	})
}

// follows reports whether the binding of an object gives the run's cluster the content of the cluster's revision of the
// bundle. A binding that does not follow yet is written again soon.
func (r *run) follows(ctx context.Context, set *setHere, id hubv1.ObjectIdentity, b hubv1.BindingObject) (bool, error) {
	target := b.BindingSpec().Target(r.target.Name)
	if set == nil || set.holds[id] == 0 || target == nil || target.State == hubv1.TargetAbsent {
		return true, nil
	}
	for _, c := range set.view.Contents(id) {
		if !slices.Contains(c.Numbers, set.holds[id]) {
			continue
		}
		known, err := c.Known(b.BindingSpec(), func() ([]string, error) { return r.namesOf(ctx, c.Part, b.BindingSpec().Division) })
		if errors.Is(err, decide.ErrRevisionMissing) {
			return true, nil // the content is lost: the row of the object says so
		}
		return known != nil && known.Number == target.Revision, err
	}
	return true, nil
}

// namesOf returns the digests by which a binding may name a content of an object of a bundle.
func (r *run) namesOf(ctx context.Context, part string, division *hubv1.Division) ([]string, error) {
	template, err := r.queue.opts.Sets.SetPart(ctx, part)
	if err != nil {
		return nil, err
	}
	return decide.NamesOf(r.queue.opts.Key, template, r.queue.opts.DeniedMetadataPrefixes, division)
}

// behindSet reports whether the run's own binding does not follow the SetRollout of its bundle yet, or the cache does
// not have the SetRollout that the binding follows.
func (r *run) behindSet(ctx context.Context, set *setHere) (bool, error) {
	follows, err := r.follows(ctx, set, r.in.object.ObjectIdentity, r.binding)
	return !follows, err
}

// undecided returns an object as one without a decision for the cluster if its binding may not have followed the
// SetRollout yet, which gave the cluster a revision with the object a short time ago.
func (r *run) undecided(set *setHere, o operator.Object) operator.Object {
	if set != nil && o.LeftOut && r.queue.opts.Clock.Since(set.since) < decidedWithin {
		o.LeftOut = false
	}
	return o
}

// newFirst returns the outcome for an object that the cluster's revision of the bundle no longer has. It leaves the
// cluster after the objects of the revision have their content there. Only webhook configurations and APIServices leave
// at once, because the new workloads may not answer them. The outcome is nil if the removal does not wait.
func (r *run) newFirst(ctx context.Context) (*member.Outcome, error) {
	of, id := r.binding.BindingSpec().ObjectRef.Bundle, r.in.object.ObjectIdentity
	if of == nil || r.target.Absent == nil || r.target.Absent.Reason != hubv1.ReasonNotInRevision || operator.CallsPods(id.GroupKind()) {
		return nil, nil
	}
	set, err := r.setHere(ctx, *of)
	if err != nil || set == nil {
		return nil, err
	}
	if set.holds[id] != 0 {
		o := outcome(metav1.ConditionFalse, hubv1.ReasonDeleting, "waits for the decision on %s", of)
		o.Retry = member.RetrySoon
		return &o, nil
	}
	r.queue.needs.waiting.drop(r.key)
	objects, err := r.objectsHere(ctx, *of, set, operator.CallsWaitFor)
	if err != nil {
		return nil, err
	}
	for i := range objects {
		objects[i] = r.undecided(set, objects[i])
		if err := r.compareHere(ctx, set, &objects[i]); err != nil {
			return nil, err
		}
	}
	objects = slices.DeleteFunc(objects, func(o operator.Object) bool { return r.neverDecided(set, o) })
	if waits := operator.NewCallsWait(objects); waits != "" {
		o := outcome(metav1.ConditionFalse, hubv1.ReasonDeleting, "leaves after the other objects of %s have their new content on the cluster: %s", of, waits)
		o.Retry = member.RetrySlowly
		return &o, nil
	}
	r.queue.needs.waiting.drop(r.key)
	return nil, nil
}

// callsLeave returns a webhook configuration or APIService of the bundle that is still on the cluster, although the
// cluster's revision no longer has it. It returns nil if there is none.
func (r *run) callsLeave(ctx context.Context, of hubv1.BundleReference, set *setHere) (*hubv1.ObjectIdentity, error) {
	if set == nil {
		return nil, nil
	}
	for _, id := range r.queue.opts.Templates.StoredOf(of) {
		if !operator.CallsPods(id.GroupKind()) || set.holds[id] != 0 {
			continue
		}
		b := hubv1.NewBinding(id.BindingKey())
		found, err := get(ctx, r.queue.opts.Client, id.BindingKey(), b)
		if err != nil {
			return nil, err
		}
		target := b.BindingSpec().Target(r.target.Name)
		if !found || target == nil {
			continue
		}
		left := r.queue.copies.get(id.BindingKey()).withdrawn
		if target.State != hubv1.TargetAbsent || target.Absent == nil || left == nil || *left != *target.Absent {
			return &id, nil
		}
	}
	return nil, nil
}

// SetRolloutChanged is called for a SetRollout whose spec changed. It queues the objects of the bundle on each cluster
// that shall hold another revision, because they may wait for each other by the earlier one.
func (d *Dispatcher) SetRolloutChanged(ctx context.Context, c changes.SetRollout) {
	var on []string
	for _, is := range c.After.Spec.Clusters {
		if was := c.Before.Spec.Cluster(is.Name); was == nil || !equality.Semantic.DeepEqual(*was, is) {
			on = append(on, is.Name)
		}
	}
	if len(on) == 0 {
		return
	}
	d.wakeWhere(ctx, normalPriority, func(b hubv1.BindingObject) bool {
		of := b.BindingSpec().ObjectRef.Bundle
		return of != nil && *of == c.After.Spec.Bundle
	}, on...)
}
