package placement

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Cluster contains the data of one MemberCluster that a decision reads.
type Cluster struct {
	Name string
	// Revision identifies the values of all fields except NamespaceAllowed and Objects. Results for the cluster are cached
	// under its Revision. If Revision is empty, no result is cached.
	Revision string
	// Labels are the labels to which selectors apply, see MemberCluster.SelectableLabels. They include the region and the
	// zone that the hub has derived.
	Labels        map[string]string
	Annotations   map[string]string
	Taints        []corev1.Taint // taints in the spec and the status of the MemberCluster
	Unschedulable bool
	Ready         bool
	Departure
	Facts
	// NamespaceAllowed is true if the cluster accepts objects of the object's namespace.
	NamespaceAllowed bool
	// Objects is the number of objects that the hub sends to the cluster. The decided object does not count.
	Objects int
}

// Departure has the data that show whether objects must leave a cluster.
type Departure struct {
	Draining  bool // true: the cluster is drained, and its objects move to other clusters
	TakesAway bool // true: the drain also removes objects that no other cluster can take
	// Leaving is true if the MemberCluster has a deletionTimestamp. LeavePolicy then tells what happens to the objects on
	// the cluster.
	Leaving     bool
	LeavePolicy hubv1.RemovalPolicy
}

// Facts are the data that the hub has read from the cluster's API server.
type Facts struct {
	// Version is the version of the cluster's API server, such as v1.36.3. It is empty if it is not known.
	Version               string
	Capacity, Allocatable corev1.ResourceList
	Nodes                 hubv1.NodeSummary
	// Served maps each kind about which the cluster has reported to the versions that the cluster serves. The list of
	// versions is empty if the cluster does not serve the kind.
	Served map[schema.GroupKind][]string
	// ServedInFull says what it means if Served lacks a kind. If ServedInFull is true, the cluster has not reported about
	// this kind yet. If it is false, the cluster may serve the kind: it has reported about no kind at all, or about so
	// many that Served may lack some of them.
	ServedInFull bool
	// Operators are the operators on the cluster. The list is nil if the object itself belongs to an operator.
	Operators []hubv1.OperatorFact
}

// Region returns the region of the cluster. It is empty if the region is not known.
func (c *Cluster) Region() string { return c.Labels[hubv1.RegionLabel] }

// Zone returns the zone of the cluster. It is empty if the cluster has no zone or several zones.
func (c *Cluster) Zone() string { return c.Labels[hubv1.ZoneLabel] }

// Input contains all inputs of one decision.
type Input struct {
	// Placement is the placement that the object follows. It is required.
	Placement *Compiled
	// Object has the object's kind and the versions at which clusters may receive it.
	Object hubv1.HubObject
	// ObjectName has the namespace and name of the object, or of its bundle, such as shop/web. Among clusters of equal
	// score, a hash of it and of the cluster's name decides. The kind is left out, so that objects of one name, such as a
	// Deployment and its Service, get the same order of clusters. If ObjectName is empty, the name of the cluster decides.
	ObjectName string
	// Clusters are the clusters of the hub, without duplicates.
	Clusters []Cluster
	// Held names the clusters whose entry in the binding has the state Present. Evicting names the clusters whose entry
	// has the state Evicting.
	Held, Evicting map[string]bool
	// Divided is true if the replicas are divided among the clusters. If a cluster loses the object, the remaining
	// clusters of the object take over the replicas.
	Divided bool
	// MaxAway is the maximum percentage of clusters that may be unreachable at once. If more clusters are unreachable,
	// objects stay on these clusters. 0 means DefaultMaxAway.
	MaxAway int
	// Hold names the clusters that the object must not leave now, with the reason for each. For example, a limit of the
	// hub does not allow the eviction yet.
	Hold map[string]string
	// Keep names clusters that keep the object for now, even if the placement does not choose them. They count as chosen,
	// so that no other cluster replaces them.
	Keep map[string]bool
	// Excluded are the clusters from which rules of override policies exclude the object.
	Excluded map[string]Exclusion
	Now      time.Time
}

// Exclusion describes a rule of an override policy that excludes an object from a cluster.
type Exclusion struct {
	// Rule names the rule and its policy.
	Rule string
	// Passing is true if the rule reads data that changes without an action of a user, or if the rule has no result for
	// the cluster. In both cases the cluster gets no new copy, and an existing copy stays. Why says which case it is.
	Passing bool
	Why     string
}

// Decision says which clusters shall hold an object. Every list is sorted by cluster.
type Decision struct {
	// Targets are the clusters that shall hold the object.
	Targets []Target
	// Withdraw names the clusters that hold the object and shall lose it. For the reason ClusterLeaving, the cluster's
	// LeavePolicy says what happens to the copy.
	Withdraw []Rejection
	// Evict names the clusters that the decision replaces by other clusters. The evicted clusters keep their copies until
	// the caller has confirmed that the copies on the other clusters are healthy. The list includes clusters that an
	// earlier decision evicts and that this decision does not choose again.
	Evict []Rejection
	// Rejected names the clusters that do not hold the object and that the decision did not choose.
	Rejected []Rejection
	// Unmoved names the clusters in Targets that the object should leave but cannot leave now, each with the reason why it
	// cannot leave.
	Unmoved []Rejection
	// Missing names the clusters in Held or Evicting that are not in Clusters of the Input. The decision does not change
	// the entries of these clusters in the binding.
	Missing []string
	// Group is the name of the chosen affinity group. It is empty if the placement has no affinity groups.
	Group string
	// Shortfalls are the requirements of the placement's spread that the decision does not meet.
	Shortfalls []Shortfall
	// Kept is true if the object stays on its previous clusters because the placement's spread cannot be satisfied.
	Kept bool
	// Again is the time after which the decision may change although no input changes. It is 0 if the passing of time
	// cannot change the decision.
	Again time.Duration
}

// Target is a cluster that shall hold the object. Reason is Scheduled, or the reason of a filter that rejects new
// copies on the cluster: the cluster then only keeps its copy.
type Target struct {
	Cluster, Reason, Message string
	Score                    int64
}

// Rejection is a cluster that shall not hold the object. Reason is a reason constant of api/v1alpha1. Score is 0 if a
// filter rejected the cluster.
type Rejection struct {
	Cluster, Reason, Message string
	Score                    int64
}

// Shortfall is a requirement of the placement's spread that the decision does not meet.
type Shortfall struct {
	Message string
	// Serious is true if the decision chose too few clusters, or clusters in too few domains of a required constraint. It
	// is false if the decision only violates a preferred constraint, or an upper bound of a constraint such as maxSkew.
	Serious bool
}

// Decide returns the clusters that shall hold an object.
func Decide(in Input) Decision {
	d, _ := decide(in, nil)
	return d
}

// Explain decides like Decide, and also returns the steps of the decision.
func Explain(in Input) (Decision, Trace) {
	var t Trace
	d, _ := decide(in, &t)
	return d, t
}

// decide makes the decision. It records its steps in t if t is not nil. compared is the number of comparisons of
// clusters. Tests limit this number.
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
		s := spread{Compiled: in.Placement, object: in.ObjectName, divided: in.Divided, trace: t, decision: &d}
		s.choose(selected)
		compared += s.compared
	}
	t.scores(selected)
	for i := range all {
		d.add(&all[i])
	}
	return d, compared
}

// wait records, for a cluster that holds the object, why the object must leave and why it cannot leave yet. In d.Again
// it records the time until the placement no longer tolerates a taint of the cluster.
func (d *Decision) wait(in *Input, c *contender, outage cause) {
	if c.held {
		c.eviction.due = due(in, c.cluster)
		c.eviction.stays = stays(in, c, outage)
	}
	if c.held || c.evicting {
		if w := in.Placement.patience(c.cluster, in.Now); w > 0 && (d.Again == 0 || w < d.Again) {
			d.Again = w
		}
	}
}

// contender is the state of one cluster during a decision.
type contender struct {
	cluster *Cluster
	// held is true if the cluster's entry in the binding has the state Present. evicting is true if the entry has the
	// state Evicting: the cluster may hold a copy, but other clusters replace it.
	held, evicting bool
	// keep is true if the cluster keeps the object for now, even if the placement does not choose it.
	keep     bool
	eviction eviction
	// unselected is true if a filter removes the object from the cluster that holds it.
	unselected bool
	// cause is the reason why a filter or the spread has rejected the cluster. It is empty if neither has.
	cause    cause
	findings *findings
	tally    tally  // score and its parts: those of findings, and the built-in scores
	draw     uint64 // hash of the object and the cluster, by which clusters of equal score are ordered
	rank     int    // position in the order of preference
	// chosen is true if the cluster shall hold the object.
	chosen bool
}

// open reports whether the cluster passed every filter, so that it may get the object.
func (c *contender) open() bool { return c.cause.reason == "" }

// pass evaluates the filters for the cluster, in their order. It returns false if a filter removes the object from the
// cluster. A filter that only prevents new copies sets cause, and pass then returns true.
func (c *contender) pass(in *Input, t *Trace) bool {
	c.findings = in.Placement.find(in, c.cluster)
	c.tally = c.findings.tally
	for i := range filters {
		f := &filters[i]
		r := c.findings.causes[i]
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
		r.Score = c.tally.score
	}
	switch {
	case c.chosen:
		t := Target(r)
		t.Reason = cmp.Or(t.Reason, hubv1.ReasonScheduled)
		d.Targets = append(d.Targets, t)
		if c.eviction.due.reason != "" {
			d.Unmoved = append(d.Unmoved, Rejection{Cluster: c.cluster.Name, Reason: c.eviction.stays.reason, Message: c.eviction.stays.message, Score: r.Score})
		}
	case c.eviction.evict, c.evicting && !c.unselected:
		d.Evict = append(d.Evict, r)
	case c.held, c.evicting:
		d.Withdraw = append(d.Withdraw, r)
	default:
		d.Rejected = append(d.Rejected, r)
	}
}
