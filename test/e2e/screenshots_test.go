package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/browser"
)

// TestScreenshots writes the screenshots for docs/console.md into the folder HANSE_SCREENSHOTS.
func TestScreenshots(t *testing.T) {
	folder := os.Getenv("HANSE_SCREENSHOTS")
	if folder == "" {
		t.Skip("HANSE_SCREENSHOTS is not set: make screenshots sets it")
	}
	const ns = "shop"
	must(t, suite.Hub.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))
	aClusterWithoutCredentials(t)
	aDegradedWidget(t, ns)
	aWaveThatWaits(t, ns)
	aHeldRemoval(t, ns)
	tab := signedIn(t, suite.hub.Console)
	payments := "/object?group=" + widgetKind.Group + "&kind=Widget&namespace=" + ns + "&name=payments"
	for _, picture := range []struct {
		name, path, scheme string
		width              int64
	}{
		{"fleet", "/", "light", 1280},
		{"fleet-dark", "/", "dark", 1280},
		{"fleet-phone", "/", "light", 390},
		{"objects", "/objects?namespace=" + ns, "light", 1280},
		{"object", payments, "light", 1280},
		{"object-yaml", payments + "&cluster=" + frankfurt, "dark", 1280},
		{"rollout", "/rollouts/placement?namespace=" + ns + "&name=web", "light", 1280},
		{"rollout-phone", "/rollouts/placement?namespace=" + ns + "&name=web", "dark", 390},
		{"cluster", "/clusters/" + frankfurt, "light", 1280},
		{"whatif", "/whatif?namespace=" + ns, "dark", 1280},
	} {
		tab.Prefer(picture.scheme)
		tab.Resize(picture.width, 600)
		tab.Visit(suite.hub.Console + picture.path)
		height := browser.Eval[int64](tab, `document.documentElement.scrollHeight`)
		tab.Resize(picture.width, min(height, 1000))
		must(t, os.WriteFile(filepath.Join(folder, picture.name+".png"), tab.Screenshot(), 0o644))
	}
}

// aClusterWithoutCredentials creates a cluster that is not ready.
func aClusterWithoutCredentials(t *testing.T) {
	t.Helper()
	m := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "sa-gru-1", Labels: map[string]string{hubv1.RegionLabel: "sa-east-1"}}}
	m.Spec.Connection = hubv1.Connection{Type: hubv1.ConnectionDirect, Direct: &hubv1.DirectConnection{KubeconfigSecretRef: hubv1.SecretKeyRef{Name: "sa-gru-1"}}}
	m.Spec.AllowedNamespaces.From = hubv1.NamespacesFromAll
	must(t, suite.Hub.Create(t.Context(), m))
	eventually(t, normal, func() error {
		return memberCondition(t.Context(), m.Name, hubv1.ConditionReady, metav1.ConditionFalse, hubv1.ReasonSecretMissing)
	})
}

// aDegradedWidget places Widgets. One of them has more replicas in Frankfurt, and is degraded there.
func aDegradedWidget(t *testing.T, ns string) {
	t.Helper()
	ctx := t.Context()
	placeWidgets(t, ns, members...)
	rule := replicasRule("more-in-europe", 5, inRegion("eu-central-1"))
	rule.Labels = map[string]string{"tier": "gold"}
	p := overrideOf(ns, "europe", rule)
	p.Spec.ResourceSelectors[0].Name = "payments"
	must(t, suite.Hub.Create(ctx, p))
	for _, name := range []string{"checkout", "catalog", "payments", "search", "stock"} {
		w := widget(ns, name)
		must(t, suite.Hub.Create(ctx, w))
		sayAllReady(t, w)
	}
	const degraded = `{"replicas":5,"readyReplicas":4,"conditions":[{"type":"Ready","status":"False","reason":"VolumeFailed",` +
		`"message":"The instance payments-4 cannot start: its volume is attached to node worker-12, which is gone.","lastTransitionTime":"2026-01-01T00:00:00Z"}]}`
	must(t, reports(ctx, frankfurt, widget(ns, "payments"), degraded))
	eventually(t, normal, func() error {
		return bindingCondition(ctx, widget(ns, "payments"), hubv1.ConditionHealthy, metav1.ConditionFalse, "")
	})
}

// aWaveThatWaits changes the image of a Deployment whose second wave waits for an approval.
func aWaveThatWaits(t *testing.T, ns string) {
	t.Helper()
	web := deployment(ns, "web")
	var spec hubv1.PlacementSpec
	must(t, yaml.UnmarshalStrict([]byte(europeFirst), &spec))
	place(t, ns, "web", deployments, spec)
	must(t, suite.Hub.Create(t.Context(), web))
	eventually(t, normal, func() error { return rolloutIs(t.Context(), web, hubv1.RolloutComplete, "") })
	setImage(t, web, "example.org/web:2")
	eventually(t, normal, func() error { return rolloutIs(t.Context(), web, hubv1.RolloutWaitingForApproval, "singapore") })
}

// aHeldRemoval writes a wrong cluster into a placement, so that the hub holds the removal of all its copies.
func aHeldRemoval(t *testing.T, ns string) {
	t.Helper()
	ctx := t.Context()
	p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "settings"}}
	p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{Kind: "ConfigMap"}}
	p.Spec.Clusters.Names = members
	p.Spec.RemovalLimit = &hubv1.RemovalLimit{Copies: ptr.To[int32](5)}
	must(t, suite.Hub.Create(ctx, p))
	for i := range 4 {
		cm := configMap(ns, fmt.Sprintf("settings-%d", i))
		must(t, suite.Hub.Create(ctx, cm))
		for _, m := range members {
			eventually(t, normal, func() error { return rowIs(ctx, cm, m, metav1.ConditionTrue, "") })
		}
	}
	before := p.DeepCopy()
	p.Spec.Clusters.Names = []string{"eu-frankfurt-1"}
	must(t, suite.Hub.Patch(ctx, p, client.MergeFrom(before)))
	eventually(t, normal, func() error { _, err := allHeld(ctx, p, 4*len(members)); return err })
}
