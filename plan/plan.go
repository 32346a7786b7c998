package plan

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/decide"
	"github.com/hanse-dev/hanse/guard"
)

// Plan is the effect of a change of the hub's objects on the copies on members. Lists are sorted by the objects'
// namespaces, kinds and names.
type Plan struct {
	Summary Summary `json:"summary"`
	// Removals are the copies that clusters lose, including those of objects that move.
	Removals []Removal `json:"removals,omitempty"`
	// Moves are objects that leave some clusters for others, or whose replicas move to other clusters.
	Moves []Move `json:"moves,omitempty"`
	// Creations are new copies of objects that do not move.
	Creations []Creation `json:"creations,omitempty"`
	// Changes are the changes of copies that stay.
	Changes []Change `json:"changes,omitempty"`
	Guard   Guard    `json:"guard"`
	// Refusals are the objects of the change that admission would refuse.
	Refusals []Refusal `json:"refusals,omitempty"`
	// Problems are objects that the hub could not place or write after the change, but could before.
	Problems []Problem `json:"problems,omitempty"`
	// NotAsked are the clusters that are unreachable, or whose answer is missing.
	NotAsked []NotAsked `json:"notAsked,omitempty"`
	// Live has the members' answers to a dry run; nil if no member was asked.
	Live *Live `json:"live,omitempty"`
	// Notes name unknown inputs.
	Notes []string `json:"notes,omitempty"`
}

// Summary counts a plan.
type Summary struct {
	// Objects is the number of decided objects.
	Objects int `json:"objects"`
	// Removed, Created and Changed count copies. Created counts only those of Creations.
	Removed int `json:"removed"`
	Created int `json:"created"`
	Changed int `json:"changed"`
	// Moved counts objects.
	Moved int `json:"moved"`
	// Held counts the copies whose removal the guard would hold.
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

func objectOf(id hubv1.ObjectIdentity) Object {
	return Object{Group: id.Group, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name}
}

// Identity returns the object's identity for the API.
func (o Object) Identity() hubv1.ObjectIdentity {
	return hubv1.ObjectIdentity{Group: o.Group, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
}

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
	// Policy decides whether the copies are deleted, or stay without the hub's labels and annotations.
	Policy hubv1.RemovalPolicy `json:"policy,omitempty"`
	// Last is true if no cluster holds the object afterwards.
	Last bool `json:"last,omitempty"`
}

// Move is one object that moves to other clusters, as a whole or with a part of its replicas.
type Move struct {
	Object Object   `json:"object"`
	From   []string `json:"from,omitempty"`
	To     []string `json:"to,omitempty"`
	Shares []Share  `json:"shares,omitempty"`
}

// Share is the number of a divided object's replicas on a cluster.
type Share struct {
	Cluster string `json:"cluster"`
	Before  int64  `json:"before"`
	After   int64  `json:"after"`
}

// Creation contains the new copies of one object.
type Creation struct {
	Object   Object   `json:"object"`
	Clusters []string `json:"clusters"`
	// Shares of a divided object, by cluster.
	Shares []Share `json:"shares,omitempty"`
	// New is true if the hub does not have the object yet.
	New bool `json:"new,omitempty"`
}

// Change contains the changes in the copies of one object.
type Change struct {
	Object Object `json:"object"`
	// Shares of the replicas, if they change without a move to another cluster.
	Shares []Share `json:"shares,omitempty"`
	// Groups of clusters with the same differences, the largest first.
	Groups []Group `json:"groups,omitempty"`
	// Waves are the waves of the placement's rollout through which the differences go, in order; empty if they reach all
	// clusters at once.
	Waves []Wave `json:"waves,omitempty"`
}

// Wave contains the changing clusters of one wave of a rollout.
type Wave struct {
	Name     string   `json:"name"`
	Clusters []string `json:"clusters"`
	// Approval is true if a user must approve the wave.
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
	// File with the object.
	File    string `json:"file,omitempty"`
	Message string `json:"message"`
}

// Problem is the reason why the hub could not place an object, or could not write it to clusters.
type Problem struct {
	Object   Object   `json:"object"`
	Clusters []string `json:"clusters,omitempty"`
	Reason   string   `json:"reason,omitempty"`
	Message  string   `json:"message"`
}

// NotAsked is a cluster that is unreachable, or whose answer is missing.
type NotAsked struct {
	Cluster string `json:"cluster"`
	Why     string `json:"why"`
}

// Live has the members' answers to a dry run.
type Live struct {
	// Asked is the number of copies in the dry run.
	Asked   int      `json:"asked"`
	Changes []Change `json:"changes,omitempty"`
	// Refused are copies that the hub would not write.
	Refused []Problem `json:"refused,omitempty"`
}

// Options of Make. The zero value is for a hub with the defaults of its chart.
type Options struct {
	// DeniedMetadataPrefixes are the hub's prefixes, in addition to the built-in ones.
	DeniedMetadataPrefixes []string
	// RemovalLimit of clusters, and of placements that set none. The zero value means guard.DefaultLimit.
	RemovalLimit guard.Limit
	// Fits returns why a manifest does not match the definition of its kind; nil if no definition is known.
	Fits func(*unstructured.Unstructured) error
	// Tell gets the number of decided objects; it may be nil.
	Tell func(decided, of int)
}

// Make returns the plan for a change. before is the current fleet; after is the fleet with the change. Policies,
// clusters and objects that are the same in both must be the same pointers.
func Make(ctx context.Context, before, after decide.Fleet, o Options) (Plan, error) {
	if o.Tell == nil {
		o.Tell = func(int, int) {}
	}
	if o.RemovalLimit == (guard.Limit{}) {
		o.RemovalLimit = guard.DefaultLimit
	}
	was, is, err := Settle(ctx, before, after, o.Tell, o.Tell)
	if err != nil {
		return Plan{}, err
	}
	m := &maker{options: o, before: before, after: after, was: was, is: is, places: map[hubv1.ObjectIdentity]int{}, edit: editOf(before, after)}
	for i, object := range before.Objects {
		m.places[object.Identity()] = i
	}
	for _, i := range m.order() {
		if err := ctx.Err(); err != nil {
			return Plan{}, err
		}
		m.object(i)
	}
	m.plan.Summary.Objects = len(after.Objects)
	m.judge()
	m.refuse()
	m.away()
	m.underway()
	return m.plan, nil
}

// Settle returns the final states without and with a change. The change starts from the final state without it, so that
// the difference excludes work that the hub has to do anyway.
func Settle(ctx context.Context, before, after decide.Fleet, tellBefore, tellAfter func(decided, of int)) (was, is *decide.Settlement, err error) {
	if was, err = before.Settle(ctx, tellBefore); err != nil {
		return nil, nil, fmt.Errorf("deciding on the fleet as it is: %w", err)
	}
	if is, err = after.From(was).Settle(ctx, tellAfter); err != nil {
		return nil, nil, fmt.Errorf("deciding on the changed fleet: %w", err)
	}
	return was, is, nil
}

// maker is one run of Make.
type maker struct {
	options       Options
	before, after decide.Fleet
	was, is       *decide.Settlement
	places        map[hubv1.ObjectIdentity]int // index of the objects before
	edit          edit
	judged        []guard.Removal
	plan          Plan
}

// order returns the order of the objects after the change.
func (m *maker) order() []int {
	out := make([]int, len(m.after.Objects))
	for i := range out {
		out[i] = i
	}
	slices.SortFunc(out, func(a, b int) int {
		return compareObjects(objectOf(m.after.Objects[a].Identity()), objectOf(m.after.Objects[b].Identity()))
	})
	return out
}

func compareObjects(a, b Object) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Name, b.Name))
}

// pair is one object before and after the change.
type pair struct {
	object Object
	// old is nil for an object that the hub does not have yet. The bindings are nil for an object without one.
	old, new             *decide.FleetObject
	oldOutcome, outcome  decide.Outcome
	oldTargets, targets  map[string]hubv1.BindingTarget // Present ones
	gained, lost, stayed []string
}

func (m *maker) pair(i int) pair {
	p := pair{object: objectOf(m.after.Objects[i].Identity()), new: &m.after.Objects[i], outcome: m.is.Outcomes[i]}
	if j, ok := m.places[p.new.Identity()]; ok {
		p.old, p.oldOutcome = &m.before.Objects[j], m.was.Outcomes[j]
	}
	p.oldTargets, p.targets = targetsOf(p.oldOutcome.Binding), targetsOf(p.outcome.Binding)
	for name := range p.oldTargets {
		if _, ok := p.targets[name]; ok {
			p.stayed = append(p.stayed, name)
		} else {
			p.lost = append(p.lost, name)
		}
	}
	for name := range p.targets {
		if _, ok := p.oldTargets[name]; !ok {
			p.gained = append(p.gained, name)
		}
	}
	slices.Sort(p.stayed)
	slices.Sort(p.lost)
	slices.Sort(p.gained)
	return p
}

func targetsOf(b hubv1.BindingObject) map[string]hubv1.BindingTarget {
	out := map[string]hubv1.BindingTarget{}
	if b == nil {
		return out
	}
	for _, t := range b.BindingSpec().Clusters {
		if t.State == hubv1.TargetPresent {
			out[t.Name] = t
		}
	}
	return out
}

// object adds the changes of one object to the plan.
func (m *maker) object(i int) {
	p := m.pair(i)
	if p.outcome.Restless {
		m.plan.Notes = append(m.plan.Notes, p.object.String()+" does not come to rest: each decision leads to another one")
	}
	m.remove(p)
	shares, moves := p.shares()
	if moves || len(p.lost) > 0 && len(p.gained) > 0 {
		m.plan.Moves = append(m.plan.Moves, Move{Object: p.object, From: p.lost, To: p.gained, Shares: shares})
		m.plan.Summary.Moved++
		shares = nil
	} else if len(p.gained) > 0 {
		m.plan.Creations = append(m.plan.Creations, Creation{Object: p.object, Clusters: p.gained, Shares: p.newShares(), New: p.old == nil})
		m.plan.Summary.Created += len(p.gained)
	}
	m.unplaced(p)
	m.compare(p, slices.DeleteFunc(shares, func(s Share) bool { return !slices.Contains(p.stayed, s.Cluster) }))
}

// shares returns the changed shares of clusters that keep their copy. moves is true if one cluster gets fewer replicas
// and another one more.
func (p pair) shares() (out []Share, moves bool) {
	if !divided(p.oldOutcome.Binding) || !divided(p.outcome.Binding) {
		return nil, false
	}
	fewer, more := false, false
	for _, name := range slices.Sorted(slices.Values(slices.Concat(p.stayed, p.lost, p.gained))) {
		s := Share{Cluster: name, Before: shareOf(p.oldTargets[name]), After: shareOf(p.targets[name])}
		if s.Before != s.After {
			fewer, more = fewer || s.After < s.Before, more || s.After > s.Before
			out = append(out, s)
		}
	}
	return out, fewer && more
}

// newShares returns the shares of the clusters with a new copy.
func (p pair) newShares() []Share {
	if !divided(p.outcome.Binding) {
		return nil
	}
	out := make([]Share, 0, len(p.gained))
	for _, name := range p.gained {
		out = append(out, Share{Cluster: name, After: shareOf(p.targets[name])})
	}
	return out
}

func divided(b hubv1.BindingObject) bool { return b != nil && b.BindingSpec().Division != nil }

func shareOf(t hubv1.BindingTarget) int64 {
	if t.Replicas == nil {
		return 0
	}
	return int64(*t.Replicas)
}

// remove adds the copies that clusters lose, by reason.
func (m *maker) remove(p pair) {
	for _, cluster := range p.lost {
		loss := decide.Loss{Cluster: cluster, Reason: hubv1.ReasonEvicted}
		for _, l := range p.outcome.Losses {
			if l.Cluster == cluster {
				loss = l
			}
		}
		m.plan.Summary.Removed++
		if loss.Removal != nil {
			m.judged = append(m.judged, guardRemoval(p.object, loss))
		}
		r := Removal{Object: p.object, Clusters: []string{cluster}, Reason: loss.Reason, Message: loss.Message, Policy: loss.Policy, Last: len(p.targets) == 0}
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

// unplaced adds a decision that is worse than before.
func (m *maker) unplaced(p pair) {
	c := p.outcome.Scheduled
	if c.Reason == "" || c.Reason == hubv1.ReasonScheduled || c.Status == "True" || c.Reason == p.oldOutcome.Scheduled.Reason {
		return
	}
	m.problem(Problem{Object: p.object, Reason: c.Reason, Message: c.Message})
}

func (m *maker) problem(p Problem) {
	m.plan.Summary.Problems++
	m.plan.Problems = append(m.plan.Problems, p)
}

// away adds the clusters that do not answer.
func (m *maker) away() {
	for _, c := range m.after.Clusters {
		if !decide.IsAway(c) {
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

// underway adds a note about objects whose current decisions are not carried out yet.
func (m *maker) underway() {
	n, bound := 0, false
	for i, o := range m.was.Outcomes {
		bound = bound || m.before.Objects[i].Binding != nil
		if !sameTargets(targetsOf(m.before.Objects[i].Binding), targetsOf(o.Binding)) {
			n++
		}
	}
	if n > 0 && bound { // without bindings, the placements decide from the start
		m.plan.Notes = append(m.plan.Notes, fmt.Sprintf("the hub has yet to carry out decisions on %s without this change: they are no part of the plan", counted(n, "object")))
	}
}

func sameTargets(a, b map[string]hubv1.BindingTarget) bool {
	if len(a) != len(b) {
		return false
	}
	for name, t := range a {
		other, ok := b[name]
		if !ok || shareOf(t) != shareOf(other) || (t.Replicas == nil) != (other.Replicas == nil) {
			return false
		}
	}
	return true
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
