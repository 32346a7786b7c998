package dispatch

import (
	"context"
	"fmt"
	"math"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/epoch"
)

// setSource sets r.out.source to the hub's epoch, the generation of the hub object, and the decision: the state of the
// binding. They are compared with the mark that a copy has recorded. template is nil if the hub object was deleted. No
// copy then counts as newer by its generation or decision.
func (r *run) setSource(template metav1.Object) {
	r.out.source.Epochs = r.queue.opts.Epochs.Current()
	r.out.source.Mark.Epoch, _ = r.out.source.Epochs.Last()
	if template == nil {
		r.out.source.Mark.Generation = math.MaxInt64 // the hub object is deleted, so no copy counts as newer
		return
	}
	r.out.source.Mark.Generation, r.out.source.Mark.Decision = template.GetGeneration(), decisionOf(r.binding)
	r.out.source.Accepted = template.GetAnnotations()[hubv1.AcceptSourceAnnotation]
	written := r.queue.copies.get(r.key).last.Applied == metav1.ConditionTrue // by this process; the row may be older
	r.out.source.Held = !written && r.isHeld(r.binding)
}

func decisionOf(b hubv1.BindingObject) epoch.Decision {
	return epoch.Decision{Binding: string(b.GetUID()), Generation: b.GetGeneration()}
}

// isHeld reports whether the binding's row of this cluster says that the copy is newer than the hub.
func (r *run) isHeld(b hubv1.BindingObject) bool {
	row := b.BindingStatus().Row(r.target.Name)
	return row != nil && row.Reason == hubv1.ReasonHubIsOlder
}

// useEpoch stores in r.out.source the epoch that the next write records in the copy.
func (r *run) useEpoch(ctx context.Context) {
	r.out.source.Epochs = r.queue.opts.Epochs.Use(ctx)
	r.out.source.Mark.Epoch, _ = r.out.source.Epochs.Last()
}

// newer reports whether a later state of the hub wrote the copy, according to the cached list of epochs. This is
// possible if the hub was restored from a backup.
func (r *run) newer(seen observed) bool { return r.out.source.Newer(seen.Source, true) }

// confirmOlder checks an outcome with the reason HubIsOlder (the copy is newer than the hub) by uncached reads. Another
// replica may have written the copy from data that this replica's cache does not have yet. If the copy is not newer or
// a read fails, confirmOlder returns an outcome without a reason, and the key is tried again soon.
func (r *run) confirmOlder(ctx context.Context, o member.Outcome) member.Outcome {
	if o.Reason != hubv1.ReasonHubIsOlder {
		return o
	}
	older, err := r.isOlder(ctx, o.Newer)
	if older {
		return o
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("Not writing a copy that seems newer than the hub, since the hub could not be read uncached", "reason", err.Error())
	}
	r.behind = true
	return member.Outcome{Retry: member.RetrySoon}
}

func (r *run) isOlder(ctx context.Context, copied member.Newer) (bool, error) {
	state := epoch.State{Epochs: r.out.source.Epochs}
	if state.Epochs.Foreign(copied.Mark.Epoch) {
		epochs, err := r.queue.opts.Epochs.Confirm(ctx, copied.Mark.Epoch)
		if err != nil || epochs.Foreign(copied.Mark.Epoch) {
			return err == nil, err
		}
		state.Epochs = epochs
	}
	fresh, err := r.readObject(ctx)
	if fresh == nil || err != nil {
		return false, err
	}
	state.Mark.Generation, state.Accepted = fresh.GetGeneration(), fresh.GetAnnotations()[hubv1.AcceptSourceAnnotation]
	if r.out.source.Held || r.out.source.Mark.Decision.Before(copied.Mark.Decision) {
		binding := hubv1.NewBinding(r.key)
		if err := r.queue.opts.APIReader.Get(ctx, r.key, binding); err != nil {
			return false, fmt.Errorf("reading binding %s uncached: %w", r.key, err)
		}
		state.Mark.Decision, state.Held = decisionOf(binding), r.isHeld(binding)
	}
	of := r.binding.BindingSpec().ObjectRef.UID
	if r.target.Absent != nil {
		of = r.target.Absent.UID // that of an earlier object if the hub object was made anew
	}
	return state.Newer(copied.Mark, copied.SameObject && fresh.GetUID() == of), nil
}

// readObject reads the hub object uncached. It returns nil if the hub has no such object.
func (r *run) readObject(ctx context.Context) (metav1.Object, error) {
	if r.binding.BindingSpec().ObjectRef.Bundle != nil {
		object, isGone, err := r.queue.opts.Templates.Live(ctx, r.in.object.ObjectIdentity, time.Time{})
		if isGone || err != nil {
			return nil, err
		}
		return object, nil
	}
	fresh := &metav1.PartialObjectMetadata{}
	fresh.SetGroupVersionKind(r.out.hubGVK)
	key := types.NamespacedName{Namespace: r.in.object.Namespace, Name: r.in.object.Name}
	if err := r.queue.opts.APIReader.Get(ctx, key, fresh); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading %s uncached: %w", r.in.object.ObjectIdentity, err)
	}
	return fresh, nil
}

// noEpochs is the default of Options.Epochs. Copies then record no epoch.
type noEpochs struct{}

// Current implements Epochs.
func (noEpochs) Current() epoch.Epochs { return epoch.Epochs{} }

// Confirm implements Epochs.
func (noEpochs) Confirm(context.Context, epoch.Epoch) (epoch.Epochs, error) {
	return epoch.Epochs{}, nil
}

// Use implements Epochs.
func (noEpochs) Use(context.Context) epoch.Epochs { return epoch.Epochs{} }
