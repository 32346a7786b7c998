package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/health"
)

// reports writes a status into the copy on a member, as the member's operator would.
func reports(ctx context.Context, member string, obj *unstructured.Unstructured, status string) error {
	copied, err := on(ctx, member, obj)
	if err != nil {
		return fmt.Errorf("on %s: %w", member, err)
	}
	return suite.Members[member].Status().Patch(ctx, copied, client.RawPatch(types.MergePatchType, []byte(`{"status":`+status+`}`)))
}

// healthIs returns nil if the object's row for the cluster has this health, and this reason unless reason is empty.
func healthIs(ctx context.Context, obj *unstructured.Unstructured, cluster string, want hubv1.Health, reason string) error {
	b, err := bindingOf(ctx, obj)
	if err != nil {
		return err
	}
	row := b.BindingStatus().Row(cluster)
	if row == nil || row.Health != want || reason != "" && row.Reason != reason {
		return fmt.Errorf("row of %s on %s is %+v, want %s %s", obj.GetName(), cluster, row, want, reason)
	}
	return nil
}

// judgeBy sets the health expression of a placement. If the expression is empty, the hub uses the default health rules.
func judgeBy(t *testing.T, p *hubv1.Placement, expression string) {
	t.Helper()
	patch := fmt.Sprintf(`{"spec":{"statusAggregation":{"healthExpression":%s}}}`, toJSON(t, expression))
	if expression == "" {
		patch = `{"spec":{"statusAggregation":{"healthExpression":null}}}`
	}
	must(t, suite.Hub.Patch(t.Context(), p, client.RawPatch(types.MergePatchType, []byte(patch))))
}

func TestAPlacementJudgesItsObjectsByAnExpression(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	w := widget(ns, "lamp")
	p := placeWidgets(t, ns, shanghai, frankfurt)
	judgeBy(t, p, "object.status.version == 'v1'")
	must(t, suite.Hub.Create(ctx, w))
	for _, m := range []string{shanghai, frankfurt} {
		eventually(t, normal, func() error { return reports(ctx, m, w, `{"version":"v1"}`) })
		eventually(t, normal, func() error { return healthIs(ctx, w, m, hubv1.HealthHealthy, "") })
	}
	must(t, reports(ctx, frankfurt, w, `{"version":"v2"}`))
	eventually(t, normal, func() error { return healthIs(ctx, w, frankfurt, hubv1.HealthDegraded, health.ReasonByExpression) })
	must(t, healthIs(ctx, w, shanghai, hubv1.HealthHealthy, ""))

	// A new health expression changes the health of existing copies without a write to a member.
	versions := memberVersions(ctx, t, ns)
	judgeBy(t, p, "{'health': object.status.version == 'v2' ? 'Healthy' : 'Progressing', 'message': 'still ' + object.status.version}")
	eventually(t, normal, func() error { return healthIs(ctx, w, frankfurt, hubv1.HealthHealthy, "") })
	eventually(t, normal, func() error { return healthIs(ctx, w, shanghai, hubv1.HealthProgressing, health.ReasonByExpression) })
	must(t, rowSays(ctx, w, shanghai, "still v1"))
	judgeBy(t, p, "object.status.none")
	eventually(t, normal, func() error { return healthIs(ctx, w, shanghai, hubv1.HealthUnknown, health.ReasonExpressionFailed) })
	judgeBy(t, p, "") // by the default health rules, which do not read status.version
	for _, m := range []string{shanghai, frankfurt} {
		eventually(t, normal, func() error { return healthIs(ctx, w, m, hubv1.HealthUnknown, health.ReasonStatusNotUnderstood) })
	}
	for name, version := range memberVersions(ctx, t, ns) {
		if versions[name] != version {
			t.Errorf("%s was written", name)
		}
	}
}

func TestAHealthExpressionOutlastsItsPlacementAndARestart(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	w := widget(ns, "lamp")
	p := placeWidgets(t, ns, shanghai)
	judgeBy(t, p, "object.status.version == 'v1'")
	must(t, suite.Hub.Create(ctx, w))
	eventually(t, normal, func() error { return reports(ctx, shanghai, w, `{"version":"v2","conditions":[]}`) })
	eventually(t, normal, func() error { return healthIs(ctx, w, shanghai, hubv1.HealthDegraded, health.ReasonByExpression) })
	must(t, suite.Hub.Delete(ctx, p))
	eventually(t, normal, func() error {
		return bindingCondition(ctx, w, hubv1.ConditionScheduled, "True", hubv1.ReasonPlacementGone)
	})

	eventually(t, time.Minute, func() error { return settled(ctx) })
	before, err := bindingOf(ctx, w)
	must(t, err)
	must(t, suite.hub.Stop())
	startHub(t)
	eventually(t, time.Minute, func() error { return settled(ctx) })
	after, err := bindingOf(ctx, w)
	must(t, err)
	if before.GetResourceVersion() != after.GetResourceVersion() {
		t.Errorf("a restart wrote the binding: %+v, was %+v", after.BindingStatus().Clusters, before.BindingStatus().Clusters)
	}
	must(t, reports(ctx, shanghai, w, `{"version":"v1"}`))
	eventually(t, normal, func() error { return healthIs(ctx, w, shanghai, hubv1.HealthHealthy, "") })
}
