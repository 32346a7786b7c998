package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestExpressionsChooseClustersAndMakeValues(t *testing.T) {
	ctx := t.Context()
	ns := namespace(t)
	w := widget(ns, "computed")
	placeWidgets(t, ns)
	setLabel := func(ctx context.Context, value string) {
		t.Helper()
		m := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: shanghai}}
		must(t, suite.Hub.Patch(ctx, m, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, ns, value))))
	}
	setLabel(ctx, `"first"`)
	t.Cleanup(func() { setLabel(context.WithoutCancel(ctx), "null") })
	override(t, ns, "computed",
		hubv1.OverrideRule{
			Name: "busy", Clusters: &hubv1.RuleClusters{Expression: "region.startsWith('cn-') && semver(version, true).major() == 1"},
			Patches: []hubv1.PatchOperation{{Op: hubv1.PatchReplace, Path: "/spec/replicas", Expression: "object.spec.replicas + 2"}},
		},
		hubv1.OverrideRule{
			Name: "labelled", Clusters: &hubv1.RuleClusters{Names: []string{shanghai}},
			Patches: []hubv1.PatchOperation{{Op: hubv1.PatchAdd, Path: "/spec/note", Expression: fmt.Sprintf("cluster.region + ' is ' + cluster.labels[%q]", ns)}},
		})
	must(t, suite.Hub.Create(ctx, w))
	eventually(t, normal, func() error { return replicasOn(ctx, shanghai, w, 5) })
	eventually(t, normal, func() error { return replicasOn(ctx, frankfurt, w, 3) })
	must(t, specOn(ctx, shanghai, w, "note", "cn-shanghai is first"))
	elsewhere, err := on(ctx, frankfurt, w)
	must(t, err)

	setLabel(ctx, `"second"`)
	eventually(t, normal, func() error { return specOn(ctx, shanghai, w, "note", "cn-shanghai is second") })

	// Without the label, the expression has an error: the row reports it, and the copy stays as it is.
	setLabel(ctx, "null")
	eventually(t, normal, func() error { return rowIs(ctx, w, shanghai, metav1.ConditionFalse, hubv1.ReasonOverrideInvalid) })
	b, err := bindingOf(ctx, w)
	must(t, err)
	if m := b.BindingStatus().Row(shanghai).Message; !strings.Contains(m, "no such key") || !strings.Contains(m, "/spec/note") {
		t.Errorf("the row says %q", m)
	}
	must(t, specOn(ctx, shanghai, w, "note", "cn-shanghai is second"))
	setLabel(ctx, `"third"`)
	eventually(t, normal, func() error { return specOn(ctx, shanghai, w, "note", "cn-shanghai is third") })
	eventually(t, normal, func() error { return rowIs(ctx, w, shanghai, metav1.ConditionTrue, "") })

	now, err := on(ctx, frankfurt, w)
	must(t, err)
	if now.GetResourceVersion() != elsewhere.GetResourceVersion() {
		t.Error("the copy on another cluster was written")
	}
}
