package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

var everyWidget = hubv1.ResourceSelector{APIGroup: widgetKind.Group, Kind: widgetKind.Kind}

// decidedFor returns nil if the binding's spec.clusters has exactly these clusters, and the condition Scheduled has
// this reason and a message that contains each of the words.
func decidedFor(ctx context.Context, obj *unstructured.Unstructured, clusters []string, reason string, words ...string) error {
	b, err := bindingOf(ctx, obj)
	if err != nil {
		return err
	}
	var now []string
	for _, e := range b.BindingSpec().Clusters {
		if e.State == hubv1.TargetPresent {
			now = append(now, e.Name)
		}
	}
	if !slices.Equal(now, clusters) {
		return fmt.Errorf("%s is to be on %v, want %v", obj.GetName(), now, clusters)
	}
	c := meta.FindStatusCondition(b.BindingStatus().Conditions, hubv1.ConditionScheduled)
	if c == nil || c.Reason != reason {
		return fmt.Errorf("%s is Scheduled %+v, want %s", obj.GetName(), c, reason)
	}
	for _, w := range words {
		if !contains(c.Message, w) {
			return fmt.Errorf("%s is Scheduled with %q, want %q", obj.GetName(), c.Message, w)
		}
	}
	return nil
}

// rejectedFor returns nil if the scheduling decision rejects the cluster with this reason and exactly this message.
func rejectedFor(ctx context.Context, obj *unstructured.Unstructured, cluster, reason, words string) error {
	b, err := bindingOf(ctx, obj)
	if err != nil {
		return err
	}
	decision := b.BindingStatus().Decision
	if decision == nil {
		return fmt.Errorf("%s: no decision is told of", obj.GetName())
	}
	for _, r := range decision.Rejected {
		if r.Reason == reason && slices.Contains(r.Examples, cluster+": "+words) {
			return nil
		}
	}
	return fmt.Errorf("%s: the rejections are %+v, want %s %s: %s", obj.GetName(), decision.Rejected, cluster, reason, words)
}

// annotateMember sets an annotation of a MemberCluster until the test ends.
func annotateMember(t *testing.T, member, key, value string) {
	t.Helper()
	patch := func(ctx context.Context, value string) error {
		m := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: member}}
		return suite.Hub.Patch(ctx, m, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, key, value)))
	}
	must(t, patch(t.Context(), fmt.Sprintf("%q", value)))
	t.Cleanup(func() { must(t, patch(context.WithoutCancel(t.Context()), "null")) })
}

func TestAnExpressionOverWhatPeopleSayTakesAnObjectAway(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	w := widget(ns, "expressed")
	place(t, ns, "expressed", everyWidget, hubv1.PlacementSpec{Clusters: hubv1.ClusterSelection{
		Expression: "region in ['cn-shanghai', 'eu-central-1'] && annotations[?'test/stage'].orValue('on') == 'on'",
	}})
	must(t, suite.Hub.Create(ctx, w))
	eventually(t, normal, func() error {
		return decidedFor(ctx, w, []string{shanghai, frankfurt}, hubv1.ReasonScheduled, "2 of 3 clusters: 1 not selected")
	})
	eventually(t, normal, func() error {
		return rejectedFor(ctx, w, singapore, hubv1.ReasonNotSelected, `expression is false: region is "ap-southeast-1", annotations[test/stage] is not set`)
	})
	for _, m := range []string{shanghai, frankfurt} {
		eventually(t, normal, func() error { return replicasOn(ctx, m, w, 3) })
	}
	annotateMember(t, frankfurt, "test/stage", "off")
	eventually(t, normal, func() error { return goneFrom(ctx, frankfurt, w) })
	eventually(t, normal, func() error {
		return rejectedFor(ctx, w, frankfurt, hubv1.ReasonNotSelected, `expression is false: region is "eu-central-1", annotations[test/stage] is "off"`)
	})
	must(t, replicasOn(ctx, shanghai, w, 3))
}

func TestAnExpressionThatDoesNotCompileMovesNothing(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	w := widget(ns, "misspelt")
	p := place(t, ns, "misspelt", everyWidget, hubv1.PlacementSpec{Clusters: hubv1.ClusterSelection{Expression: "nodes.ready >= 0"}})
	must(t, suite.Hub.Create(ctx, w))
	eventually(t, normal, func() error {
		return decidedFor(ctx, w, []string{singapore, shanghai, frankfurt}, hubv1.ReasonScheduled)
	})
	must(t, suite.Hub.Patch(ctx, p, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"clusters":{"expression":"nodes.ready >= zero"}}}`))))
	eventually(t, normal, func() error {
		return placementCondition(ctx, p, hubv1.ConditionAccepted, metav1.ConditionFalse, hubv1.ReasonInvalid, "undeclared reference to 'zero'")
	})
	eventually(t, normal, func() error {
		return decidedFor(ctx, w, []string{singapore, shanghai, frankfurt}, hubv1.ReasonInvalid, "undeclared reference to 'zero'")
	})
}

func TestAnObjectIsSpreadOverRegionsByPreference(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	w := widget(ns, "spread")
	spec := hubv1.PlacementSpec{Clusters: everyCluster(), Spread: &hubv1.SpreadPolicy{
		NumberOfClusters: ptr.To[int32](2),
		TopologySpreadConstraints: []hubv1.TopologySpreadConstraint{
			{TopologyKey: hubv1.RegionLabel, MinDomains: ptr.To[int32](2), ClustersPerDomain: ptr.To[int32](1)},
		},
		Preferences: []hubv1.ClusterPreference{
			{Weight: 20, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{hubv1.RegionLabel: "eu-central-1"}}},
			{Weight: -10, Expression: "region == 'ap-southeast-1'"},
		},
	}}
	p := place(t, ns, "spread", everyWidget, spec)
	must(t, suite.Hub.Create(ctx, w))
	eventually(t, normal, func() error {
		return decidedFor(ctx, w, []string{shanghai, frankfurt}, hubv1.ReasonScheduled, "2 of 3 clusters: 1 not needed")
	})
	eventually(t, normal, func() error {
		return rejectedFor(ctx, w, singapore, hubv1.ReasonNotChosen, "numberOfClusters is 2, and other clusters come first")
	})
	eventually(t, normal, func() error { return replicasOn(ctx, frankfurt, w, 3) })
	b, err := bindingOf(ctx, w)
	must(t, err)
	if got := toJSON(t, b.BindingStatus().Decision.Reasons); got != `[{"cluster":"cn-sha-1","reason":"Scheduled"},{"cluster":"eu-fra-1","reason":"Scheduled","score":20}]` {
		t.Errorf("the chosen clusters are told as %s", got)
	}

	// A new preference moves no object until the placement also allows rebalancing.
	must(t, suite.Hub.Patch(ctx, p, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"spread":{"preferences":[{"weight":50,"expression":"region == 'ap-southeast-1'"},{"weight":10,"expression":"region == 'cn-shanghai'"}]}}}`))))
	eventually(t, normal, func() error { return observedPlacement(ctx, p) })
	must(t, decidedFor(ctx, w, []string{shanghai, frankfurt}, hubv1.ReasonScheduled))
	must(t, suite.Hub.Patch(ctx, p, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"spread":{"rebalance":"Always"}}}`))))
	eventually(t, normal, func() error { return decidedFor(ctx, w, []string{singapore, shanghai}, hubv1.ReasonScheduled) })
	eventually(t, normal, func() error { return goneFrom(ctx, frankfurt, w) })
	eventually(t, normal, func() error { return replicasOn(ctx, singapore, w, 3) })
}

func TestAConstraintThatCannotHoldKeepsWhatWas(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	w, fresh := widget(ns, "settled"), widget(ns, "fresh")
	p := place(t, ns, "regions", everyWidget, hubv1.PlacementSpec{Clusters: hubv1.ClusterSelection{Names: []string{shanghai, frankfurt}}})
	must(t, suite.Hub.Create(ctx, w))
	eventually(t, normal, func() error { return decidedFor(ctx, w, []string{shanghai, frankfurt}, hubv1.ReasonScheduled) })
	must(t, suite.Hub.Patch(ctx, p, client.RawPatch(types.MergePatchType,
		[]byte(`{"spec":{"spread":{"topologySpreadConstraints":[{"topologyKey":"topology.kubernetes.io/region","minDomains":3}]}}}`))))
	eventually(t, normal, func() error {
		return decidedFor(ctx, w, []string{shanghai, frankfurt}, hubv1.ReasonSpreadUnsatisfied, "region: 2 of at least 3 domains", "every cluster keeps its copy")
	})
	must(t, suite.Hub.Create(ctx, fresh))
	eventually(t, normal, func() error {
		return decidedFor(ctx, fresh, nil, hubv1.ReasonSpreadUnsatisfied, "0 of 3 clusters", "2 wait for the spread to be satisfied", "1 not selected")
	})
	eventually(t, normal, func() error {
		return rejectedFor(ctx, fresh, frankfurt, hubv1.ReasonSpreadUnsatisfied, "region: 2 of at least 3 domains")
	})
	must(t, suite.Hub.Patch(ctx, p, client.RawPatch(types.MergePatchType,
		[]byte(`{"spec":{"spread":{"topologySpreadConstraints":[{"topologyKey":"topology.kubernetes.io/region","minDomains":2}]}}}`))))
	eventually(t, normal, func() error { return decidedFor(ctx, fresh, []string{shanghai, frankfurt}, hubv1.ReasonScheduled) })
}

func TestAnAffinityGroupHoldsTheObjectAndAnotherOneFollows(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	w := widget(ns, "grouped")
	p := place(t, ns, "grouped", everyWidget, hubv1.PlacementSpec{Clusters: everyCluster(), Spread: &hubv1.SpreadPolicy{
		NumberOfClusters: ptr.To[int32](1),
		AffinityGroups: []hubv1.AffinityGroup{
			{Name: "mars", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{hubv1.RegionLabel: "mars"}}},
			{Name: "europe", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{hubv1.RegionLabel: "eu-central-1"}}},
			{Name: "asia", Names: []string{singapore, shanghai}},
		},
		Preferences: []hubv1.ClusterPreference{{Weight: 10, Expression: "name == 'ap-se-1'"}},
	}})
	must(t, suite.Hub.Create(ctx, w))
	eventually(t, normal, func() error {
		return decidedFor(ctx, w, []string{frankfurt}, hubv1.ReasonScheduled, "affinity group europe", "2 in other affinity groups")
	})
	eventually(t, normal, func() error {
		return rejectedFor(ctx, w, shanghai, hubv1.ReasonOtherAffinityGroup, "affinity group europe holds the object")
	})
	must(t, suite.Hub.Patch(ctx, p, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"clusters":{"excludedNames":[%q]}}}`, frankfurt))))
	eventually(t, normal, func() error {
		return decidedFor(ctx, w, []string{singapore}, hubv1.ReasonScheduled, "affinity group asia", "1 excluded", "1 not needed")
	})
	eventually(t, normal, func() error { return goneFrom(ctx, frankfurt, w) })
	eventually(t, normal, func() error { return replicasOn(ctx, singapore, w, 3) })
}

func TestAnObjectGoesWhereItsKindIsServed(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	held, late := widget(ns, "before"), widget(ns, "after")
	placeWidgets(t, ns)
	must(t, suite.Hub.Create(ctx, held))
	for _, m := range members {
		eventually(t, normal, func() error { return rowIs(ctx, held, m, metav1.ConditionTrue, "") })
	}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "widgets.test.hanse.dev"}}
	must(t, suite.Members[singapore].Delete(ctx, crd))
	t.Cleanup(func() { restoreCRD(t, singapore) })
	eventually(t, normal, func() error { return serves(ctx, singapore, "") })
	must(t, suite.Hub.Create(ctx, late))
	// early counts objects for which the hub decided before it saw that singapore no longer serves Widgets. The decision
	// for these objects includes singapore, like that for the first object.
	early := 0
	eventually(t, normal, func() error {
		if decidedFor(ctx, late, []string{singapore, shanghai, frankfurt}, hubv1.ReasonScheduled) == nil {
			early++
			late = widget(ns, fmt.Sprintf("after-%d", early))
			if err := suite.Hub.Create(ctx, late); err != nil {
				return err
			}
		}
		return decidedFor(ctx, late, []string{shanghai, frankfurt}, hubv1.ReasonScheduled, "2 of 3 clusters: 1 do not serve the kind")
	})
	eventually(t, normal, func() error {
		return rejectedFor(ctx, late, singapore, hubv1.ReasonKindNotServed, "the cluster does not serve Widget.test.hanse.dev")
	})
	must(t, decidedFor(ctx, held, []string{singapore, shanghai, frankfurt}, hubv1.ReasonScheduled))

	restoreCRD(t, singapore)
	eventually(t, 30*time.Second, func() error { return replicasOn(ctx, singapore, late, 3) })
	eventually(t, normal, func() error { return replicasOn(ctx, singapore, held, 3) })
	must(t, serves(ctx, singapore, "v1"))
}

// serves returns nil if status of the MemberCluster lists exactly these versions of Widget.
func serves(ctx context.Context, member, versions string) error {
	var m hubv1.MemberCluster
	if err := suite.Hub.Get(ctx, types.NamespacedName{Name: member}, &m); err != nil {
		return err
	}
	for _, r := range m.Status.APIResources {
		if r.Group == widgetKind.Group && r.Kind == widgetKind.Kind && strings.Join(r.Versions, " ") == versions {
			return nil
		}
	}
	return fmt.Errorf("%s serves %+v, want Widgets at %q", member, m.Status.APIResources, versions)
}
