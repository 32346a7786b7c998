package view

import (
	"cmp"
	"slices"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement"
	"github.com/hanse-dev/hanse/placement/decide"
)

// Choice has the clusters that a replayed decision chooses. To replay a decision means that hansectl decides again, by
// the rules of the hub, and writes nothing.
type Choice struct {
	// Clusters are all clusters that hansectl examined to make the decision again, sorted by name. The list is empty if
	// the decision ended before it chose clusters, for example because the object follows no placement.
	Clusters []ExplainedCluster `json:"clusters,omitempty"`
	// Missing are the clusters in the binding that have no MemberCluster. The decision changes nothing for them in the
	// binding.
	Missing []string `json:"missing,omitempty"`
	// Selected is the number of clusters that shall hold the object according to the decision that hansectl has made.
	Selected int `json:"selected"`
	// Withdrawing is the number of clusters that would lose the object according to the decision that hansectl has made.
	Withdrawing int `json:"withdrawing,omitempty"`
	// AffinityGroup is the name of the placement's affinity group from which the decision chose the clusters.
	AffinityGroup string       `json:"affinityGroup,omitempty"`
	Spread        []SpreadStep `json:"spread,omitempty"`
	Shortfalls    []string     `json:"shortfalls,omitempty"`
}

// These are the results of the decision for a cluster.
const (
	Selected  = "Selected"
	Withdrawn = "Withdrawn" // the cluster has the object and loses it
	Evicting  = "Evicting"  // other clusters replace it, and its copy is removed when theirs are healthy
	Rejected  = "Rejected"
)

// ExplainedCluster shows the steps of the decision for one cluster.
type ExplainedCluster struct {
	Cluster string `json:"cluster"`
	Region  string `json:"region,omitempty"`
	Result  string `json:"result"`
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
	// Held is true if the cluster held the object before hansectl made the decision again.
	Held bool `json:"held"`
	// Filters are the results of the filters for this cluster, in the order in which the decision evaluated them. A filter
	// is a condition that a cluster must meet to get the object.
	Filters []Filter `json:"filters,omitempty"`
	// Score is the score of the cluster, the sum of Parts. A cluster that a filter rejects has no score.
	Score int64       `json:"score"`
	Parts []ScorePart `json:"parts,omitempty"`
	// Replicas is the number of replicas on this cluster, if the placement divides the replicas among clusters.
	Replicas *int32 `json:"replicas,omitempty"`
}

// Filter is the result of one filter for a cluster. A filter is a condition that a cluster must meet to get the object.
// There is no reason if the cluster passes the filter.
type Filter struct {
	Filter  string `json:"filter"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// ScorePart is the part of a score that one preference or property adds.
type ScorePart struct {
	Part  string `json:"part"`
	Score int64  `json:"score"`
	Note  string `json:"note,omitempty"`
}

// SpreadStep is one step in which a decision applied spec.spread of the placement, such as the choice of a cluster.
type SpreadStep struct {
	Action string `json:"action"`
	// Cluster is the name of the cluster or of the affinity group that the step is about.
	Cluster string `json:"cluster"`
	Why     string `json:"why"`
}

func choiceOf(in decide.Input, replay decide.Replayed) Choice {
	c := Choice{Clusters: explainedClusters(in, replay), Missing: replay.Decision.Missing, AffinityGroup: replay.Decision.Group}
	for _, t := range replay.Spec.Clusters {
		if t.State == hubv1.TargetPresent {
			c.Selected++
		}
		if t.State == hubv1.TargetAbsent {
			c.Withdrawing++
		}
	}
	if w := replay.Choice.Winner; w != nil && w.PlacementSpec().Spread != nil {
		for _, s := range replay.Trace.Steps {
			c.Spread = append(c.Spread, SpreadStep(s))
		}
	}
	for _, s := range replay.Decision.Shortfalls {
		c.Shortfalls = append(c.Shortfalls, s.Message)
	}
	return c
}

func explainedClusters(in decide.Input, replay decide.Replayed) []ExplainedCluster {
	if replay.Input == nil {
		return nil
	}
	regions := map[string]string{}
	for _, m := range in.Facts.Clusters {
		regions[m.Name] = region(m)
	}
	traces := map[string]placement.ClusterTrace{}
	for _, t := range replay.Trace.Clusters {
		traces[t.Cluster] = t
	}
	var out []ExplainedCluster
	add := func(result, cluster, reason, message string) {
		trace := traces[cluster]
		c := ExplainedCluster{
			Cluster: cluster, Region: regions[cluster], Result: result, Reason: reason, Message: message,
			Held: replay.Input.Held[cluster], Score: trace.Score,
		}
		for _, f := range trace.Filters {
			c.Filters = append(c.Filters, Filter(f))
		}
		for _, p := range trace.Parts {
			c.Parts = append(c.Parts, ScorePart{p.Name, p.Score, p.Note})
		}
		if holds(&replay.Spec, cluster) {
			c.Replicas = replay.Spec.Target(cluster).Replicas
		}
		out = append(out, c)
	}
	for _, t := range replay.Decision.Targets {
		switch {
		case isEvicting(&replay.Spec, t.Cluster): // the cluster answers again, but its copy is not up to date yet
			add(Evicting, t.Cluster, t.Reason, t.Message)
		case holds(&replay.Spec, t.Cluster):
			add(Selected, t.Cluster, t.Reason, t.Message)
		case replay.Division != nil:
			add(Rejected, t.Cluster, hubv1.ReasonNoReplicas, "its share of the replicas is 0")
		default:
			add(Rejected, t.Cluster, replay.Scheduled.Reason, "every cluster keeps its copy")
		}
	}
	for _, r := range replay.Decision.Evict {
		add(Evicting, r.Cluster, r.Reason, r.Message)
	}
	for _, r := range replay.Decision.Withdraw {
		result := Withdrawn
		if holds(&replay.Spec, r.Cluster) { // the binding keeps the cluster despite the decision
			result = Selected
		}
		add(result, r.Cluster, r.Reason, r.Message)
	}
	for _, r := range replay.Decision.Rejected {
		add(Rejected, r.Cluster, r.Reason, r.Message)
	}
	slices.SortFunc(out, func(a, b ExplainedCluster) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return out
}
