package view

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/decide"
	"github.com/hanse-dev/hanse/placement"
	dividing "github.com/hanse-dev/hanse/replicas"
)

// Explanation is the output of the command explain: a replay of the scheduling decision for one object.
type Explanation struct {
	Object Object `json:"object"`
	// Placement that the object follows in the replay; null if there is none.
	Placement   *Followed     `json:"placement"`
	NotFollowed []NotFollowed `json:"notFollowed,omitempty"`
	// Scheduled is the condition that results from the replay, Recorded the condition in the binding.
	Scheduled Said  `json:"scheduled"`
	Recorded  *Said `json:"recorded,omitempty"`
	Same      bool  `json:"same"`
	// Differences between the binding and the result of the replay.
	Differences []string `json:"differences,omitempty"`
	// Clusters of the hub, by name; empty if the user did not ask for clusters.
	Clusters []ExplainedCluster `json:"clusters,omitempty"`
	// Missing clusters are in the binding but have no MemberCluster. The replay decides nothing about them.
	Missing []string `json:"missing,omitempty"`
	// Selected is the number of clusters that hold the object after the replay.
	Selected int `json:"selected"`
	// Withdrawing is the number of clusters from which the replay removes the object.
	Withdrawing int `json:"withdrawing,omitempty"`
	// AffinityGroup that holds the object.
	AffinityGroup string             `json:"affinityGroup,omitempty"`
	Spread        []SpreadStep       `json:"spread,omitempty"`
	Shortfalls    []string           `json:"shortfalls,omitempty"`
	Division      *ExplainedDivision `json:"division,omitempty"`
	// Rollout of the object from the binding; absent if the placement has none.
	Rollout *hubv1.BindingRollout `json:"rollout,omitempty"`
	// Notes name the inputs that only the hub knows.
	Notes []string `json:"notes,omitempty"`
	// Fields tells who set each field on the requested cluster, if the user asked for fields.
	Fields *Fields `json:"fields,omitempty"`

	cluster string // the requested cluster; empty for all
	since   metav1.Time
}

// Followed is a placement that an object follows.
type Followed struct {
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	Generation int64  `json:"generation"`
	Priority   int32  `json:"priority"`
	// Enforced is true for an enforced ClusterPlacement. No other placement takes precedence over it.
	Enforced bool `json:"enforced,omitempty"`
}

// NotFollowed is a placement that matches the object and is not followed, or that cannot be read.
type NotFollowed struct {
	Placement string `json:"placement"`
	Why       string `json:"why"`
}

// Said is the short form of a condition.
type Said struct {
	Status  metav1.ConditionStatus `json:"status"`
	Reason  string                 `json:"reason"`
	Message string                 `json:"message"`
}

// The outcomes for a cluster.
const (
	Selected  = "Selected"
	Withdrawn = "Withdrawn" // it has the object and will lose it
	Evicting  = "Evicting"  // other clusters replace it; its copy is removed when they are healthy
	Rejected  = "Rejected"
)

// ExplainedCluster is one cluster with the results of all steps of the decision.
type ExplainedCluster struct {
	Cluster string `json:"cluster"`
	Region  string `json:"region,omitempty"`
	Result  string `json:"result"`
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
	// Held is true if the cluster held the object before.
	Held bool `json:"held"`
	// Filters in the order of their evaluation.
	Filters []Filter `json:"filters,omitempty"`
	// Score and its parts; absent if a filter rejects the cluster.
	Score int64       `json:"score"`
	Parts []ScorePart `json:"parts,omitempty"`
	// Replicas of a divided object.
	Replicas *int32 `json:"replicas,omitempty"`
}

// Filter is the result of one filter. Reason is empty if the cluster passes.
type Filter struct {
	Filter  string `json:"filter"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// ScorePart is the part of a score from one preference or property.
type ScorePart struct {
	Part  string `json:"part"`
	Score int64  `json:"score"`
	Note  string `json:"note,omitempty"`
}

// SpreadStep is one step of the spread.
type SpreadStep struct {
	Action string `json:"action"`
	// Cluster or affinity group of the step.
	Cluster string `json:"cluster"`
	Why     string `json:"why"`
}

// ExplainedDivision describes the division of replicas.
type ExplainedDivision struct {
	Path  string         `json:"path"`
	By    hubv1.DivideBy `json:"by"`
	Total int64          `json:"total"`
	// Rest is the number of replicas without room.
	Rest   int64   `json:"rest"`
	Shares []Share `json:"shares"`
}

// Share is one cluster's part of the replicas. Null means unlimited.
type Share struct {
	Cluster string `json:"cluster"`
	Weight  int64  `json:"weight"`
	Min     int64  `json:"min"`
	Max     *int64 `json:"max"`
	Room    *int64 `json:"room"`
	Held    *int64 `json:"held"`
	// Fixed is true if the share does not change.
	Fixed bool  `json:"fixed,omitempty"`
	Share int64 `json:"share"`
}

// Explain describes a replay. cluster is the requested cluster; empty for all.
func Explain(in decide.Input, replay decide.Replayed, cluster string) Explanation {
	id := hubv1.ObjectOf(in.Binding)
	status := in.Binding.BindingStatus()
	e := Explanation{
		Object: objectOf(id, in.Object.Template), cluster: cluster,
		Scheduled:   Said{replay.Scheduled.Status, replay.Scheduled.Reason, replay.Scheduled.Message},
		Differences: differences(in.Binding.BindingSpec(), &replay.Spec),
		NotFollowed: notFollowed(in, replay), Notes: notes(in, replay),
		AffinityGroup: replay.Decision.Group, Missing: replay.Decision.Missing,
	}
	e.Same = len(e.Differences) == 0
	if c := meta.FindStatusCondition(status.Conditions, hubv1.ConditionScheduled); c != nil {
		e.Recorded, e.since = &Said{c.Status, c.Reason, c.Message}, c.LastTransitionTime
	}
	if w := replay.Choice.Winner; w != nil {
		e.Placement = &Followed{kindOf(w), w.GetNamespace(), w.GetName(), w.GetGeneration(), w.PlacementSpec().Priority, w.IsEnforced()}
	}
	for _, t := range replay.Spec.Clusters {
		if t.State == hubv1.TargetPresent {
			e.Selected++
		}
		if t.State == hubv1.TargetAbsent {
			e.Withdrawing++
		}
	}
	e.Clusters = explainedClusters(in, replay)
	if w := replay.Choice.Winner; w != nil && w.PlacementSpec().Spread != nil {
		for _, s := range replay.Trace.Steps {
			e.Spread = append(e.Spread, SpreadStep(s))
		}
	}
	for _, s := range replay.Decision.Shortfalls {
		e.Shortfalls = append(e.Shortfalls, s.Message)
	}
	e.Division = divisionOf(replay.Division)
	e.Rollout = in.Binding.BindingSpec().Rollout
	return e
}

func kindOf(p hubv1.PlacementObject) string {
	if p.GetNamespace() == "" {
		return "ClusterPlacement"
	}
	return "Placement"
}

func notFollowed(in decide.Input, replay decide.Replayed) []NotFollowed {
	var out []NotFollowed
	selectable := hubv1.SelectableObject{ObjectIdentity: hubv1.ObjectOf(in.Binding), Labels: in.Object.Template.GetLabels(), NamespaceLabels: in.Facts.NamespaceLabels}
	for _, p := range replay.Choice.Others {
		out = append(out, NotFollowed{nameOf(p), placement.WhyNotFollowed(selectable, replay.Choice.Winner, p)})
	}
	for _, i := range replay.Invalid {
		out = append(out, NotFollowed{nameOf(i.Placement), "it cannot be read: " + i.Err.Error()})
	}
	return out
}

// differences lists the changes of targets and replicas between the binding and the replay.
func differences(before, after *hubv1.BindingSpec) []string {
	var out []string
	if a, b := followedBy(before), followedBy(after); a != b {
		out = append(out, fmt.Sprintf("the binding follows %s, the replay %s", a, b))
	}
	names := map[string]bool{}
	for _, spec := range []*hubv1.BindingSpec{before, after} {
		for _, t := range spec.Clusters {
			names[t.Name] = true
		}
	}
	for name := range names {
		if a, b := holding(before, name), holding(after, name); a != b {
			out = append(out, fmt.Sprintf("%s: %s in the binding, %s in the replay", name, a, b))
		}
	}
	slices.Sort(out)
	return out
}

func followedBy(spec *hubv1.BindingSpec) string {
	ref := spec.PlacementRef
	if ref == nil {
		return "no placement"
	}
	return ref.Kind + "/" + ref.Name
}

// holding describes the state of one cluster in a binding.
func holding(spec *hubv1.BindingSpec, cluster string) string {
	if isEvicting(spec, cluster) {
		return "evicting"
	}
	if !holds(spec, cluster) {
		return "not selected"
	}
	if n := spec.Target(cluster).Replicas; n != nil {
		return fmt.Sprintf("selected with %d replicas", *n)
	}
	return "selected"
}

func holds(spec *hubv1.BindingSpec, cluster string) bool {
	t := spec.Target(cluster)
	return t != nil && t.State == hubv1.TargetPresent
}

func isEvicting(spec *hubv1.BindingSpec, cluster string) bool {
	t := spec.Target(cluster)
	return t != nil && t.State == hubv1.TargetEvicting
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
		case isEvicting(&replay.Spec, t.Cluster): // the cluster answers again, but its copy is not ready
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
		if holds(&replay.Spec, r.Cluster) { // the hub does not carry out the decision
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

func divisionOf(d *decide.ReplayedDivision) *ExplainedDivision {
	if d == nil {
		return nil
	}
	out := &ExplainedDivision{Path: d.Field.Path, By: d.Input.By, Total: d.Input.Total, Rest: d.Result.Rest}
	for _, c := range d.Input.Clusters {
		out.Shares = append(out.Shares, Share{
			Cluster: c.Name, Weight: c.Weight, Min: c.Min, Max: limited(c.Max), Room: limited(c.Room), Held: c.Held, Fixed: c.Fixed, Share: d.Result.Shares[c.Name],
		})
	}
	slices.SortFunc(out.Shares, func(a, b Share) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return out
}

func limited(n int64) *int64 {
	if n >= dividing.Unlimited {
		return nil
	}
	return &n
}

// notes lists the parts of the decision that only the hub knows.
func notes(in decide.Input, replay decide.Replayed) []string {
	w := replay.Choice.Winner
	if w == nil {
		return nil
	}
	var out []string
	spec := w.PlacementSpec()
	if NeedsCounts(w) && in.Objects == nil {
		out = append(out, "the objects of each cluster could not be counted: the score FewestObjects counts 0 for each")
	}
	if decide.DividesByCapacity(spec) {
		out = append(out, "capacities are as reported now: the hub takes over a change of more than a tenth after 5 minutes")
	}
	kind := hubv1.ObjectOf(in.Binding).GroupKind()
	if NeedsScalePath(w, kind) && in.Object.ScalePath == "" {
		out = append(out, "no scale path was read from the kind's definition")
	}
	if placement.HubWouldRun(kind, true) && !placement.HubWouldRun(kind, false) && spec.HubExecution != hubv1.HubExecutionAllowed {
		out = append(out, "whether the hub itself runs workloads is taken from the object's binding")
	}
	return out
}

// NeedsScalePath reports whether a placement divides replicas of a kind and does not name the field that has them.
func NeedsScalePath(p hubv1.PlacementObject, kind schema.GroupKind) bool {
	return dividing.NeedsPath(kind, &p.PlacementSpec().Replicas)
}

// NeedsCounts reports whether a placement uses the number of objects on each cluster.
func NeedsCounts(p hubv1.PlacementObject) bool {
	spread := p.PlacementSpec().Spread
	return spread != nil && slices.ContainsFunc(spread.Scores, func(s hubv1.WeighedScore) bool {
		return s.Name == hubv1.ScoreFewestObjects && s.Weight != 0
	})
}

// Refused reports whether the hub refuses to federate the object's kind because the hub itself would act on it. The
// binding's conditions tell whether the hub runs workloads.
func Refused(binding hubv1.BindingObject, object *unstructured.Unstructured) bool {
	said := meta.FindStatusCondition(binding.BindingStatus().Conditions, hubv1.ConditionScheduled)
	return placement.HubWouldRun(object.GroupVersionKind().GroupKind(), said != nil && said.Reason == hubv1.ReasonHubWouldRun)
}
