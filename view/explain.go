package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement"
	"github.com/hanse-dev/hanse/placement/decide"
	dividing "github.com/hanse-dev/hanse/placement/replicas"
)

// Explanation is the output of the command explain. It shows how the scheduling decision for one object comes about,
// because hansectl makes this decision again.
type Explanation struct {
	Object Object `json:"object"`
	// Placement is the placement that the object follows. It is null if the object follows no placement.
	Placement   *Followed     `json:"placement"`
	NotFollowed []NotFollowed `json:"notFollowed,omitempty"`
	Comparison
	Choice
	Division *ExplainedDivision `json:"division,omitempty"`
	// Rollout is the rollout of the object, from its binding. It is absent if the placement has no rollout.
	Rollout *hubv1.BindingRollout `json:"rollout,omitempty"`
	// BundleRollout is the rollout of the bundle that contains the object. The text shows it instead of Rollout.
	BundleRollout *BundleRollout `json:"bundleRollout,omitempty"`
	// Notes name the inputs of the decision that hansectl does not know, or that may differ from the hub's inputs.
	Notes []string `json:"notes,omitempty"`
	// Fields shows which policy or manager set each field on the requested cluster, if the user asked for fields.
	Fields *Fields `json:"fields,omitempty"`

	cluster string // the requested cluster; empty for all clusters
}

// Followed is a placement that an object follows.
type Followed struct {
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	Generation int64  `json:"generation"`
	Priority   int32  `json:"priority"`
	// Enforced is true for an enforced ClusterPlacement, which precedes all other placements.
	Enforced bool `json:"enforced,omitempty"`
}

// NotFollowed is a placement that matches the object and that the object does not follow, or a placement that cannot be
// read.
type NotFollowed struct {
	Placement string `json:"placement"`
	Why       string `json:"why"`
}

// ExplainedDivision describes how replicas are divided among clusters.
type ExplainedDivision struct {
	Path  string         `json:"path"`
	By    hubv1.DivideBy `json:"by"`
	Total int64          `json:"total"`
	// Rest is the number of the object's replicas for which no cluster has room.
	Rest   int64   `json:"rest"`
	Shares []Share `json:"shares"`
}

// Share is the number of replicas of one cluster, with the inputs from which the division of replicas computes this
// number. Max is the largest number that the cluster may get, and Room is the number of replicas that fit on the
// cluster. A null Max or Room means that there is no limit.
type Share struct {
	Cluster string `json:"cluster"`
	Weight  int64  `json:"weight"`
	Min     int64  `json:"min"`
	Max     *int64 `json:"max"`
	Room    *int64 `json:"room"`
	Held    *int64 `json:"held"`
	// Fixed is true if the division of replicas must not change the cluster's number of replicas.
	Fixed bool  `json:"fixed,omitempty"`
	Share int64 `json:"share"`
}

// Explain describes a decision that hansectl has made again. cluster is the cluster that the user has named. It is
// empty if the user asks about all clusters.
func Explain(in decide.Input, replay decide.Replayed, cluster string) Explanation {
	e := Explanation{
		Object: objectOf(hubv1.ObjectOf(in.Binding), in.Object.Template), cluster: cluster,
		NotFollowed: notFollowed(in, replay), Comparison: comparisonOf(in.Binding, replay), Choice: choiceOf(in, replay),
		Division: divisionOf(replay.Division), Rollout: in.Binding.BindingSpec().Rollout, Notes: notes(in, replay),
	}
	if w := replay.Choice.Winner; w != nil {
		e.Placement = &Followed{kindOf(w), w.GetNamespace(), w.GetName(), w.GetGeneration(), w.PlacementSpec().Priority, w.IsEnforced()}
	}
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
	selectable := hubv1.Selectable(hubv1.ObjectOf(in.Binding), in.Object.Template, in.Facts.NamespaceLabels).Placed()
	for _, p := range replay.Choice.Others {
		out = append(out, NotFollowed{nameOf(p), placement.WhyNotFollowed(selectable, replay.Choice.Winner, p)})
	}
	for _, i := range replay.Invalid {
		out = append(out, NotFollowed{nameOf(i.Placement), "its selectors are invalid: " + i.Err.Error()})
	}
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

// notes returns notes about inputs of the decision that only the hub knows.
func notes(in decide.Input, replay decide.Replayed) []string {
	w := replay.Choice.Winner
	if w == nil {
		return nil
	}
	var out []string
	spec := w.PlacementSpec()
	if NeedsCounts(w) && in.Objects == nil {
		out = append(out, "the objects of each cluster could not be counted: the score FewestObjects counts 0 objects for each")
	}
	if decide.DividesByCapacity(spec) {
		out = append(out, "the capacities are the ones reported now: the hub uses a change of more than a tenth only after 5 minutes")
	}
	out = append(out, cutCapacities(in.Facts.Clusters)...)
	kind := hubv1.ObjectOf(in.Binding).GroupKind()
	if NeedsScalePath(w, kind) && in.Object.ScalePath == "" {
		out = append(out, "no scale path was read from the kind's definition")
	}
	if hubv1.BundleOf(in.Object.Template) == nil && placement.HubWouldRun(kind, true) && !placement.HubWouldRun(kind, false) && spec.HubExecution != hubv1.HubExecutionAllowed {
		out = append(out, "the object's binding tells whether the hub itself runs workloads")
	}
	return out
}

// maxCutCapacities is the maximum number of clusters whose capacity cutCapacities describes.
const maxCutCapacities = 5

// cutCapacities returns a line for each cluster that reports more of a resource than counts in decisions, at most
// maxCutCapacities lines.
func cutCapacities(clusters []*hubv1.MemberCluster) []string {
	var out []string
	for _, c := range clusters {
		growth := c.Status.CapacityGrowth
		if growth == nil || len(growth.Reported) == 0 {
			continue
		}
		if len(out) == maxCutCapacities {
			return append(out, "more clusters report a larger capacity than counts in decisions: see status.capacityGrowth of the MemberClusters")
		}
		var cut []string
		for _, name := range slices.Sorted(maps.Keys(growth.Reported)) {
			reported, counts := growth.Reported[name], c.Status.Capacity[name]
			why := "the amount grows at most twofold an hour, unless spec.capacity of the MemberCluster allows more"
			if _, set := c.Spec.Capacity[name]; set {
				why = "spec.capacity of the MemberCluster allows no more"
			}
			cut = append(cut, fmt.Sprintf("%s %s of the reported %s counts in decisions: %s", name, counts.String(), reported.String(), why))
		}
		out = append(out, fmt.Sprintf("cluster %s: %s", c.Name, strings.Join(cut, "; ")))
	}
	return out
}

// NeedsScalePath reports whether a placement divides replicas of a kind without naming the field of the replicas.
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

// Refused reports whether the hub refuses to place objects of this kind. It refuses if controllers of the hub's cluster
// would act on the objects, for example start Pods. The binding's condition Scheduled tells whether such controllers
// run.
func Refused(binding hubv1.BindingObject, object *unstructured.Unstructured) bool {
	if hubv1.BundleOf(object) != nil {
		return false // the hub does not have the object
	}
	scheduled := meta.FindStatusCondition(binding.BindingStatus().Conditions, hubv1.ConditionScheduled)
	return placement.HubWouldRun(object.GroupVersionKind().GroupKind(), scheduled != nil && scheduled.Reason == hubv1.ReasonHubWouldRun)
}
