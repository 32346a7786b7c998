package schedule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/hub/store/changes"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/placement/tenancy"
)

// An object may need other objects on its clusters, such as the Secret that it names. The hub therefore writes bindings
// in a certain order: before the binding of an object names a new cluster, the bindings of the needed objects must name
// the cluster. hub/dispatch sees these writes in the same order. When it creates the copy of the object, it already has
// the bindings of the needed objects (see hub/dispatch/references.go).

// references records which objects need which other objects. It also records which decisions wait until the decision on
// a needed object is written.
type references struct {
	mu sync.Mutex
	// needs has the needed objects of each object, from the object's binding. neededBy has, for each needed object, the
	// objects that need it.
	needs    map[key][]key
	neededBy map[key]sets.Set[key]
	// asked has, for each needed object, the decisions on other objects that wait until the needed object is decided.
	asked map[key]map[key]*ask
	// waits has, for each object, the time since which its decision waits for a needed object that is not in the cache.
	waits map[key]time.Time
}

// ask is a decision that is written only after the decision on a needed object.
type ask struct {
	spec    *hubv1.BindingSpec
	decided bool // the decision on the needed object includes the clusters of spec
	former  bool // spec is of a binding that a user deleted and the hub has not made again yet
}

// see records which objects the object of a changed binding needs. c.After is nil if the binding was deleted. exists
// reports whether the hub still has the object of the deleted binding. If so, the needed objects stay on the clusters
// of the deleted binding until the object is decided again. see returns the needed objects whose decision may change.
func (r *references) see(c changes.Binding, exists func() bool) []key {
	b := cmp.Or(c.After, c.Before)
	if len(b.BindingSpec().References) == 0 && (c.Before == nil || len(c.Before.BindingSpec().References) == 0) {
		return nil
	}
	id := hubv1.ObjectOf(b)
	var now []key
	if c.After != nil {
		for _, ref := range c.After.BindingSpec().References {
			now = append(now, ref.In(id.Namespace))
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// If the binding did not name the needed objects before this change, only the asks recorded that the object needs
	// them.
	followed := r.forgetAsks(id, func(needed key, a *ask) bool {
		return c.After == nil || a.former || decide.Needs(c.After, needed) && slices.Equal(a.spec.Holders(), c.After.BindingSpec().Holders())
	})
	before := r.needs[id]
	if c.After == nil && exists() {
		for _, k := range before {
			r.setAsk(k, id, &ask{spec: b.BindingSpec(), decided: true, former: true})
		}
	}
	for _, k := range before {
		if r.neededBy[k].Delete(id); r.neededBy[k].Len() == 0 {
			delete(r.neededBy, k)
		}
	}
	if r.needs == nil {
		r.needs, r.neededBy = map[key][]key{}, map[key]sets.Set[key]{}
	}
	if r.needs[id] = now; now == nil {
		delete(r.needs, id)
	}
	for _, k := range now {
		if r.neededBy[k] == nil {
			r.neededBy[k] = sets.New[key]()
		}
		r.neededBy[k].Insert(id)
	}
	return slices.Concat(followed, before, now)
}

// referrersOf returns the objects that need an object.
func (r *references) referrersOf(id key) []key {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.neededBy[id].UnsortedList()
}

// needing returns the objects that need an object of the given kind. It also returns the objects whose decisions wait
// for an object of this kind.
func (r *references) needing(kind schema.GroupKind) []key {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := sets.New[key]()
	for id, by := range r.neededBy {
		if id.GroupKind() == kind {
			out = out.Union(by)
		}
	}
	for id, asks := range r.asked {
		if id.GroupKind() == kind {
			out = out.Union(sets.KeySet(asks))
		}
	}
	return out.UnsortedList()
}

// plans returns unwritten decisions on objects that need the object with this id. The decision on the object id must
// cover the clusters of these decisions. A key of the map is an object that needs the object id.
func (r *references) plans(id key) map[key]*hubv1.BindingSpec {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[key]*hubv1.BindingSpec{}
	for by, a := range r.asked[id] {
		out[by] = a.spec
	}
	return out
}

// ask records that the decision on `by` (with spec) waits until the object `needed` is decided for the same clusters.
// It returns false if the decision on `needed` already includes the clusters of spec.
func (r *references) ask(needed, by key, spec *hubv1.BindingSpec) (waits bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := r.asked[needed][by]; a != nil && slices.Equal(a.spec.Holders(), spec.Holders()) {
		return !a.decided
	}
	r.setAsk(needed, by, &ask{spec: spec})
	return true
}

// setAsk records that `a`, a decision on the object `by`, waits for the decision on the object `needed`. The caller
// holds r.mu.
func (r *references) setAsk(needed, by key, a *ask) {
	if r.asked == nil {
		r.asked = map[key]map[key]*ask{}
	}
	if r.asked[needed] == nil {
		r.asked[needed] = map[key]*ask{}
	}
	r.asked[needed][by] = a
}

// answer is called when the decision on an object is written. followed has the referrers (the objects that need it)
// whose clusters the decision covers. answer returns those referrers that have waited for the decision. If the needed
// object does not exist, answer also forgets that they have waited. They can then wait again when a user creates the
// needed object.
func (r *references) answer(id key, exists bool, followed []decide.Referrer) (waited []key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, by := range followed {
		a := r.asked[id][by.ID]
		if a == nil || a.spec != by.Spec || a.decided {
			continue
		}
		waited = append(waited, by.ID)
		if a.decided = exists; exists {
			continue
		}
		if delete(r.asked[id], by.ID); len(r.asked[id]) == 0 {
			delete(r.asked, id)
		}
	}
	return waited
}

// needsNothing ends the waits of an object, because its decision needs no objects, or is written already. If a user
// deleted the object's binding, some needed objects are still sent to the clusters of the deleted binding. needsNothing
// returns these needed objects.
func (r *references) needsNothing(by key) (followed []key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waits, by)
	return r.forgetAsks(by, func(key, *ask) bool { return true })
}

// waitedSince returns the time since which the decision on an object waits for needed objects that are not in the
// cache. The first call sets this time.
func (r *references) waitedSince(by key, now time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	since, waits := r.waits[by]
	if waits {
		return since
	}
	if r.waits == nil {
		r.waits = map[key]time.Time{}
	}
	r.waits[by] = now
	return now
}

// waitsNoLonger ends the wait of an object, because its decision is written.
func (r *references) waitsNoLonger(by key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waits, by)
}

// forgetAsks removes those asks of an object for which done returns true. If a user deleted the object's binding, some
// needed objects are still sent to the clusters of the deleted binding. forgetAsks returns these needed objects. The
// caller holds r.mu.
func (r *references) forgetAsks(by key, done func(needed key, a *ask) bool) (followed []key) {
	for id, asks := range r.asked {
		a := asks[by]
		if a == nil || !done(id, a) {
			continue
		}
		if a.former {
			followed = append(followed, id)
		}
		if delete(asks, by); len(asks) == 0 {
			delete(r.asked, id)
		}
	}
	return followed
}

// referrers returns the objects that need an object. It takes them from the cached bindings, and from unwritten
// decisions that wait for the decision on this object. The result is never nil.
func (s *Scheduler) referrers(ctx context.Context, id key) ([]decide.Referrer, error) {
	out, plans := []decide.Referrer{}, s.inputs.references.plans(id)
	for _, by := range s.inputs.references.referrersOf(id) {
		if plans[by] != nil {
			continue
		}
		b := hubv1.NewBinding(by.BindingKey())
		switch err := s.opts.Client.Get(ctx, by.BindingKey(), b, client.UnsafeDisableDeepCopy); {
		case client.IgnoreNotFound(err) != nil:
			return nil, fmt.Errorf("reading the binding of %s: %w", by, err)
		case err == nil && decide.Needs(b, id):
			out = append(out, decide.Referrer{ID: by, Spec: b.BindingSpec()})
		}
	}
	for by, spec := range plans {
		out = append(out, decide.Referrer{ID: by, Spec: spec})
	}
	return out, nil
}

// liveReferrers returns the objects that need an object. It takes them from an uncached list of bindings, and from
// unwritten decisions that wait for the decision on this object.
func (s *Scheduler) liveReferrers(ctx context.Context, id key) ([]decide.Referrer, error) {
	bindings, err := s.inputs.liveFacts.bindings(ctx, id.Namespace)
	if err != nil {
		return nil, err
	}
	plans := s.inputs.references.plans(id)
	out := slices.DeleteFunc(decide.ReferrersIn(bindings, id), func(r decide.Referrer) bool { return plans[r.ID] != nil })
	for by, spec := range plans {
		out = append(out, decide.Referrer{ID: by, Spec: spec})
	}
	return out, nil
}

// errBehind means that the decision on a needed object must be written first. When it is written, the object that needs
// the needed object is queued again.
var errBehind = errors.New("the decision on a needed object comes first")

// unseenError means that a needed object exists on the hub, but is not in the cache yet. The waiting object is decided
// again when the needed object arrives in the cache.
type unseenError struct {
	object key
	// waited is how long the decision has already waited for the needed object.
	waited time.Duration
}

// Error implements error.
func (e *unseenError) Error() string {
	return fmt.Sprintf("the hub has not read %s yet, which the object needs", e.object)
}

// again returns how long to wait for the needed object before the next decision.
func (e *unseenError) again() time.Duration {
	if e.waited < showWaitAfter {
		return showWaitAfter - e.waited
	}
	return maxWait - e.waited
}

const (
	// showWaitAfter is how long a decision waits for a needed object before the condition Scheduled shows the wait. Most
	// needed objects arrive earlier.
	showWaitAfter = 5 * time.Second
	// maxWait is how long a decision waits at most for a needed object. After that, the decision is written without
	// the needed object, because an object that the cache refuses never arrives.
	maxWait = pace.MaxRetry
)

// order makes sure that the decisions on needed objects are written before this decision. If some are not written, it
// queues these needed objects and returns errBehind. The error is an *unseenError if new clusters wait for a needed
// object that is not in the cache. If they wait for longer than showWaitAfter, all other changes of the plan are
// recorded.
func (r *run) order(ctx context.Context) error {
	err := r.s.inOrder(ctx, r.in, r.out)
	var unseen *unseenError
	if !errors.As(err, &unseen) || unseen.waited < showWaitAfter || r.ends() {
		return err
	}
	others := run{s: r.s, in: r.in, out: withoutNew(r.in, r.out, unseen)}
	if failed := others.carryOut(ctx, (*run).record, (*run).announce); failed != nil {
		return failed
	}
	return err
}

// inOrder returns nil if no decision on a needed object must be written before this decision. See order.
func (s *Scheduler) inOrder(ctx context.Context, in decide.Input, p decide.Plan) error {
	if p.Spec == nil || len(p.Spec.References) == 0 || in.Binding != nil && equality.Semantic.DeepEqual(in.Binding.BindingSpec(), p.Spec) {
		followed := s.inputs.references.needsNothing(in.Object.ID)
		if _, q := s.leading(); q != nil {
			s.add(q, followed...)
		}
		return nil
	}
	ahead, unseen, err := s.ahead(ctx, in, p.Spec)
	if err != nil {
		return err
	}
	if _, q := s.leading(); q != nil {
		s.add(q, ahead...)
	}
	switch {
	case unseen != nil:
		return unseen
	case ahead != nil:
		return errBehind
	}
	return nil
}

// wakeReferrers queues the objects whose decisions have waited for the decision on this object.
func (r *run) wakeReferrers(context.Context) error {
	id, references := r.in.Object.ID, &r.s.inputs.references
	references.waitsNoLonger(id)
	if _, q := r.s.leading(); q != nil {
		r.s.add(q, references.answer(id, r.in.Object.State == decide.Exists, r.in.Referrers)...)
	}
	return nil
}

// ahead returns the needed objects whose decisions must be written before this decision. It leaves out three kinds of
// needed objects: those that do not exist on the hub, those that follow a placement of their own, and those that are
// already decided for all clusters of the plan. unseen is set if new clusters wait for a needed object that is not in
// the cache.
func (s *Scheduler) ahead(ctx context.Context, in decide.Input, spec *hubv1.BindingSpec) (out []key, unseen *unseenError, err error) {
	id := in.Object.ID
	grows := !coversAll(in.Spec().Holders(), spec)
	for _, ref := range spec.References {
		needed := ref.In(id.Namespace)
		t, found := s.opts.Templates.Get(needed)
		switch {
		case ref.Former, found && t.GetDeletionTimestamp() != nil:
			continue
		case !found:
			if grows && unseen == nil {
				unseen = s.unseen(ctx, needed, id, spec)
			}
			continue
		}
		b := hubv1.NewBinding(needed.BindingKey())
		err := s.opts.Client.Get(ctx, needed.BindingKey(), b, client.UnsafeDisableDeepCopy)
		if client.IgnoreNotFound(err) != nil {
			return nil, nil, fmt.Errorf("reading the binding of %s: %w", needed, err)
		}
		if err == nil && (!b.BindingSpec().Referenced || coversAll(b.BindingSpec().Holders(), spec)) {
			continue
		}
		if s.inputs.references.ask(needed, id, spec) {
			out = append(out, needed)
		}
	}
	return out, unseen, nil
}

// unseen returns an error if the decision must wait because a needed object exists on the hub but is not in the cache
// yet. It returns nil if the decision has waited for too long. Each kind has its own watch. The watch of the needed
// kind may have started only with the placement, and may be behind the watches of other kinds.
func (s *Scheduler) unseen(ctx context.Context, needed, by key, spec *hubv1.BindingSpec) *unseenError {
	state, _ := s.opts.Templates.StateOf(needed)
	if state.Reason != "" {
		return nil
	}
	s.inputs.references.ask(needed, by, spec) // ask before the read, so that the arrival of the object is not lost
	o, gone, err := s.opts.Templates.Live(ctx, needed, time.Time{})
	if exists := err == nil && !gone && o.GetDeletionTimestamp() == nil; !exists {
		return nil
	}
	now := s.opts.Clock.Now()
	if state.Synced && now.Sub(o.GetCreationTimestamp().Time) >= maxWait {
		return nil // the object is old, so the cache rejects it and it will never arrive
	}
	waited := now.Sub(s.inputs.references.waitedSince(by, now))
	if waited >= maxWait {
		return nil
	}
	return &unseenError{object: needed, waited: waited}
}

// withoutNew returns the plan without its new clusters, because these wait for a needed object. While they wait, the
// clusters that the binding names already keep their states and their shares of the replicas. All other changes of the
// plan stay.
func withoutNew(in decide.Input, p decide.Plan, unseen *unseenError) decide.Plan {
	before, now := in.Spec(), p.Spec
	p.Spec = now.DeepCopy()
	p.Spec.Clusters = nil
	for _, t := range before.Clusters {
		if planned := now.Target(t.Name); planned != nil && planned.State == t.State {
			share := t.Replicas
			if t = *planned.DeepCopy(); t.Replicas != nil && share != nil {
				t.Replicas = share
			}
		} else if held := before.Revision(t.Revision); held != nil && now.Revision(t.Revision) == nil {
			p.Spec.Revisions = append(p.Spec.Revisions, *held)
		}
		p.Spec.Clusters = append(p.Spec.Clusters, t)
	}
	p.Claims, p.LeftBehind = decide.Claims{}, nil
	p.Status.Scheduled.Status, p.Status.Scheduled.Reason = metav1.ConditionFalse, hubv1.ReasonReferenceNotReady
	p.Status.Scheduled.Message = decide.Short(fmt.Sprintf(
		"new clusters wait for up to %.0f s, because %v; the other clusters keep their copies", maxWait.Seconds(), unseen))
	return p
}

func coversAll(clusters []string, spec *hubv1.BindingSpec) bool {
	return sets.New(clusters...).HasAll(spec.Holders()...)
}

// withMissing adds the needed objects that cannot be sent to clusters to the message of the condition Scheduled.
func (s *Scheduler) withMissing(id key, p decide.Plan) decide.Plan {
	if p.Spec == nil {
		return p
	}
	var missing []string
	for _, ref := range p.Spec.References {
		if why := s.missingReference(ref.In(id.Namespace)); why != "" && !ref.Former {
			missing = append(missing, ref.In(id.Namespace).String()+" "+why)
		}
	}
	if missing != nil {
		p.Status.Scheduled.Message = decide.Short(p.Status.Scheduled.Message + "; needed objects are not sent: " + strings.Join(missing, ", "))
	}
	return p
}

// missingReference returns why a needed object cannot be sent to clusters. The text is empty if the object can be sent.
func (s *Scheduler) missingReference(id key) string {
	t, found := s.opts.Templates.Get(id)
	state, watched := s.opts.Templates.StateOf(id)
	switch {
	case found && t.GetDeletionTimestamp() != nil:
		return "is being deleted on the hub"
	case found:
		if r := cmp.Or(tenancy.OfPlace(id, hubv1.IsOfOperator(t)), tenancy.OfSecret(t)); r != nil {
			return "stays on the hub (" + r.Reason + ")"
		}
		return ""
	case state.Reason != "":
		return fmt.Sprintf("cannot be read on the hub (%s)", state.Reason)
	case !watched || !state.Synced:
		return "" // the answer is not known yet
	}
	return "does not exist on the hub"
}
