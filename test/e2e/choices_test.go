package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// choices are placements that the six clusters of the fleet can satisfy or reject without further setup. Each case
// places a Widget, or a Deployment whose pods request the given CPUs.
var choices = map[string]struct {
	spec     string
	replicas int64
	cpu      string
	want     string
}{
	"by names": {
		spec: `clusters: {names: [cn-sha-1, eu-fra-1, eu-fra-2], excludedNames: [eu-fra-2]}`,
		want: `
			Scheduled: 2 of 6 clusters: 3 not selected, 1 excluded
			ap-se-1 NotSelected: name ap-se-1 is not in [cn-sha-1 eu-fra-1 eu-fra-2]
			ap-se-2 NotSelected: name ap-se-2 is not in [cn-sha-1 eu-fra-1 eu-fra-2]
			cn-sha-1 holds
			cn-sha-2 NotSelected: name cn-sha-2 is not in [cn-sha-1 eu-fra-1 eu-fra-2]
			eu-fra-1 holds
			eu-fra-2 Excluded: eu-fra-2 is in excludedNames`,
	},
	"by labels and region": {
		spec: `
clusters:
  labelSelector:
    matchLabels: {tier: "1"}
    matchExpressions: [{key: topology.kubernetes.io/region, operator: In, values: [cn-shanghai, eu-central-1]}]`,
		want: `
			Scheduled: 2 of 6 clusters: 4 not selected
			ap-se-1 NotSelected: region ap-southeast-1 is not in [cn-shanghai eu-central-1]
			ap-se-2 NotSelected: label tier is not set, wanted one of [1]
			cn-sha-1 holds
			cn-sha-2 NotSelected: label tier 2 is not in [1]
			eu-fra-1 holds
			eu-fra-2 NotSelected: label tier 2 is not in [1]`,
	},
	"by an expression over what people say": {
		spec: `clusters: {expression: "region.startsWith('eu-') || labels['tier'] == '2'"}`,
		want: `
			Scheduled: 3 of 6 clusters: 2 not selected, 1 where the expression fails
			ap-se-1 NotSelected: expression is false: region is "ap-southeast-1", labels[tier] is "1"
			ap-se-2 ExpressionFailed: expression fails: no such key: tier; region is "ap-southeast-1", labels[tier] is not set
			cn-sha-1 NotSelected: expression is false: region is "cn-shanghai", labels[tier] is "1"
			cn-sha-2 holds
			eu-fra-1 holds
			eu-fra-2 holds`,
	},
	"by an expression over what a cluster is": {
		spec: `clusters: {expression: "nodes.ready >= 3 && allocatable['cpu'].isGreaterThan(quantity('40')) && region != 'cn-shanghai'"}`,
		want: `
			Scheduled: 2 of 6 clusters: 4 do not meet the expression
			ap-se-1 holds
			ap-se-2 ExpressionFalse: expression is false: nodes[ready] is 1, allocatable[cpu] is 32, region is "ap-southeast-1"
			cn-sha-1 ExpressionFalse: expression is false: nodes[ready] is 3, allocatable[cpu] is 96, region is "cn-shanghai"
			cn-sha-2 ExpressionFalse: expression is false: nodes[ready] is 1, allocatable[cpu] is 32, region is "cn-shanghai"
			eu-fra-1 holds
			eu-fra-2 ExpressionFalse: expression is false: nodes[ready] is 1, allocatable[cpu] is 32, region is "eu-central-1"`,
	},
	"one cluster in each region, the preferred one": {
		spec: `
clusters: {labelSelector: {}}
spread:
  topologySpreadConstraints: [{topologyKey: topology.kubernetes.io/region, minDomains: 3, clustersPerDomain: 1}]
  preferences:
  - {weight: 20, labelSelector: {matchLabels: {tier: "2"}}}
  - {weight: -5, expression: "nodes.ready < 3"}`,
		want: `
			Scheduled: 3 of 6 clusters: 3 excluded by a spread constraint
			ap-se-1 holds
			ap-se-2 SpreadConstraint: region ap-southeast-1 has 1 already, and clustersPerDomain is 1
			cn-sha-1 SpreadConstraint: region cn-shanghai has 1 already, and clustersPerDomain is 1
			cn-sha-2 holds (score 15)
			eu-fra-1 SpreadConstraint: region eu-central-1 has 1 already, and clustersPerDomain is 1
			eu-fra-2 holds (score 15)`,
	},
	"over two regions, then over providers": {
		spec: `
clusters: {labelSelector: {}}
spread:
  numberOfClusters: 3
  topologySpreadConstraints:
  - {topologyKey: topology.kubernetes.io/region, maxDomains: 2}
  - {topologyKey: provider, clustersPerDomain: 1}
  preferences: [{weight: 20, expression: "region == 'ap-southeast-1'"}, {weight: 10, expression: "name == 'cn-sha-1'"}]`,
		want: `
			Scheduled: 3 of 6 clusters: 3 not needed
			ap-se-1 holds (score 20)
			ap-se-2 holds (score 20)
			cn-sha-1 holds (score 10)
			cn-sha-2 NotChosen: numberOfClusters is 3, and other clusters come first
			eu-fra-1 NotChosen: numberOfClusters is 3, and other clusters come first
			eu-fra-2 NotChosen: numberOfClusters is 3, and other clusters come first`,
	},
	"not more than one more in a tier": {
		spec: `
clusters: {labelSelector: {}, excludedNames: [cn-sha-2]}
spread:
  topologySpreadConstraints: [{topologyKey: tier, maxSkew: 1}]
  preferences: [{weight: 10, expression: "name in ['ap-se-1', 'cn-sha-1']"}]`,
		want: `
			Scheduled: 3 of 6 clusters: 1 excluded, 1 excluded by a spread constraint, 1 in no domain
			ap-se-1 holds (score 10)
			ap-se-2 TopologyMissing: label tier is not set, and topologySpreadConstraints need it
			cn-sha-1 holds (score 10)
			cn-sha-2 Excluded: cn-sha-2 is in excludedNames
			eu-fra-1 SpreadConstraint: label tier 1 has 2 already and another domain has 1, but maxSkew is 1
			eu-fra-2 holds`,
	},
	"a spread over zones that cannot hold": {
		spec: `
clusters: {labelSelector: {}}
spread: {topologySpreadConstraints: [{topologyKey: topology.kubernetes.io/zone, minDomains: 4}]}`,
		want: `
			SpreadUnsatisfied: 0 of 6 clusters: 3 wait for the spread to be satisfied, 3 in no domain; zone: 3 of at least 4 domains; every cluster keeps its copy
			ap-se-1 TopologyMissing: zone is not set, and topologySpreadConstraints need it
			ap-se-2 SpreadUnsatisfied: zone: 3 of at least 4 domains
			cn-sha-1 TopologyMissing: zone is not set, and topologySpreadConstraints need it
			cn-sha-2 SpreadUnsatisfied: zone: 3 of at least 4 domains
			eu-fra-1 TopologyMissing: zone is not set, and topologySpreadConstraints need it
			eu-fra-2 SpreadUnsatisfied: zone: 3 of at least 4 domains`,
	},
	"a spread over regions that is a wish": {
		spec: `
clusters: {labelSelector: {matchExpressions: [{key: topology.kubernetes.io/region, operator: NotIn, values: [eu-central-1]}]}}
spread:
  numberOfClusters: 3
  topologySpreadConstraints: [{topologyKey: topology.kubernetes.io/region, minDomains: 3, whenUnsatisfiable: ScheduleAnyway}]
  preferences: [{weight: 10, expression: "name != 'cn-sha-2'"}]`,
		want: `
			Scheduled: 3 of 6 clusters: 2 not selected, 1 not needed; region: 2 of at least 3 domains
			ap-se-1 holds (score 10)
			ap-se-2 holds (score 10)
			cn-sha-1 holds (score 10)
			cn-sha-2 NotChosen: numberOfClusters is 3, and other clusters come first
			eu-fra-1 NotSelected: region eu-central-1 is in [eu-central-1]
			eu-fra-2 NotSelected: region eu-central-1 is in [eu-central-1]`,
	},
	"where there is most room": {
		spec: `
clusters: {labelSelector: {}, excludedNames: [ap-se-1]}
spread: {numberOfClusters: 2, scores: [{name: AvailableCapacity, weight: 50}], preferences: [{weight: 40, labelSelector: {matchLabels: {provider: own}}}]}`,
		want: `
			Scheduled: 2 of 6 clusters: 3 not needed, 1 excluded
			ap-se-1 Excluded: ap-se-1 is in excludedNames
			ap-se-2 holds (score 55)
			cn-sha-1 NotChosen: numberOfClusters is 2, and other clusters come first
			cn-sha-2 NotChosen: numberOfClusters is 2, and other clusters come first
			eu-fra-1 NotChosen: numberOfClusters is 2, and other clusters come first
			eu-fra-2 holds (score 55)`,
	},
	"the first group of clusters that is enough": {
		spec: `
clusters: {labelSelector: {}}
spread:
  numberOfClusters: 3
  affinityGroups:
  - {name: own, labelSelector: {matchLabels: {provider: own}}}
  - {name: cloud, labelSelector: {matchExpressions: [{key: provider, operator: In, values: [aws, ali]}]}}
  preferences: [{weight: 10, expression: "region != 'eu-central-1'"}]`,
		want: `
			Scheduled: 3 of 6 clusters: 2 in other affinity groups, 1 not needed; affinity group cloud
			ap-se-1 holds (score 10)
			ap-se-2 OtherAffinityGroup: affinity group cloud holds the object
			cn-sha-1 holds (score 10)
			cn-sha-2 holds (score 10)
			eu-fra-1 NotChosen: numberOfClusters is 3, and other clusters come first
			eu-fra-2 OtherAffinityGroup: affinity group cloud holds the object`,
	},
	"no cluster at all": {
		spec: `clusters: {names: [mars-1], expression: "nodes.ready > 0"}`,
		want: `
			NoClusterSelected: 0 of 6 clusters: 6 not selected
			ap-se-1 NotSelected: name ap-se-1 is not in [mars-1]
			ap-se-2 NotSelected: name ap-se-2 is not in [mars-1]
			cn-sha-1 NotSelected: name cn-sha-1 is not in [mars-1]
			cn-sha-2 NotSelected: name cn-sha-2 is not in [mars-1]
			eu-fra-1 NotSelected: name eu-fra-1 is not in [mars-1]
			eu-fra-2 NotSelected: name eu-fra-2 is not in [mars-1]`,
	},
	"a custom resource divided by weight, by its path": {
		spec: `
clusters: {labelSelector: {}}
replicas:
  type: Divide
  path: /spec/replicas
  divide:
    weights: [{clusters: {labelSelector: {matchLabels: {topology.kubernetes.io/region: cn-shanghai}}}, weight: 2}, {weight: 1}]
    limits: [{clusters: {names: [eu-fra-2]}, maxReplicas: 1}]`,
		replicas: 15,
		want: `
			Scheduled: 6 of 6 clusters
			ap-se-1 holds 2
			ap-se-2 holds 2
			cn-sha-1 holds 4
			cn-sha-2 holds 4
			eu-fra-1 holds 2
			eu-fra-2 holds 1`,
	},
	"divided as KubeFed did": {
		spec: `
clusters: {names: [ap-se-1, cn-sha-1, eu-fra-1]}
replicas:
  type: Divide
  path: /spec/replicas
  divide:
    by: KubeFed
    weights: [{clusters: {names: [eu-fra-1]}, weight: 3}, {clusters: {names: [cn-sha-1]}, weight: 2}, {weight: 1}]`,
		replicas: 10,
		want: `
			Scheduled: 3 of 6 clusters: 3 not selected
			ap-se-1 holds 1
			ap-se-2 NotSelected: name ap-se-2 is not in [ap-se-1 cn-sha-1 eu-fra-1]
			cn-sha-1 holds 4
			cn-sha-2 NotSelected: name cn-sha-2 is not in [ap-se-1 cn-sha-1 eu-fra-1]
			eu-fra-1 holds 5
			eu-fra-2 NotSelected: name eu-fra-2 is not in [ap-se-1 cn-sha-1 eu-fra-1]`,
	},
	"divided by the room on real nodes": {
		spec:     `{clusters: {labelSelector: {}}, replicas: {type: Divide, divide: {by: Capacity}}}`,
		replicas: 24, cpu: "8",
		want: `
			Scheduled: 6 of 6 clusters
			ap-se-1 holds 6
			ap-se-2 holds 2
			cn-sha-1 holds 6
			cn-sha-2 holds 2
			eu-fra-1 holds 6
			eu-fra-2 holds 2`,
	},
	"more replicas than there is room for": {
		spec:     `{clusters: {labelSelector: {}}, replicas: {type: Divide, divide: {by: Capacity}}}`,
		replicas: 15, cpu: "32",
		want: `
			ReplicasUnplaced: 6 of 6 clusters; 3 of 15 replicas have no room
			ap-se-1 holds 3
			ap-se-2 holds 1
			cn-sha-1 holds 3
			cn-sha-2 holds 1
			eu-fra-1 holds 3
			eu-fra-2 holds 1`,
	},
	"packed onto few clusters": {
		spec:     `{clusters: {labelSelector: {}}, replicas: {type: Divide, divide: {by: Pack}}}`,
		replicas: 15, cpu: "8",
		want: `
			Scheduled: 2 of 6 clusters: 4 without a share of the replicas
			ap-se-1 holds 12
			ap-se-2 NoReplicas: its share of the replicas is 0
			cn-sha-1 holds 3
			cn-sha-2 NoReplicas: its share of the replicas is 0
			eu-fra-1 NoReplicas: its share of the replicas is 0
			eu-fra-2 NoReplicas: its share of the replicas is 0`,
	},
}

func everyWayToChoose(t *testing.T) {
	ctx := t.Context()
	objects := map[string]*unstructured.Unstructured{}
	// First all objects are placed, so that the hub decides on all of them while the test polls one.
	for name, tc := range choices {
		if tc.cpu == "" {
			objects[name] = choose(t, tc.spec, tc.replicas, "")
		}
	}
	for name, tc := range choices {
		t.Run(name, func(t *testing.T) {
			obj := objects[name]
			if tc.cpu != "" { // these cases run one after the other, because each needs the capacity of all nodes
				obj = choose(t, tc.spec, tc.replicas, tc.cpu)
			}
			eventually(t, normal, func() error { return decided(ctx, obj, tc.want) })
			names, shares := holders(tc.want)
			eventually(t, normal, func() error { return heldBy(ctx, obj, names...) })
			eventually(t, normal, func() error { return sharesAre(ctx, obj, shares) })
			if len(names) == 0 {
				_, message, _ := strings.Cut(strings.TrimSpace(tc.want), ": ")
				message, _, _ = strings.Cut(message, "\n")
				p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: obj.GetNamespace(), Name: "choice"}}
				eventually(t, normal, func() error { return placementFails(ctx, p, message) })
			}
			if tc.cpu == "" {
				return
			}
			for _, member := range members { // the shares fit the capacity: the schedulers of the members run all pods
				if shares[member] > 0 {
					eventually(t, 2*normal, func() error { return healthOn(ctx, obj, member, hubv1.HealthHealthy) })
				}
			}
		})
	}
}

// choose creates a Placement and a Widget, or a Deployment whose pods request CPUs, until the test ends.
func choose(t *testing.T, spec string, replicas int64, cpu string) *unstructured.Unstructured {
	t.Helper()
	ctx, ns := t.Context(), namespace(t)
	obj, selector := widget(ns, "chosen"), everyWidget
	if cpu != "" {
		obj, selector = deployment(ns, "chosen"), deployments
		containers := []any{map[string]any{"name": "web", "image": "example.org/web:1", "resources": map[string]any{"requests": map[string]any{"cpu": cpu}}}}
		must(t, unstructured.SetNestedSlice(obj.Object, containers, "spec", "template", "spec", "containers"))
		t.Cleanup(func() {
			ctx := context.WithoutCancel(ctx)
			_ = suite.Hub.Delete(ctx, obj.DeepCopy())
			must(t, poll(ctx, normal, func() error { return noBinding(ctx, obj) }))
		})
	}
	if replicas != 0 {
		must(t, unstructured.SetNestedField(obj.Object, replicas, "spec", "replicas"))
	}
	var s hubv1.PlacementSpec
	must(t, yaml.UnmarshalStrict([]byte(spec), &s))
	place(t, ns, "choice", selector, s)
	must(t, suite.Hub.Create(ctx, obj))
	return obj
}

// placementFails returns nil if the placement has the condition Scheduled=False with this message about its only
// object.
func placementFails(ctx context.Context, p *hubv1.Placement, message string) error {
	var now hubv1.Placement
	if err := suite.Hub.Get(ctx, client.ObjectKeyFromObject(p), &now); err != nil {
		return err
	}
	c := meta.FindStatusCondition(now.Status.Conditions, hubv1.ConditionScheduled)
	if want := "1 of 1 objects: Widget " + p.Namespace + "/chosen; the first has " + message; c == nil || c.Status != metav1.ConditionFalse || c.Message != want {
		return fmt.Errorf("the placement is Scheduled %+v, want %q", c, want)
	}
	return nil
}

// healthOn returns nil if the row of the cluster in the object's binding has this health.
func healthOn(ctx context.Context, obj *unstructured.Unstructured, cluster string, want hubv1.Health) error {
	b, err := bindingOf(ctx, obj)
	if err != nil {
		return err
	}
	if row := b.BindingStatus().Row(cluster); row == nil || row.Health != want {
		return fmt.Errorf("the row of %s on %s is %+v, want %s", obj.GetName(), cluster, row, want)
	}
	return nil
}

func taintsAndTolerations(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	w := widget(ns, "tainted")
	p := place(t, ns, "tolerant", everyWidget, hubv1.PlacementSpec{Clusters: everyCluster()})
	must(t, suite.Hub.Create(ctx, w))
	eventually(t, normal, func() error {
		return decided(ctx, w, "Scheduled: 6 of 6 clusters\nap-se-1 holds\nap-se-2 holds\ncn-sha-1 holds\ncn-sha-2 holds\neu-fra-1 holds\neu-fra-2 holds")
	})
	t.Cleanup(func() {
		for _, name := range seconds {
			patchMember(t, name, `{"taints":null}`)
		}
	})
	patchMember(t, singapore2, `{"taints":[{"key":"maintenance","effect":"NoSchedule"}]}`)
	patchMember(t, shanghai2, `{"taints":[{"key":"broken","value":"disk","effect":"NoExecute"}]}`)
	patchMember(t, frankfurt2, `{"taints":[{"key":"gpu","value":"a100","effect":"NoExecute"}]}`)
	patchPlacement(t, p, `{"clusters":{"tolerations":[{"key":"gpu","operator":"Exists"}]}}`)
	eventually(t, normal, func() error {
		return decided(ctx, w, `
			Scheduled: 5 of 6 clusters: 1 tainted
			ap-se-1 holds
			ap-se-2 holds
			cn-sha-1 holds
			cn-sha-2 TaintNotTolerated: taint broken=disk:NoExecute is not tolerated
			eu-fra-1 holds
			eu-fra-2 holds`)
	})
	eventually(t, normal, func() error { return heldBy(ctx, w, singapore, singapore2, shanghai, frankfurt, frankfurt2) })
	late := widget(ns, "late")
	must(t, suite.Hub.Create(ctx, late))
	eventually(t, normal, func() error {
		return decided(ctx, late, `
			Scheduled: 4 of 6 clusters: 2 tainted
			ap-se-1 holds
			ap-se-2 TaintNotTolerated: taint maintenance:NoSchedule is not tolerated
			cn-sha-1 holds
			cn-sha-2 TaintNotTolerated: taint broken=disk:NoExecute is not tolerated
			eu-fra-1 holds
			eu-fra-2 holds`)
	})
	eventually(t, normal, func() error { return heldBy(ctx, late, singapore, shanghai, frankfurt, frankfurt2) })
}

// servedAndRefused places Gadgets. Only the first cluster of each region serves this kind.
func servedAndRefused(t *testing.T) {
	ctx := t.Context()
	serveGadgets(t)
	g := gadget("served")
	p := &hubv1.ClusterPlacement{ObjectMeta: metav1.ObjectMeta{Name: "e2e-served"}}
	p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{
		APIGroup: gadgetKind.Group, Kind: gadgetKind.Kind, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"set": g.GetName()}},
	}}
	p.Spec.Clusters = everyCluster()
	p.Spec.Replicas = hubv1.ReplicasPolicy{Type: hubv1.ReplicasDivide}
	must(t, suite.Hub.Create(ctx, p))
	t.Cleanup(func() {
		ctx := context.WithoutCancel(ctx)
		_ = suite.Hub.Delete(ctx, g.DeepCopy())
		must(t, poll(ctx, normal, func() error { return noBinding(ctx, g) }))
		_ = suite.Hub.Delete(ctx, p)
	})
	must(t, suite.Hub.Create(ctx, g))
	const why = "set spec.replicas.path; the scale subresource of its definition suggests /spec/replicas, if that number can be divided"
	eventually(t, normal, func() error {
		var now hubv1.ClusterPlacement
		if err := suite.Hub.Get(ctx, client.ObjectKeyFromObject(p), &now); err != nil {
			return err
		}
		for _, c := range now.Status.Conditions {
			if c.Type == hubv1.ConditionAccepted && c.Reason == hubv1.ReasonDivisionRefused && strings.HasSuffix(c.Message, why) {
				return nil
			}
		}
		return fmt.Errorf("the conditions of the placement are %+v", now.Status.Conditions)
	})
	must(t, noBinding(ctx, g))
	must(t, suite.Hub.Patch(ctx, p, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":{"path":"/spec/replicas"}}}`))))
	want := `
		Scheduled: 3 of 6 clusters: 3 do not serve the kind
		ap-se-1 holds 1
		ap-se-2 KindNotServed: the cluster does not serve Gadget.test.hanse.dev
		cn-sha-1 holds 1
		cn-sha-2 KindNotServed: the cluster does not serve Gadget.test.hanse.dev
		eu-fra-1 holds 1
		eu-fra-2 KindNotServed: the cluster does not serve Gadget.test.hanse.dev`
	eventually(t, normal, func() error { return decided(ctx, g, want) })
	eventually(t, normal, func() error { return sharesAre(ctx, g, map[string]int64{singapore: 1, shanghai: 1, frankfurt: 1}) })
}

func rebalanceMoves(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	w := widget(ns, "moved")
	var spec hubv1.PlacementSpec
	must(t, yaml.UnmarshalStrict([]byte(`{clusters: {labelSelector: {}}, spread: {numberOfClusters: 1, preferences: [{weight: 10, expression: "name == 'ap-se-1'"}]}}`), &spec))
	p := place(t, ns, "one", everyWidget, spec)
	must(t, suite.Hub.Create(ctx, w))
	eventually(t, normal, func() error { return heldBy(ctx, w, singapore) })
	patchPlacement(t, p, `{"spread":{"preferences":[{"weight":10,"expression":"name == 'eu-fra-2'"}]}}`)
	eventually(t, normal, func() error { return observedPlacement(ctx, p) })
	must(t, heldBy(ctx, w, singapore))
	patchPlacement(t, p, `{"spread":{"rebalance":"Always"}}`)
	want := "Scheduled: 1 of 6 clusters: 5 not needed"
	for _, name := range []string{singapore, singapore2, shanghai, shanghai2, frankfurt} {
		want += "\n" + name + " NotChosen: numberOfClusters is 1, and other clusters come first"
	}
	want += "\neu-fra-2 holds (score 10)"
	eventually(t, normal, func() error { return decided(ctx, w, want) })
	eventually(t, normal, func() error { return heldBy(ctx, w, frankfurt2) })
}

// aClosedCluster cordons and uncordons a cluster with hansectl.
func aClosedCluster(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	before, after := widget(ns, "before"), widget(ns, "after")
	place(t, ns, "europe", everyWidget, hubv1.PlacementSpec{Clusters: hubv1.ClusterSelection{Names: []string{frankfurt, frankfurt2}}})
	must(t, suite.Hub.Create(ctx, before))
	eventually(t, normal, func() error { return heldBy(ctx, before, frankfurt, frankfurt2) })
	t.Cleanup(func() { patchMember(t, frankfurt2, `{"unschedulable":null}`) })
	out, err := suite.Hansectl(ctx, "cordon", frankfurt2)
	must(t, err)
	if want := "membercluster/eu-fra-2             cordoned: the cluster gets no new objects"; !contains(out, want) {
		t.Errorf("cordon says\n%swant %q", out, want)
	}
	eventually(t, normal, func() error { return observedMember(ctx, frankfurt2) })
	must(t, suite.Hub.Create(ctx, after))
	want := `
		Scheduled: 1 of 6 clusters: 4 not selected, 1 unschedulable
		ap-se-1 NotSelected: name ap-se-1 is not in [eu-fra-1 eu-fra-2]
		ap-se-2 NotSelected: name ap-se-2 is not in [eu-fra-1 eu-fra-2]
		cn-sha-1 NotSelected: name cn-sha-1 is not in [eu-fra-1 eu-fra-2]
		cn-sha-2 NotSelected: name cn-sha-2 is not in [eu-fra-1 eu-fra-2]
		eu-fra-1 holds
		eu-fra-2 Unschedulable: the cluster is marked unschedulable`
	eventually(t, normal, func() error { return decided(ctx, after, want) })
	must(t, heldBy(ctx, before, frankfurt, frankfurt2))
	_, err = suite.Hansectl(ctx, "uncordon", frankfurt2)
	must(t, err)
	eventually(t, normal, func() error { return heldBy(ctx, after, frankfurt, frankfurt2) })
}

func priorityNamesTheLosers(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	w := widget(ns, "wanted")
	named := func(name string) hubv1.ClusterSelection { return hubv1.ClusterSelection{Names: []string{name}} }
	low := place(t, ns, "low", everyWidget, hubv1.PlacementSpec{Clusters: named(frankfurt), Priority: 1})
	high := place(t, ns, "high", everyWidget, hubv1.PlacementSpec{Clusters: named(singapore), Priority: 5})
	// The hub watches placements and objects separately. When it first sees an object, it selects among the placements
	// that it has already received. The test therefore waits until the hub has accepted the placement.
	eventually(t, normal, func() error {
		return placementCondition(ctx, high, hubv1.ConditionAccepted, metav1.ConditionTrue, hubv1.ReasonAccepted, "")
	})
	must(t, suite.Hub.Create(ctx, w))
	others := func(want ...string) func() error {
		return func() error {
			b, err := bindingOf(ctx, w)
			if err != nil {
				return err
			}
			if got := b.BindingStatus().OtherPlacements; !slices.Equal(got, want) {
				return fmt.Errorf("the placements that are not followed are %v, want %v", got, want)
			}
			return nil
		}
	}
	eventually(t, normal, func() error { return heldBy(ctx, w, singapore) })
	eventually(t, normal, others("Placement/low"))
	eventually(t, normal, func() error {
		return placementCondition(ctx, low, hubv1.ConditionScheduled, metav1.ConditionUnknown, hubv1.ReasonOtherFollowed,
			"no object follows this placement; 1 of the selected objects follow another placement, such as Widget "+ns+"/wanted, which follows Placement/high")
	})
	eventually(t, normal, func() error {
		return placementCondition(ctx, high, hubv1.ConditionScheduled, metav1.ConditionTrue, hubv1.ReasonScheduled, "1 of 1 objects")
	})

	// A placement that is created later does not take an object over, whatever its priority, unless it sets preemption.
	higher := place(t, ns, "higher", everyWidget, hubv1.PlacementSpec{Clusters: named(shanghai2), Priority: 9})
	eventually(t, normal, others("Placement/higher", "Placement/low"))
	must(t, heldBy(ctx, w, singapore))
	patchPlacement(t, higher, `{"preemption":"Always"}`)
	eventually(t, normal, func() error { return heldBy(ctx, w, shanghai2) })
	eventually(t, normal, others("Placement/high", "Placement/low"))
	eventually(t, normal, func() error {
		return placementCondition(ctx, high, hubv1.ConditionScheduled, metav1.ConditionUnknown, hubv1.ReasonOtherFollowed, "which follows Placement/higher")
	})
	eventually(t, normal, func() error {
		return decided(ctx, w, `
			Scheduled: 1 of 6 clusters: 5 not selected
			ap-se-1 NotSelected: name ap-se-1 is not in [cn-sha-2]
			ap-se-2 NotSelected: name ap-se-2 is not in [cn-sha-2]
			cn-sha-1 NotSelected: name cn-sha-1 is not in [cn-sha-2]
			cn-sha-2 holds
			eu-fra-1 NotSelected: name eu-fra-1 is not in [cn-sha-2]
			eu-fra-2 NotSelected: name eu-fra-2 is not in [cn-sha-2]`)
	})
}

func suspendedScheduling(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	first, second := widget(ns, "first"), widget(ns, "second")
	p := place(t, ns, "suspended", everyWidget, hubv1.PlacementSpec{
		Clusters: hubv1.ClusterSelection{Names: []string{frankfurt, frankfurt2}}, Suspend: hubv1.SuspendPolicy{Scheduling: true},
	})
	must(t, suite.Hub.Create(ctx, first))
	eventually(t, normal, func() error {
		return placementCondition(ctx, p, hubv1.ConditionScheduled, metav1.ConditionUnknown, hubv1.ReasonSuspended, "scheduling is suspended: every cluster keeps its copies, and new objects wait")
	})
	must(t, noBinding(ctx, first))
	patchPlacement(t, p, `{"suspend":{"scheduling":false}}`)
	eventually(t, normal, func() error { return heldBy(ctx, first, frankfurt, frankfurt2) })

	patchPlacement(t, p, `{"suspend":{"scheduling":true},"clusters":{"names":["eu-fra-1"]}}`)
	eventually(t, normal, func() error {
		return says(ctx, first, hubv1.ConditionScheduled, metav1.ConditionTrue, hubv1.ReasonSuspended, "the placement suspends scheduling: every cluster keeps its copy")
	})
	must(t, suite.Hub.Create(ctx, second))
	eventually(t, normal, func() error {
		return placementCondition(ctx, p, hubv1.ConditionScheduled, metav1.ConditionTrue, hubv1.ReasonSuspended, "1 of 1 objects")
	})
	must(t, heldBy(ctx, first, frankfurt, frankfurt2))
	must(t, noBinding(ctx, second))

	patchPlacement(t, p, `{"suspend":{"scheduling":false,"dispatching":true}}`)
	eventually(t, normal, func() error {
		return placementCondition(ctx, p, hubv1.ConditionApplied, metav1.ConditionFalse, hubv1.ReasonWaitingOnSome, "writing to members is suspended; 2 of 2 objects")
	})
	eventually(t, normal, func() error { return rowIs(ctx, second, frankfurt, metav1.ConditionFalse, hubv1.ReasonSuspended) })
	eventually(t, normal, func() error {
		return says(ctx, second, hubv1.ConditionApplied, metav1.ConditionFalse, hubv1.ReasonWaitingOnSome, "on 1 of 1 clusters: eu-fra-1 (Suspended)")
	})
	// The suspension delays the withdrawal.
	eventually(t, normal, func() error { return rowIs(ctx, first, frankfurt2, metav1.ConditionFalse, hubv1.ReasonSuspended) })
	must(t, heldBy(ctx, first, frankfurt, frankfurt2))
	must(t, heldBy(ctx, second))
	patchPlacement(t, p, `{"suspend":{"dispatching":false}}`)
	eventually(t, normal, func() error { return heldBy(ctx, first, frankfurt) })
	eventually(t, normal, func() error { return heldBy(ctx, second, frankfurt) })
}
