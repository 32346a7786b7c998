package e2e

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// aClusterIsDrained drains a cluster with six Deployments. Four Deployments can move, but their new pods start only
// when the test lowers their CPU requests. The hub must not withdraw a copy before its new pods run, and may move at
// most two objects at a time. The fifth Deployment is placed on every cluster, and stays until the drain evicts it. The
// sixth one fits on no other cluster, and the command must name it.
func aClusterIsDrained(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	const toShanghai2 = "clusters: {labelSelector: {}}\nspread: {numberOfClusters: 1, preferences: [{weight: 10, expression: \"name == 'cn-sha-2'\"}, {weight: 5, expression: \"name == 'ap-se-1'\"}]}"
	var moving []*unstructured.Unstructured
	for i := range 4 {
		// A pod requests 33 CPUs, more than a node has.
		moving = append(moving, placedDeployment(t, ns, fmt.Sprintf("moving-%d", i), toShanghai2, "33"))
	}
	everywhere := placedDeployment(t, ns, "everywhere", "clusters: {names: [cn-sha-2, cn-sha-1]}", "1")
	bound := placedDeployment(t, ns, "bound", "clusters: {names: [cn-sha-2]}\nspread: {numberOfClusters: 1}", "1")
	for _, d := range append(moving, bound) {
		eventually(t, normal, func() error { return heldBy(ctx, d, shanghai2) })
	}
	eventually(t, normal, func() error { return heldBy(ctx, everywhere, shanghai, shanghai2) })
	t.Cleanup(func() { patchMember(t, shanghai2, `{"drain":null,"unschedulable":null}`) })

	eventually(t, 2*normal, func() error {
		_, err := suite.Hansectl(ctx, "drain", shanghai2, "--max-unavailable", "2", "--timeout", "6s")
		if want := "objects moved; 2 objects are moving"; err == nil || !contains(err.Error(), want) {
			return fmt.Errorf("drain: %w, want an error that says %q", err, want)
		}
		return nil
	})
	for _, d := range append(moving, bound, everywhere) {
		_, err := on(ctx, shanghai2, d)
		must(t, err)
	}
	var begun []*unstructured.Unstructured
	for _, d := range moving {
		if b, err := bindingOf(ctx, d); err == nil && b.BindingSpec().Target(shanghai2).State == hubv1.TargetEvicting {
			begun = append(begun, d)
		}
	}
	if len(begun) != 2 {
		t.Fatalf("%d objects are on the way, want 2", len(begun))
	}
	ask(t, begun[0], "1") // its new pods can start, and the new copy becomes Healthy
	eventually(t, normal, func() error { return goneFrom(ctx, shanghai2, begun[0]) })
	_, err := on(ctx, shanghai2, begun[1])
	must(t, err)
	for _, d := range moving {
		ask(t, d, "1")
	}
	out, err := suite.Hansectl(ctx, "drain", shanghai2, "--timeout", "60s")
	// The number after "of" is not compared, because the total includes objects of other tests.
	for _, want := range []string{" 4 of ", "Deployment.apps " + ns + "/bound"} {
		if err == nil || !contains(out+err.Error(), want) {
			t.Fatalf("drain: %v, want an error, and %q there or in\n%s", err, want, out)
		}
	}
	for _, d := range moving {
		eventually(t, normal, func() error { return heldBy(ctx, d, singapore) })
	}
	must(t, suite.Hub.Delete(ctx, bound.DeepCopy()))
	eventually(t, normal, func() error { return noBinding(ctx, bound) })
	out, err = suite.Hansectl(ctx, "drain", shanghai2, "--timeout", "60s")
	for _, want := range []string{" 5 of ", "Deployment.apps " + ns + "/everywhere"} {
		if err == nil || !contains(out+err.Error(), want) {
			t.Fatalf("drain: %v, want an error, and %q there or in\n%s", err, want, out)
		}
	}
	must(t, heldBy(ctx, everywhere, shanghai, shanghai2))
	out, err = suite.Hansectl(ctx, "drain", shanghai2, "--evict", "--timeout", "60s")
	must(t, err)
	for _, want := range []string{"drained: 5 of ", " evicted until the drain ends"} {
		if !contains(out, want) {
			t.Errorf("drain --evict says\n%s\nwant %q", out, want)
		}
	}
	must(t, goneFrom(ctx, shanghai2, everywhere))
	must(t, heldBy(ctx, everywhere, shanghai))
	out, err = suite.Hansectl(ctx, "uncordon", shanghai2)
	must(t, err)
	if want := "its drain is ended"; !contains(out, want) {
		t.Errorf("uncordon says\n%s\nwant %q", out, want)
	}
	eventually(t, normal, func() error { return heldBy(ctx, everywhere, shanghai, shanghai2) })
}

// placedDeployment creates a Deployment of one pod with this CPU request, and a Placement for it.
func placedDeployment(t *testing.T, ns, name, spec, cpu string) *unstructured.Unstructured {
	t.Helper()
	d := deployment(ns, name)
	containers := []any{map[string]any{"name": "web", "image": "example.org/web:1", "resources": map[string]any{"requests": map[string]any{"cpu": cpu}}}}
	must(t, unstructured.SetNestedSlice(d.Object, containers, "spec", "template", "spec", "containers"))
	var s hubv1.PlacementSpec
	must(t, yaml.UnmarshalStrict([]byte(spec), &s))
	place(t, ns, name, hubv1.ResourceSelector{APIGroup: "apps", Kind: "Deployment", Name: name}, s)
	must(t, suite.Hub.Create(t.Context(), d))
	t.Cleanup(func() { _ = suite.Hub.Delete(context.WithoutCancel(t.Context()), d.DeepCopy()) })
	return d
}

// ask sets the CPU request of a Deployment's pod.
func ask(t *testing.T, d *unstructured.Unstructured, cpu string) {
	t.Helper()
	patch := fmt.Appendf(nil, `[{"op":"replace","path":"/spec/template/spec/containers/0/resources/requests/cpu","value":%q}]`, cpu)
	must(t, suite.Hub.Patch(t.Context(), d.DeepCopy(), client.RawPatch(types.JSONPatchType, patch)))
}
