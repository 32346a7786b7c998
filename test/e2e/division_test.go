package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

var deployments = hubv1.ResourceSelector{APIGroup: "apps", Kind: "Deployment"}

// sharesAre returns nil if the binding's spec.clusters has these shares, and each copy has its share as spec.replicas.
func sharesAre(ctx context.Context, obj *unstructured.Unstructured, want map[string]int64) error {
	b, err := bindingOf(ctx, obj)
	if err != nil {
		return err
	}
	for member, n := range want {
		e := b.BindingSpec().Target(member)
		if e == nil || e.Replicas == nil || int64(*e.Replicas) != n {
			return fmt.Errorf("the binding's entry for %s is %+v, want a share of %d", member, e, n)
		}
		if err := replicasOn(ctx, member, obj, n); err != nil {
			return err
		}
	}
	return nil
}

func scaleOnHub(t *testing.T, obj *unstructured.Unstructured, field string, n int) {
	t.Helper()
	must(t, suite.Hub.Patch(t.Context(), obj.DeepCopy(), client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{%q:%d}}`, field, n))))
}

func TestADeploymentIsDividedByWeight(t *testing.T) {
	ctx := t.Context()
	ns := namespace(t)
	d := deployment(ns, "web")
	must(t, unstructured.SetNestedField(d.Object, int64(10), "spec", "replicas"))
	p := place(t, ns, "deployments", deployments, hubv1.PlacementSpec{
		Clusters: everyCluster(),
		Replicas: hubv1.ReplicasPolicy{Type: hubv1.ReplicasDivide, Divide: &hubv1.DividePolicy{
			Weights: []hubv1.ReplicaWeight{{Clusters: &hubv1.RuleClusters{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{hubv1.RegionLabel: "cn-shanghai"}}}, Weight: 3}, {Weight: 1}},
		}},
	})
	must(t, suite.Hub.Create(ctx, d))
	t.Cleanup(func() { _ = suite.Hub.Delete(context.WithoutCancel(ctx), d.DeepCopy()) })
	eventually(t, normal, func() error { return sharesAre(ctx, d, map[string]int64{shanghai: 6, singapore: 2, frankfurt: 2}) })
	eventually(t, 2*normal, func() error { return bindingCondition(ctx, d, hubv1.ConditionHealthy, metav1.ConditionTrue, "") })

	scaleOnHub(t, d, "replicas", 15)
	eventually(t, normal, func() error { return sharesAre(ctx, d, map[string]int64{shanghai: 9, singapore: 3, frankfurt: 3}) })
	must(t, suite.Hub.Patch(ctx, p, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":{"divide":{"limits":[{"maxReplicas":4}]}}}}`))))
	eventually(t, normal, func() error { return sharesAre(ctx, d, map[string]int64{shanghai: 4, singapore: 4, frankfurt: 4}) })
	eventually(t, normal, func() error {
		return says(ctx, d, hubv1.ConditionScheduled, metav1.ConditionFalse, hubv1.ReasonReplicasUnplaced, "3 of 3 clusters; 3 of 15 replicas have no room")
	})

	policy := &hubv1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "more"}}
	policy.Spec.ResourceSelectors = []hubv1.ResourceSelector{deployments}
	policy.Spec.Rules = []hubv1.OverrideRule{{
		Name: "shanghai", Clusters: &hubv1.RuleClusters{Names: []string{shanghai}},
		Patches: []hubv1.PatchOperation{{Op: hubv1.PatchRemove, Path: "/spec/replicas"}},
	}}
	must(t, suite.Hub.Create(ctx, policy))
	eventually(t, normal, func() error { return rowIs(ctx, d, shanghai, metav1.ConditionFalse, hubv1.ReasonPathOwnedByDivision) })
	must(t, replicasOn(ctx, shanghai, d, 4))
	eventually(t, normal, func() error { return rowIs(ctx, d, singapore, metav1.ConditionTrue, "") })
	must(t, suite.Hub.Delete(ctx, policy))
	eventually(t, normal, func() error { return rowIs(ctx, d, shanghai, metav1.ConditionTrue, "") })
}

// says returns nil if the object's binding has the condition with this status, reason and message.
func says(ctx context.Context, obj *unstructured.Unstructured, kind string, status metav1.ConditionStatus, reason, message string) error {
	if err := bindingCondition(ctx, obj, kind, status, reason); err != nil {
		return err
	}
	b, err := bindingOf(ctx, obj)
	if err != nil {
		return err
	}
	if c := meta.FindStatusCondition(b.BindingStatus().Conditions, kind); c.Message != message {
		return fmt.Errorf("%s says %q, want %q", kind, c.Message, message)
	}
	return nil
}

func TestACustomResourceIsDividedByItsPath(t *testing.T) {
	ctx := t.Context()
	ns := namespace(t)
	w := widget(ns, "divided")
	must(t, unstructured.SetNestedField(w.Object, int64(9), "spec", "replicas"))
	place(t, ns, "widgets", hubv1.ResourceSelector{APIGroup: widgetKind.Group, Kind: widgetKind.Kind}, hubv1.PlacementSpec{
		Clusters: everyCluster(), Replicas: hubv1.ReplicasPolicy{Type: hubv1.ReplicasDivide, Path: "/spec/replicas"},
	})
	must(t, suite.Hub.Create(ctx, w))
	eventually(t, normal, func() error { return sharesAre(ctx, w, map[string]int64{singapore: 3, shanghai: 3, frankfurt: 3}) })
	scaleOnHub(t, w, "replicas", 2)
	eventually(t, normal, func() error { return sharesAre(ctx, w, map[string]int64{singapore: 1, shanghai: 1, frankfurt: 0}) })
	eventually(t, normal, func() error { return bindingCondition(ctx, w, hubv1.ConditionApplied, metav1.ConditionTrue, "") })
}

func TestAJobIsDividedByItsCompletions(t *testing.T) {
	ctx := t.Context()
	ns := namespace(t)
	j := job(ns, "work")
	must(t, unstructured.SetNestedField(j.Object, int64(12), "spec", "completions"))
	must(t, unstructured.SetNestedField(j.Object, int64(6), "spec", "parallelism"))
	p := place(t, ns, "jobs", hubv1.ResourceSelector{APIGroup: "batch", Kind: "Job"}, hubv1.PlacementSpec{
		Clusters: hubv1.ClusterSelection{Names: []string{singapore, shanghai}}, Replicas: hubv1.ReplicasPolicy{Type: hubv1.ReplicasDivide},
	})
	must(t, suite.Hub.Create(ctx, j))
	t.Cleanup(func() {
		_ = suite.Hub.Delete(context.WithoutCancel(ctx), j.DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationBackground))
	})
	for _, member := range []string{singapore, shanghai} {
		eventually(t, normal, func() error { return numbersOf(ctx, member, j, 6, 3) })
		eventually(t, normal, func() error { return rowIs(ctx, j, member, metav1.ConditionTrue, "") })
	}
	// The member's API server refuses a change of a Job's completions. A cluster that is chosen later therefore gets no
	// share.
	must(t, suite.Hub.Patch(ctx, p, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"clusters":{"names":["`+frankfurt+`","`+singapore+`","`+shanghai+`"]}}}`))))
	eventually(t, normal, func() error {
		return says(ctx, j, hubv1.ConditionScheduled, metav1.ConditionTrue, hubv1.ReasonScheduled, "2 of 3 clusters: 1 without a share of the replicas")
	})
	must(t, goneFrom(ctx, frankfurt, j))
	// The parallelism of a Job can still be changed.
	scaleOnHub(t, j, "parallelism", 2)
	for _, member := range []string{singapore, shanghai} {
		eventually(t, normal, func() error { return numbersOf(ctx, member, j, 6, 1) })
	}
}

// numbersOf returns nil if the Job's copy on the member has these completions and this parallelism.
func numbersOf(ctx context.Context, member string, j *unstructured.Unstructured, completions, parallelism int64) error {
	copied, err := on(ctx, member, j)
	if err != nil {
		return fmt.Errorf("on %s: %w", member, err)
	}
	c, _, _ := unstructured.NestedInt64(copied.Object, "spec", "completions")
	p, _, _ := unstructured.NestedInt64(copied.Object, "spec", "parallelism")
	if c != completions || p != parallelism {
		return fmt.Errorf("on %s: %d completions, %d at a time, want %d, %d", member, c, p, completions, parallelism)
	}
	return nil
}

func TestADivisionThatDoesNotSayOfWhatIsRefusedWithASuggestion(t *testing.T) {
	ctx := t.Context()
	ns := namespace(t)
	crds, err := suite.LabCommand(ctx, "crds", "prometheus-operator", "prometheuses")
	must(t, err)
	for _, crd := range documents(t, crds) {
		crd.SetLabels(map[string]string{"app.kubernetes.io/part-of": "prometheus-operator"})
		must(t, suite.Hub.Apply(ctx, client.ApplyConfigurationFromUnstructured(crd), client.FieldOwner("e2e"), client.ForceOwnership))
	}
	web := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(4), "shards": int64(2)}}}
	web.SetAPIVersion("monitoring.coreos.com/v1")
	web.SetKind("Prometheus")
	web.SetNamespace(ns)
	web.SetName("web")
	eventually(t, normal, func() error { return client.IgnoreAlreadyExists(suite.Hub.Create(ctx, web.DeepCopy())) })
	t.Cleanup(func() { _ = suite.Hub.Delete(context.WithoutCancel(ctx), web.DeepCopy()) })
	p := place(t, ns, "prometheuses", hubv1.ResourceSelector{APIGroup: "monitoring.coreos.com", Kind: "Prometheus"}, hubv1.PlacementSpec{
		Clusters: everyCluster(), Replicas: hubv1.ReplicasPolicy{Type: hubv1.ReplicasDivide},
	})
	const why = "the field with the replicas is not known: set spec.replicas.path; the scale subresource of its definition suggests /spec/shards, if that number can be divided"
	eventually(t, normal, func() error {
		var now hubv1.Placement
		if err := suite.Hub.Get(ctx, client.ObjectKeyFromObject(p), &now); err != nil {
			return err
		}
		c := meta.FindStatusCondition(now.Status.Conditions, hubv1.ConditionAccepted)
		if c == nil || c.Status != metav1.ConditionFalse || c.Reason != hubv1.ReasonDivisionRefused || !contains(c.Message, why) {
			return fmt.Errorf("Accepted is %+v", c)
		}
		return nil
	})
	eventually(t, normal, func() error {
		var events corev1.EventList
		if err := suite.Hub.List(ctx, &events, client.InNamespace(ns)); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Reason == hubv1.ReasonDivisionRefused && e.InvolvedObject.Name == "web" && contains(e.Message, why) {
				return nil
			}
		}
		return errors.New("no event on the object says so")
	})
	must(t, noBinding(ctx, web))
	must(t, suite.Hub.Patch(ctx, p, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":{"path":"/spec/replicas"}}}`))))
	eventually(t, normal, func() error { // the members may not serve the kind yet
		if _, err := bindingOf(ctx, web); err != nil {
			return err
		}
		var now hubv1.Placement
		if err := suite.Hub.Get(ctx, client.ObjectKeyFromObject(p), &now); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(now.Status.Conditions, hubv1.ConditionAccepted) {
			return fmt.Errorf("the conditions are %+v", now.Status.Conditions)
		}
		return nil
	})
}

// hubHasSeen waits until the hub's caches have the current versions of these MemberClusters. A read from the API server
// does not prove this, because the hub's watches deliver at different times. It adds a harmless taint to each
// MemberCluster, waits until the hub has observed the change, and removes the taint.
func hubHasSeen(t *testing.T, clusters ...string) {
	t.Helper()
	for _, name := range clusters {
		m := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		taint := func(taints string) error {
			return suite.Hub.Patch(context.WithoutCancel(t.Context()), m, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"taints":`+taints+`}}`)))
		}
		t.Cleanup(func() { must(t, taint(`null`)) })
		for _, taints := range []string{`[{"key":"example.com/seen","effect":"PreferNoSchedule"}]`, `null`} {
			must(t, taint(taints))
			eventually(t, normal, func() error { return observedMember(t.Context(), name) })
		}
	}
}

// observedMember returns nil if the hub has observed the current generation of the MemberCluster.
func observedMember(ctx context.Context, name string) error {
	var m hubv1.MemberCluster
	err := suite.Hub.Get(ctx, types.NamespacedName{Name: name}, &m)
	if err == nil && m.Status.ObservedGeneration != m.Generation {
		err = fmt.Errorf("the hub has not seen generation %d of MemberCluster %s", m.Generation, name)
	}
	return err
}

// Two of Frankfurt's three nodes are cordoned, so that Frankfurt has a third of the capacity of each other cluster.
func TestADeploymentIsDividedByCapacity(t *testing.T) {
	ctx := t.Context()
	ns := namespace(t)
	var nodes corev1.NodeList
	must(t, suite.Members[frankfurt].List(ctx, &nodes))
	if len(nodes.Items) != 3 {
		t.Fatalf("%s has %d nodes", frankfurt, len(nodes.Items))
	}
	cordon := func(ctx context.Context, cordoned bool) error {
		var all error
		for i := range nodes.Items[:2] {
			patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%v}}`, cordoned)
			all = errors.Join(all, suite.Members[frankfurt].Patch(ctx, nodes.Items[i].DeepCopy(), client.RawPatch(types.MergePatchType, patch)))
		}
		return all
	}
	t.Cleanup(func() { must(t, cordon(context.WithoutCancel(ctx), false)) })
	must(t, cordon(ctx, true))
	perNode := nodes.Items[0].Status.Allocatable.Cpu().Value()
	eventually(t, 3*time.Minute, func() error { // the hub updates the capacity at most once a minute
		for member, n := range map[string]int64{singapore: 3, shanghai: 3, frankfurt: 1} {
			var m hubv1.MemberCluster
			if err := suite.Hub.Get(ctx, types.NamespacedName{Name: member}, &m); err != nil {
				return err
			}
			if got := m.Status.Allocatable.Cpu().Value(); got != n*perNode {
				return fmt.Errorf("%s can allocate %d CPUs, want %d", member, got, n*perNode)
			}
		}
		return nil
	})
	hubHasSeen(t, singapore, shanghai, frankfurt)
	d := deployment(ns, "web")
	must(t, unstructured.SetNestedField(d.Object, int64(14), "spec", "replicas"))
	containers := []any{map[string]any{"name": "web", "image": "example.org/web:1", "resources": map[string]any{"requests": map[string]any{"cpu": "4"}}}}
	must(t, unstructured.SetNestedSlice(d.Object, containers, "spec", "template", "spec", "containers"))
	p := place(t, ns, "deployments", deployments, hubv1.PlacementSpec{
		Clusters: everyCluster(), Replicas: hubv1.ReplicasPolicy{Type: hubv1.ReplicasDivide, Divide: &hubv1.DividePolicy{By: hubv1.DivideByCapacity}},
	})
	must(t, suite.Hub.Create(ctx, d))
	t.Cleanup(func() { _ = suite.Hub.Delete(context.WithoutCancel(ctx), d.DeepCopy()) })
	eventually(t, normal, func() error { return sharesAre(ctx, d, map[string]int64{singapore: 6, shanghai: 6, frankfurt: 2}) })
	// The shares fit the capacity of the members: their schedulers run all pods.
	eventually(t, 2*normal, func() error { return bindingCondition(ctx, d, hubv1.ConditionHealthy, metav1.ConditionTrue, "") })

	// With larger CPU requests, the clusters have room for only 3, 3 and 1 pods, and the condition Scheduled reports the
	// shortage.
	big := resource.NewQuantity(perNode, resource.DecimalSI).String()
	scaleOnHub(t, d, "replicas", 9)
	eventually(t, normal, func() error { return sharesAre(ctx, d, map[string]int64{singapore: 4, shanghai: 4, frankfurt: 1}) })
	must(t, suite.Hub.Patch(ctx, p, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":{"requests":{"cpu":%q}}}}`, big))))
	eventually(t, normal, func() error { return sharesAre(ctx, d, map[string]int64{singapore: 3, shanghai: 3, frankfurt: 1}) })
	eventually(t, normal, func() error {
		return says(ctx, d, hubv1.ConditionScheduled, metav1.ConditionFalse, hubv1.ReasonReplicasUnplaced, "3 of 3 clusters; 2 of 9 replicas have no room")
	})
}
