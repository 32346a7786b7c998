package schedule

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
)

// fits reports whether a SetRollout can have all clusters of the bundle. If it cannot, the bundle stays as it is, and
// its condition Scheduled says why. The condition is missing otherwise.
func (r *setRun) fits(ctx context.Context, spec *hubv1.SetRolloutSpec) (bool, error) {
	after := r.bundle.DeepCopyObject().(hubv1.BundleObject)
	conditions, clusters := &after.BundleStatus().Conditions, len(spec.Clusters)
	if clusters > hubv1.MaxEntries {
		meta.SetStatusCondition(conditions, metav1.Condition{
			Type: hubv1.ConditionScheduled, Status: metav1.ConditionFalse, Reason: hubv1.ReasonTooManyClusters, ObservedGeneration: after.GetGeneration(),
			Message: fmt.Sprintf(
				"a SetRollout has at most %d clusters, and %d shall hold objects of the bundle: each cluster keeps what it has; select fewer clusters, or divide the fleet between two bundles",
				hubv1.MaxEntries, clusters),
		})
	} else {
		meta.RemoveStatusCondition(conditions, hubv1.ConditionScheduled)
	}
	if equality.Semantic.DeepEqual(r.bundle.BundleStatus().Conditions, *conditions) {
		return clusters <= hubv1.MaxEntries, nil
	}
	err := r.s.opts.Client.Status().Patch(ctx, after, client.MergeFromWithOptions(r.bundle, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("writing the condition Scheduled of %s: %w", r.of, err)
	}
	pace.Writes.WithLabelValues(r.of.Kind, "status").Inc()
	return clusters <= hubv1.MaxEntries, nil
}

// unbounded removes the condition that fits has written, because the bundle is not decided on as a whole.
func (r *setRun) unbounded(ctx context.Context) error {
	if r.bundle == nil || r.bundle.GetUID() == "" {
		return nil // it is deleted
	}
	_, err := r.fits(ctx, &hubv1.SetRolloutSpec{})
	return err
}
