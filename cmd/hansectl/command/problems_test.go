package command

import (
	"encoding/json"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view"
)

func TestProblemsReadsTheHub(t *testing.T) {
	fresh(t)
	aHubRan(t, time.Now())
	_, binding := settings(t)
	apply(t, onHub, binding)
	binding.Status = hubv1.BindingStatus{
		Summary: hubv1.BindingSummary{Desired: 2, Applied: 1, Healthy: 1},
		Clusters: []hubv1.ClusterRow{
			{Name: "ap-se-1", Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy},
			{Name: "cn-sha-1", Applied: metav1.ConditionFalse, Health: hubv1.HealthUnknown, Reason: hubv1.ReasonForbidden, Message: "grant it"},
		},
	}
	binding.Status.Conditions = []metav1.Condition{{
		Type: hubv1.ConditionApplied, Status: metav1.ConditionFalse, Reason: hubv1.ReasonFailedOnSome, Message: "1 of 2", LastTransitionTime: metav1.Now(),
	}}
	must(t, onHub.Status().Update(t.Context(), binding))
	member(t, "new-1")
	placement := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "unread"}}
	placement.Spec.Clusters.LabelSelector = &metav1.LabelSelector{}
	placement.Spec.ResourceSelectors = []hubv1.ResourceSelector{{Kind: "ConfigMap"}}
	apply(t, onHub, placement)
	placement.Status.Conditions = []metav1.Condition{{
		Type: hubv1.ConditionAccepted, Status: metav1.ConditionFalse, Reason: hubv1.ReasonInvalid, Message: "no such field", LastTransitionTime: metav1.Now(),
	}}
	must(t, onHub.Status().Update(t.Context(), placement))

	t.Run("as text, of one namespace", func(t *testing.T) {
		out, err := hansectl(t, "problems", "-n", "shop")
		must(t, err)
		wants(t, out, "OBJECTS 1   COPIES 2", "cn-sha-1   -        Unknown   1/1      -     ConfigMap shop/settings   Forbidden: grant it", "Oldest drift: no copy",
			"Unknown", "MemberCluster new-1", "Pending: the hub has not processed the object yet; do: hansectl problems --checks", "Invalid: no such field", "Placement shop/unread",
			"1 of 2 clusters: cn-sha-1", "Forbidden: grant it\n")
	})
	t.Run("another namespace has nothing", func(t *testing.T) {
		out, err := hansectl(t, "problems", "-n", "elsewhere")
		must(t, err)
		wants(t, out, "OBJECTS 0   COPIES 0", "Slowest clusters: none is behind")
	})
	t.Run("as JSON, of all namespaces", func(t *testing.T) {
		out, err := hansectl(t, "problems", "-o", "json")
		must(t, err)
		var l view.Problems
		must(t, json.Unmarshal([]byte(out), &l))
		if len(l.Clusters) != 1 || l.Clusters[0].Cluster != "cn-sha-1" || l.Clusters[0].Reason != hubv1.ReasonForbidden {
			t.Errorf("got %+v", l)
		}
	})
	t.Run("with the checks, a check that failed is an error", func(t *testing.T) {
		out, err := hansectl(t, "problems", "-n", "shop", "--checks")
		refused(t, err, "2 checks failed")
		exits(t, err, 1)
		wants(t, out, "OBJECTS 1   COPIES 2", "\nChecks\nCHECK ", "grants of cn-sha-1   Failed    the member does not let the hub write objects of ConfigMap (1)")
		out, err = hansectl(t, "problems", "--checks", "-o", "jsonpath={.objects} {.checks[?(@.result==\"Failed\")].name}")
		refused(t, err, "2 checks failed")
		wants(t, out, "1 placements grants of cn-sha-1")
	})
	t.Run("without the right to read problems, the checks are printed", func(t *testing.T) {
		kubeconfig := reader(t, "checks-reader", allowed(hubv1.GroupVersion.Group, "list", "memberclusters"))
		out, err := run(t, "problems", "--checks", "--kubeconfig", kubeconfig, "--cache-dir", t.TempDir())
		refused(t, err, "resourcebindings")
		wants(t, out, "CHECK ", "member new-1   Warning", "grants         Unknown")
	})
	t.Run("no line is no limit", func(t *testing.T) {
		_, err := hansectl(t, "problems", "--limit", "0")
		refused(t, err, "--limit 0: want at least 1")
		exits(t, err, 2)
	})
}

func TestWideStatusShowsUIDAndDigest(t *testing.T) {
	fresh(t)
	aHubRan(t, time.Now())
	_, binding := settings(t)
	apply(t, onHub, binding)
	binding.Status = hubv1.BindingStatus{Clusters: []hubv1.ClusterRow{
		{Name: "ap-se-1", UID: "copy-1", Digest: "9c1f", Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy},
	}}
	must(t, onHub.Status().Update(t.Context(), binding))
	out, err := hansectl(t, "status", "cm", "settings", "-n", "shop", "-o", "wide")
	must(t, err)
	wants(t, out, "AS OF   STATE     SINCE   UID      DIGEST   WHY", "live    Present   -       copy-1   9c1f     -")
	_, err = hansectl(t, "status", "cm", "settings", "-n", "shop", "-o", "table")
	refused(t, err, "want wide, name, json, yaml or jsonpath=TEMPLATE")
}
