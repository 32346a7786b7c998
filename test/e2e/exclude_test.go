package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// TestAnExcludedClusterDoesNotGetTheObject excludes a cluster by an override rule, once before the object is on the
// cluster and once after.
func TestAnExcludedClusterDoesNotGetTheObject(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	inFrankfurt := inRegion("eu-central-1")
	out := override(t, ns, "quarter", hubv1.OverrideRule{Name: "not-in-fra", Exclude: true, Clusters: &inFrankfurt}, replicasRule("busy", 5, inRegion("cn-shanghai")))
	placeWidgets(t, ns)
	w := widget(ns, "kept-out")
	must(t, suite.Hub.Create(ctx, w))
	eventually(t, normal, func() error {
		return errors.Join(replicasOn(ctx, singapore, w, 3), replicasOn(ctx, shanghai, w, 5))
	})
	why := fmt.Sprintf(`%s: excluded by OverridePolicy %s/quarter, rule "not-in-fra"`, frankfurt, ns)
	excluded := func() error {
		b, err := bindingOf(ctx, w)
		if err != nil {
			return err
		}
		if d := b.BindingStatus().Decision; d == nil || !slices.ContainsFunc(d.Rejected, func(r hubv1.RejectedClusters) bool {
			return r.Reason == hubv1.ReasonExcludedByOverride && slices.Contains(r.Examples, why)
		}) {
			return fmt.Errorf("the decision is %+v", d)
		}
		if b.BindingSpec().Target(frankfurt) != nil {
			return fmt.Errorf("the binding names %s", frankfurt)
		}
		return nil
	}
	eventually(t, normal, excluded)
	must(t, goneFrom(ctx, frankfurt, w))
	eventually(t, normal, func() error { return bindingCondition(ctx, w, hubv1.ConditionApplied, metav1.ConditionTrue, "") })
	eventually(t, normal, func() error {
		var now hubv1.OverridePolicy
		if err := suite.Hub.Get(ctx, client.ObjectKeyFromObject(out), &now); err != nil {
			return err
		}
		if len(now.Status.Rules) != 2 || now.Status.Rules[0].Clusters != 1 || now.Status.Rules[0].Objects != 1 {
			return fmt.Errorf("rules are %+v", now.Status.Rules)
		}
		return nil
	})
	rendersAsSent(t, ns, "kept-out", map[string]string{singapore: "", shanghai: "", frankfurt: fmt.Sprintf(`OverridePolicy %s/quarter, rule "not-in-fra"`, ns)})

	// Removing the exclude rule applies the object to Frankfurt, and adding the rule again withdraws it there. The other
	// copies do not change.
	must(t, suite.Hub.Patch(ctx, out, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/spec/rules/0"}]`))))
	eventually(t, normal, func() error { return replicasOn(ctx, frankfurt, w, 3) })
	eventually(t, normal, func() error { return rowIs(ctx, w, frankfurt, metav1.ConditionTrue, "") })
	kept, err := on(ctx, shanghai, w)
	must(t, err)
	again := override(t, ns, "again", hubv1.OverrideRule{Name: "not-in-fra", Exclude: true, Clusters: &hubv1.RuleClusters{Expression: "region.startsWith('eu-')"}})
	eventually(t, normal, func() error { return goneFrom(ctx, frankfurt, w) })
	why = fmt.Sprintf(`%s: excluded by OverridePolicy %s/again, rule "not-in-fra"`, frankfurt, ns)
	eventually(t, normal, excluded)
	now, err := on(ctx, shanghai, w)
	must(t, err)
	if now.GetUID() != kept.GetUID() {
		t.Errorf("the copy on %s is another one than before", shanghai)
	}
	must(t, suite.Hub.Delete(ctx, again))
	eventually(t, normal, func() error { return replicasOn(ctx, frankfurt, w, 3) })
}

// rendersAsSent compares the output of `hansectl render` with the copies on the members. For each cluster, want has the
// rule that excludes the cluster, or an empty string.
func rendersAsSent(t *testing.T, ns, name string, want map[string]string) {
	t.Helper()
	text, err := suite.Hansectl(t.Context(), "render", "widget", name, "-n", ns, "--all", "-o", "json")
	must(t, err)
	var reported struct {
		Clusters []struct {
			Cluster, Excluded string
			Manifest          map[string]any
		}
	}
	must(t, json.Unmarshal([]byte(text), &reported))
	excluded := map[string]string{}
	for _, c := range reported.Clusters {
		excluded[c.Cluster] = c.Excluded
		sent, err := on(t.Context(), c.Cluster, widget(ns, name))
		if c.Excluded != "" && apierrors.IsNotFound(err) {
			continue
		}
		must(t, err)
		var spec any
		must(t, json.Unmarshal([]byte(toJSON(t, sent.Object["spec"])), &spec))
		if diff := cmp.Diff(spec, c.Manifest["spec"]); diff != "" {
			t.Errorf("on %s (-sent +rendered):\n%s", c.Cluster, diff)
		}
	}
	if diff := cmp.Diff(want, excluded); diff != "" {
		t.Errorf("excluded clusters (-want +rendered):\n%s", diff)
	}
}
