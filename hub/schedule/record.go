package schedule

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement"
)

// What a binding has to remember beside its spec.
const (
	// whenDeletedAnnotation is the placement's deletion.whenDeleted if it is not the kind's default. A placement that is deleted
	// together with its objects, as helm uninstall does, can no longer be asked.
	whenDeletedAnnotation = hubv1.Prefix + "when-deleted"
	// objectSinceAnnotation is when the object was made that the binding is for, if that was after the binding.
	objectSinceAnnotation = hubv1.Prefix + "object-since"
)

// record writes the binding if the plan differs from it, in one write, and publishes the decision.
func (s *Scheduler) record(ctx context.Context, f facts, p plan) error {
	if p.spec == nil {
		s.announce(f, p, nil)
		return nil
	}
	b, err := s.write(ctx, f, p)
	if err != nil {
		return fmt.Errorf("recording the decision for %s: %w", f.id, err)
	}
	if b == f.binding && f.binding != nil && !f.isJudged(p) {
		return nil // nothing has changed yet
	}
	s.announce(f, p, b)
	return nil
}

// write returns the binding as it is after the write, or as it was if there is nothing to write.
func (s *Scheduler) write(ctx context.Context, f facts, p plan) (hubv1.BindingObject, error) {
	log := ctrl.LoggerFrom(ctx).WithValues("binding", f.id.BindingKey(), "reason", p.scheduled.Reason)
	if f.binding == nil {
		b := hubv1.NewBinding(f.id.BindingKey())
		*b.BindingSpec() = *p.spec
		controllerutil.AddFinalizer(b, hubv1.WithdrawFinalizer)
		annotate(b, whenDeletedAnnotation, f.policyToRemember(p))
		annotate(b, hubv1.SettingsAnnotation, f.settingsToRemember(p))
		log.V(1).Info("Creating a binding", "clusters", len(p.spec.Clusters))
		return b, s.Client.Create(ctx, b)
	}
	after := f.binding.DeepCopyObject().(hubv1.BindingObject)
	*after.BindingSpec() = *p.spec.DeepCopy()
	keepGeneration(f.spec(), after.BindingSpec())
	if after.GetDeletionTimestamp() == nil {
		controllerutil.AddFinalizer(after, hubv1.WithdrawFinalizer) // hansectl uninstall takes it off
	}
	annotate(after, whenDeletedAnnotation, f.policyToRemember(p))
	annotate(after, hubv1.SettingsAnnotation, f.settingsToRemember(p))
	if f.fate == alive && f.template.GetUID() != f.spec().ObjectRef.UID {
		annotate(after, objectSinceAnnotation, f.template.GetCreationTimestamp().UTC().Format(time.RFC3339))
	}
	if equality.Semantic.DeepEqual(f.binding, after) {
		return f.binding, nil
	}
	log.V(1).Info("Changing a binding", "clusters", len(p.spec.Clusters))
	if err := s.Client.Patch(ctx, after, client.MergeFromWithOptions(f.binding, client.MergeFromWithOptimisticLock{})); err != nil {
		return after, err
	}
	if m := movesOf(f.spec(), p.spec); !m.none() {
		log.Info("Moved an object", "object", f.id.String(), "to", m.to, "from", m.from, "evicting", m.evicting)
	}
	return after, nil
}

// moves are the clusters whose part in a decision is another one than before.
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

func (m moves) none() bool { return len(m.to)+len(m.from)+len(m.evicting) == 0 }

// keepGeneration leaves the placement's generation as it was if the decision is the same: not every edit of a placement is a change
// of all its bindings.
func keepGeneration(before, after *hubv1.BindingSpec) {
	if before.PlacementRef == nil || after.PlacementRef == nil {
		return
	}
	generation := after.PlacementRef.Generation
	after.PlacementRef.Generation = before.PlacementRef.Generation
	if !equality.Semantic.DeepEqual(before, after) {
		after.PlacementRef.Generation = generation
	}
}

func (f facts) policyToRemember(p plan) string {
	if standard, _ := placement.DefaultRemoval(f.id.GroupKind(), hubv1.DeletionPolicy{}); p.whenDeleted == standard {
		return ""
	}
	return string(p.whenDeleted)
}

// settingsToRemember are those of the placement that the binding names, as long as it is there.
func (f facts) settingsToRemember(p plan) string {
	if ref := p.spec.PlacementRef; ref != nil {
		if named := f.world.placement(ref); named != nil && named.GetUID() == ref.UID {
			return named.PlacementSpec().Settings()
		}
	}
	if f.binding == nil {
		return ""
	}
	return f.binding.GetAnnotations()[hubv1.SettingsAnnotation]
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

// isOutdated means that the write was decided on a binding that is no longer so.
func isOutdated(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

// preconditions tie a deletion to the binding that was read.
func preconditions(b hubv1.BindingObject) client.Preconditions {
	uid, version := b.GetUID(), b.GetResourceVersion()
	return client.Preconditions{UID: &uid, ResourceVersion: &version}
}
