package decide

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/canonical"
	"github.com/hanse-dev/hanse/placement/rollout"
)

// TestEveryDecisionThatDiffersIsReached changes random clusters one after the other. After each change, only the
// objects that Touch and Outage name are decided again. Each other object must get the same decision as before.
func TestEveryDecisionThatDiffersIsReached(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawTouchFleet(t)
		for _, o := range f.objects {
			f.decideUntilStable(o)
		}
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			before := slices.Clone(f.clusters)
			change := f.change(t)
			touch := NewTouch(change, f.placements, f.policies, &f.memo)
			outage := NewOutage(before, f.clusters, f.maxAway, false)
			var reached []*touchObject
			for _, o := range f.objects {
				if f.reached(o, touch, outage) {
					reached = append(reached, o)
					continue
				}
				if diff := cmp.Diff(essence(o.last), essence(f.decide(o))); diff != "" {
					t.Fatalf("%s is not reached, but decided otherwise after %s:\n%s\nentries %v", o.id.Name, describeChange(change), diff, entriesOfBinding(o.binding))
				}
			}
			for _, o := range reached {
				f.decideUntilStable(o)
			}
		}
	})
}

type touchObject struct {
	id      hubv1.ObjectIdentity
	labels  map[string]string
	binding *hubv1.ResourceBinding
	health  hubv1.Health // of all its copies
	last    Plan
}

type touchFleet struct {
	clusters   []*hubv1.MemberCluster
	placements []hubv1.PlacementObject
	policies   []hubv1.OverridePolicyObject
	objects    []*touchObject
	maxAway    int
	limits     bool
	memo       Memo
	version    int
}

func (f *touchFleet) reached(o *touchObject, touch *Touch, outage Outage) bool {
	if o.binding == nil {
		return !o.last.Placed && (!touch.Nothing() || outage.Changed())
	}
	return touch.Reaches(o.binding, o.last.Placed) || outage.Reaches(o.binding, o.last.Placed)
}

func (f *touchFleet) input(o *touchObject) Input {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(5)}}}
	u.SetAPIVersion("example.com/v1")
	u.SetKind(o.id.Kind)
	u.SetNamespace(o.id.Namespace)
	u.SetName(o.id.Name)
	u.SetUID("a")
	u.SetGeneration(1)
	u.SetLabels(o.labels)
	in := Input{
		Object: Object{ID: o.id, Template: u}, Now: now, Memo: &f.memo, Referrers: []Referrer{},
		Facts:   Facts{Placements: f.placements, Clusters: f.clusters, Overrides: f.policies, NamespaceLabels: map[string]string{"team": "x"}, NamespaceRead: true},
		Staging: &Staging{Key: canonical.Key("key"), Peers: func(Owner) rollout.Peers { return rollout.NewPeers(nil) }},
	}
	if f.limits {
		in.Limits = &Limits{MaxAway: f.maxAway}
	}
	if o.binding != nil {
		in.Binding = o.binding
	}
	return in
}

func (f *touchFleet) decide(o *touchObject) Plan { return Decide(f.input(o)) }

// decideUntilStable carries out decisions, each followed by rows that show all copies as wanted.
func (f *touchFleet) decideUntilStable(o *touchObject) {
	for range 8 {
		o.last = f.decide(o)
		switch {
		case o.last.Remove || o.last.Spec == nil && o.binding != nil:
			o.binding = nil
			continue
		case o.last.Spec == nil:
			return
		case o.binding == nil:
			o.binding = &hubv1.ResourceBinding{}
			o.binding.Namespace, o.binding.Name, o.binding.UID = o.id.Namespace, o.id.BindingName(), "b"
		case equality.Semantic.DeepEqual(&o.binding.Spec, o.last.Spec):
			return
		}
		after := o.binding.DeepCopy()
		after.Spec, after.Generation = *o.last.Spec, after.Generation+1
		after.Status.ObservedGeneration, after.Status.Clusters = after.Generation, nil
		for _, e := range after.Spec.Clusters {
			row := hubv1.ClusterRow{Name: e.Name, Applied: metav1.ConditionTrue, Health: o.health, Generation: 1, Revision: e.Revision, Digest: "d"}
			if e.State == hubv1.TargetAbsent {
				row.Applied, row.Reason = metav1.ConditionFalse, hubv1.ReasonWithdrawn
			}
			after.Status.Clusters = append(after.Status.Clusters, row)
		}
		o.binding = after
	}
}

// essence is the part of a plan that Touch speaks of. It leaves out messages.
func essence(p Plan) any {
	type part struct {
		Spec                        *hubv1.BindingSpec
		Deleted                     hubv1.RemovalPolicy
		Remove, Withdraws, Placed   bool
		Chosen, Others, Left        []string
		Status                      metav1.ConditionStatus
		Reason                      string
		Evicted, Unreplaced, Drains []string
		Waits                       bool
		Blocked                     map[string]string
		Answers                     Answers
		Again                       time.Duration
	}
	out := part{
		p.Spec.DeepCopy(), p.WhenDeleted, p.Remove, p.Withdraws, p.Placed, p.Chosen, p.Status.OtherPlacements, p.LeftBehind,
		p.Status.Scheduled.Status, p.Status.Scheduled.Reason, p.Claims.Evicted, p.Claims.Unreplaced, p.Claims.FullDrains, p.Claims.EvictionWaits,
		p.Claims.Blocked, p.Claims.Answers, p.Again,
	}
	if out.Spec != nil && out.Spec.Rollout != nil {
		out.Spec.Rollout.Message = ""
	}
	return out
}

func entriesOfBinding(b *hubv1.ResourceBinding) []string {
	if b == nil {
		return nil
	}
	return entriesOf(&b.Spec)
}

func describeChange(c ClusterChange) string {
	switch {
	case c.Before == nil:
		return "the join of " + c.After.Name
	case c.After == nil:
		return "the end of " + c.Before.Name
	}
	return cmp.Diff(c.Before, c.After, cmpopts.EquateEmpty())
}

func drawTouchFleet(t *rapid.T) *touchFleet {
	f := &touchFleet{maxAway: rapid.SampledFrom([]int{0, 20, 50, 100}).Draw(t, "maxAway"), limits: rapid.Bool().Draw(t, "limits")}
	if !f.limits {
		f.maxAway = 0
	}
	for i := range rapid.IntRange(1, 8).Draw(t, "clusters") {
		f.clusters = append(f.clusters, f.drawCluster(t, fmt.Sprintf("c%d", i)))
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "placements") {
		f.placements = append(f.placements, drawTouchPlacement(t, fmt.Sprintf("p%d", i)))
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "policies") {
		f.policies = append(f.policies, excluding(drawRuleClusters(t), func(p *hubv1.OverridePolicy) {
			p.Name = fmt.Sprintf("x%d", i)
			p.Spec.Rules[0].Exclude = rapid.Bool().Draw(t, "excludes")
			p.Spec.ResourceSelectors[0].Kind = rapid.SampledFrom([]string{"Widget", "*"}).Draw(t, "kind")
		}))
	}
	for i := range 4 {
		o := &touchObject{id: object, labels: map[string]string{}}
		o.id.Name = fmt.Sprintf("w%d", i)
		o.labels["app"] = rapid.SampledFrom([]string{"p0", "p1", "p2"}).Draw(t, "app")
		if rapid.IntRange(0, 3).Draw(t, "of an operator") == 0 {
			o.labels["of"] = "operator"
		}
		o.health = rapid.SampledFrom([]hubv1.Health{hubv1.HealthHealthy, hubv1.HealthHealthy, hubv1.HealthDegraded}).Draw(t, "health")
		f.objects = append(f.objects, o)
	}
	return f
}

var (
	touchLabels   = rapid.SampledFrom([]string{"", "x", "y"})
	touchNumbers  = rapid.SampledFrom([]*int32{nil, nil, ptr.To[int32](1), ptr.To[int32](2), ptr.To[int32](3)})
	touchSelector = rapid.SampledFrom([]*metav1.LabelSelector{
		{}, {}, {}, {MatchLabels: map[string]string{"k": "x"}}, {MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k", Operator: "Exists"}}},
		{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: hubv1.RegionLabel, Operator: "NotIn", Values: []string{"x"}}}},
	})
	touchExpressions = rapid.SampledFrom([]string{
		"", "", "", "region == 'x'", "labels['k'] == 'x'", "nodes.ready > 1", "version.startsWith('v1.3')", "has(annotations.note)",
		"allocatable['cpu'].isGreaterThan(quantity('2'))", "operators[?'rotors'].installed.orValue(false)", "1 / nodes.ready > 0",
	})
)

func drawRuleClusters(t *rapid.T) *hubv1.RuleClusters {
	return rapid.SampledFrom([]*hubv1.RuleClusters{
		naming("c1"), {LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"k": "y"}}}, {Expression: "version == 'v1.31.0'"},
		{Expression: "labels['none'] == 'x'"}, {Expression: "operators[?'rotors'].installed.orValue(false)"}, {Expression: "has(annotations.note)"},
	}).Draw(t, "rule clusters")
}

func drawTouchPlacement(t *rapid.T, name string) hubv1.PlacementObject {
	p := policy(name, labelled(name))
	p.Spec.Clusters = hubv1.ClusterSelection{LabelSelector: touchSelector.Draw(t, "selector"), Expression: touchExpressions.Draw(t, "expression")}
	p.Spec.Clusters.Tolerations = rapid.SampledFrom([][]corev1.Toleration{
		nil, nil, {{Key: "t", Operator: corev1.TolerationOpExists}}, {{Key: "t", Operator: corev1.TolerationOpExists, TolerationSeconds: ptr.To[int64](90)}},
	}).Draw(t, "tolerations")
	p.Spec.Failover.EvictAfterSeconds = rapid.SampledFrom([]*int32{nil, ptr.To[int32](0), ptr.To[int32](60)}).Draw(t, "evictAfter")
	if rapid.IntRange(0, 3).Draw(t, "spreads") > 0 {
		s := hubv1.SpreadPolicy{NumberOfClusters: touchNumbers.Draw(t, "numberOfClusters")}
		s.Rebalance = rapid.SampledFrom([]hubv1.Rebalance{"", "", "", hubv1.RebalanceAlways}).Draw(t, "rebalance")
		if rapid.IntRange(0, 3).Draw(t, "constrained") == 0 {
			s.TopologySpreadConstraints = []hubv1.TopologySpreadConstraint{{
				TopologyKey: hubv1.RegionLabel, MinDomains: touchNumbers.Draw(t, "minDomains"), MaxSkew: touchNumbers.Draw(t, "maxSkew"),
				WhenUnsatisfiable: rapid.SampledFrom([]hubv1.WhenUnsatisfiable{hubv1.DoNotSchedule, hubv1.ScheduleAnyway}).Draw(t, "when"),
			}}
		}
		if rapid.IntRange(0, 2).Draw(t, "prefers") == 0 {
			s.Preferences = []hubv1.ClusterPreference{{Weight: 10, LabelSelector: touchSelector.Draw(t, "preference")}}
			s.Scores = []hubv1.WeighedScore{{Name: hubv1.ScoreAvailableCapacity, Weight: 5}}
		}
		if rapid.IntRange(0, 5).Draw(t, "grouped") == 0 {
			s.AffinityGroups = []hubv1.AffinityGroup{{Name: "a", LabelSelector: touchSelector.Draw(t, "group a")}, {Name: "b", LabelSelector: touchSelector.Draw(t, "group b")}}
		}
		p.Spec.Spread = &s
	}
	switch rapid.IntRange(0, 8).Draw(t, "replicas") {
	case 0:
		dividing(hubv1.DivideByCapacity)(p)
	case 1:
		dividing(hubv1.DivideByWeight, func(w *hubv1.DividePolicy) {
			w.Weights = []hubv1.ReplicaWeight{{Clusters: drawRuleLabels(t), Weight: 3}, {Weight: 1}}
			w.Rebalance = ptr.To(rapid.Bool().Draw(t, "divides anew"))
		})(p)
	case 2:
		p.Spec.Rollout = &hubv1.RolloutPolicy{Waves: []hubv1.RolloutWave{{Name: "first", Clusters: drawRuleClusters(t), SoakSeconds: 60}, {Name: "rest"}}}
	case 3:
		p.Spec.Suspend.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"k": "x"}}
		p.Spec.Rollout = &hubv1.RolloutPolicy{Waves: []hubv1.RolloutWave{{Name: "all"}}}
	}
	return p
}

func drawRuleLabels(t *rapid.T) *hubv1.RuleClusters {
	return &hubv1.RuleClusters{LabelSelector: touchSelector.Draw(t, "weighed")}
}

// drawCluster returns a cluster, or a new state of it.
func (f *touchFleet) drawCluster(t *rapid.T, name string) *hubv1.MemberCluster {
	c := cluster(name)
	c.UID = types.UID(name)
	for range 14 {
		f.alter(t, c, rapid.IntRange(0, 20).Draw(t, "part"))
	}
	return f.stored(c)
}

func (f *touchFleet) stored(c *hubv1.MemberCluster) *hubv1.MemberCluster {
	f.version++
	c.ResourceVersion = fmt.Sprint(f.version)
	return c
}

// change changes a random part of a random cluster. A cluster may also join or end.
func (f *touchFleet) change(t *rapid.T) ClusterChange {
	kind := rapid.IntRange(0, 9).Draw(t, "kind of change")
	i := rapid.IntRange(0, len(f.clusters)).Draw(t, "which")
	if i == len(f.clusters) || kind == 0 && len(f.clusters) < 9 {
		name := fmt.Sprintf("c%d", rapid.IntRange(0, 9).Draw(t, "name"))
		if slices.ContainsFunc(f.clusters, func(c *hubv1.MemberCluster) bool { return c.Name == name }) {
			name += "-new"
		}
		if at, found := slices.BinarySearchFunc(f.clusters, name, func(c *hubv1.MemberCluster, n string) int { return strings.Compare(c.Name, n) }); !found {
			joined := f.drawCluster(t, name)
			f.clusters = slices.Insert(slices.Clone(f.clusters), at, joined)
			return ClusterChange{After: joined}
		}
		i = 0
	}
	before := f.clusters[i]
	if kind == 1 {
		f.clusters = slices.Delete(slices.Clone(f.clusters), i, i+1)
		return ClusterChange{Before: before}
	}
	after := before.DeepCopy()
	for range rapid.IntRange(1, 2).Draw(t, "parts") {
		f.alter(t, after, rapid.IntRange(0, 20).Draw(t, "part"))
	}
	if !equality.Semantic.DeepEqual(before.Spec, after.Spec) {
		after.Generation++
	}
	f.clusters = slices.Clone(f.clusters)
	f.clusters[i] = f.stored(after)
	return ClusterChange{Before: before, After: after}
}

func (f *touchFleet) alter(t *rapid.T, c *hubv1.MemberCluster, part int) {
	switch part {
	case 0, 1:
		c.Labels["k"] = touchLabels.Draw(t, "k")
	case 2, 3:
		c.Labels[hubv1.RegionLabel] = touchLabels.Draw(t, "region")
	case 4:
		c.Labels["unread"] = touchLabels.Draw(t, "unread")
	case 5:
		c.Annotations = map[string]string{"note": touchLabels.Draw(t, "note")}
	case 6:
		c.Spec.Taints = drawTaints(t)
	case 7, 8:
		f.makeAway(t, c)
	case 9:
		c.Spec.Unschedulable = rapid.IntRange(0, 2).Draw(t, "cordoned") == 0
	case 10:
		c.Spec.Drain = rapid.SampledFrom([]*hubv1.DrainPolicy{nil, nil, {}, {Evict: true}}).Draw(t, "drain")
	case 11:
		if rapid.IntRange(0, 3).Draw(t, "leaves") == 0 {
			leaving(hubv1.RemovalDelete)(c)
		}
	case 12:
		c.Spec.AllowedNamespaces.From = rapid.SampledFrom([]hubv1.NamespacesFrom{hubv1.NamespacesFromAll, hubv1.NamespacesFromAll, hubv1.NamespacesFromNone}).Draw(t, "from")
	case 13, 14:
		if c.Status.APIResources = nil; rapid.Bool().Draw(t, "reports") {
			serving(rapid.SampledFrom([][]string{{"v1"}, {"v1"}, {"v1beta1"}, nil}).Draw(t, "versions")...)(c)
			c.Status.APIResources[0].Kind = rapid.SampledFrom([]string{"Widget", "Widget", "Gadget"}).Draw(t, "served")
		}
	case 15, 16:
		cpus(rapid.Int64Range(0, 4).Draw(t, "cpus"))(c)
	case 17:
		c.Status.Nodes = hubv1.NodeSummary{Total: 3, Ready: rapid.Int32Range(0, 3).Draw(t, "nodes")}
	case 18:
		c.Status.Version.Kubernetes = rapid.SampledFrom([]string{"", "v1.31.0", "v1.40.0"}).Draw(t, "version")
	case 19:
		c.Status.Operators = rapid.SampledFrom([][]hubv1.OperatorFact{nil, {{Name: "rotors", Installed: true}}}).Draw(t, "operators")
	case 20:
		c.Status.Unclaimed = ptr.To(rapid.Int32Range(0, 3).Draw(t, "unclaimed"))
	}
}

func (f *touchFleet) makeAway(t *rapid.T, c *hubv1.MemberCluster) {
	c.Status.Taints = nil
	switch rapid.IntRange(0, 3).Draw(t, "readiness") {
	case 0:
		unreachable(c)
	case 1:
		lost(rapid.SampledFrom([]time.Duration{10 * time.Second, 10 * time.Minute}).Draw(t, "since"))(c)
	default:
		c.Status.Conditions = cluster(c.Name).Status.Conditions
	}
}

func drawTaints(t *rapid.T) []corev1.Taint {
	effect := rapid.SampledFrom([]corev1.TaintEffect{corev1.TaintEffectNoExecute, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule})
	if rapid.Bool().Draw(t, "no taint") {
		return nil
	}
	return []corev1.Taint{{Key: "t", Effect: effect.Draw(t, "effect"), TimeAdded: &metav1.Time{Time: now.Add(-time.Minute)}}}
}
