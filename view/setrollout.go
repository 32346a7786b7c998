package view

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
)

// SetInput has the inputs of the rollout of a bundle as a whole. The SetRollout must have a rollout.
type SetInput struct {
	Spec *hubv1.SetRolloutSpec
	// Bundle is the bundle, or nil if it was deleted or cannot be read.
	Bundle hubv1.BundleObject
	// Bindings are those of the objects of the bundle.
	Bindings []hubv1.BindingObject
	// Lists has the lists of objects of the revisions that are in use, by digest. It is nil if they cannot be read.
	Lists map[string]decide.SetList
	// Placement is the placement that the bundle follows. It is nil if the placement cannot be read.
	Placement hubv1.PlacementObject
	// Members are the MemberClusters. The list is empty if the user may not read them.
	Members []hubv1.MemberCluster
	Now     time.Time
}

// SetRolloutOf returns the rollout of a bundle as a whole. asked is the object of the bundle that the user has named.
// It is empty if the user has named the bundle.
func SetRolloutOf(in SetInput, asked string) Rollout {
	r := Rollout{Object: objectOfBundle(in), Asked: asked, Placement: followedBy(&hubv1.BindingSpec{PlacementRef: in.Spec.PlacementRef}), Rollout: *in.Spec.Rollout}
	waveOf, isObserved := wavesOf(in.Placement, in.Members), Observed(in.Members, nil, in.Now)
	for i := range in.Spec.Clusters {
		entry := &in.Spec.Clusters[i]
		report := decide.ReportOfSet(in.Spec, in.Lists, entry.Name, in.Bindings)
		c := RolloutCluster{Cluster: entry.Name, Revision: entry.Revision, Health: cmp.Or(report.Health, hubv1.HealthUnknown), Reason: report.Reason, Message: report.Message}
		if report.Applied && report.Objects > 0 {
			c.Holds, c.updated = entry.Revision, entry.Revision == r.Rollout.Revision
		}
		if !report.PassingSince.IsZero() && report.Objects > 0 {
			c.PassingSince = &metav1.Time{Time: report.PassingSince}
		}
		if report.Objects == 0 {
			c.Health, c.Reason = hubv1.HealthUnknown, hubv1.ReasonPending
		}
		c.LastObservedTime = lastObservedOf(in.Bindings, entry.Name)
		c.Away = c.LastObservedTime != nil || !isObserved(entry.Name)
		if i, known := waveOf[entry.Name]; known {
			c.wave, c.Wave = i, in.Placement.PlacementSpec().Rollout.Waves[i].Name
		}
		r.Clusters = append(r.Clusters, c)
	}
	slices.SortFunc(r.Clusters, func(a, b RolloutCluster) int {
		return cmp.Or(cmp.Compare(a.wave, b.wave), cmp.Compare(a.Cluster, b.Cluster))
	})
	r.countWaves(in.Placement, len(waveOf) > 0)
	r.Result, r.Progress = r.result(&hubv1.BindingSpec{})
	switch waits := in.waitsForHub(); {
	case waits == "":
	case r.Result == RolloutDone:
		r.Result, r.Progress = RolloutRuns, "Waiting for the hub: "+waits
	default:
		r.Progress += "; " + waits
	}
	return r
}

// waitsForHub returns why the state of the rollout is not that of the newest content of the bundle. It is empty if it
// is.
func (in SetInput) waitsForHub() string {
	if in.Bundle != nil {
		if text := Unstored(in.Bundle); text != "" {
			return text
		}
	}
	if r := in.Spec.Revision(in.Spec.Rollout.Newest); r != nil && r.List != in.Spec.Newest.List && r.ListOf == 0 {
		return fmt.Sprintf("it has not begun to roll out the newest objects of %s", in.Spec.Bundle)
	}
	return ""
}

// lastObservedOf returns the time at which the hub last observed a cluster, or nil while it observes the cluster.
func lastObservedOf(bindings []hubv1.BindingObject, cluster string) *metav1.Time {
	for _, b := range bindings {
		if row := b.BindingStatus().Row(cluster); row != nil && row.LastObservedTime != nil {
			return row.LastObservedTime
		}
	}
	return nil
}

func objectOfBundle(in SetInput) Object {
	id := in.Spec.Bundle.Identity()
	out := Object{Group: id.Group, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name, State: Present}
	if in.Bundle != nil {
		out.Generation = in.Bundle.GetGeneration()
	}
	return out
}

// SetHistoryOf returns the revisions of a bundle.
func SetHistoryOf(in SetInput) RolloutHistory {
	spec := in.Spec
	h := RolloutHistory{
		Object: objectOfBundle(in), Placement: followedBy(&hubv1.BindingSpec{PlacementRef: spec.PlacementRef}),
		Revision: spec.Rollout.Revision, Newest: spec.Rollout.Newest, Revisions: []HistoryRevision{},
	}
	for _, r := range spec.Revisions {
		one := HistoryRevision{Number: r.Number, Generation: r.Generation, FirstSeen: r.Time, Passed: r.Passed, SupersededBy: r.SupersededBy, TemplateOf: r.ListOf}
		one.Failed = r.Number == spec.Rollout.Failed || r.Number == spec.Rollout.RolledBack
		for i := range spec.Clusters {
			c := &spec.Clusters[i]
			if report := decide.ReportOfSet(spec, in.Lists, c.Name, in.Bindings); c.Revision == r.Number && report.Applied && report.Objects > 0 {
				one.Clusters = append(one.Clusters, c.Name)
			}
		}
		slices.Sort(one.Clusters)
		h.Revisions = append(h.Revisions, one)
	}
	return h
}

// BundleRollout is the state of the rollout of the bundle to which an object belongs.
type BundleRollout struct {
	Bundle hubv1.BundleReference `json:"bundle"`
	hubv1.BindingRollout
}

// RolloutOfBundle returns the rollout of the bundle to which an object belongs. spec is nil if the user may not read
// the SetRollout. bindings are then those of the objects of the bundle: one of them shows the rollout, by its own
// numbers of revisions. The result is nil if the rollout of the object itself says the same.
func RolloutOfBundle(of hubv1.BundleReference, spec *hubv1.SetRolloutSpec, bindings []hubv1.BindingObject) *BundleRollout {
	if spec != nil {
		return &BundleRollout{of, *spec.Rollout}
	}
	if lead := decide.LeadOfSet(bindings); lead != nil {
		return &BundleRollout{of, *lead.BindingSpec().Rollout}
	}
	return nil
}

// text describes the rollout in one line.
func (b *BundleRollout) text() string { return b.Bundle.String() + ": " + inShort(&b.BindingRollout) }

// FollowsSet reports whether the object of a binding changes with the bundle that contains it.
func FollowsSet(b hubv1.BindingObject) bool {
	return b.BindingSpec().ObjectRef.Bundle != nil && b.GetAnnotations()[hubv1.SetFollowedAnnotation] != ""
}

// onePerSet leaves out the bindings of objects that change with a bundle, except the one binding that shows the rollout
// of the bundle. A bundle whose rollout is complete is left out.
func onePerSet(bindings []hubv1.BindingObject) []hubv1.BindingObject {
	var out []hubv1.BindingObject
	sets := map[hubv1.BundleReference][]hubv1.BindingObject{}
	for _, b := range bindings {
		if FollowsSet(b) {
			of := *b.BindingSpec().ObjectRef.Bundle
			sets[of] = append(sets[of], b)
			continue
		}
		out = append(out, b)
	}
	for _, set := range sets {
		if lead := decide.LeadOfSet(set); lead != nil {
			out = append(out, lead)
		}
	}
	return out
}
