package preview

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
)

// Away has the copies of one object that stay on clusters that stop answering by the change. These copies are lost, or
// run without the hub.
type Away struct {
	Object   Object   `json:"object"`
	Clusters []string `json:"clusters"`
	// RunningBefore and Running are the numbers of clusters that hold the object and answer, before and after the change.
	RunningBefore int `json:"runningBefore"`
	Running       int `json:"running"`
}

// ClusterTotal has the numbers of objects and replicas on one cluster, before and after the change. Only replicas that
// are divided among clusters count.
type ClusterTotal struct {
	Cluster string `json:"cluster"`
	Region  string `json:"region,omitempty"`
	// Away is true if the cluster does not answer after the change.
	Away           bool  `json:"away,omitempty"`
	ObjectsBefore  int   `json:"objectsBefore"`
	Objects        int   `json:"objects"`
	ReplicasBefore int64 `json:"replicasBefore"`
	Replicas       int64 `json:"replicas"`
}

// totals has the clusters that exist before or after the change, by name.
type totals map[string]*ClusterTotal

func totalsOf(before, after []*hubv1.MemberCluster) totals {
	t := totals{}
	for _, c := range slices.Concat(before, after) {
		t[c.Name] = &ClusterTotal{Cluster: c.Name, Region: c.SelectableLabels()[hubv1.RegionLabel], Away: c.IsAway()}
	}
	return t
}

func (t totals) of(cluster string) *ClusterTotal {
	if t[cluster] == nil {
		t[cluster] = &ClusterTotal{Cluster: cluster}
	}
	return t[cluster]
}

// changed returns the clusters whose numbers change, and the clusters that do not answer but shall hold objects, sorted
// by name.
func (t totals) changed() []ClusterTotal {
	var out []ClusterTotal
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if c := t[name]; c.Objects != c.ObjectsBefore || c.Replicas != c.ReplicasBefore || c.Away && c.Objects > 0 {
			out = append(out, *c)
		}
	}
	return out
}

func awayIn(clusters []*hubv1.MemberCluster) map[string]bool {
	out := map[string]bool{}
	for _, c := range clusters {
		out[c.Name] = c.IsAway()
	}
	return out
}

// onClusters counts the copies of one object on the clusters, and adds to the plan its copies on clusters that stop
// answering.
func (m *maker) onClusters(p pair) {
	a := Away{Object: p.Object}
	for _, name := range slices.Sorted(maps.Keys(p.HeldBefore)) {
		total := m.totals.of(name)
		total.ObjectsBefore++
		total.ReplicasBefore += shareOf(p.HeldBefore[name])
		if !m.awayBefore[name] {
			a.RunningBefore++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Held)) {
		total := m.totals.of(name)
		total.Objects++
		total.Replicas += shareOf(p.Held[name])
		if !m.awayAfter[name] {
			a.Running++
		} else if !m.awayBefore[name] {
			a.Clusters = append(a.Clusters, name)
		}
	}
	if a.Running == 0 && a.RunningBefore > 0 {
		m.plan.Summary.Nowhere++
	}
	if len(a.Clusters) > 0 {
		m.plan.Away = append(m.plan.Away, a)
		m.plan.Summary.Away += len(a.Clusters)
	}
}

// noteAway adds a note to the plan if so many clusters are away that the hub moves no object from them.
func (m *maker) noteAway() {
	if !slices.ContainsFunc(m.is.Outcomes, func(o decide.Outcome) bool { return o.Scheduled.Reason == hubv1.ReasonTooManyAway }) {
		return
	}
	away := 0
	for _, c := range m.after.Clusters {
		if c.IsAway() {
			away++
		}
	}
	m.plan.Notes = append(m.plan.Notes, fmt.Sprintf("%d of %d clusters would be away: the hub would assume a fault of its own and move no objects from them", away, len(m.after.Clusters)))
}

// notAsked adds to the plan the clusters that do not answer.
func (m *maker) notAsked() {
	for _, c := range m.after.Clusters {
		if !c.IsAway() {
			continue
		}
		why := "the cluster gets the changes when it answers again"
		for _, ready := range c.Status.Conditions {
			if ready.Type == hubv1.ConditionReady && ready.Reason != "" {
				why = ready.Reason + ": " + why
			}
		}
		m.plan.NotAsked = append(m.plan.NotAsked, NotAsked{Cluster: c.Name, Why: why})
	}
	slices.SortFunc(m.plan.NotAsked, func(a, b NotAsked) int { return cmp.Compare(a.Cluster, b.Cluster) })
}
