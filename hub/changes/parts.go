package changes

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/overrides"
)

// Parts are parts of an object that change.
type Parts uint

// The parts.
const (
	// Added and Deleted have no other parts beside them.
	Added Parts = 1 << iota
	Deleted
	// Any is a part of every update.
	Any
	// Spec has another generation, or is of another object of the name: if the watch missed the end of the first, the
	// second comes as its change.
	Spec
	// Ending is whether the object is being deleted.
	Ending
	// Finalizers is their number.
	Finalizers
	// Labels of the object.
	Labels
	// Settings are those of a binding's placement, as the binding keeps them.
	Settings
	// Readiness is the status and the reason of a cluster's condition Ready.
	Readiness
	// Facts of a cluster, which override policies read.
	Facts
	// Served are the API versions of each kind that a cluster serves.
	Served
	// AllowedNamespaces of a cluster.
	AllowedNamespaces
	// Region of a cluster.
	Region
	// Verbs are the annotations of a placement that steer its rollouts.
	Verbs
)

// All is a part of every change.
const All = Added | Deleted | Any

func compareMeta[T client.Object](before, after T) Parts {
	return when(before.GetUID() != after.GetUID() || before.GetGeneration() != after.GetGeneration(), Spec) |
		when((before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil), Ending) |
		when(len(before.GetFinalizers()) != len(after.GetFinalizers()), Finalizers) |
		when(!maps.Equal(before.GetLabels(), after.GetLabels()), Labels)
}

func comparePlacements(before, after hubv1.PlacementObject) Parts {
	changed := slices.ContainsFunc(rolloutVerbs, func(verb string) bool { return before.GetAnnotations()[verb] != after.GetAnnotations()[verb] })
	return compareMeta(before, after) | when(changed, Verbs)
}

var rolloutVerbs = []string{
	hubv1.RolloutApproveAnnotation, hubv1.RolloutPauseAnnotation, hubv1.RolloutSkipAnnotation, hubv1.RolloutPromoteAnnotation,
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
