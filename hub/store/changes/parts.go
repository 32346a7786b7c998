package changes

import (
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/overrides"
)

// Parts is a set of changed parts of an object.
type Parts uint

// These are the parts of an object that a change can affect.
const (
	// Added and Deleted are never combined with other parts.
	Added Parts = 1 << iota
	Deleted
	// Any is set for every update, whatever part of the object has changed.
	Any
	// Spec means that the generation of the object has changed, or that the object was deleted and created again. If the
	// watch misses the deletion, it reports the new object as a change of the old one.
	Spec
	// Ending means that the deletion of the object has begun.
	Ending
	// Finalizers means that the number of finalizers has changed.
	Finalizers
	// Labels means that the object's labels have changed.
	Labels
	// Settings means that the settings in a binding have changed, which the hub copies from the placement.
	Settings
	// Readiness means that the status or the reason of a cluster's condition Ready has changed.
	Readiness
	// Facts means that data of a cluster which override policies read has changed, such as its capacity.
	Facts
	// Served means that a cluster serves other versions of a kind than before.
	Served
	// AllowedNamespaces means that spec.allowedNamespaces of a cluster has changed.
	AllowedNamespaces
	// Region means that the region of a cluster has changed.
	Region
	// Verbs means that a user has paused or resumed the rollouts of a placement, or that the hub has recorded other
	// requests of users in its status. For a bundle, it means that a user has requested new generated values, or an undo.
	Verbs
)

// All selects every event.
const All = Added | Deleted | Any

func compareMeta[T client.Object](before, after T) Parts {
	return when(before.GetUID() != after.GetUID() || before.GetGeneration() != after.GetGeneration(), Spec) |
		when((before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil), Ending) |
		when(len(before.GetFinalizers()) != len(after.GetFinalizers()), Finalizers) |
		when(!maps.Equal(before.GetLabels(), after.GetLabels()), Labels)
}

func comparePlacements(before, after hubv1.PlacementObject) Parts {
	paused := before.GetAnnotations()[hubv1.RolloutPauseAnnotation] != after.GetAnnotations()[hubv1.RolloutPauseAnnotation]
	return compareMeta(before, after) | when(paused || !equality.Semantic.DeepEqual(requests(before), requests(after)), Verbs)
}

func compareBundles(before, after hubv1.BundleObject) Parts {
	requests := func(b hubv1.BundleObject) [2]string {
		return [2]string{b.GetAnnotations()[hubv1.RegenerateValuesAnnotation], b.GetAnnotations()[hubv1.RolloutUndoAnnotation]}
	}
	return compareMeta(before, after) | when(requests(before) != requests(after), Verbs)
}

// requests returns the requests of users that the status of a placement records.
func requests(p hubv1.PlacementObject) hubv1.PlacementRollout {
	r := p.PlacementStatus().Rollout
	if r == nil {
		return hubv1.PlacementRollout{}
	}
	return hubv1.PlacementRollout{Approvals: r.Approvals, Skips: r.Skips, Promotion: r.Promotion}
}

func compareBindings(before, after hubv1.BindingObject) Parts {
	return compareMeta(before, after) |
		when(before.GetAnnotations()[hubv1.SettingsAnnotation] != after.GetAnnotations()[hubv1.SettingsAnnotation], Settings)
}

func compareClusters(before, after *hubv1.MemberCluster) Parts {
	return compareMeta(before, after) |
		when(readiness(before) != readiness(after), Readiness) |
		when(!equality.Semantic.DeepEqual(overrides.ClusterOf(before), overrides.ClusterOf(after)), Facts) |
		when(!equality.Semantic.DeepEqual(before.Status.APIResources, after.Status.APIResources), Served) |
		when(!equality.Semantic.DeepEqual(before.Spec.AllowedNamespaces, after.Spec.AllowedNamespaces), AllowedNamespaces) |
		when(before.SelectableLabels()[hubv1.RegionLabel] != after.SelectableLabels()[hubv1.RegionLabel], Region)
}

func when(changed bool, p Parts) Parts {
	if changed {
		return p
	}
	return 0
}

func readiness(c *hubv1.MemberCluster) string {
	ready := meta.FindStatusCondition(c.Status.Conditions, hubv1.ConditionReady)
	if ready == nil {
		return ""
	}
	return string(ready.Status) + " " + ready.Reason
}
