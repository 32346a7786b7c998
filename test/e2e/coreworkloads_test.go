package e2e

import (
	"strings"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// TestKubectlRolloutStatusOnTheHubEndsWithTheRolloutOnMembers runs `kubectl rollout status` on a hub without
// controllers. The controllers on the members roll the Deployment out, and later exceed its progress deadline with an
// image that no node can pull.
func TestKubectlRolloutStatusOnTheHubEndsWithTheRolloutOnMembers(t *testing.T) {
	ctx := t.Context()
	ns := namespace(t)
	d := deployment(ns, "web")
	must(t, unstructured.SetNestedField(d.Object, int64(2), "spec", "replicas"))
	must(t, unstructured.SetNestedField(d.Object, int64(10), "spec", "progressDeadlineSeconds"))
	place(t, ns, "deployments", deployments, hubv1.PlacementSpec{Clusters: hubv1.ClusterSelection{Names: []string{singapore, shanghai}}})
	must(t, suite.Hub.Create(ctx, d))
	rollout := []string{"rollout", "status", "deployment/web", "-n", ns, "--timeout=60s"}

	reported, err := suite.Kubectl(ctx, suite.Fleet.Hub, rollout...)
	if err != nil || !strings.Contains(reported, `deployment "web" successfully rolled out`) {
		t.Fatalf("kubectl says %q (%v), want success", reported, err)
	}
	must(t, suite.Hub.Get(ctx, client.ObjectKeyFromObject(d), d))
	if result, err := status.Compute(d); err != nil || result.Status != status.CurrentStatus {
		t.Errorf("kstatus reads %v as %+v (%v), want Current", d.Object["status"], result, err)
	}

	image := []byte(`[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"hanse.dev/broken"}]`)
	must(t, suite.Hub.Patch(ctx, d, client.RawPatch(types.JSONPatchType, image)))
	reported, err = suite.Kubectl(ctx, suite.Fleet.Hub, rollout...)
	if err == nil || !strings.Contains(err.Error(), `deployment "web" exceeded its progress deadline`) {
		t.Fatalf("kubectl says %q (%v), want that the deadline is exceeded", reported, err)
	}
	eventually(t, normal, func() error { return healthIs(ctx, d, singapore, hubv1.HealthDegraded, "") })
}
