package rollup

import (
	"cmp"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Topology counts the copies of objects by region. The zero value is ready for use.
type Topology struct {
	regions map[string]*hubv1.RegionSummary
	oldest  *metav1.Time
	away    map[string]bool // the clusters that do not answer
}

// Add counts the Present targets of a binding, which are the clusters that shall have a copy. region returns the region
// of a cluster.
func (t *Topology) Add(b hubv1.BindingObject, region func(cluster string) string) {
	rows := b.BindingStatus().Clusters
	for _, target := range b.BindingSpec().Clusters {
		if target.State != hubv1.TargetPresent {
			continue
		}
		row := hubv1.ClusterRow{Applied: metav1.ConditionUnknown}
		if i, found := slices.BinarySearchFunc(rows, target.Name, func(r hubv1.ClusterRow, name string) int { return cmp.Compare(r.Name, name) }); found {
			row = rows[i]
		}
		t.add(region(target.Name), row)
		t.addAway(row)
	}
}

func (t *Topology) add(region string, row hubv1.ClusterRow) {
	if t.regions == nil {
		t.regions = map[string]*hubv1.RegionSummary{}
	}
	r := t.regions[region]
	if r == nil {
		r = &hubv1.RegionSummary{Region: region}
		t.regions[region] = r
	}
	r.Desired++
	switch row.Applied {
	case metav1.ConditionTrue:
		r.Applied++
	case metav1.ConditionUnknown:
		r.Unknown++
	}
	if row.Health == hubv1.HealthHealthy {
		r.Healthy++
	}
	ready, total := Replicas(row.Observed)
	r.ReadyReplicas, r.Replicas = plus(r.ReadyReplicas, ready), plus(r.Replicas, total)
}

// addAway records a cluster that does not answer. A cluster that refuses the watch of one kind has an observed time in
// its row, too, but it answers: the result of the last write is known.
func (t *Topology) addAway(row hubv1.ClusterRow) {
	observed := row.LastObservedTime
	if observed == nil || row.Applied != metav1.ConditionUnknown {
		return
	}
	if t.oldest == nil || observed.Before(t.oldest) {
		t.oldest = observed
	}
	if t.away == nil {
		t.away = map[string]bool{}
	}
	t.away[row.Name] = true
}

func plus(sum, n *int64) *int64 {
	if sum == nil || n == nil {
		return firstKnown(sum, n)
	}
	both := *sum + *n
	return &both
}

// Regions returns the counts of each region, sorted by name. It leaves out regions beyond the limit of a placement's
// status.
func (t *Topology) Regions() []hubv1.RegionSummary {
	var out []hubv1.RegionSummary
	for _, r := range t.regions {
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b hubv1.RegionSummary) int { return cmp.Compare(a.Region, b.Region) })
	return out[:min(len(out), hubv1.MaxRegions)]
}

// OldestObservedTime returns the oldest of the times at which unreachable clusters were last observed. It is nil if no
// cluster is unreachable.
func (t *Topology) OldestObservedTime() *metav1.Time { return t.oldest.DeepCopy() }

// Away returns the sorted names of the clusters that do not answer.
func (t *Topology) Away() []string { return slices.Sorted(maps.Keys(t.away)) }
