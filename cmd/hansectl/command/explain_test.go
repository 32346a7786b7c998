package command

import (
	"encoding/json"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view"
)

func TestExplainReplaysADecisionFromWhatTheHubHolds(t *testing.T) {
	fresh(t)
	object, binding := settings(t)

	t.Run("what is not placed is an error", func(t *testing.T) {
		_, err := hansectl(t, "explain", "configmap", "settings", "-n", "shop")
		refused(t, err, "ConfigMap shop/settings is not placed: NotSelected: no placement selects it")
	})

	for _, name := range []string{"ap-se-1", "cn-sha-1"} {
		m := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		m.Spec.Connection = hubv1.Connection{Type: hubv1.ConnectionDirect, Direct: &hubv1.DirectConnection{KubeconfigSecretRef: hubv1.SecretKeyRef{Name: name, Key: "kubeconfig"}}}
		m.Spec.AllowedNamespaces.From = hubv1.NamespacesFromAll
		apply(t, onHub, m)
		must(t, report(t.Context(), name, metav1.ConditionTrue, hubv1.ReasonConnected, "id-"+name))
	}
	apply(t, onHub, &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "all"}, Spec: hubv1.PlacementSpec{
		ResourceSelectors: []hubv1.ResourceSelector{{Kind: "ConfigMap"}},
		Clusters:          hubv1.ClusterSelection{LabelSelector: &metav1.LabelSelector{}},
		Spread:            &hubv1.SpreadPolicy{Scores: []hubv1.WeighedScore{{Name: hubv1.ScoreFewestObjects, Weight: 10}}},
	}})
	apply(t, onHub, binding)
	aHubRan(t, time.Now().Add(time.Minute)) // otherwise a warning that no hub runs precedes the JSON

	t.Run("of all clusters", func(t *testing.T) {
		out, err := hansectl(t, "explain", "cm/settings", "-n", "shop")
		must(t, err)
		wants(t, out, "ConfigMap shop/settings: 2 clusters selected by Placement shop/all (generation 1, priority 0), hansectl computes the same decision as the hub", "FewestObjects   10")
	})
	t.Run("of one cluster", func(t *testing.T) {
		out, err := hansectl(t, "explain", "cm", "settings", "-n", "shop", "--cluster", "cn-sha-1")
		must(t, err)
		wants(t, out, "cn-sha-1: SELECTED by Placement shop/all", "Filter:    leaving ok > excludedNames ok")
	})
	t.Run("as JSON", func(t *testing.T) {
		out, err := hansectl(t, "explain", "cm", "settings", "-n", "shop", "-o", "json")
		must(t, err)
		var e view.Explanation
		must(t, json.Unmarshal([]byte(out), &e))
		if !e.Same || e.Selected != 2 || len(e.Clusters) != 2 {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("of a cluster that a rule excludes", func(t *testing.T) {
		x := &hubv1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "x"}, Spec: hubv1.OverridePolicySpec{
			ResourceSelectors: []hubv1.ResourceSelector{{Kind: "ConfigMap"}},
			Rules:             []hubv1.OverrideRule{{Name: "r", Exclude: true, Clusters: &hubv1.RuleClusters{Names: []string{"cn-sha-1"}}}},
		}}
		must(t, onHub.Create(t.Context(), x))
		defer remove(t, onHub, x)
		out, err := hansectl(t, "explain", "cm", "settings", "-n", "shop", "--cluster", "cn-sha-1")
		must(t, err)
		wants(t, out, "cn-sha-1: WITHDRAWN by Placement shop/all", `override rules ExcludedByOverride: excluded by OverridePolicy shop/x, rule "r"`)
	})
	t.Run("what is not there is an error", func(t *testing.T) {
		_, err := hansectl(t, "explain", "cm", "settings", "-n", "shop", "--cluster", "mars-1")
		refused(t, err, `the hub has no MemberCluster "mars-1"`)
		_, err = hansectl(t, "explain", "cm", "other", "-n", "shop")
		refused(t, err, "the hub has no ConfigMap shop/other")
		_, err = hansectl(t, "explain", "prometheus", "web")
		refused(t, err, `the hub does not serve a kind "prometheus"`)
		_, err = hansectl(t, "explain", "cm")
		refused(t, err, "NAME is missing")
	})
	t.Run("a deleted object has no decision", func(t *testing.T) {
		must(t, onHub.Delete(t.Context(), object))
		_, err := hansectl(t, "explain", "cm", "settings", "-n", "shop")
		refused(t, err, "ConfigMap shop/settings is deleted: there is nothing to decide")

		must(t, onHub.Get(t.Context(), client.ObjectKeyFromObject(binding), binding))
		binding.BindingSpec().Clusters[1].State = hubv1.TargetAbsent
		binding.BindingSpec().Clusters[1].Absent = &hubv1.Absence{Reason: hubv1.ReasonObjectDeleted, UID: object.GetUID(), Policy: hubv1.RemovalDelete}
		must(t, onHub.Update(t.Context(), binding))
		_, err = hansectl(t, "explain", "cm", "settings", "-n", "shop")
		refused(t, err, "ConfigMap shop/settings is deleted and being withdrawn from 1 of 2 clusters")
	})
}
