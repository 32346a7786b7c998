package schedule

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/changes"
	"github.com/hanse-dev/hanse/placement/decide"
)

// Sets stores the lists of the objects of bundles, and the parts in these lists.
type Sets interface {
	// EnsureSet stores a list and parts of it, before a SetRollout names the list.
	EnsureSet(ctx context.Context, list decide.Payload, parts []decide.Payload) error
	// SetList, SetPart and SetRules return a stored list, a stored object and stored override rules. The results are
	// shared and must not be changed. The error may be decide.ErrRevisionMissing.
	SetList(ctx context.Context, digest string) (decide.SetList, error)
	SetPart(ctx context.Context, digest string) (*unstructured.Unstructured, error)
	SetRules(ctx context.Context, digest string) (*decide.HeldRules, error)
}

// setKind is the kind of the keys by which the queue has the SetRollouts of bundles. The namespace of such a key is the
// bundle as text. The name is empty, or names an object of the bundle whose removal package guard judges.
const setKind = "SetRollout"

func setKey(of hubv1.BundleReference) key {
	return key{Group: hubv1.GroupVersion.Group, Kind: setKind, Namespace: strings.Join([]string{of.Kind, of.Namespace, of.Name}, "/")}
}

// bundleOfKey returns the bundle of a key that setKey has made.
func bundleOfKey(id key) (of hubv1.BundleReference, ok bool) {
	parts := strings.Split(id.Namespace, "/")
	if id.Group != hubv1.GroupVersion.Group || id.Kind != setKind || len(parts) != 3 {
		return of, false
	}
	return hubv1.BundleReference{Kind: parts[0], Namespace: parts[1], Name: parts[2]}, true
}

// removalKey returns the key by which package guard knows an object of a bundle whose removal a change of the bundle
// brings.
func removalKey(of hubv1.BundleReference, id key) key {
	k := setKey(of)
	k.Name = id.String()
	return k
}

// bundleSets is what the leader knows of bundles beside their SetRollouts.
type bundleSets struct {
	mu sync.Mutex
	// chosen has, by bundle and object, the clusters that the last decision on the object chose. They are nil for an
	// object that is in no revision in use: the decision then says nothing about a revision that may be in use later.
	chosen map[hubv1.BundleReference]map[key]map[string]bool
	// asked are the objects of each bundle whose removals package guard was asked to judge.
	asked map[hubv1.BundleReference][]key
	// digests caches the digests of stored objects.
	digests *lru.Cache
}

// choose records the clusters that the decision on an object of a bundle chose. It returns true if they have changed.
func (b *bundleSets) choose(of hubv1.BundleReference, id key, clusters map[string]bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	before, known := b.chosen[of][id]
	if known && (before == nil) == (clusters == nil) && maps.Equal(before, clusters) {
		return false
	}
	if b.chosen == nil {
		b.chosen = map[hubv1.BundleReference]map[key]map[string]bool{}
	}
	if b.chosen[of] == nil {
		b.chosen[of] = map[key]map[string]bool{}
	}
	b.chosen[of][id] = clusters
	return true
}

// chosenFor returns the clusters that the last decision on an object chose. known is false if this process has not
// decided on the object since it leads.
func (b *bundleSets) chosenFor(of hubv1.BundleReference, id key) (clusters map[string]bool, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	clusters, known = b.chosen[of][id]
	return clusters, known
}

// forget drops what is known of a bundle, or of all bundles if of is nil.
func (b *bundleSets) forget(of *hubv1.BundleReference) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if of == nil {
		b.chosen, b.asked = nil, nil
		return
	}
	delete(b.chosen, *of)
	delete(b.asked, *of)
}

// hasSets reports whether this hub decides on bundles as a whole.
func (s *Scheduler) hasSets() bool {
	return s.opts.Rollouts.Sets != nil && s.opts.Rollouts.Revisions != nil
}

// followedMark returns the value of SetFollowedAnnotation for a binding that the plan writes.
func followedMark(in decide.Input, p decide.Plan) string {
	switch {
	case p.Spec.Rollout == nil:
		return ""
	case in.Binding == nil && in.Set != nil:
		return "true"
	case in.Binding == nil:
		return ""
	case in.Set != nil && !in.Set.Lost && !equality.Semantic.DeepEqual(in.Spec(), p.Spec):
		return "true"
	}
	return in.Binding.GetAnnotations()[hubv1.SetFollowedAnnotation]
}

// record returns the SetRollout of a bundle, or nil if there is none.
func (s *Scheduler) record(ctx context.Context, from client.Reader, of hubv1.BundleReference) (*hubv1.SetRollout, error) {
	r := &hubv1.SetRollout{}
	err := from.Get(ctx, of.SetRolloutKey(s.opts.Rollouts.Namespace), r, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the SetRollout of %s: %w", of, err)
	}
	return r, nil
}

// follow sets the part of the decision on the object's bundle that concerns the object. If a list of the bundle is
// lost, the object keeps its decision.
func (s *Scheduler) follow(ctx context.Context, in decide.Input) (decide.Input, error) {
	if !s.hasSets() || in.Object.State != decide.Exists {
		return in, nil
	}
	bundle := hubv1.BundleOf(in.Object.Template)
	if bundle == nil {
		return in, nil
	}
	of := bundle.BundleReference
	r, err := s.record(ctx, s.opts.Client, of)
	if err != nil {
		return in, err
	}
	if r == nil || r.Spec.BundleUID != in.Object.Template.GetUID() || r.Spec.Rollout == nil {
		return s.unfollowed(ctx, in, of, r)
	}
	lists, err := s.lists(ctx, &r.Spec)
	if errors.Is(err, decide.ErrRevisionMissing) {
		in.Object.State, in.Object.Problem, in.Object.Template = decide.Undecided, err.Error(), nil
		return in, nil
	}
	if err != nil {
		return in, err
	}
	in.Set = decide.ViewSet(&r.Spec, lists).Of(in.Object.ID)
	in.Set.Read = func(part string) (*unstructured.Unstructured, error) { return s.opts.Rollouts.Sets.SetPart(ctx, part) }
	in.Set.ReadRules = func(digest string) (*decide.HeldRules, error) { return s.opts.Rollouts.Sets.SetRules(ctx, digest) }
	return in, nil
}

// unfollowed sets the Set of an object whose bundle is not decided on as a whole, or whose SetRollout is lost: it then
// names no placement. r is nil if there is none.
func (s *Scheduler) unfollowed(ctx context.Context, in decide.Input, of hubv1.BundleReference, r *hubv1.SetRollout) (decide.Input, error) {
	followed := in.Binding != nil && in.Binding.GetAnnotations()[hubv1.SetFollowedAnnotation] != ""
	switch {
	case followed && (r == nil || r.Spec.PlacementRef == nil || r.Spec.Rollout != nil):
		in.Set = &decide.Set{Lost: true}
	case followed:
		newest, err := s.opts.Rollouts.Sets.SetList(ctx, r.Spec.Newest.List)
		if err != nil {
			return in, err
		}
		if _, has := newest[in.Object.ID]; !has {
			in.Set = &decide.Set{Dropped: true}
		}
	case r != nil && r.Spec.Rollout == nil && in.Binding == nil && s.mayBegin() && s.inputs.counts.copiesOf(decide.OwnerOfBundle(of)) == 0:
		in.Set = &decide.Set{} // the first revision of the bundle comes first
	}
	return in, nil
}

// mayBegin reports whether the hub may begin to decide on further bundles as a whole. It may not while a replica of an
// earlier version runs, which would take the content of a bundle to all clusters at once.
func (s *Scheduler) mayBegin() bool {
	return s.opts.Rollouts.SetsBegin == nil || s.opts.Rollouts.SetsBegin()
}

// lists returns the lists of the revisions of a bundle that are in use, and its newest list.
func (s *Scheduler) lists(ctx context.Context, spec *hubv1.SetRolloutSpec) (map[string]decide.SetList, error) {
	digests := []string{spec.Newest.List}
	for _, n := range decide.SetInUse(spec) {
		r := spec.Revision(n)
		digests = append(digests, r.List, r.Policies)
	}
	out := map[string]decide.SetList{}
	for _, digest := range digests {
		if _, known := out[digest]; known || digest == "" {
			continue
		}
		list, err := s.opts.Rollouts.Sets.SetList(ctx, digest)
		if err != nil {
			return nil, err
		}
		out[digest] = list
	}
	return out, nil
}

// confirmSet reports whether the SetRollout of the object's bundle is the same on the API server as in the cache. Only
// then does a copy leave a cluster.
func (s *Scheduler) confirmSet(ctx context.Context, in decide.Input) (bool, error) {
	if in.Set == nil || in.Object.Template == nil {
		return true, nil
	}
	of := hubv1.BundleOf(in.Object.Template).BundleReference
	cached, err := s.record(ctx, s.opts.Client, of)
	if err != nil {
		return false, err
	}
	live, err := s.record(ctx, s.opts.APIReader, of)
	if err != nil {
		return false, err
	}
	return cached != nil && live != nil && live.UID == cached.UID && equality.Semantic.DeepEqual(cached.Spec, live.Spec), nil
}

// chose records the clusters that a decision on an object of a bundle chose, and queues the bundle if they have
// changed.
func (s *Scheduler) chose(in decide.Input, p decide.Plan) {
	if !s.hasSets() {
		return
	}
	var of hubv1.BundleReference
	switch ref := in.Spec().ObjectRef.Bundle; {
	case in.Object.Template != nil && hubv1.BundleOf(in.Object.Template) != nil:
		of = hubv1.BundleOf(in.Object.Template).BundleReference
	case ref != nil:
		of = *ref
	default:
		return
	}
	var clusters map[string]bool
	if !unused(in) {
		clusters = map[string]bool{}
		for _, name := range p.Chosen {
			clusters[name] = true
		}
		if p.Chosen == nil && p.Spec != nil {
			for _, name := range p.Spec.Holders() {
				clusters[name] = true
			}
		}
	}
	if s.shared.sets.choose(of, in.Object.ID, clusters) {
		s.wakeSet(of, 0)
	}
}

// unused reports whether neither the newest list of its bundle nor a revision in use has the object. An undo may bring
// the object back, and its decision is then made anew.
func unused(in decide.Input) bool {
	return in.Object.State == decide.Deleted || in.Set != nil && in.Set.Dropped && in.Set.Holds != nil && len(in.Set.Contents) == 0
}

// reported queues the step of a bundle after a change of the binding of one of its objects that may matter to the
// rollout of the bundle.
func (s *Scheduler) reported(c changes.Binding) {
	for _, b := range []hubv1.BindingObject{c.After, c.Before} {
		if b == nil || b.BindingSpec().ObjectRef.Bundle == nil {
			continue
		}
		if c.Parts&changes.Any == 0 || c.Parts&changes.Spec != 0 || !maps.Equal(rowsOf(c.Before), rowsOf(c.After)) {
			s.wakeSet(*b.BindingSpec().ObjectRef.Bundle, setPause)
		}
		return
	}
}

// setPause is how long changes of the rows of a bundle's objects are collected before the next step of the bundle.
const setPause = 100 * time.Millisecond

// wakeSet queues the step of a bundle after a pause.
func (s *Scheduler) wakeSet(of hubv1.BundleReference, pause time.Duration) {
	_, q := s.leading()
	if q == nil || !s.hasSets() {
		return
	}
	q.AddAfter(setKey(of), pause)
}

// wakeSets queues the steps of all bundles.
func (s *Scheduler) wakeSets(ctx context.Context) {
	if !s.hasSets() {
		return
	}
	var records hubv1.SetRolloutList
	if err := s.opts.Client.List(ctx, &records, client.InNamespace(s.opts.Rollouts.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return // the cache stops because this process ends
	}
	for i := range records.Items {
		s.wakeSet(records.Items[i].Spec.Bundle, 0)
	}
}

// wholeBundles returns the SetRollouts of the bundles on which the hub decides as a whole.
func (s *Scheduler) wholeBundles(ctx context.Context) map[hubv1.BundleReference]*hubv1.SetRolloutSpec {
	out := map[hubv1.BundleReference]*hubv1.SetRolloutSpec{}
	var records hubv1.SetRolloutList
	if !s.hasSets() || s.opts.Client.List(ctx, &records, client.InNamespace(s.opts.Rollouts.Namespace), client.UnsafeDisableDeepCopy) != nil {
		return out // without the cache, this process ends
	}
	for i := range records.Items {
		if spec := &records.Items[i].Spec; spec.Rollout != nil {
			out[spec.Bundle] = spec
		}
	}
	return out
}

// SetRolloutChanged is called for every change of a SetRollout. It queues the step of the bundle, and the objects of
// the bundle for which the change matters.
func (s *Scheduler) SetRolloutChanged(ctx context.Context, c changes.SetRollout) {
	_, q := s.leading()
	if q == nil || !s.hasSets() {
		return
	}
	for _, r := range []*hubv1.SetRollout{c.Before, c.After} {
		if r != nil {
			s.wakeSet(r.Spec.Bundle, 0)
			break
		}
	}
	of := c.Before
	if of == nil {
		of = c.After
	}
	s.addBehind(q, s.changedBy(ctx, of.Spec.Bundle, c)...)
}

// changedBy returns the objects of a bundle to which a change of its SetRollout matters. If a list cannot be read,
// these are all objects.
func (s *Scheduler) changedBy(ctx context.Context, of hubv1.BundleReference, c changes.SetRollout) []key {
	all := map[key]bool{}
	for _, id := range s.opts.Templates.StoredOf(of) {
		all[id] = true
	}
	views := make([]func(key) *decide.Set, 2)
	for i, r := range []*hubv1.SetRollout{c.Before, c.After} {
		if r == nil || r.Spec.Rollout == nil {
			views[i] = func(key) *decide.Set { return nil }
			continue
		}
		lists, err := s.lists(ctx, &r.Spec)
		if err != nil {
			return slices.Collect(maps.Keys(all))
		}
		for _, list := range lists {
			for id := range list {
				all[id] = true
			}
		}
		views[i] = decide.ViewSet(&r.Spec, lists).Of
	}
	var out []key
	for id := range all {
		if before, after := views[0](id), views[1](id); !sameFor(before, after) {
			out = append(out, id)
		}
	}
	return out
}

// sameFor reports whether two states of a bundle lead to the same binding of an object.
func sameFor(a, b *decide.Set) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.Leads != b.Leads || a.Leads && !reflect.DeepEqual(a.Rollout, b.Rollout) {
		return false
	}
	if a.Dropped != b.Dropped { // see unused
		return false
	}
	return reflect.DeepEqual(a.Contents, b.Contents) && maps.Equal(a.Holds, b.Holds) && a.Rollout.Revision == b.Rollout.Revision && a.Rollout.Newest == b.Rollout.Newest
}
