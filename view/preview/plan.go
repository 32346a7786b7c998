package preview

import (
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
	// Assumed describes the assumed states of clusters, such as a lost region, one text for each.
	Assumed []string `json:"assumed,omitempty"`
	// Removals are the copies that clusters lose by the change. Copies of objects that move to other clusters are
	// included.
	Removals []Removal `json:"removals,omitempty"`
	// Moves are objects that leave some clusters and get other clusters, or whose replicas move to other clusters.
	Moves []Move `json:"moves,omitempty"`
	// Creations are the new copies of objects that do not move.
	Creations []Creation `json:"creations,omitempty"`
	// Changes are the changes of copies that stay on their clusters.
	Changes []Change `json:"changes,omitempty"`
	// Bundles are the changes of bundles that are rolled out as a whole. Their objects are also in the lists above.
	Bundles []BundleChange `json:"bundles,omitempty"`
	// Placements are the objects that follow another placement after the change.
	Placements []PlacementChange `json:"placements,omitempty"`
	// Away are the objects with copies on clusters that stop answering by the change.
	Away []Away `json:"away,omitempty"`
	// Clusters are the clusters whose numbers of objects or replicas change, and the clusters that do not answer but shall
	// hold objects.
	Clusters []ClusterTotal `json:"clusters,omitempty"`
	Guard    Guard          `json:"guard"`
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
	// ReplicasMoved is the number of replicas that move to other clusters. ReplicasWithoutRoom is the number of replicas
	// for which no cluster has room after the change, without those for which no cluster had room before.
	ReplicasMoved       int64 `json:"replicasMoved"`
	ReplicasWithoutRoom int64 `json:"replicasWithoutRoom"`
	// Away is the number of copies on clusters that stop answering by the change. Nowhere is the number of objects that
	// lose their last cluster that answers.
	Away    int `json:"away"`
	Nowhere int `json:"nowhere"`
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
	// Diff is a unified diff of the copy on the first cluster. It is empty unless the user has asked for it, and for a
	// Secret.
	Diff string `json:"diff,omitempty"`

	// Before and After are the states of the copy on the first cluster.
	Before, After map[string]any `json:"-"`
}

// PlacementChange is an object that follows another placement after the change. Before and After are the placements,
// such as "Placement shop/web".
type PlacementChange struct {
	Object Object `json:"object"`
	Before string `json:"before"`
	After  string `json:"after"`
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
	// NoRoom is the number of the object's replicas for which no cluster has room.
	NoRoom int64 `json:"noRoom,omitempty"`
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
	// MetadataOnly is true if the objects have no content. The plan then has no changed fields, and does not tell whether
	// copies could be written.
	MetadataOnly bool
	// Rights are the rights of the hub. The hub makes no copies of objects that it cannot read.
	Rights Rights
	// Tell is called during the run with the number of objects that are already decided, and the number of all objects. It
	// may be nil.
	Tell func(decided, of int)
}

// Make returns the plan for a change. before is the current fleet, and after is the fleet with the change. A policy,
// cluster or object that the change leaves as it is must have the same pointer in both fleets.
func Make(ctx context.Context, before, after decide.Fleet, o Options) (Plan, error) {
	problems := o.Rights.unfederated(before, after, false)
	d, err := decided(ctx, o.Rights.readable(before), o.Rights.readable(after), o.tell)
	if err != nil {
		return Plan{}, err
	}
	return d.plan(ctx, o, problems)
}

// Next returns the plan for the work that the hub has to do anyway: the decisions that the bindings do not have yet.
func Next(ctx context.Context, fleet decide.Fleet, o Options) (Plan, error) {
	problems := o.Rights.unfederated(fleet, fleet, true)
	d, err := next(ctx, o.Rights.readable(fleet), o.tell)
	if err != nil {
		return Plan{}, err
	}
	return d.plan(ctx, o, problems)
}

func (o Options) tell(decided, of int) {
	if o.Tell != nil {
		o.Tell(decided, of)
	}
}

// plan returns the plan. problems are the problems that are known before a decision.
func (d *decisions) plan(ctx context.Context, o Options, problems []Problem) (Plan, error) {
	if o.RemovalLimit == (guard.Limit{}) {
		o.RemovalLimit = guard.DefaultLimit
	}
	m := &maker{
		decisions: d, options: o, edit: editOf(d.before, d.after), plan: Plan{Notes: d.restless()},
		awayBefore: awayIn(d.before.Clusters), awayAfter: awayIn(d.after.Clusters), totals: totalsOf(d.before.Clusters, d.after.Clusters),
		sets: map[hubv1.BundleReference]*setChange{},
	}
	for _, p := range problems {
		m.problem(p)
	}
	for p := range d.pairs() {
		if err := ctx.Err(); err != nil {
			return Plan{}, err
		}
		m.object(p)
	}
	m.bundles()
	m.ungranted()
	m.plan.Summary.Objects = len(d.after.Objects)
	m.plan.Clusters = m.totals.changed()
	m.judge()
	m.refuse()
	m.notAsked()
	m.noteAway()
	if n := d.underway(); n > 0 {
		m.plan.Notes = append(m.plan.Notes, fmt.Sprintf("decisions on %s are still pending on the hub; this plan does not include them", counted(n, "object")))
	}
	return m.plan, nil
}

// maker has the state of one call of Make or Next.
type maker struct {
	*decisions
	options Options
	edit    edit
	// awayBefore and awayAfter tell of each cluster whether it does not answer, before and after the change.
	awayBefore, awayAfter map[string]bool
	totals                totals
	judged                []judgedRemoval
	sets                  map[hubv1.BundleReference]*setChange
	plan                  Plan
}

// object adds to the plan what the change does to one object.
func (m *maker) object(p pair) {
	m.remove(p)
	shares, moved := p.shares()
	if moved > 0 || len(p.Lost) > 0 && len(p.Gained) > 0 {
		m.plan.Moves = append(m.plan.Moves, Move{Object: p.Object, From: p.Lost, To: p.Gained, Shares: shares})
		m.plan.Summary.Moved++
		m.plan.Summary.ReplicasMoved += moved
		shares = nil
	} else if len(p.Gained) > 0 {
		m.plan.Creations = append(m.plan.Creations, Creation{Object: p.Object, Clusters: p.Gained, Shares: p.newShares(), New: p.Old == nil})
		m.plan.Summary.Created += len(p.Gained)
	}
	if before, after := followed(p.Before), followed(p.After); before != after && before != "" && after != "" {
		m.plan.Placements = append(m.plan.Placements, PlacementChange{p.Object, before, after})
	}
	m.onClusters(p)
	m.unplaced(p)
	changes := len(m.plan.Changes)
	m.compare(p, slices.DeleteFunc(shares, func(s Share) bool { return !slices.Contains(p.Stayed, s.Cluster) }))
	m.inSet(p, len(m.plan.Changes) > changes)
}

// followed returns the placement that an object follows, such as "Placement shop/web". It is empty if the object
// follows no placement.
func followed(o decide.Outcome) string {
	if o.Binding == nil || o.Binding.BindingSpec().PlacementRef == nil {
		return ""
	}
	return decide.OwnerOf(o.Binding.BindingSpec().PlacementRef).String()
}

// remove adds to the plan the copies that clusters lose, grouped by reason.
func (m *maker) remove(p pair) {
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

// unplaced adds a problem to the plan if the hub cannot place the object after the change, or has no room for more of
// its replicas than before. It adds no other problem if the reason is the same as before the change.
func (m *maker) unplaced(p pair) {
	was, is := p.Before.Scheduled, p.After.Scheduled
	if p.New.Removed || is.Reason == "" || is.Reason == was.Reason && is.Message == was.Message && !p.moves() {
		return
	}
	noRoomBefore, noRoom := m.noRoom(p)
	more := max(0, noRoom-noRoomBefore)
	m.plan.Summary.ReplicasWithoutRoom += more
	if failed := is.Reason != hubv1.ReasonScheduled && is.Status != "True" && is.Reason != was.Reason; failed || more > 0 {
		m.problem(Problem{Object: p.Object, Reason: is.Reason, Message: is.Message, NoRoom: noRoom})
	}
}

func (m *maker) problem(p Problem) { m.plan.AddProblem(p) }

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
