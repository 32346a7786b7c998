package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// TestADecisionIsExplained runs `hansectl explain`, which repeats decisions of the running hub from the objects in the
// hub's API server.
func TestADecisionIsExplained(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	w := widget(ns, "explained")
	place(t, ns, "explained", everyWidget, hubv1.PlacementSpec{
		Clusters: everyCluster(),
		Spread: &hubv1.SpreadPolicy{
			NumberOfClusters: ptr.To[int32](2),
			Preferences: []hubv1.ClusterPreference{
				{Weight: 20, Expression: "region == 'eu-central-1'"}, {Weight: 10, Expression: "region == 'ap-southeast-1'"},
			},
		},
		Replicas: hubv1.ReplicasPolicy{Type: hubv1.ReplicasDivide, Path: "/spec/replicas"},
	})
	place(t, ns, "zz-later", everyWidget, hubv1.PlacementSpec{Clusters: everyCluster(), Priority: -1})
	must(t, suite.Hub.Create(ctx, w))
	eventually(t, normal, func() error {
		return decidedFor(ctx, w, []string{singapore, frankfurt}, hubv1.ReasonScheduled, "2 of 3 clusters: 1 not needed")
	})
	explain := func(args ...string) (string, error) {
		return suite.Hansectl(ctx, append([]string{"explain"}, args...)...)
	}
	says := func(t *testing.T, words []string, args ...string) {
		t.Helper()
		out, err := explain(args...)
		must(t, err)
		for _, want := range words {
			if !contains(out, want) {
				t.Errorf("hansectl explain %v does not say %q:\n%s", args, want, out)
			}
		}
	}
	says(t, []string{
		"2 clusters selected by Placement " + ns + "/explained (generation 1, priority 0)", "hansectl computes the same decision as the hub",
		"Placement/zz-later - not followed: its priority -1 is lower than 0",
		"2 of 3 clusters: 1 not needed", "NotChosen: numberOfClusters is 2, and other clusters come first",
		"preferences[0]", "3 replicas (/spec/replicas), shared among the clusters by Weight",
	}, "widget", "explained", "-n", ns)
	says(t, []string{
		shanghai + ": REJECTED by Placement " + ns + "/explained", "leaving ok > excludedNames ok", "drain ok > Ready ok > NoSchedule taints ok > served ok",
	}, "widget/explained", "-n", ns, "--cluster", shanghai)

	out, err := explain("widget", "explained", "-n", ns, "-o", "json")
	must(t, err)
	var reported struct {
		Same     bool `json:"same"`
		Selected int  `json:"selected"`
	}
	must(t, json.Unmarshal([]byte(out), &reported))
	if !reported.Same || reported.Selected != 2 {
		t.Errorf("as JSON it says %s", out)
	}

	for words, args := range map[string][]string{
		`the hub has no MemberCluster "mars-1"`: {"widget", "explained", "-n", ns, "--cluster", "mars-1"},
		"the hub has no Widget.test.hanse.dev":  {"widget", "nothing", "-n", ns},
		`does not serve a kind "wodget"`:        {"wodget", "explained", "-n", ns},
		"is not placed: NotSelected":            {"namespace", ns},
	} {
		if out, err := explain(args...); err == nil || !strings.Contains(out+err.Error(), words) {
			t.Errorf("hansectl explain %v: %v, want %q\n%s", args, err, words, out)
		}
	}
}
