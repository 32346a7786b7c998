package schedule

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/placement"
	"github.com/hanse-dev/hanse/placement/decide"
)

// objectSinceAnnotation is an annotation of a binding. It has the creation time of the hub object if the hub object was
// created after the binding.
const objectSinceAnnotation = hubv1.Prefix + "object-since"

// record writes the plan to the binding in one write, if the plan and the binding differ. It does nothing for a binding
// that release has ended, and for an object without a binding that needs none.
func (r *run) record(ctx context.Context) error {
	if r.released || r.out.Spec == nil {
		return nil
	}
	b, err := r.write(ctx)
	if err != nil {
		return fmt.Errorf("recording the decision for %s: %w", r.in.Object.ID, err)
	}
	if r.after, r.wrote = b, b != r.in.Binding; r.wrote {
		pace.Writes.WithLabelValues(kindOf(b), pace.Decision).Inc()
	}
	return nil
}

// kindOf returns the kind of a binding. It does not use TypeMeta, because the cache leaves it empty.
func kindOf(b hubv1.BindingObject) string { return reflect.TypeOf(b).Elem().Name() }

// awaitsVerdict reports whether the plan has a removal on which the guard has not decided yet.
func awaitsVerdict(p decide.Plan) bool {
	return slices.ContainsFunc(p.Claims.Removals, func(r decide.Removal) bool { return !r.Held })
}

// write writes the binding. It returns the binding after the write, or the unchanged one if no write is needed.
func (r *run) write(ctx context.Context) (hubv1.BindingObject, error) {
	log := ctrl.LoggerFrom(ctx).WithValues("binding", r.in.Object.ID.BindingKey(), "reason", r.out.Status.Scheduled.Reason)
	if r.in.Binding == nil {
		b := hubv1.NewBinding(r.in.Object.ID.BindingKey())
		*b.BindingSpec() = *r.out.Spec
		controllerutil.AddFinalizer(b, hubv1.WithdrawFinalizer)
		annotate(b, decide.WhenDeletedAnnotation, policyToRemember(r.in, r.out))
		annotate(b, hubv1.SettingsAnnotation, settingsToRemember(r.in, r.out))
		annotate(b, hubv1.SetFollowedAnnotation, followedMark(r.in, r.out))
		turn, err := r.s.turn(r.in)
		if err != nil {
			return b, err
		}
		defer turn.Done()
		if err := r.s.storePayloads(ctx, r.out); err != nil {
			return b, err
		}
		if err := r.s.opts.Client.Create(ctx, b); err != nil {
			return b, err
		}
		r.logMoves(log, movesOf(&hubv1.BindingSpec{}, r.out.Spec))
		return b, nil
	}
	after := r.in.Binding.DeepCopyObject().(hubv1.BindingObject)
	*after.BindingSpec() = *r.out.Spec.DeepCopy()
	if after.GetDeletionTimestamp() == nil {
		controllerutil.AddFinalizer(after, hubv1.WithdrawFinalizer) // hansectl uninstall removes it
	}
	annotate(after, decide.WhenDeletedAnnotation, policyToRemember(r.in, r.out))
	annotate(after, hubv1.SettingsAnnotation, settingsToRemember(r.in, r.out))
	annotate(after, hubv1.SetFollowedAnnotation, followedMark(r.in, r.out))
	if r.in.Object.State == decide.Exists && r.out.Spec.ObjectRef.UID != r.in.Spec().ObjectRef.UID {
		annotate(after, objectSinceAnnotation, r.in.Object.Template.GetCreationTimestamp().UTC().Format(time.RFC3339))
	}
	unchanged := equality.Semantic.DeepEqual(r.in.Binding, after)
	if unchanged && len(r.out.Payloads) == 0 {
		return r.in.Binding, nil
	}
	moves := movesOf(r.in.Spec(), r.out.Spec)
	if !moves.takesAway() {
		turn, err := r.s.turn(r.in)
		if err != nil {
			return after, err
		}
		defer turn.Done()
	}
	if err := r.s.storePayloads(ctx, r.out); err != nil {
		return after, err
	}
	if unchanged { // only a lost part of a revision had to be stored again
		return r.in.Binding, nil
	}
	if err := r.s.opts.Client.Patch(ctx, after, client.MergeFromWithOptions(r.in.Binding, client.MergeFromWithOptimisticLock{})); err != nil {
		return after, err
	}
	r.logMoves(log, moves)
	return after, nil
}

// logMoves logs the clusters that a decision adds and removes.
func (r *run) logMoves(log logr.Logger, m moves) {
	if m.none() {
		log.V(1).Info("Changed a binding")
		return
	}
	message := "Moving an object"
	switch {
	case !m.takesAway():
		message = "Placing an object"
	case len(m.to)+len(m.evicting) == 0:
		message = "Withdrawing an object"
	}
	r.s.changeOf(r.in).Log(log).
		Info(message, "object", r.in.Object.ID.String(), "to", m.to, "from", m.from, "evicting", m.evicting)
}

// storePayloads stores new contents of revisions, and lost contents again. It must run before the write of the binding
// that names these revisions, and in the same turn of the pacer.
func (s *Scheduler) storePayloads(ctx context.Context, p decide.Plan) error {
	for _, payload := range p.Payloads {
		if err := s.opts.Rollouts.Revisions.Ensure(ctx, payload); err != nil {
			return err
		}
	}
	return nil
}

// errNoTurn means that the pacer, which limits the writes to the hub's API server, allows no write now. The pacer
// queues the object again as soon as it may be written.
var errNoTurn = errors.New("the write waits for its turn")

// turn takes a turn of the pacer to write a decision. If the pacer has no turn now, the error is errNoTurn.
func (s *Scheduler) turn(in decide.Input) (*pace.Turn, error) {
	id, class := in.Object.ID, pace.Many
	if in.Binding == nil || s.shared.removals.pending.single(id) {
		class = pace.FirstDecision
	}
	turn := s.opts.Pacer.Try(class, id, func() {
		if _, q := s.leading(); q != nil {
			q.(priorityqueue.PriorityQueue[key]).AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(class.Priority())}, id)
		}
	})
	if turn == nil {
		return nil, errNoTurn
	}
	return turn, nil
}

// moves has the clusters whose state in the binding changes by a decision.
type moves struct{ to, from, evicting []string }

func movesOf(before, after *hubv1.BindingSpec) (m moves) {
	for _, t := range after.Clusters {
		was := before.Target(t.Name)
		switch {
		case was != nil && was.State == t.State:
		case t.State == hubv1.TargetPresent:
			m.to = append(m.to, t.Name)
		case t.State == hubv1.TargetEvicting:
			m.evicting = append(m.evicting, t.Name)
		default:
			m.from = append(m.from, t.Name)
		}
	}
	return m
}

// takesAway reports whether the decision removes copies from clusters. Such a decision is written at once, without a
// turn of the pacer (the limit for writes), so that load cannot delay it.
func (m moves) takesAway() bool { return len(m.from)+len(m.evicting) > 0 }

func (m moves) none() bool { return len(m.to)+len(m.from)+len(m.evicting) == 0 }

func policyToRemember(in decide.Input, p decide.Plan) string {
	if standard, _ := placement.DefaultRemoval(in.Object.ID.GroupKind(), hubv1.DeletionPolicy{}); p.WhenDeleted == standard {
		return ""
	}
	return string(p.WhenDeleted)
}

// settingsToRemember returns the settings of the placement that the binding records. They stay in force after the
// placement is deleted. For a deleted placement, settingsToRemember returns the settings that the binding has recorded
// before.
func settingsToRemember(in decide.Input, p decide.Plan) string {
	if ref := p.Spec.PlacementRef; ref != nil {
		if named := in.Facts.Placement(ref); named != nil && named.GetUID() == ref.UID {
			return named.PlacementSpec().Settings()
		}
	}
	if in.Binding == nil {
		return ""
	}
	return in.Binding.GetAnnotations()[hubv1.SettingsAnnotation]
}

// annotate sets an annotation, or removes it if the value is empty.
func annotate(b hubv1.BindingObject, key, value string) {
	a := b.GetAnnotations()
	if a[key] == value {
		return
	}
	if a == nil {
		a = map[string]string{}
	}
	if a[key] = value; value == "" {
		delete(a, key)
	}
	b.SetAnnotations(a)
}

// isOutdated reports whether a write failed because the binding has changed since it was read.
func isOutdated(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

// preconditions returns the preconditions with which a deletion fails if the binding has changed since it was read.
func preconditions(b hubv1.BindingObject) client.Preconditions {
	uid, version := b.GetUID(), b.GetResourceVersion()
	return client.Preconditions{UID: &uid, ResourceVersion: &version}
}
