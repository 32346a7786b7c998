package view

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/rollout"
)

// WaveState is the state of a wave of a placement: Passed, Pending, or the most urgent phase of the objects in the
// wave.
type WaveState string

const (
	// WavePassed means that each changing object has passed the wave, or that no object is changing.
	WavePassed WaveState = "Passed"
	// WavePending means that no changing object has reached the wave.
	WavePending WaveState = "Pending"
)

// urgency orders the phases of rollouts, the most urgent phase first. If objects in one wave have different phases, the
// state of the wave is the most urgent one.
var urgency = []hubv1.RolloutPhase{
	hubv1.RolloutFailed, hubv1.RolloutRollingBack, hubv1.RolloutPaused, hubv1.RolloutWaitingForApproval, hubv1.RolloutWaitingForClusters,
	hubv1.RolloutWaitingForWindow,
	hubv1.RolloutProgressing, hubv1.RolloutSoaking, hubv1.RolloutWaitingForOthers,
}

// RolloutTimeline is a placement's rollout with its waves in order.
type RolloutTimeline struct {
	PlacementRollout
	Waves []TimelineWave `json:"waves"`
}

// TimelineWave is one wave, for all objects of the placement.
type TimelineWave struct {
	hubv1.RolloutWave
	State WaveState `json:"state"`
	// Objects are the objects in the wave now, the most urgent phase first. Of objects with the same phase, the one that
	// waits longest is the first.
	Objects []RolloutObject `json:"objects,omitempty"`
	// Approved is true if a user has approved the wave for all changes that are in progress.
	Approved bool `json:"approved,omitempty"`
	// OnClusters are the clusters of the wave that shall hold objects. It is absent if the user may not read the clusters.
	OnClusters []TimelineCluster `json:"onClusters,omitempty"`
}

// TimelineCluster is a cluster of a wave, for all objects of the placement.
type TimelineCluster struct {
	Cluster string           `json:"cluster"`
	State   WaveClusterState `json:"state"`
	Skipped bool             `json:"skipped,omitempty"`
	Objects int              `json:"objects"`
	Updated int              `json:"updated"` // number of objects that have the new revision of their rollout
	Since   *metav1.Time     `json:"since,omitempty"`
	Why     string           `json:"why,omitempty"`
}

// WaveClusterState is the state of a cluster in a wave.
type WaveClusterState string

const (
	// WaveClusterPassing means that all copies on the cluster have the rollout's revision, and are healthy.
	WaveClusterPassing WaveClusterState = "Passing"
	// WaveClusterChanging means that a copy on the cluster is not healthy yet, at the rollout's revision or at an older
	// one. No copy on the cluster is degraded.
	WaveClusterChanging WaveClusterState = "Changing"
	// WaveClusterWaiting means that all copies on the cluster are healthy, some of them at an older revision.
	WaveClusterWaiting WaveClusterState = "Waiting"
	// WaveClusterDegraded means that a copy on the cluster is degraded.
	WaveClusterDegraded WaveClusterState = "Degraded"
	// WaveClusterUnknown means that the cluster does not answer. The other fields then show the state at the last
	// observation, and Since is the time of this observation.
	WaveClusterUnknown WaveClusterState = "Unknown"
)

// Healthy returns the number of clusters of the wave whose copies all are healthy at the rollout's revision.
func (w TimelineWave) Healthy() int {
	n := 0
	for _, c := range w.OnClusters {
		if c.State == WaveClusterPassing {
			n++
		}
	}
	return n
}

// Waiting returns the objects that wait for an approval of the wave, the one that waits longest first.
func (w TimelineWave) Waiting() []RolloutObject {
	return slices.DeleteFunc(slices.Clone(w.Objects), func(o RolloutObject) bool { return o.Rollout.Phase != hubv1.RolloutWaitingForApproval })
}

// Since returns the time since which the first object of Waiting waits for an approval. It is nil if no object waits.
func (w TimelineWave) Since() *metav1.Time {
	if waiting := w.Waiting(); len(waiting) > 0 {
		return &waiting[0].Rollout.Since
	}
	return nil
}

// RolloutTimelineOf returns the waves of a placement that has a rollout. following has the bindings of all its objects.
// If members is empty, the waves have no clusters.
func RolloutTimelineOf(p hubv1.PlacementObject, following []hubv1.BindingObject, members []hubv1.MemberCluster, now time.Time) RolloutTimeline {
	t := RolloutTimeline{PlacementRollout: PlacementRolloutOf(p, following)}
	verbs := rollout.VerbsOf(p)
	var changing []RolloutObject
	var latest metav1.Time
	for _, o := range t.Objects {
		if r := o.Rollout; r != nil && r.Phase != hubv1.RolloutRolledBack && r.Wave != "" {
			changing = append(changing, o)
			if r.Began.After(latest.Time) {
				latest = r.Began
			}
		}
	}
	clusters := clustersByWave(p, following, members, verbs, latest, now)
	waves := p.PlacementSpec().Rollout.Waves
	at := func(o RolloutObject) int {
		return slices.IndexFunc(waves, func(w hubv1.RolloutWave) bool { return w.Name == o.Rollout.Wave })
	}
	for i, w := range waves {
		wave := TimelineWave{RolloutWave: w, State: WavePassed, OnClusters: clusters[i]}
		for _, o := range changing {
			switch in := at(o); {
			case in == i:
				wave.Objects = append(wave.Objects, o)
			case in < i && len(wave.Objects) == 0:
				wave.State = WavePending
			}
		}
		slices.SortStableFunc(wave.Objects, func(a, b RolloutObject) int {
			return cmp.Or(cmp.Compare(rank(a), rank(b)), a.Rollout.Since.Compare(b.Rollout.Since.Time))
		})
		if len(wave.Objects) > 0 {
			wave.State = WaveState(wave.Objects[0].Rollout.Phase)
		}
		wave.Approved = w.Approval == hubv1.ApprovalManual && len(changing) > 0 && !verbs.Approved(w.Name).Before(latest.Time)
		t.Waves = append(t.Waves, wave)
	}
	return t
}

func rank(o RolloutObject) int {
	if i := slices.Index(urgency, o.Rollout.Phase); i >= 0 {
		return i
	}
	return len(urgency)
}

// clustersByWave returns the clusters of each wave, by the index of the wave. Each cluster has one state, which
// combines the states of all its copies.
func clustersByWave(p hubv1.PlacementObject, following []hubv1.BindingObject, members []hubv1.MemberCluster, verbs rollout.Verbs, latest metav1.Time, now time.Time) map[int][]TimelineCluster {
	found, waveOf := map[string]*TimelineCluster{}, wavesOf(p, members)
	for _, b := range following {
		if b.BindingSpec().Rollout == nil {
			continue
		}
		for _, c := range RolloutOf(RolloutInput{ID: hubv1.ObjectOf(b), Binding: b, Members: members, Now: now}).Clusters {
			of := found[c.Cluster]
			if of == nil {
				of = &TimelineCluster{Cluster: c.Cluster, State: WaveClusterPassing}
				found[c.Cluster] = of
			}
			of.add(c)
		}
	}
	out := map[int][]TimelineCluster{}
	for i := range members {
		m := &members[i]
		c := found[m.Name]
		if c == nil {
			continue
		}
		at := verbs.Skipped(m.Name)
		c.Skipped = !at.IsZero() && !at.Before(latest.Time)
		out[waveOf[m.Name]] = append(out[waveOf[m.Name]], *c)
	}
	for _, clusters := range out {
		slices.SortFunc(clusters, func(a, b TimelineCluster) int { return cmp.Compare(a.Cluster, b.Cluster) })
	}
	return out
}

// worse orders the states of copies from good to bad. If the copies on a cluster have different states, the worst one
// is the state of the cluster.
var worse = []WaveClusterState{WaveClusterPassing, WaveClusterWaiting, WaveClusterChanging, WaveClusterDegraded, WaveClusterUnknown}

// add combines the state of one more copy with the state of the cluster.
func (t *TimelineCluster) add(c RolloutCluster) {
	t.Objects++
	state := WaveClusterChanging
	switch {
	case c.updated:
		if t.Updated++; c.PassingSince != nil && c.Health == hubv1.HealthHealthy {
			state = WaveClusterPassing
		}
	case c.Health == hubv1.HealthHealthy:
		state = WaveClusterWaiting
	}
	if c.Health == hubv1.HealthDegraded {
		state = WaveClusterDegraded
	}
	if c.Away {
		state = WaveClusterUnknown
	}
	if state == WaveClusterPassing && t.State == WaveClusterPassing && (t.Since == nil || c.PassingSince.After(t.Since.Time)) {
		t.Since = c.PassingSince
	}
	if slices.Index(worse, state) > slices.Index(worse, t.State) {
		t.State, t.Since, t.Why = state, c.LastObservedTime, why(c.Reason, c.Message)
	}
}
