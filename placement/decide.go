package placement

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Cluster contains the facts of one MemberCluster for a decision.
type Cluster struct {
	Name string
	// Revision identifies all fields except NamespaceAllowed and Objects. Findings for a revision are cached; if it is
	// empty, nothing is cached.
	Revision string
	// Labels for selectors, with the derived region and zone: MemberCluster.SelectableLabels.
	Labels        map[string]string
	Annotations   map[string]string
	Taints        []corev1.Taint // from its spec and its status
	Unschedulable bool
	Ready         bool
	Departure
	Facts
	// NamespaceAllowed says whether the cluster takes objects of this object's namespace.
	NamespaceAllowed bool
	// Objects is how many other objects the hub sends to the cluster.
	Objects int
}

// Departure says whether objects are to leave a cluster.
type Departure struct {
	Draining  bool // its objects are to go to other clusters
	TakesAway bool // its drain takes away what no other cluster can take
	// Leaving is true once the MemberCluster has a deletionTimestamp; LeavePolicy is then what becomes of its objects.
	Leaving     bool
	LeavePolicy hubv1.RemovalPolicy
}

// Facts are what a cluster has answered.
type Facts struct {
	// Version is that of its API server, such as v1.36.3. It is empty if it is not known.
	Version               string
	Capacity, Allocatable corev1.ResourceList
	Nodes                 hubv1.NodeSummary
	// Served maps each known kind to the versions that the cluster serves; none if it does not serve the kind.
	Served map[schema.GroupKind][]string
	// ServedInFull is true if the cluster was asked for its kinds. A kind missing in Served is then not answered yet.
	ServedInFull bool
	// Operators on the cluster; nil for an object of an operator.
	Operators []hubv1.OperatorFact
}

// Region of the cluster, empty if it is not known.
func (c *Cluster) Region() string { return c.Labels[hubv1.RegionLabel] }

// Zone of the cluster, empty if it has none or several.
func (c *Cluster) Zone() string { return c.Labels[hubv1.ZoneLabel] }

// Input contains all inputs of one decision.
type Input struct {
	// Placement that the object follows. It is required.
	Placement *Compiled
	// Object has the kind and the versions at which clusters may get it.
	Object hubv1.HubObject
	// Clusters of the hub, each once.
	Clusters []Cluster
	// Held names the clusters with a Present entry in the binding, Evicting the clusters with an Evicting entry.
	Held, Evicting map[string]bool
	// Divided is true if the replicas are divided. Then the remaining clusters take over the share of a cluster that
	// loses the object.
	Divided bool
	// MostAway is the maximum percentage of clusters that may be unreachable at once. Above it nothing is moved from
	// them. 0 means DefaultMostAway.
	MostAway int
	// Hold has for some clusters the reason why nothing may be moved from them now.
	Hold map[string]string
	// Keep names clusters that keep the object for now, whatever the decision. They count for the spread, so that no
	// other cluster replaces them.
	Keep map[string]bool
	// Excluded are the clusters from which rules of override policies exclude the object.
	Excluded map[string]Exclusion
	Now      time.Time
}

// Exclusion is the reason why a rule excludes an object from a cluster.
type Exclusion struct {
	// Rule names the rule and its policy.
	Rule string
	// Passing is true if the rule reads facts that change without a user, or has no result. Then the cluster gets no
	// new copy, and an existing copy stays. Why has the details.
	Passing bool
	Why     string
}

// Decision is the set of clusters that shall hold an object. Every list is sorted by cluster.
type Decision struct {
	// Targets are the clusters that shall hold the object.
	Targets []Target
	// Withdraw names the clusters that hold the object and shall lose it. For the reason ClusterLeaving the cluster's
	// LeavePolicy applies.
	Withdraw []Rejection
	// Evict names the clusters that other clusters replace, including those that were Evicting and are not chosen
	// again. They keep their copies until the caller has confirmed that the replacements are healthy.
	Evict []Rejection
	// Rejected names the clusters that do not hold the object and were not chosen.
	Rejected []Rejection
	// Unmoved has for some Targets the reason why the object stays although it should leave.
	Unmoved []Rejection
	// Missing names the clusters that hold the object but were not in the Input. Nothing is decided about them.
	Missing []string
	// Group is the affinity group that holds the object. It is empty if there are none.
	Group string
	// Shortfalls are the requirements of the spread that the decision does not meet.
	Shortfalls []Shortfall
	// Kept is true if the previous clusters stay because a constraint cannot be met.
	Kept bool
	// Again is the time after which the decision may change by time alone. It is 0 if it cannot.
	Again time.Duration
}

// Target is a cluster that shall hold the object. Reason is Scheduled, or the reason that would reject the cluster if
// it did not hold the object already.
type Target struct {
	Cluster, Reason, Message string
	Score                    int64
}

// Rejection is a cluster that shall not hold the object. Reason is a constant of api/v1alpha1. Score is 0 if a filter
// rejected it.
type Rejection struct {
	Cluster, Reason, Message string
	Score                    int64
}

// Shortfall is a requirement of the spread that is not met.
type Shortfall struct {
	Message string
	// Serious is true if fewer clusters were chosen than required.
	Serious bool
}

// Decide returns the clusters that shall hold an object.
func Decide(in Input) Decision {
	d, _ := decide(in, nil)
	return d
}

// Explain decides like Decide and also returns the steps.
func Explain(in Input) (Decision, Trace) {
	var t Trace
	d, _ := decide(in, &t)
	return d, t
}

// decide records its steps in t unless t is nil. compared is the number of comparisons.
func decide(in Input, t *Trace) (d Decision, compared int) {
	if in.Placement == nil {
		in.Clusters = nil
	}
	clusters := make([]*Cluster, 0, len(in.Clusters))
	present := make(map[string]bool, len(in.Clusters))
	for i := range in.Clusters {
		if c := &in.Clusters[i]; !present[c.Name] {
			present[c.Name] = true
			clusters = append(clusters, c)
		}
	}
	slices.SortFunc(clusters, func(a, b *Cluster) int {
		compared++
		return cmp.Compare(a.Name, b.Name)
	})
	for _, holds := range []map[string]bool{in.Held, in.Evicting} {
		for name, yes := range holds {
			if yes && !present[name] {
				d.Missing = append(d.Missing, name)
			}
		}
	}
	slices.Sort(d.Missing)
	d.Missing = slices.Compact(d.Missing)

	all := make([]contender, len(clusters))
	var selected []*contender
	away := outage(&in)
	for i, c := range clusters {
		all[i] = contender{cluster: c, held: in.Held[c.Name], evicting: in.Evicting[c.Name] && !in.Held[c.Name], keep: in.Keep[c.Name] && in.Held[c.Name]}
		if all[i].pass(&in, t) {
			selected = append(selected, &all[i])
			d.wait(&in, &all[i], away)
		}
	}
	if len(selected) > 0 {
		s := spread{Compiled: in.Placement, divided: in.Divided, trace: t, decision: &d}
		s.choose(selected)
		compared += s.compared
	}
	t.scores(selected)
	for i := range all {
		d.add(&all[i])
	}
	return d, compared
}

// wait decides whether the object leaves a cluster, or when it may leave.
func (d *Decision) wait(in *Input, c *contender, outage cause) {
	if c.held {
		c.due = due(in, c.cluster)
		c.stays = stays(in, c, outage)
	}
	if c.held || c.evicting {
		if w := in.Placement.patience(c.cluster, in.Now); w > 0 && (d.Again == 0 || w < d.Again) {
			d.Again = w
		}
	}
}

// contender is one cluster during a decision.
type contender struct {
	cluster *Cluster
	// held is true if it has a Present entry. evicting is true if it has an Evicting entry: it may hold a copy, which
	// does not count.
	held, evicting bool
	// keep is true if it keeps the object for now, whatever the decision.
	keep bool
	eviction
	// unselected is true if a filter takes the object away.
	unselected bool
	// cause for which a filter or the spread rejected the cluster.
	cause cause
	*findings
	tally     // of the findings, with the built-in scores
	rank  int // in order of preference
	// chosen is true if the cluster shall hold the object.
	chosen bool
}

// open reports whether the cluster may get the object, whether or not it holds it.
func (c *contender) open() bool { return c.cause.reason == "" }

// pass evaluates the filters in order. It returns false if one of them unselects the cluster.
func (c *contender) pass(in *Input, t *Trace) bool {
	c.findings = in.Placement.find(in, c.cluster)
	c.tally = c.findings.tally
	for i := range filters {
		f := &filters[i]
		r := c.causes[i]
		if !f.remembered {
			r = f.check(in, c.cluster)
		}
		t.filter(c.cluster.Name, f.name, r)
		if r.reason == "" || c.cause.reason != "" {
			continue
		}
		c.cause, c.unselected = r, f.unselects && !c.keep
		if t == nil {
			break
		}
	}
	return !c.unselected
}

func (d *Decision) add(c *contender) {
	r := Rejection{Cluster: c.cluster.Name, Reason: c.cause.reason, Message: c.cause.message}
	if !c.unselected {
		r.Score = c.score
	}
	switch {
	case c.chosen:
		t := Target(r)
		t.Reason = cmp.Or(t.Reason, hubv1.ReasonScheduled)
		d.Targets = append(d.Targets, t)
		if c.due.reason != "" {
			d.Unmoved = append(d.Unmoved, Rejection{Cluster: c.cluster.Name, Reason: c.stays.reason, Message: c.stays.message, Score: r.Score})
		}
	case c.evict, c.evicting && !c.unselected:
		d.Evict = append(d.Evict, r)
	case c.held, c.evicting:
		d.Withdraw = append(d.Withdraw, r)
	default:
		d.Rejected = append(d.Rejected, r)
	}
}
