package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view/preview"
)

// The test stops all clusters of europe. The clusters of asia stay reachable.
var (
	europe = []string{frankfurt, frankfurt2}
	asia   = []string{singapore, singapore2, shanghai, shanghai2}
)

// hasty restarts the hub with a failover grace period of 1 s until the test ends.
func hasty(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		must(t, suite.hub.Stop())
		h, err := suite.StartHub(context.WithoutCancel(t.Context()), "hub-a")
		if h != nil {
			suite.hub = h
		}
		must(t, err)
	})
	must(t, suite.hub.Stop())
	h, err := suite.StartHub(t.Context(), "hub-a", "--failover-grace", "1s")
	if h != nil {
		suite.hub = h
	}
	must(t, err)
	for name := range clusterLabels {
		eventually(t, normal, func() error { return memberReady(t.Context(), name) })
	}
}

// stop pauses the API servers of clusters in quick succession, until the test ends or resume is called.
func stop(t *testing.T, names ...string) {
	t.Helper()
	t.Cleanup(func() { resume(t, names...) })
	for _, name := range names {
		lab(t, "pause", name)
	}
}

// resume continues the paused clusters in this order, and waits until they are ready.
func resume(t *testing.T, names ...string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	for _, name := range names {
		lab(t, "resume", name)
	}
	for _, name := range names {
		must(t, poll(ctx, time.Minute, func() error { return memberReady(ctx, name) }))
	}
}

// unreachable returns nil if the hub has set the taint with this effect on the cluster.
func unreachable(ctx context.Context, name string, effect corev1.TaintEffect) error {
	var m hubv1.MemberCluster
	if err := suite.Hub.Get(ctx, types.NamespacedName{Name: name}, &m); err != nil {
		return err
	}
	for _, taint := range m.Status.Taints {
		if taint.Key == hubv1.UnreachableTaint && taint.Effect == effect {
			return nil
		}
	}
	return fmt.Errorf("the taints of %s are %+v, want %s:%s", name, m.Status.Taints, hubv1.UnreachableTaint, effect)
}

// placed creates a Widget and a separate Placement for it.
func placed(t *testing.T, ns, name, spec string, replicas int64) *unstructured.Unstructured {
	t.Helper()
	w := widget(ns, name)
	must(t, unstructured.SetNestedField(w.Object, replicas, "spec", "replicas"))
	var s hubv1.PlacementSpec
	must(t, yaml.UnmarshalStrict([]byte(spec), &s))
	place(t, ns, name, hubv1.ResourceSelector{APIGroup: widgetKind.Group, Kind: widgetKind.Kind, Name: name}, s)
	must(t, suite.Hub.Create(t.Context(), w))
	return w
}

const oneInEachOfTwoRegions = `
clusters: {labelSelector: {}}
spread:
  numberOfClusters: 2
  topologySpreadConstraints: [{topologyKey: topology.kubernetes.io/region, clustersPerDomain: 1}]
  preferences:
  - {weight: 20, expression: "region == 'eu-central-1'"}
  - {weight: 10, expression: "region == 'cn-shanghai'"}
  - {weight: 5, expression: "name.endsWith('-1')"}
`

// aRegionIsLost stops both clusters of a region. Objects whose placement has failover must move as `hansectl plan`
// predicted, and all other objects must stay. When the region is back, the hub first updates the old copies. It
// withdraws them only after their replacements are Healthy.
func aRegionIsLost(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	// The hub may detect the failure of one cluster 15 s before that of the other. It must not move objects to the other
	// cluster meanwhile.
	const failover = "failover: {evictAfterSeconds: 20}\n"
	moving := placed(t, ns, "moving", failover+oneInEachOfTwoRegions, 3)
	staying := placed(t, ns, "staying", oneInEachOfTwoRegions, 3)
	bound := placed(t, ns, "bound", failover+"clusters: {names: [eu-fra-1, eu-fra-2]}\nspread: {numberOfClusters: 2}", 3)
	shared := placed(t, ns, "shared", failover+"clusters: {labelSelector: {}}\nreplicas: {type: Divide, path: /spec/replicas}", 12)
	everything := []*unstructured.Unstructured{moving, staying, bound, shared}
	for _, w := range []*unstructured.Unstructured{moving, staying} {
		eventually(t, normal, func() error { return heldBy(ctx, w, frankfurt, shanghai) })
	}
	eventually(t, normal, func() error { return heldBy(ctx, bound, europe...) })
	eventually(t, normal, func() error {
		return sharesAre(ctx, shared, shareOfEach(2, slices.Sorted(maps.Keys(clusterLabels))...))
	})
	for _, w := range everything {
		sayReadyEverywhere(t, w)
		eventually(t, normal, func() error { return bindingCondition(ctx, w, hubv1.ConditionHealthy, metav1.ConditionTrue, "") })
	}
	uids := sixUIDs(ctx, t, ns)
	foretold := plannedTargets(t, ns, "--without-region", "eu-central-1")

	stop(t, europe...)
	for _, name := range europe {
		eventually(t, time.Minute, func() error { return unreachable(ctx, name, corev1.TaintEffectNoExecute) })
	}
	eventually(t, 2*normal, func() error { return heldAmong(ctx, moving, asia, shanghai, singapore) })
	eventually(t, normal, func() error { return sharesAre(ctx, shared, shareOfEach(3, asia...)) })
	for _, w := range everything {
		eventually(t, normal, func() error { return asForetold(ctx, foretold, w) })
	}
	lostDecisions(t, moving, staying, bound, shared)
	eventually(t, normal, func() error { return rowIs(ctx, moving, frankfurt, metav1.ConditionUnknown, hubv1.ReasonEvicting) })
	eventually(t, normal, func() error { return rowIs(ctx, staying, frankfurt, metav1.ConditionUnknown, hubv1.ReasonUnreachable) })

	// No operator has reported that the replacement is ready, so its health is Progressing.
	eventually(t, normal, func() error { return healthOn(ctx, moving, singapore, hubv1.HealthProgressing) })
	must(t, suite.Hub.Patch(ctx, moving.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":7}}`))))
	eventually(t, normal, func() error { return replicasOn(ctx, singapore, moving, 7) })
	resume(t, europe...)
	eventually(t, normal, func() error { return replicasOn(ctx, frankfurt, moving, 7) })
	eventually(t, normal, func() error { return rowIs(ctx, moving, frankfurt, metav1.ConditionTrue, hubv1.ReasonEvicting) })
	must(t, heldBy(ctx, moving, frankfurt, shanghai, singapore))
	must(t, sayReady(ctx, singapore, moving))
	eventually(t, normal, func() error { return heldBy(ctx, moving, shanghai, singapore) })
	eventually(t, normal, func() error { return sharedAgain(ctx, shared, 12) })
	now := sixUIDs(ctx, t, ns)
	for key, uid := range uids {
		if key != frankfurt+"/moving" && now[key] != uid {
			t.Errorf("%s was deleted", key)
		}
	}
}

// lostDecisions checks the decisions on the four objects while the clusters of Europe are unreachable.
func lostDecisions(t *testing.T, moving, staying, bound, shared *unstructured.Unstructured) {
	t.Helper()
	const evicted = " Evicting: the cluster is not Ready"
	for obj, want := range map[*unstructured.Unstructured]string{
		moving: `
			Scheduled: 2 of 6 clusters: 2 not needed, 1 not ready, 1 replaced by other clusters
			ap-se-1 holds (score 5)
			ap-se-2 NotChosen: numberOfClusters is 2, and other clusters come first
			cn-sha-1 holds (score 15)
			cn-sha-2 NotChosen: numberOfClusters is 2, and other clusters come first
			eu-fra-1` + evicted + `
			eu-fra-2 ClusterNotReady: the cluster is not Ready`,
		staying: `
			Scheduled: 2 of 6 clusters: 3 not needed, 1 not ready
			ap-se-1 NotChosen: numberOfClusters is 2, and other clusters come first
			ap-se-2 NotChosen: numberOfClusters is 2, and other clusters come first
			cn-sha-1 holds (score 15)
			cn-sha-2 NotChosen: numberOfClusters is 2, and other clusters come first
			eu-fra-1 holds (score 25)
			eu-fra-2 ClusterNotReady: the cluster is not Ready`,
		bound: `
			NoReplacement: 2 of 6 clusters: 4 not selected; stays on eu-fra-1: no other cluster can replace it: without it, numberOfClusters: 1 of 2; stays on eu-fra-2: no other cluster can replace it: without it, numberOfClusters: 1 of 2
			ap-se-1 NotSelected: name ap-se-1 is not in [eu-fra-1 eu-fra-2]
			ap-se-2 NotSelected: name ap-se-2 is not in [eu-fra-1 eu-fra-2]
			cn-sha-1 NotSelected: name cn-sha-1 is not in [eu-fra-1 eu-fra-2]
			cn-sha-2 NotSelected: name cn-sha-2 is not in [eu-fra-1 eu-fra-2]
			eu-fra-1 holds
			eu-fra-2 holds`,
		shared: `
			Scheduled: 4 of 6 clusters: 2 replaced by other clusters
			ap-se-1 holds 3
			ap-se-2 holds 3
			cn-sha-1 holds 3
			cn-sha-2 holds 3
			eu-fra-1` + evicted + `
			eu-fra-2` + evicted,
	} {
		eventually(t, normal, func() error { return decided(t.Context(), obj, want) })
	}
}

// theHubIsCutOff resets the connections to four of six clusters. The hub must conclude that its own network is at
// fault, and must not move any object.
func theHubIsCutOff(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	w := placed(t, ns, "guarded", "failover: {evictAfterSeconds: 60}\n"+oneInEachOfTwoRegions, 3)
	eventually(t, normal, func() error { return heldBy(ctx, w, frankfurt, shanghai) })
	uids := sixUIDs(ctx, t, ns)
	cut := []string{frankfurt, frankfurt2, singapore2, shanghai2}
	for _, name := range cut {
		breakMember(t, name, "reset")
	}
	for _, name := range cut { // the hub needs up to 15 s to detect the failure, and may keep the object for longer
		eventually(t, time.Minute, func() error { return unreachable(ctx, name, corev1.TaintEffectNoExecute) })
	}
	eventually(t, 2*time.Minute, func() error {
		return decided(ctx, w, `
			TooManyAway: 2 of 6 clusters: 3 not ready, 1 not needed; stays on eu-fra-1: 4 of 6 clusters do not answer: the hub moves no object while more than half do not answer
			ap-se-1 NotChosen: numberOfClusters is 2, and other clusters come first
			ap-se-2 ClusterNotReady: the cluster is not Ready
			cn-sha-1 holds (score 15)
			cn-sha-2 ClusterNotReady: the cluster is not Ready
			eu-fra-1 holds (score 25)
			eu-fra-2 ClusterNotReady: the cluster is not Ready`)
	})
	// The cluster with the object comes first. If the others came back before it, the hub would move the object.
	for _, name := range cut {
		mendMember(t, name)
	}
	eventually(t, normal, func() error {
		return says(ctx, w, hubv1.ConditionScheduled, metav1.ConditionTrue, hubv1.ReasonScheduled, "2 of 6 clusters: 4 not needed")
	})
	must(t, heldBy(ctx, w, frankfurt, shanghai))
	if diff := cmp.Diff(uids, sixUIDs(ctx, t, ns)); diff != "" {
		t.Errorf("copies (-before +after):\n%s", diff)
	}
}

// sayReady sets the status of a Widget's copy to ready, as the member's operator would.
func sayReady(ctx context.Context, member string, w *unstructured.Unstructured) error {
	copied, err := on(ctx, member, w)
	if err != nil {
		return err
	}
	const ready = `{"status":{"conditions":[{"type":"Ready","status":"True","reason":"Said","message":"by the test","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`
	return suite.Members[member].Status().Patch(ctx, copied, client.RawPatch(types.MergePatchType, []byte(ready)))
}

// sayReadyEverywhere calls sayReady for each cluster in the binding's spec.clusters.
func sayReadyEverywhere(t *testing.T, w *unstructured.Unstructured) {
	t.Helper()
	b, err := bindingOf(t.Context(), w)
	must(t, err)
	for _, e := range b.BindingSpec().Clusters {
		eventually(t, normal, func() error { return sayReady(t.Context(), e.Name, w) })
	}
}

// heldAmong returns nil if, of these clusters, exactly the holders have a copy. Other clusters are not read, because
// they may not respond.
func heldAmong(ctx context.Context, obj *unstructured.Unstructured, clusters []string, holders ...string) error {
	for _, name := range clusters {
		_, err := on(ctx, name, obj)
		if slices.Contains(holders, name) {
			if err != nil {
				return fmt.Errorf("%s on %s: %w", obj.GetName(), name, err)
			}
			continue
		}
		if err := goneFrom(ctx, name, obj); err != nil {
			return err
		}
	}
	return nil
}

func shareOfEach(n int64, clusters ...string) map[string]int64 {
	out := map[string]int64{}
	for _, name := range clusters {
		out[name] = n
	}
	return out
}

// sharedAgain returns nil if the shares of all clusters differ from an even share by at most one, and add up to total.
func sharedAgain(ctx context.Context, obj *unstructured.Unstructured, total int64) error {
	b, err := bindingOf(ctx, obj)
	if err != nil {
		return err
	}
	shares := map[string]int64{}
	var sum int64
	for _, e := range b.BindingSpec().Clusters {
		if e.State == hubv1.TargetPresent && e.Replicas != nil {
			shares[e.Name] = int64(*e.Replicas)
			sum += shares[e.Name]
		}
	}
	for name := range clusterLabels {
		if even := total / int64(len(clusterLabels)); shares[name] < even-1 || shares[name] > even+1 {
			return fmt.Errorf("the shares of %s are %v", obj.GetName(), shares)
		}
	}
	if sum != total {
		return fmt.Errorf("the shares of %s are %v, together %d, want %d", obj.GetName(), shares, sum, total)
	}
	return sharesAre(ctx, obj, shares)
}

// sixUIDs returns the UIDs of all Widgets of a namespace, on all six clusters.
func sixUIDs(ctx context.Context, t *testing.T, ns string) map[string]types.UID {
	t.Helper()
	out := map[string]types.UID{}
	for name := range clusterLabels {
		list, err := widgetsOn(ctx, name, ns)
		must(t, err)
		for i := range list {
			out[name+"/"+list[i].GetName()] = list[i].GetUID()
		}
	}
	return out
}

// plannedTargets returns the clusters that `hansectl plan` predicts for each object of a namespace, such as "ap-se-1=3
// cn-sha-1=3".
func plannedTargets(t *testing.T, ns string, args ...string) map[string]string {
	t.Helper()
	ctx := t.Context()
	out, err := suite.Hansectl(ctx, append([]string{"plan", "-o", "json"}, args...)...)
	must(t, err)
	var p preview.Plan
	must(t, json.Unmarshal([]byte(out), &p))
	targets := map[string]map[string]hubv1.BindingTarget{}
	var list hubv1.ResourceBindingList
	must(t, suite.Hub.List(ctx, &list, client.InNamespace(ns)))
	for i := range list.Items {
		of := map[string]hubv1.BindingTarget{}
		for _, c := range list.Items[i].Spec.Clusters {
			if c.State == hubv1.TargetPresent {
				of[c.Name] = c
			}
		}
		targets[list.Items[i].Spec.ObjectRef.Name] = of
	}
	for _, r := range p.Removals {
		for _, c := range r.Clusters {
			if r.Object.Namespace == ns {
				delete(targets[r.Object.Name], c)
			}
		}
	}
	for _, m := range p.Moves {
		if m.Object.Namespace != ns {
			continue
		}
		for _, c := range m.To {
			targets[m.Object.Name][c] = hubv1.BindingTarget{Name: c}
		}
		for _, s := range m.Shares {
			if c, here := targets[m.Object.Name][s.Cluster]; here {
				c.Replicas = ptr.To(int32(s.After))
				targets[m.Object.Name][s.Cluster] = c
			}
		}
	}
	foretold := map[string]string{}
	for name, of := range targets {
		foretold[name] = targetText(slices.Collect(maps.Values(of)))
	}
	return foretold
}

func asForetold(ctx context.Context, foretold map[string]string, obj *unstructured.Unstructured) error {
	b, err := bindingOf(ctx, obj)
	if err != nil {
		return err
	}
	if now := targetsText(b); now != foretold[obj.GetName()] {
		return fmt.Errorf("%s is to be on %s, hansectl plan has foretold %s", obj.GetName(), now, foretold[obj.GetName()])
	}
	return nil
}

func targetsText(b hubv1.BindingObject) string {
	var here []hubv1.BindingTarget
	for _, e := range b.BindingSpec().Clusters {
		if e.State == hubv1.TargetPresent {
			here = append(here, e)
		}
	}
	return targetText(here)
}

func targetText(targets []hubv1.BindingTarget) string {
	var parts []string
	for _, e := range targets {
		if e.Replicas != nil {
			parts = append(parts, fmt.Sprintf("%s=%d", e.Name, *e.Replicas))
			continue
		}
		parts = append(parts, e.Name)
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}
