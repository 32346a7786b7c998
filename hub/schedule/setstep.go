package schedule

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/manifest"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/placement"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/placement/rollout"
)

// errNotDecided means that this process has not decided on all objects of a bundle yet. Each of these decisions queues
// the bundle again.
var errNotDecided = errors.New("an object of the bundle has no decision yet")

// setRun is one step of the rollout of a bundle as a whole.
type setRun struct {
	s      *Scheduler
	bundle hubv1.BundleObject
	record *hubv1.SetRollout
	of     hubv1.BundleReference
	facts  map[string]decide.Facts // by namespace
	in     decide.SetInput
	rules  decide.SetList            // the newest override rules, by object
	packed map[string]decide.Payload // the newest override rules in their stored form, by digest
}

// stepSet makes one step of the rollout of a bundle, and writes it to the SetRollout of the bundle in one write. The
// bindings of the objects follow when the scheduler sees the written SetRollout.
func (s *Scheduler) stepSet(ctx context.Context, of hubv1.BundleReference) (ctrl.Result, error) {
	if !s.hasSets() {
		return ctrl.Result{}, nil
	}
	r := &setRun{s: s, of: of, facts: map[string]decide.Facts{}}
	ready, err := r.gather(ctx)
	if err == nil && ready && r.in.Placement.PlacementSpec().Rollout == nil {
		return setStopped(r.end(ctx))
	}
	if err == nil && !ready {
		s.dropSet(of)
		err = r.unbounded(ctx)
	}
	if err != nil || !ready {
		return setStopped(err)
	}
	for {
		version := s.shared.rollouts.current()
		r.in.Peers = s.shared.rollouts.peers(r.owner()).Without(of.String())
		p, err := r.plan(ctx)
		if err != nil {
			return setStopped(err)
		}
		if p.Spec == nil { // the objects of the bundle still follow their own rollouts
			return ctrl.Result{RequeueAfter: pace.LookEvery}, nil
		}
		if p.Spec.Rollout != nil && !s.shared.rollouts.claim(setKey(of), r.owner(), &p.Progress, p.Spec.Rollout.Phase == hubv1.RolloutWaitingForOthers, version) {
			continue
		}
		if fits, err := r.fits(ctx, p.Spec); err != nil || !fits {
			return setStopped(err) // a change of the placement or of a cluster queues the bundle again
		}
		r.judge(p.Removals)
		if err := r.write(ctx, p.Spec); err != nil {
			return setStopped(err)
		}
		return ctrl.Result{RequeueAfter: p.Again}, nil
	}
}

// setStopped returns the result of a step that stopped with an error, which may only be a wait.
func setStopped(err error) (ctrl.Result, error) {
	switch {
	case errors.Is(err, errNotDecided):
		return ctrl.Result{}, nil
	case errors.Is(err, decide.ErrRevisionMissing):
		return ctrl.Result{RequeueAfter: pace.LookEvery}, err
	case err != nil && isOutdated(err):
		return ctrl.Result{RequeueAfter: pace.FirstRetry}, nil
	}
	return ctrl.Result{}, err
}

// dropSet forgets the rollout of a bundle that is not decided on as a whole.
func (s *Scheduler) dropSet(of hubv1.BundleReference) {
	s.shared.rollouts.claim(setKey(of), decide.Owner{}, nil, false, 0)
	(&setRun{s: s, of: of}).judge(nil)
}

func (r *setRun) owner() decide.Owner { return decide.OwnerOf(decide.ReferenceTo(r.in.Placement)) }

// gather reads the inputs of the step. It returns false if the bundle has no SetRollout or no placement, or if its
// placement suspends scheduling.
func (r *setRun) gather(ctx context.Context) (ready bool, err error) {
	s := r.s
	if r.record, err = s.record(ctx, s.opts.Client, r.of); err != nil || r.record == nil {
		return false, err
	}
	r.bundle = r.of.New()
	if err := s.opts.Client.Get(ctx, r.of.Key(), r.bundle, client.UnsafeDisableDeepCopy); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if r.bundle.GetDeletionTimestamp() != nil || r.bundle.GetUID() != r.record.Spec.BundleUID {
		return false, nil
	}
	facts, err := r.factsOf(ctx, r.of.Namespace)
	if err != nil {
		return false, err
	}
	bundle := hubv1.SelectableObject{ObjectIdentity: r.of.Identity(), Labels: r.bundle.GetLabels(), NamespaceLabels: facts.NamespaceLabels}
	current := r.record.Spec.PlacementRef
	choice, _ := placement.Choose(bundle, facts.Placements, current)
	if choice.Winner == nil || choice.Winner.PlacementSpec().Suspend.Scheduling {
		return false, nil
	}
	r.in = decide.SetInput{
		Spec: &r.record.Spec, Placement: choice.Winner, Clusters: facts.Clusters, Objects: map[key]decide.SetObject{}, Now: s.opts.Clock.Now(),
		Digests: func(id key, part string) ([]string, error) { return r.digests(ctx, id, part) },
	}
	if choice.Winner.PlacementSpec().Rollout == nil {
		return true, nil
	}
	if r.in.Lists, err = s.lists(ctx, r.in.Spec); err != nil {
		return false, err
	}
	if err := r.objects(ctx); err != nil {
		return false, err
	}
	if err := r.undo(ctx); err != nil { // its objects may have no decision yet
		return false, err
	}
	return true, r.newestRules(ctx)
}

// undo reads the revision to which a user wants to return the bundle. If a part of it is lost, or an object of it
// cannot be stored again, the bundle must not return to it.
func (r *setRun) undo(ctx context.Context) error {
	r.in.Undo = r.bundle.GetAnnotations()[hubv1.RolloutUndoAnnotation]
	earlier := decide.UndoOfSet(r.in.Spec, r.in.Undo)
	if earlier == nil {
		return nil
	}
	lists := map[string]decide.SetList{}
	for _, digest := range []string{earlier.List, earlier.Policies} {
		if digest == "" {
			continue
		}
		list, err := r.s.opts.Rollouts.Sets.SetList(ctx, digest)
		if err == nil && digest == earlier.List {
			err = r.complete(ctx, list)
		}
		if errors.Is(err, decide.ErrRevisionMissing) {
			r.in.UndoBlocked = fmt.Sprintf("cannot return to revision %d, whose Secret is gone: see hansectl rollout history", earlier.Number)
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading revision %d of %s: %w", earlier.Number, r.of, err)
		}
		lists[digest] = list
	}
	if why := r.unrestorable(lists[earlier.List]); why != "" {
		r.in.UndoBlocked = fmt.Sprintf("%s: cannot return to revision %d: %s", hubv1.ReasonUndoBlocked, earlier.Number, why)
		return nil
	}
	maps.Copy(r.in.Lists, lists)
	return nil
}

// unrestorable says why an object of a list cannot be stored again for the bundle. It is empty if all objects can.
func (r *setRun) unrestorable(list decide.SetList) string {
	stored := map[key]bool{}
	for _, id := range r.s.opts.Templates.StoredOf(r.of) {
		stored[id] = true
	}
	for _, id := range list.Objects() {
		if stored[id] {
			continue
		}
		if other, found := r.s.opts.Templates.Get(id); found && other.GetDeletionTimestamp() == nil {
			return fmt.Sprintf("%s does not belong to %s any more", id, r.of)
		}
		if c := meta.FindStatusCondition(r.bundle.BundleStatus().Conditions, hubv1.ConditionStored); c != nil && c.Status == metav1.ConditionFalse {
			return fmt.Sprintf("%s is stored again only when the newest generation of %s can be stored: %s", id, r.of, c.Reason)
		}
	}
	return ""
}

// complete returns decide.ErrRevisionMissing if an object of a list is not stored.
func (r *setRun) complete(ctx context.Context, list decide.SetList) error {
	for _, part := range list {
		if _, err := r.s.opts.Rollouts.Sets.SetPart(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// objects reads the bindings of the objects of the bundle.
func (r *setRun) objects(ctx context.Context) error {
	ids := map[key]bool{} // true for the objects of the newest list and of revisions in use
	for _, id := range r.s.opts.Templates.StoredOf(r.of) {
		ids[id] = false
	}
	for _, list := range r.in.Lists {
		for id := range list {
			ids[id] = true
		}
	}
	for id, used := range ids {
		o := decide.SetObject{Removals: r.s.shared.removals.of(removalKey(r.of, id))}
		var decided bool
		if o.Chosen, decided = r.s.shared.sets.chosenFor(r.of, id); !decided || used && o.Chosen == nil {
			return errNotDecided
		}
		b := hubv1.NewBinding(id.BindingKey())
		switch err := r.s.opts.Client.Get(ctx, id.BindingKey(), b, client.UnsafeDisableDeepCopy); {
		case client.IgnoreNotFound(err) != nil:
			return fmt.Errorf("reading the binding of %s: %w", id, err)
		case err == nil && hubv1.ObjectOf(b) == id:
			o.Binding, o.Followed = b, b.GetAnnotations()[hubv1.SetFollowedAnnotation] != ""
		}
		r.in.Objects[id] = o
	}
	return nil
}

func (r *setRun) factsOf(ctx context.Context, namespace string) (decide.Facts, error) {
	if known, ok := r.facts[namespace]; ok {
		return known, nil
	}
	facts, err := r.s.facts(ctx, namespace)
	if err != nil {
		return facts, fmt.Errorf("gathering the inputs for %s: %w", r.of, err)
	}
	r.facts[namespace] = facts
	return facts, nil
}

// newestRules computes the newest override rules of the objects that the bundle has now.
func (r *setRun) newestRules(ctx context.Context) error {
	r.rules, r.packed = decide.SetList{}, map[string]decide.Payload{}
	for id, part := range r.in.Lists[r.in.Spec.Newest.List] {
		template, err := r.s.opts.Rollouts.Sets.SetPart(ctx, part)
		if err != nil {
			return err
		}
		facts, err := r.factsOf(ctx, id.Namespace)
		if err != nil {
			return err
		}
		object := hubv1.Selectable(id, template, facts.NamespaceLabels)
		bundle := hubv1.OfBundle(r.bundle)
		object.Bundle = &bundle
		rules, err := decide.RulesOf(object, facts.Overrides, r.in.Placement.PlacementSpec())
		if err != nil {
			return err
		}
		packed, err := rules.Pack(r.s.opts.Rollouts.Key)
		if err != nil {
			return err
		}
		r.rules[id], r.packed[packed.Digest] = packed.Digest, packed
	}
	list, err := r.rules.Pack(r.s.opts.Rollouts.Key)
	r.in.Policies = list.Digest
	return err
}

// digests returns the digests by which a binding may name a stored object.
func (r *setRun) digests(ctx context.Context, id key, part string) ([]string, error) {
	var division *hubv1.Division
	if b := r.in.Objects[id].Binding; b != nil {
		division = b.BindingSpec().Division
	}
	path := ""
	if division != nil {
		path = division.Path
	}
	cache := r.s.shared.sets.cache()
	if known, ok := cache.Get(part + path); ok {
		return known.([]string), nil
	}
	template, err := r.s.opts.Rollouts.Sets.SetPart(ctx, part)
	if err != nil {
		return nil, err
	}
	names, err := decide.NamesOf(r.s.opts.Rollouts.Key, template, r.s.opts.Rollouts.DeniedMetadataPrefixes, division)
	if err != nil {
		return nil, err
	}
	cache.Add(part+path, names)
	return names, nil
}

// maxDigests is the maximum number of stored objects whose digests are in memory.
const maxDigests = 8192

func (b *bundleSets) cache() *lru.Cache {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.digests == nil {
		b.digests = lru.New(maxDigests)
	}
	return b.digests
}

// plan returns the next state of the rollout. The lists that it names are stored. Its spec is nil if the hub does not
// decide on the bundle as a whole yet.
func (r *setRun) plan(ctx context.Context) (decide.SetPlan, error) {
	if err := r.store(ctx); err != nil {
		return decide.SetPlan{}, err
	}
	if r.in.Spec.Rollout != nil {
		return decide.SetStep(r.in)
	}
	if !r.s.mayBegin() {
		return decide.SetPlan{}, nil
	}
	bound := false
	for _, o := range r.in.Objects {
		bound = bound || o.Binding != nil
	}
	if !bound {
		return decide.SetStep(r.in)
	}
	spec, lists, err := decide.AdoptSet(decide.Adoption{SetInput: r.in, Key: r.s.opts.Rollouts.Key, Rules: r.rules, Part: func(id key, template string) (string, error) {
		return r.part(ctx, id, template)
	}})
	if err != nil || spec == nil {
		return decide.SetPlan{}, err
	}
	for _, list := range lists {
		if err := r.s.opts.Rollouts.Sets.EnsureSet(ctx, list, nil); err != nil {
			return decide.SetPlan{}, err
		}
	}
	ctrl.LoggerFrom(ctx).Info("The objects of the bundle change together from now on, by its SetRollout", "bundle", r.of.String(), "clusters", len(spec.Clusters))
	progress := rollout.ProgressOf(r.in.Placement.PlacementSpec().Rollout, spec.Rollout)
	progress.Object = r.of.String()
	return decide.SetPlan{Spec: spec, Progress: progress, Again: time.Second}, nil
}

// store stores the newest override rules, if no revision has them.
func (r *setRun) store(ctx context.Context) error {
	if slices.ContainsFunc(r.in.Spec.Revisions, func(v hubv1.SetRevision) bool { return v.Policies == r.in.Policies }) {
		return nil
	}
	list, err := r.rules.Pack(r.s.opts.Rollouts.Key)
	if err != nil {
		return err
	}
	var parts []decide.Payload
	for _, p := range r.packed {
		parts = append(parts, p)
	}
	r.in.Lists[list.Digest] = r.rules
	return r.s.opts.Rollouts.Sets.EnsureSet(ctx, list, parts)
}

// part stores the content of a revision of an object as a part of lists, and returns the digest of the part. The
// binding of the object names the content.
func (r *setRun) part(ctx context.Context, id key, template string) (string, error) {
	u, err := r.s.opts.Rollouts.Revisions.Template(ctx, template)
	if err != nil {
		return "", fmt.Errorf("reading an earlier content of %s: %w", id, err)
	}
	p, err := decide.PackPart(r.s.opts.Rollouts.Key, manifest.Of(u))
	if err != nil {
		return "", err
	}
	list, err := decide.SetList{id: p.Digest}.Pack(r.s.opts.Rollouts.Key)
	if err != nil {
		return "", err
	}
	return p.Digest, r.s.opts.Rollouts.Sets.EnsureSet(ctx, list, []decide.Payload{p})
}

// judge lets package guard judge the removals that the next revisions would bring.
func (r *setRun) judge(removals map[key][]decide.Removal) {
	sets := &r.s.shared.sets
	sets.mu.Lock()
	before := sets.asked[r.of]
	var now []key
	for id := range removals {
		now = append(now, removalKey(r.of, id))
	}
	if sets.asked == nil {
		sets.asked = map[hubv1.BundleReference][]key{}
	}
	if sets.asked[r.of] = now; now == nil {
		delete(sets.asked, r.of)
	}
	sets.mu.Unlock()
	for _, k := range before {
		if !slices.Contains(now, k) {
			r.s.shared.removals.decided(k, nil, true)
		}
	}
	for id, claims := range removals {
		r.s.shared.removals.decided(removalKey(r.of, id), claims, true)
	}
}

// write writes the SetRollout, if its spec has changed, and records the events of the step.
func (r *setRun) write(ctx context.Context, spec *hubv1.SetRolloutSpec) error {
	if equality.Semantic.DeepEqual(r.record.Spec, *spec) {
		return nil
	}
	after := r.record.DeepCopy()
	after.Spec = *spec
	if err := r.s.opts.Client.Patch(ctx, after, client.MergeFromWithOptions(r.record, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing the SetRollout of %s: %w", r.of, err)
	}
	pace.Writes.WithLabelValues(setKind, pace.Decision).Inc()
	r.tell(spec)
	return nil
}

// tell records the events of a step on the bundle.
func (r *setRun) tell(spec *hubv1.SetRolloutSpec) {
	record := func(e rollout.Event) {
		r.s.opts.Recorder.Eventf(r.bundle, spec.PlacementRef.Related(), e.Type, e.Reason, e.Action, "%s", decide.Short(e.Note))
	}
	for _, revision := range spec.Revisions {
		if before := r.record.Spec.Revision(revision.Number); revision.SupersededBy == 0 || before == nil || before.SupersededBy != 0 {
			continue
		}
		record(rollout.Event{
			Type: corev1.EventTypeNormal, Reason: hubv1.ReasonSuperseded, Action: "RollOut",
			Note: fmt.Sprintf("revision %d was superseded by revision %d, and had not passed on all clusters", revision.Number, revision.SupersededBy),
		})
	}
	for _, e := range rollout.Events(r.record.Spec.Rollout, spec.Rollout) {
		record(e)
	}
}

// end ends the decision on the bundle as a whole, because its placement has no rollout any more. All clusters then get
// the newest content at once.
func (r *setRun) end(ctx context.Context) error {
	r.s.dropSet(r.of)
	if err := r.unbounded(ctx); err != nil || r.record.Spec.Rollout == nil {
		return err
	}
	spec := r.record.Spec.DeepCopy()
	spec.Revisions, spec.Rollout, spec.Clusters, spec.PlacementRef = nil, nil, nil, decide.ReferenceTo(r.in.Placement)
	return r.write(ctx, spec)
}
