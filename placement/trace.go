package placement

import "fmt"

// Trace has the steps of a decision.
type Trace struct {
	// Clusters are sorted by name. Each has the results of all filters in the order of evaluation.
	Clusters []ClusterTrace
	// Steps are the steps of the spread, in order. A Drop step names a cluster that loses the object. A Restore step names
	// a cluster that keeps the object because the spread cannot be satisfied. In this case, the clusters that earlier
	// steps chose do not count.
	Steps []Step
}

// ClusterTrace contains the results for one cluster.
type ClusterTrace struct {
	Cluster string
	Filters []FilterTrace
	// Parts are the parts of the score, and Score is their sum. Parts is empty for a cluster from which a filter removes
	// the object.
	Parts []Part
	Score int64
}

// FilterTrace is the result of one filter. Reason is empty if the cluster passes.
type FilterTrace struct{ Filter, Reason, Message string }

// Step is one step of the spread, which chooses among the clusters that pass the filters.
type Step struct {
	// Action is Group (an affinity group is chosen, or passed over), Choose (the cluster gets or keeps the object), Keep
	// (the removal of the copy waits), Drop (the cluster loses the object), or Restore (the cluster keeps the object
	// because the spread cannot be satisfied).
	Action string
	// Cluster is the cluster of the step. For the action Group, it is the name of the affinity group.
	Cluster string
	Why     string
}

func (t *Trace) filter(cluster, name string, r cause) {
	if t == nil {
		return
	}
	if n := len(t.Clusters); n == 0 || t.Clusters[n-1].Cluster != cluster {
		t.Clusters = append(t.Clusters, ClusterTrace{Cluster: cluster})
	}
	last := &t.Clusters[len(t.Clusters)-1]
	last.Filters = append(last.Filters, FilterTrace{Filter: name, Reason: r.reason, Message: r.message})
}

func (t *Trace) scores(selected []*contender) {
	if t == nil {
		return
	}
	of := make(map[string]*contender, len(selected))
	for _, c := range selected {
		of[c.cluster.Name] = c
	}
	for i := range t.Clusters {
		if c := of[t.Clusters[i].Cluster]; c != nil {
			t.Clusters[i].Parts, t.Clusters[i].Score = c.tally.parts, c.tally.score
		}
	}
}

func (t *Trace) step(action, cluster, format string, args ...any) {
	if t != nil {
		t.Steps = append(t.Steps, Step{Action: action, Cluster: cluster, Why: fmt.Sprintf(format, args...)})
	}
}
