package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// fate is what is known of the object itself.
type fate int

const (
	alive fate = iota
	// gone: it was deleted, or asked to go, as an uncached read has shown.
	gone
	// unread: it cannot be read now.
	unread
	// undecided: it is not there, and nobody can say that it was deleted.
	undecided
)

// facts are everything that one decision depends on.
type facts struct {
	id       hubv1.ObjectIdentity
	binding  hubv1.BindingObject        // nil if there is none; not to be changed
	template *unstructured.Unstructured // set if the fate is alive; not to be changed
	fate     fate
	why      string // the object is unread or undecided
	world    world
	memory   *memory
	// capacities are for divisions; scalePath is where a division that says nothing might find the replicas.
	capacities *capacities
	unanswered *unanswered
	turns      *turns
	// mostAway is the percentage of clusters that may be away.
	mostAway int
	// noRoom is true if the replicas would have no room without a cluster that is drained.
	noRoom    bool
	scalePath string
	refused   bool // the hub itself would act on this kind
	now       time.Time
	// holdBack keeps what a decision would take from a cluster: it has not been confirmed.
	holdBack bool
	// guarded is true if copies go only once the guard has let them; removals are its verdicts on those of this object, by cluster.
	guarded  bool
	removals map[string]verdict
	// replayed is told how the decision comes about, unless it is nil.
	replayed *Replayed
}

func (f facts) spec() *hubv1.BindingSpec {
	if f.binding == nil {
		return &hubv1.BindingSpec{}
	}
	return f.binding.BindingSpec()
}

// selectable is the object as policies see it.
func (f facts) selectable() hubv1.SelectableObject {
	return hubv1.SelectableObject{ObjectIdentity: f.id, Labels: f.template.GetLabels(), NamespaceLabels: f.world.namespaceLabels}
}

var (
	errNotListed   = errors.New("the objects of its kind are not listed yet")
	errOtherObject = errors.New("it belongs to another object")
	errNoNamespace = errors.New("its namespace is not known yet")
)

// gather reads what is known of an object. What could not be read is an error or a fate of its own, never an absence.
func (s *Scheduler) gather(ctx context.Context, id hubv1.ObjectIdentity) (facts, error) {
	f := facts{id: id, memory: &s.memory, capacities: &s.capacities, unanswered: &s.unanswered, turns: &s.turns, mostAway: s.Failover.MostAway, refused: s.Refused(id.GroupKind()), now: s.Clock.Now(),
		guarded: true, removals: s.removals.of(id)}
	binding := hubv1.NewBinding(id.BindingKey())
	switch err := s.Client.Get(ctx, id.BindingKey(), binding, client.UnsafeDisableDeepCopy); {
	case client.IgnoreNotFound(err) != nil:
		return facts{}, fmt.Errorf("reading the binding of %s: %w", id, err)
	case err == nil:
		f.binding = binding
	}
	if f.binding != nil && hubv1.ObjectOf(f.binding) != id {
		return facts{}, fmt.Errorf("reading the binding %s of %s: %w", id.BindingKey(), id, errOtherObject)
	}
	if err := s.look(ctx, &f); err != nil {
		return facts{}, err
	}
	w, err := readWorld(ctx, s.Client, id.Namespace, client.UnsafeDisableDeepCopy)
	if err != nil {
		return facts{}, fmt.Errorf("gathering for %s: %w", id, err)
	}
	if f.fate == alive && id.Namespace != "" && !w.namespaceRead {
		return facts{}, fmt.Errorf("gathering for %s: %w", id, errNoNamespace)
	}
	f.world = w
	f.scalePath = s.suggestion(ctx, id.GroupKind(), w.placements)
	return f, nil
}

// look finds the object's fate: from memory if it lives, from the API server if not.
func (s *Scheduler) look(ctx context.Context, f *facts) error {
	template, found := s.Templates.Get(f.id)
	if found && template.GetDeletionTimestamp() == nil {
		f.template = template
		s.deaths.forget(f.id)
		return nil
	}
	if f.binding == nil {
		f.fate = gone // and nothing is to be done about it
		s.deaths.forget(f.id)
		return nil
	}
	state, watched := s.Templates.State(f.id.GroupKind())
	switch {
	case !found && (!watched || (!state.Synced && state.Reason == "")):
		return errNotListed
	case !found && !state.Synced:
		f.fate, f.why = unread, fmt.Sprintf("%s: %s", state.Reason, state.Message)
		if state.Reason == hubv1.ReasonKindNotServed || state.Reason == hubv1.ReasonForbidden {
			f.fate = undecided
		}
		return nil
	}
	if s.deaths.knows(f.id, f.binding) && !holds(f.spec()) {
		f.fate = gone
		return nil
	}
	asked := s.Clock.Now()
	live, isGone, err := s.Templates.Live(ctx, f.id, knownSince(f.binding))
	switch {
	case isUndecided(err):
		f.fate, f.why = undecided, err.Error()
	case err != nil:
		return fmt.Errorf("gathering for %s: %w", f.id, err)
	case isGone || live.GetDeletionTimestamp() != nil:
		f.fate = gone
		s.deaths.learn(f.id, f.binding, asked)
	default:
		f.template = live
	}
	return nil
}

// holds is true if a cluster has the object and is not about to lose it: to take it from there is never decided from memory.
func holds(spec *hubv1.BindingSpec) bool {
	return slices.ContainsFunc(spec.Clusters, func(e hubv1.BindingTarget) bool { return e.State != hubv1.TargetAbsent })
}

// isUndecided means that the object is not there and that no read will tell why.
func isUndecided(err error) bool {
	var u interface{ Undecided() bool }
	return errors.As(err, &u) && u.Undecided()
}

// knownSince is a time at which the binding's object existed: when the binding was made, or when the object came back.
func knownSince(b hubv1.BindingObject) time.Time {
	since := b.GetCreationTimestamp().Time
	if back, err := time.Parse(time.RFC3339, b.GetAnnotations()[objectSinceAnnotation]); err == nil && back.After(since) {
		since = back
	}
	return since
}
