package placement

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Cluster is what a decision sees of one MemberCluster.
type Cluster struct {
	Name string
	// Revision stands for everything here but NamespaceAllowed and Objects: what was found for a revision is remembered.
	// Empty if nothing shall be.
	Revision string
	// Labels that selectors see, with the derived region and zone: MemberCluster.SelectableLabels.
	Labels        map[string]string
	Annotations   map[string]string
	Taints        []corev1.Taint // of its spec and its status
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
	// Version is that of its API server, such as v1.36.3; empty if it is not known.
	Version               string
	Capacity, Allocatable corev1.ResourceList
	Nodes                 hubv1.NodeSummary
	// Served are the versions of the kinds of which the cluster has said whether it serves them; none if it does not.
	Served map[schema.GroupKind][]string
	// ServedInFull is true if the cluster was asked, and what is not in Served it has not answered yet.
	ServedInFull bool
}

// Region of the cluster, empty if it is not known.
func (c *Cluster) Region() string { return c.Labels[hubv1.RegionLabel] }

// Zone of the cluster, empty if it has none or several.
func (c *Cluster) Zone() string { return c.Labels[hubv1.ZoneLabel] }

// Input is everything that one decision depends on.
type Input struct {
	// Placement that the object follows. Without one nothing is decided.
	Placement *Compiled
	// Object by its kind and the versions at which clusters may get it.
	Object hubv1.HubObject
	// Clusters that there are, each once.
	Clusters []Cluster
	// Held names the clusters that have a Present entry now, Evicting those that have an Evicting one.
	Held, Evicting map[string]bool
	// Divided is true if the replicas are divided: then those that are left take over the share of a cluster that loses
	// the object.
	Divided bool
	// MostAway is the percentage of clusters that may be away at once before nothing is moved from them any more; 0 stands
	// for DefaultMostAway.
	MostAway int
	// Hold says of clusters why nothing is moved from them now.
	Hold map[string]string
	// Keep names clusters that hold the object and keep it for now, whatever speaks against it. They count for the spread,
	// so that nothing new takes their place.
	Keep map[string]bool
	// Excluded are the clusters that rules of override policies keep the object out of.
	Excluded map[string]Exclusion
	Now      time.Time
}

// Exclusion is why a rule keeps an object out of a cluster.
type Exclusion struct {
	// Rule names the rule and its policy.
	Rule string
	// Passing is true if the rule asks for what changes of a cluster by itself, or gives no answer: then nothing new goes
	// there, and what is there stays. Why says what was found.
	Passing bool
	Why     string
}

// Decision says which clusters shall hold an object. Every list is sorted by cluster.
type Decision struct {
	// Targets shall hold the object.
	Targets []Target
	// Withdraw names the clusters that hold the object and shall no longer. With reason ClusterLeaving the cluster's
	// LeavePolicy says what becomes of it.
	Withdraw []Rejection
	// Evict names the clusters whose place others take, those included that were Evicting and are not chosen again. They
	// keep what they have until the caller has seen that the others are healthy.
	Evict []Rejection
	// Rejected names the clusters that do not hold the object and were left out.
	Rejected []Rejection
	// Unmoved says of Targets that the object should leave what keeps it there.
	Unmoved []Rejection
	// Missing names the clusters that hold the object and were not in the Input: nothing is decided about them.
	Missing []string
	// Group is the affinity group that holds the object; empty if there are none.
	Group string
	// Shortfalls say what the spread asks for and the decision does not give.
	Shortfalls []Shortfall
	// Kept is true if a constraint cannot hold and so the clusters of before stay.
	Kept bool
	// Again is when time alone may change the decision; 0 if it cannot.
	Again time.Duration
}

// Target is a cluster that shall hold the object. Reason is Scheduled, or what would keep the object away if it were
// not there already.
type Target struct {
	Cluster, Reason, Message string
	Score                    int64
}

// Rejection is a cluster that shall not hold the object. Reason is a constant of api/v1alpha1. Score is 0 if a filter
// left it out.
type Rejection struct {
	Cluster, Reason, Message string
	Score                    int64
}

// Shortfall is something that the spread asks for.
type Shortfall struct {
	Message string
	// Serious is true if clusters are missing that were asked for.
	Serious bool
}

// Decide returns the clusters that shall hold an object.
func Decide(in Input) Decision {
	d, _ := decide(in, nil)
	return d
}

// Explain decides and tells how.
func Explain(in Input) (Decision, Trace) {
	var t Trace
	d, _ := decide(in, &t)
	return d, t
}

// decide tells how in t unless that is nil, and how many times it compared two things.
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

// wait finds out whether the object is to leave a cluster, or when that may be.
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

// contender is one cluster on its way through a decision.
type contender struct {
	cluster *Cluster
	// held is true if it has a Present entry, evicting if it has an Evicting one: it may hold a copy, which does not
	// count.
	held, evicting bool
	// keep is true if it keeps the object for now, whatever speaks against it.
	keep bool
	eviction
	// unselected is true if a filter takes the object away.
	unselected bool
	// cause for which a filter or the spread left the cluster out.
	cause cause
	*findings
	tally     // of the findings, with the built-in scores
	rank  int // in order of preference
	// chosen is true if the cluster shall hold the object.
	chosen bool
}

// open is true if the cluster may get the object, held or not.
func (c *contender) open() bool { return c.cause.reason == "" }

// pass asks the filters, in order, and is true unless one of them unselects the cluster.
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
