package view

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/placement/rollout"
)

// RolloutResult is the result of a rollout.
type RolloutResult string

const (
	// RolloutRuns means that the rollout has not ended.
	RolloutRuns RolloutResult = "Running"
	// RolloutDone means that all clusters have the revision that the user wants.
	RolloutDone RolloutResult = "Done"
	// RolloutBroken means that the rollout of a revision has failed.
	RolloutBroken RolloutResult = "Failed"
)

// Rollout is the output of `rollout status` for one object.
type Rollout struct {
	Object Object `json:"object"`
	// Asked is the object of a bundle that the user has named. Object is then the bundle, which is rolled out as a whole.
	Asked     string `json:"asked,omitempty"`
	Placement string `json:"placement,omitempty"`
	// Result is the result of the object's rollout: Running, Done or Failed. Progress describes the result in one line.
	Result   RolloutResult        `json:"result"`
	Progress string               `json:"progress"`
	Rollout  hubv1.BindingRollout `json:"rollout"`
	// Waves are the waves of the rollout, with the counts of their clusters. The list is absent if the user may not read
	// the placement or the clusters.
	Waves    []RolloutWave    `json:"waves,omitempty"`
	Clusters []RolloutCluster `json:"clusters,omitempty"`

	scheduled string // why the hub does not schedule the object; empty if it does
}

// RolloutWave counts the clusters of a wave.
type RolloutWave struct {
	Name string `json:"name"`
	// Clusters is the number of clusters of the wave that shall hold the object. Updated is the number of these that have
	// the rollout's revision.
	Clusters int `json:"clusters"`
	Updated  int `json:"updated"`
}

// RolloutCluster is the state of the rollout on one cluster.
type RolloutCluster struct {
	Cluster string `json:"cluster"`
	// Wave is the wave to which the cluster belongs. It is empty if the wave is not known.
	Wave string `json:"wave,omitempty"`
	// Revision is the number of the revision of the object that the cluster shall hold.
	Revision int64 `json:"revision"`
	// Holds is the number of the revision of the object that the cluster last reported as applied.
	Holds  int64        `json:"holds,omitempty"`
	Health hubv1.Health `json:"health"`
	// Away is true while the hub does not observe the cluster. The row then has the last known values.
	Away bool `json:"away,omitempty"`
	// PassingSince is the time since which the copy is healthy at its revision. It is absent if the copy is not healthy.
	PassingSince *metav1.Time `json:"passingSince,omitempty"`
	// LastObservedTime is the time at which the hub last observed the cluster. It is absent while the hub observes the
	// cluster.
	LastObservedTime *metav1.Time `json:"lastObservedTime,omitempty"`
	Reason           string       `json:"reason,omitempty"`
	Message          string       `json:"message,omitempty"`

	updated bool // the cluster has the rollout's revision
	wave    int  // index of the cluster's wave
}

// RolloutInput has the inputs of a Rollout. The binding must have a rollout.
type RolloutInput struct {
	ID      hubv1.ObjectIdentity
	Object  *unstructured.Unstructured
	Binding hubv1.BindingObject
	// Placement is the placement that the object follows. It is nil if the placement cannot be read.
	Placement hubv1.PlacementObject
	// Members are the MemberClusters. The list is empty if the user may not read them.
	Members []hubv1.MemberCluster
	Now     time.Time
}

// RolloutOf returns the rollout of an object.
func RolloutOf(in RolloutInput) Rollout {
	spec, status := in.Binding.BindingSpec(), in.Binding.BindingStatus()
	r := Rollout{Object: objectOf(in.ID, in.Object), Placement: followedBy(spec), Rollout: *spec.Rollout}
	if c := meta.FindStatusCondition(status.Conditions, hubv1.ConditionScheduled); c != nil && c.Status != metav1.ConditionTrue {
		r.scheduled = why(c.Reason, c.Message)
	}
	waveOf, isObserved := wavesOf(in.Placement, in.Members), Observed(in.Members, nil, in.Now)
	observed := map[string]*metav1.Time{}
	for i := range in.Members {
		observed[in.Members[i].Name] = in.Members[i].Status.LastObservedTime
	}
	for _, t := range spec.Clusters {
		if t.State == hubv1.TargetAbsent {
			continue
		}
		c := RolloutCluster{Cluster: t.Name, Revision: t.Revision, Health: hubv1.HealthUnknown, Reason: hubv1.ReasonPending, Away: !isObserved(t.Name)}
		if row := status.Row(t.Name); row != nil {
			c.Holds, c.PassingSince, c.Reason, c.Message = row.Revision, row.PassingSince, row.Reason, row.Message
			c.LastObservedTime, c.Away = row.LastObservedTime, c.Away || row.LastObservedTime != nil
			if c.Away && c.LastObservedTime == nil {
				c.LastObservedTime = observed[t.Name]
			}
			c.Health = cmp.Or(row.Health, hubv1.HealthUnknown)
			c.updated = row.Revision == r.Rollout.Revision && row.Applied == metav1.ConditionTrue
		}
		if i, known := waveOf[t.Name]; known {
			c.wave, c.Wave = i, in.Placement.PlacementSpec().Rollout.Waves[i].Name
		}
		r.Clusters = append(r.Clusters, c)
	}
	slices.SortFunc(r.Clusters, func(a, b RolloutCluster) int {
		return cmp.Or(cmp.Compare(a.wave, b.wave), cmp.Compare(a.Cluster, b.Cluster))
	})
	r.countWaves(in.Placement, len(waveOf) > 0)
	r.Result, r.Progress = r.result(spec)
	return r
}

// wavesOf returns for each cluster's name the index of the cluster's wave. It returns nil if the placement has no
// rollout or cannot be read.
func wavesOf(p hubv1.PlacementObject, members []hubv1.MemberCluster) map[string]int {
	if p == nil || p.PlacementSpec().Rollout == nil {
		return nil
	}
	out := map[string]int{}
	for i := range members {
		out[members[i].Name] = decide.WaveOf(p.PlacementSpec().Rollout, &members[i])
	}
	return out
}

func (r *Rollout) countWaves(p hubv1.PlacementObject, known bool) {
	if !known {
		return
	}
	for i, w := range p.PlacementSpec().Rollout.Waves {
		wave := RolloutWave{Name: w.Name}
		for _, c := range r.Clusters {
			if c.Wave == "" || c.wave != i {
				continue
			}
			wave.Clusters++
			if c.updated {
				wave.Updated++
			}
		}
		r.Waves = append(r.Waves, wave)
	}
}

// result returns the result of the rollout, and its progress as text.
func (r *Rollout) result(spec *hubv1.BindingSpec) (RolloutResult, string) {
	state, name := r.Rollout, r.subject()
	newest := spec.Revision(state.Newest)
	switch {
	case r.scheduled != "":
		return RolloutRuns, "Waiting for the hub to decide: " + r.scheduled
	case newest != nil && newest.Generation < r.Object.Generation:
		return RolloutRuns, fmt.Sprintf("Waiting for the hub to see generation %d of %s", r.Object.Generation, name)
	case state.Phase == hubv1.RolloutComplete:
		return RolloutDone, fmt.Sprintf("%s successfully rolled out: revision %d on %s", name, state.Revision, counted(len(r.Clusters), "cluster"))
	case state.Phase == hubv1.RolloutRolledBack && state.Failed == 0 && state.RolledBack == 0:
		return RolloutDone, fmt.Sprintf("%s successfully returned to revision %d on %s; %s",
			name, state.Revision, counted(len(r.Clusters), "cluster"), rollout.StillHas(state.Newest))
	case state.Phase == hubv1.RolloutRolledBack:
		return RolloutBroken, fmt.Sprintf("%s was rolled back: %s", name, state.Message)
	case state.Phase == hubv1.RolloutFailed:
		return RolloutBroken, fmt.Sprintf("Revision %d of %s failed in wave %s: %s", cmp.Or(state.Failed, state.Revision), name, state.Wave, state.Message)
	}
	text := "Waiting for " + r.waitsFor()
	if state.Message != "" {
		text += "; " + state.Message
	}
	return RolloutRuns, text
}

// waitsFor describes how many clusters of the current wave have the new revision: "wave asia: 2 of 5 clusters have
// revision 7".
func (r *Rollout) waitsFor() string {
	state, all := r.Rollout, RolloutWave{}
	for _, c := range r.Clusters {
		all.Clusters++
		if c.updated {
			all.Updated++
		}
	}
	count := fmt.Sprintf("%d of all %d clusters have revision %d", all.Updated, all.Clusters, state.Revision)
	switch i := slices.IndexFunc(r.Waves, func(w RolloutWave) bool { return w.Name == state.Wave }); {
	case state.Phase == hubv1.RolloutRollingBack:
		return "the rollback: " + count
	case state.Wave == "":
		return "the first revision: " + count
	case i >= 0:
		w := r.Waves[i]
		count = fmt.Sprintf("%d of %d clusters have revision %d", w.Updated, w.Clusters, state.Revision)
		if healthy := r.healthyIn(i); w.Updated == w.Clusters && healthy < w.Clusters {
			count += fmt.Sprintf(", and %d of them are healthy", healthy)
		}
	}
	return fmt.Sprintf("wave %s: %s", state.Wave, count)
}

// healthyIn returns the number of clusters of a wave whose copy is healthy at its revision.
func (r *Rollout) healthyIn(wave int) int {
	n := 0
	for _, c := range r.Clusters {
		if c.Wave != "" && c.wave == wave && c.PassingSince != nil {
			n++
		}
	}
	return n
}

func (r *Rollout) subject() string {
	return hubv1.ObjectIdentity{Group: r.Object.Group, Kind: r.Object.Kind, Namespace: r.Object.Namespace, Name: r.Object.Name}.String()
}

// inShort describes the progress of a rollout in one line.
func inShort(r *hubv1.BindingRollout) string {
	text := fmt.Sprintf("revision %d", r.Revision)
	if r.Revision != r.Newest {
		text += fmt.Sprintf(" (newest %d)", r.Newest)
	}
	if r.Wave != "" {
		text += ", wave " + r.Wave
	}
	return why(text+", "+string(r.Phase), r.Message)
}
