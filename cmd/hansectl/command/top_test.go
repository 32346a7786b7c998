package command

import (
	"encoding/json"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/cmd/hansectl/view"
)

func TestTopReadsTheHub(t *testing.T) {
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
	must(t, onHub.Status().Update(t.Context(), binding))

	t.Run("as text, of one namespace", func(t *testing.T) {
		out, err := hansectl(t, "top", "-n", "shop")
		must(t, err)
		wants(t, out, "OBJECTS 1   COPIES 2", "cn-sha-1   -        Unknown   1/1      -     ConfigMap shop/settings   Forbidden: grant it", "Oldest drift: no copy")
	})
	t.Run("another namespace has nothing", func(t *testing.T) {
		out, err := hansectl(t, "top", "-n", "elsewhere")
		must(t, err)
		wants(t, out, "OBJECTS 0   COPIES 0", "Slowest clusters: none is behind")
	})
	t.Run("as JSON, of all namespaces", func(t *testing.T) {
		out, err := hansectl(t, "top", "-o", "json")
		must(t, err)
		var l view.Longest
		must(t, json.Unmarshal([]byte(out), &l))
		if len(l.Clusters) != 1 || l.Clusters[0].Cluster != "cn-sha-1" || l.Clusters[0].Reason != hubv1.ReasonForbidden {
			t.Errorf("got %+v", l)
		}
	})
	t.Run("no line is no limit", func(t *testing.T) {
		_, err := hansectl(t, "top", "--limit", "0")
		refused(t, err, "--limit 0: want at least 1")
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
	refused(t, err, "want wide, json or yaml")
}
