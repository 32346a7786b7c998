package preview

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/placement/guard"
)

// Plan is the effect of a change of the hub's objects on the copies on members. Lists are sorted by the objects'
// namespaces, kinds and names.
type Plan struct {
	Summary Summary `json:"summary"`
	// Removals are the copies that clusters lose by the change. Copies of objects that move to other clusters are
	// included.
	Removals []Removal `json:"removals,omitempty"`
	// Moves are objects that leave some clusters and get other clusters, or whose replicas move to other clusters.
	Moves []Move `json:"moves,omitempty"`
	// Creations are the new copies of objects that do not move.
	Creations []Creation `json:"creations,omitempty"`
	// Changes are the changes of copies that stay on their clusters.
	Changes []Change `json:"changes,omitempty"`
	Guard   Guard    `json:"guard"`
	// Refusals are the objects of the change that admission would refuse.
	Refusals []Refusal `json:"refusals,omitempty"`
	// Problems are objects that the hub could place and write before the change, but not after it.
	Problems []Problem `json:"problems,omitempty"`
	// NotAsked are the clusters that are unreachable, or that did not answer the dry run. They get the change when they
	// answer again.
	NotAsked []NotAsked `json:"notAsked,omitempty"`
	// Live has the answers of members to dry runs of the planned writes. It is nil if no member was asked.
	Live *Live `json:"live,omitempty"`
	// Notes are remarks on the plan, such as the inputs that were not available.
	Notes []string `json:"notes,omitempty"`
}

// Summary has the totals of a plan.
type Summary struct {
	// Objects is the number of objects on which the plan decides.
	Objects int `json:"objects"`
	// Removed, Created and Changed are numbers of copies. Created does not count copies of objects that move.
	Removed int `json:"removed"`
	Created int `json:"created"`
	Changed int `json:"changed"`
	// Moved counts objects.
	Moved int `json:"moved"`
	// Held counts the removed copies that package guard would hold.
	Held     int `json:"held"`
	Refused  int `json:"refused"`
	Problems int `json:"problems"`
}

// Object names a hub object.
type Object struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

func objectOf(id hubv1.ObjectIdentity) Object { return Object(id) }

// Identity returns the object's identity for the API.
func (o Object) Identity() hubv1.ObjectIdentity { return hubv1.ObjectIdentity(o) }

// String returns the object as text: "Prometheus monitoring/web".
func (o Object) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// Removal contains the copies of one object that clusters lose for one reason.
type Removal struct {
	Object   Object   `json:"object"`
	Clusters []string `json:"clusters"`
	Reason   string   `json:"reason"`
	Message  string   `json:"message,omitempty"`
	// Policy determines whether the copies are deleted, or stay without the hub's labels and annotations.
	Policy hubv1.RemovalPolicy `json:"policy,omitempty"`
	// Last is true if no cluster holds the object after the removal.
	Last bool `json:"last,omitempty"`
}

// Move is one object that moves to other clusters, as a whole or with a part of its replicas.
type Move struct {
	Object Object   `json:"object"`
	From   []string `json:"from,omitempty"`
	To     []string `json:"to,omitempty"`
	Shares []Share  `json:"shares,omitempty"`
}

// Share is the number of an object's replicas on one cluster. Only objects whose replicas are divided among clusters
// have shares.
type Share struct {
	Cluster string `json:"cluster"`
	Before  int64  `json:"before"`
	After   int64  `json:"after"`
}

// Creation contains the new copies of one object.
type Creation struct {
	Object   Object   `json:"object"`
	Clusters []string `json:"clusters"`
	// Shares are the numbers of the object's replicas on the new clusters, if the replicas are divided among clusters.
	Shares []Share `json:"shares,omitempty"`
	// New is true if the object does not exist on the hub yet.
	New bool `json:"new,omitempty"`
}

// Change contains the changes in the copies of one object.
type Change struct {
	Object Object `json:"object"`
	// Shares are the changed numbers of an object's replicas on clusters. It is empty if the object moves to other
	// clusters.
	Shares []Share `json:"shares,omitempty"`
	// Groups are groups of clusters on which the copies change in the same way, the largest group first.
	Groups []Group `json:"groups,omitempty"`
	// Waves are the waves of the placement's rollout in which the differences are applied, in order. Waves is empty if all
	// clusters get the differences at once.
	Waves []Wave `json:"waves,omitempty"`
	// Restarts are the objects whose pods restart because they read the changed object. It is empty unless the changed
	// object is a ConfigMap or Secret.
	Restarts []Object `json:"restarts,omitempty"`
}

// Wave contains the changing clusters of one wave of a rollout.
type Wave struct {
	Name     string   `json:"name"`
	Clusters []string `json:"clusters"`
	// Approval is true if the wave waits until a user approves it.
	Approval bool `json:"approval,omitempty"`
}

// Group contains clusters on which the same fields of a copy differ.
type Group struct {
	Clusters []string `json:"clusters"`
	Fields   []Field  `json:"fields"`
}

// Refusal is an object of the change that admission would refuse.
type Refusal struct {
	Object Object `json:"object"`
	// File is the file that contains the object.
	File    string `json:"file,omitempty"`
	Message string `json:"message"`
}

// Problem tells why the hub could not place an object, or could not write it to clusters.
type Problem struct {
	Object   Object   `json:"object"`
	Clusters []string `json:"clusters,omitempty"`
	Reason   string   `json:"reason,omitempty"`
	Message  string   `json:"message"`
}

// NotAsked is a cluster that is unreachable, or has not answered the dry run.
type NotAsked struct {
	Cluster string `json:"cluster"`
	Why     string `json:"why"`
}

// Live has the answers of members to dry runs of the copies.
type Live struct {
	// Asked is the number of copies for which members were asked to make a dry run.
	Asked   int      `json:"asked"`
	Changes []Change `json:"changes,omitempty"`
	// Refused are copies that the hub or the member would refuse to write. It also has objects for which no dry run is
	// possible, because the files change the objects themselves.
	Refused []Problem `json:"refused,omitempty"`
}

// Options of Make. The zero value is for a hub with the defaults of its chart.
type Options struct {
	// DeniedMetadataPrefixes are prefixes of labels and annotations that the hub never copies to members, in addition to
	// the built-in prefixes.
	DeniedMetadataPrefixes []string
	// RemovalLimit is the limit of package guard for removals from one cluster. RemovalLimit is also the limit for
	// removals by one placement that sets no limit itself. The zero value means guard.DefaultLimit.
	RemovalLimit guard.Limit
	// Fits returns why an object does not match the definition of its kind. If Fits is nil, objects are not checked
	// against definitions.
	Fits func(*unstructured.Unstructured) error
	// Tell is called during the run with the number of objects that are already decided, and the number of all objects. It
	// may be nil.
	Tell func(decided, of int)
}

// Make returns the plan for a change. before is the current fleet, and after is the fleet with the change. A policy,
// cluster or object that the change leaves as it is must have the same pointer in both fleets.
func Make(ctx context.Context, before, after decide.Fleet, o Options) (Plan, error) {
	if o.Tell == nil {
		o.Tell = func(int, int) {}
	}
	if o.RemovalLimit == (guard.Limit{}) {
		o.RemovalLimit = guard.DefaultLimit
	}
	d, err := Decide(ctx, before, after, o.Tell, o.Tell)
	if err != nil {
		return Plan{}, err
	}
	m := &maker{Decisions: d, options: o, edit: editOf(before, after), plan: Plan{Notes: d.Notes()}}
	for p := range d.Pairs() {
		if err := ctx.Err(); err != nil {
			return Plan{}, err
		}
		m.object(p)
	}
	m.plan.Summary.Objects = len(after.Objects)
	m.judge()
	m.refuse()
	m.away()
	if n := d.Underway(); n > 0 {
		m.plan.Notes = append(m.plan.Notes, fmt.Sprintf("decisions on %s are still pending on the hub; this plan does not include them", counted(n, "object")))
	}
	return m.plan, nil
}

// maker has the state of one call of Make.
type maker struct {
	*Decisions
	options Options
	edit    edit
	judged  []judgedRemoval
	plan    Plan
}

// object adds to the plan what the change does to one object.
func (m *maker) object(p Pair) {
	m.remove(p)
	shares, moved := p.shares()
	if moved > 0 || len(p.Lost) > 0 && len(p.Gained) > 0 {
		m.plan.Moves = append(m.plan.Moves, Move{Object: p.Object, From: p.Lost, To: p.Gained, Shares: shares})
		m.plan.Summary.Moved++
		shares = nil
	} else if len(p.Gained) > 0 {
		m.plan.Creations = append(m.plan.Creations, Creation{Object: p.Object, Clusters: p.Gained, Shares: p.newShares(), New: p.Old == nil})
		m.plan.Summary.Created += len(p.Gained)
	}
	m.unplaced(p)
	m.compare(p, slices.DeleteFunc(shares, func(s Share) bool { return !slices.Contains(p.Stayed, s.Cluster) }))
}

// remove adds to the plan the copies that clusters lose, grouped by reason.
func (m *maker) remove(p Pair) {
	for _, cluster := range p.Lost {
		loss := decide.Loss{Cluster: cluster, Reason: hubv1.ReasonEvicted}
		for _, l := range p.After.Losses {
			if l.Cluster == cluster {
				loss = l
			}
		}
		m.plan.Summary.Removed++
		if loss.Removal != nil {
			m.judged = append(m.judged, judgedRemoval{p.Object.Identity().String(), *loss.Removal})
		}
		r := Removal{Object: p.Object, Clusters: []string{cluster}, Reason: loss.Reason, Message: loss.Message, Policy: loss.Policy, Last: len(p.Held) == 0}
		same := func(o Removal) bool {
			return o.Object == r.Object && o.Reason == r.Reason && o.Message == r.Message && o.Policy == r.Policy
		}
		if at := slices.IndexFunc(m.plan.Removals, same); at >= 0 {
			m.plan.Removals[at].Clusters = append(m.plan.Removals[at].Clusters, cluster)
		} else {
			m.plan.Removals = append(m.plan.Removals, r)
		}
	}
}

// unplaced adds a problem to the plan if the hub cannot place the object after the change. It adds no problem if the
// reason is the same as before the change.
func (m *maker) unplaced(p Pair) {
	c := p.After.Scheduled
	if p.New.Removed || c.Reason == "" || c.Reason == hubv1.ReasonScheduled || c.Status == "True" || c.Reason == p.Before.Scheduled.Reason {
		return
	}
	m.problem(Problem{Object: p.Object, Reason: c.Reason, Message: c.Message})
}

func (m *maker) problem(p Problem) {
	m.plan.Summary.Problems++
	m.plan.Problems = append(m.plan.Problems, p)
}

// away adds to the plan the clusters that do not answer.
func (m *maker) away() {
	for _, c := range m.after.Clusters {
		if !c.IsAway() {
			continue
		}
		why := "it carries changes out when it answers again"
		for _, ready := range c.Status.Conditions {
			if ready.Type == hubv1.ConditionReady && ready.Reason != "" {
				why = ready.Reason + ": " + why
			}
		}
		m.plan.NotAsked = append(m.plan.NotAsked, NotAsked{Cluster: c.Name, Why: why})
	}
	slices.SortFunc(m.plan.NotAsked, func(a, b NotAsked) int { return cmp.Compare(a.Cluster, b.Cluster) })
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
