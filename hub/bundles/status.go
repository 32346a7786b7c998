package bundles

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// object is a stored object of a bundle, with its binding; the binding is nil if there is none.
type object struct {
	id         hubv1.ObjectIdentity
	generation int64 // of the stored object
	binding    hubv1.BindingObject
}

// objects returns the stored objects of a bundle that are not being removed, in the order of their names.
func (c *Controller) objects(ctx context.Context, bundle types.NamespacedName) ([]object, error) {
	var out []object
	for _, id := range c.Templates.ListStored(func(o hubv1.ObjectBundle) bool { return o.Key() == bundle }) {
		template, ok := c.Templates.Get(id)
		if !ok || template.GetDeletionTimestamp() != nil {
			continue
		}
		binding := hubv1.NewBinding(id.BindingKey())
		err := c.Client.Get(ctx, id.BindingKey(), binding, client.UnsafeDisableDeepCopy)
		switch {
		case apierrors.IsNotFound(err):
			binding = nil
		case err != nil:
			return nil, fmt.Errorf("reading the binding of %s: %w", id, err)
		}
		out = append(out, object{id, template.GetGeneration(), binding})
	}
	slices.SortFunc(out, func(a, b object) int { return cmp.Compare(a.id.String(), b.id.String()) })
	return out, nil
}

// follows reports whether a placement sends the object to clusters.
func (o object) follows() bool {
	return o.binding != nil && o.binding.BindingSpec().PlacementRef != nil
}

// isCurrent reports whether the binding describes copies of the stored object: not of an earlier generation of it.
func (o object) isCurrent() bool {
	spec, status := o.binding.BindingSpec(), o.binding.BindingStatus()
	if status.ObservedGeneration != o.binding.GetGeneration() {
		return false
	}
	hub := hubv1.HubObject{Generation: o.generation, Revisions: spec.Revisions}
	return !slices.ContainsFunc(spec.Clusters, func(t hubv1.BindingTarget) bool {
		row := status.Row(t.Name)
		return t.State == hubv1.TargetPresent && (row == nil || !hubv1.Wanted(t, hub).IsHeld(row.Generation, row.Revision))
	})
}

// fold sets the numbers of a status.
func fold(status *hubv1.BundleStatus, objects []object) {
	status.Objects, status.Placed = int32(len(objects)), 0
	for _, o := range objects {
		if o.follows() {
			status.Placed++
		}
	}
}

// conditions returns Applied and Healthy.
func conditions(objects []object) []metav1.Condition {
	return []metav1.Condition{
		worst(hubv1.ConditionApplied, hubv1.ReasonAppliedEverywhere, objects),
		worst(hubv1.ConditionHealthy, hubv1.ReasonHealthyEverywhere, objects),
	}
}

// worst returns a condition over the same condition of all bindings: False if one is False, else Unknown if one is
// Unknown or not known yet, else True with the reason good. Objects that follow no placement are named.
func worst(conditionType, good string, objects []object) metav1.Condition {
	var failed, unknown, unplaced []string
	var why, whyUnknown string
	for _, o := range objects {
		if !o.follows() {
			unplaced = append(unplaced, o.id.String())
			continue
		}
		c := meta.FindStatusCondition(o.binding.BindingStatus().Conditions, conditionType)
		switch {
		case c == nil || c.Status == metav1.ConditionTrue && !o.isCurrent():
			unknown, whyUnknown = append(unknown, o.id.String()), hubv1.ReasonNotYetReported
		case c.Status == metav1.ConditionFalse:
			failed, why = append(failed, o.id.String()+": "+c.Message), c.Reason
		case c.Status == metav1.ConditionUnknown:
			unknown, whyUnknown = append(unknown, o.id.String()+": "+c.Message), c.Reason
		}
	}
	out := metav1.Condition{Type: conditionType}
	switch {
	case len(failed) > 0:
		out.Status, out.Reason, out.Message = metav1.ConditionFalse, why, someOf(failed)
	case len(unplaced) == len(objects):
		out.Status, out.Reason = metav1.ConditionUnknown, hubv1.ReasonNothingPlaced
		out.Message = "no placement selects this bundle: select it by a resourceSelector with apiGroup hanse.dev"
	case len(unknown) > 0:
		out.Status, out.Reason, out.Message = metav1.ConditionUnknown, whyUnknown, someOf(unknown)
	case len(unplaced) > 0:
		out.Status, out.Reason, out.Message = metav1.ConditionFalse, hubv1.ReasonPartlyPlaced, "these objects follow no placement: "+someOf(unplaced)
	default:
		out.Status, out.Reason = metav1.ConditionTrue, good
	}
	out.Message = hubv1.CutMessage(out.Message, 1024)
	return out
}
