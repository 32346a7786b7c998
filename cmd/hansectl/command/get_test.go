package command

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view"
	"github.com/hanse-dev/hanse/view/wire"
)

func TestGetShowsCopiesAsTheyAreOnMembers(t *testing.T) {
	fresh(t)
	aHubRan(t, time.Now())
	_, binding := settings(t)
	apply(t, onHub, binding)
	binding.Status.Clusters = []hubv1.ClusterRow{{
		Name: "ap-se-1", UID: "copy", Applied: metav1.ConditionTrue, Reason: hubv1.ReasonApplied,
		Health: hubv1.HealthHealthy, LastTransitionTime: ptr.To(metav1.Now()),
	}}
	must(t, onHub.Status().Update(t.Context(), binding))
	away := false
	h := newPlayedHub(t, func(cluster, what string, body []byte) (any, error) {
		var in wire.CopyRequest
		switch err := json.Unmarshal(body, &in); {
		case err != nil:
			return nil, err
		case what != wire.Copy || in.Object.Name != "settings" || in.Object.Namespace != "shop":
			return nil, errors.New("that was not asked for")
		case cluster == "ap-se-1":
			return wire.CopyAnswer{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"colour": "red"}, "user": 1000620000, "nanoseconds": 1234567890123456789,
				"metadata": map[string]any{
					"namespace": "shop", "name": "settings", "managedFields": []any{map[string]any{"manager": "hanse"}},
					"creationTimestamp": time.Now().Add(-5 * time.Hour).UTC().Format(time.RFC3339),
				},
			}}, nil
		case away:
			return nil, errors.New("the cluster is not connected")
		}
		missing := &wire.Reason{Reason: hubv1.ReasonMissing, Message: "it is not there"}
		return wire.CopyAnswer{Refused: missing}, nil
	})
	const header = "CLUSTER    NAMESPACE   NAME       HEALTH    READY   AGE   WHY"
	for name, args := range map[string][]string{
		"by kind": {"configmaps", "-n", "shop"}, "by name": {"cm/settings", "-n", "shop"}, "of all namespaces": {"cm", "-A"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := h.hansectl(append([]string{"get"}, args...)...)
			must(t, err)
			wants(t, out, header, "ap-se-1    shop        settings   Healthy   -       5h",
				"cn-sha-1   shop        settings   -         -       -     Missing: it is not there")
		})
	}
	t.Run("the health on a cluster that the hub does not hear is the last known one", func(t *testing.T) {
		memberOf(t, "ap-se-1", nil)
		out, err := h.hansectl("get", "cm", "-n", "shop")
		must(t, err)
		wants(t, out, "ap-se-1    shop        settings   Healthy   -       5h")
		must(t, report(t.Context(), "ap-se-1", metav1.ConditionUnknown, hubv1.ReasonUnreachable, "id-ap-se-1"))
		out, err = h.hansectl("get", "cm", "-n", "shop")
		must(t, err)
		wants(t, out, "ap-se-1    shop        settings   Healthy?   -       5h",
			"cn-sha-1   shop        settings   -          -       -     Missing: it is not there")
		must(t, report(t.Context(), "ap-se-1", metav1.ConditionTrue, hubv1.ReasonConnected, "id-ap-se-1"))
	})
	t.Run("one cluster alone, as JSON", func(t *testing.T) {
		h.took()
		out, err := h.hansectl("get", "cm", "-n", "shop", "--cluster", "ap-se-1", "-o", "json")
		must(t, err)
		var shown view.Copies
		must(t, json.Unmarshal([]byte(out), &shown))
		if len(shown.Items) != 1 || !strings.Contains(out, `"colour": "red"`) || strings.Contains(out, "managedFields") {
			t.Errorf("got %s", out)
		}
		if asked := h.took(); asked != "[ap-se-1 copy]" {
			t.Errorf("asked %s", asked)
		}
	})
	t.Run("large integers keep all their digits", func(t *testing.T) {
		for _, format := range []string{"json", "yaml", "jsonpath={.items[0].object.user} {.items[0].object.nanoseconds}", "jsonpath-as-json={.items[0].object}"} {
			out, err := h.hansectl("get", "cm", "-n", "shop", "--cluster", "ap-se-1", "-o", format)
			must(t, err)
			wants(t, out, "1000620000", "1234567890123456789")
		}
	})
	t.Run("by name", func(t *testing.T) {
		out, err := h.hansectl("get", "cm", "-n", "shop", "-o", "name")
		must(t, err)
		if out != "configmap/settings\n" {
			t.Errorf("got %q", out)
		}
	})
	t.Run("a cluster that does not answer is named, and the others are shown", func(t *testing.T) {
		away = true
		out, err := h.hansectl("get", "cm", "-n", "shop")
		refused(t, err, "1 cluster could not be asked")
		wants(t, out, "ap-se-1   shop        settings", "error: cn-sha-1: the cluster is not connected")
	})
	t.Run("a cluster that is not there is refused", func(t *testing.T) {
		memberOf(t, "ap-se-1", nil)
		for _, what := range []string{"cm", "cm/settings"} {
			_, err := h.hansectl("get", what, "-n", "shop", "--cluster", "mars-1")
			refused(t, err, "the hub has no membercluster/mars-1: there are ap-se-1")
		}
	})
	t.Run("a kind without copies says so", func(t *testing.T) {
		out, err := h.hansectl("get", "secrets", "-n", "shop")
		must(t, err)
		wants(t, out, "No copies found")
		out, err = h.hansectl("get", "secrets", "-n", "shop", "-o", "json")
		must(t, err)
		wants(t, out, `"items": []`)
		_, err = h.hansectl("get", "cm/other", "-n", "shop")
		refused(t, err, "the hub has no ConfigMap shop/other")
		apply(t, onHub, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "unplaced"}})
		_, err = h.hansectl("get", "cm/unplaced", "-n", "shop")
		refused(t, err, "ConfigMap shop/unplaced is on no cluster: see hansectl status")
	})
	t.Run("a cluster that the hub does not have is an error", func(t *testing.T) {
		member(t, "ap-se-1")
		placement := &hubv1.Placement{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "all"},
			Spec: hubv1.PlacementSpec{
				ResourceSelectors: []hubv1.ResourceSelector{{Kind: "ConfigMap"}},
				Clusters:          hubv1.ClusterSelection{LabelSelector: &metav1.LabelSelector{}},
			},
		}
		apply(t, onHub, placement)
		for _, args := range [][]string{
			{"get", "cm", "-n", "shop", "--cluster", "cn-sha-1,mars-1"},
			{"get", "cm", "-n", "shop", "--clusters", "--cluster", "mars-1"},
			{"tree", "all", "-n", "shop", "--cluster", "mars-1"},
			{"prune", "mars-1"},
			{"prune", "mars-1", "--dry-run"},
		} {
			_, err := h.hansectl(args...)
			refused(t, err, "the hub has no membercluster/mars-1: there are ap-se-1")
		}
		out, err := hansectl(t, "suspend", "placement/all", "-n", "shop", "--cluster", "mars-1")
		must(t, err)
		wants(t, out, "warning: the hub has no membercluster/mars-1: there are ap-se-1", "nothing is written to mars-1")
	})
}
