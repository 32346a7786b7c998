package e2e

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// mergedIs returns nil if the status of the hub object equals want, apart from its conditions.
func mergedIs(ctx context.Context, obj *unstructured.Unstructured, want map[string]any) error {
	current := obj.DeepCopy()
	if err := suite.Hub.Get(ctx, client.ObjectKeyFromObject(obj), current); err != nil {
		return err
	}
	status, _, _ := unstructured.NestedMap(current.Object, "status")
	delete(status, "conditions")
	if diff := cmp.Diff(want, status); diff != "" {
		return fmt.Errorf("status of %s on the hub (-want +got):\n%s", obj.GetName(), diff)
	}
	return nil
}

func aggregate(t *testing.T, p *hubv1.Placement, aggregation string) {
	t.Helper()
	must(t, suite.Hub.Patch(t.Context(), p, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"statusAggregation":`+aggregation+`}}`))))
}

func TestAPlacementMergesTheFieldsThatItNames(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	w := widget(ns, "lamp")
	p := placeWidgets(t, ns, shanghai, frankfurt)
	must(t, suite.Hub.Create(ctx, w))
	for member, status := range map[string]string{
		shanghai:  `{"observedGeneration":1,"readyReplicas":3,"version":"v2","zones":["sha-a","sha-b"]}`,
		frankfurt: `{"observedGeneration":1,"readyReplicas":2,"version":"v1","zones":["fra-a"]}`,
	} {
		eventually(t, normal, func() error { return reports(ctx, member, w, status) })
	}
	eventually(t, normal, func() error {
		return mergedIs(ctx, w, map[string]any{"observedGeneration": int64(1), "readyReplicas": int64(5)})
	})
	versions := memberVersions(ctx, t, ns)

	// The rows have no values of a list until a placement asks for a reducer of this list.
	aggregate(t, p, `{"reducers":[{"path":"/status/version","reducer":"Min"},{"path":"/status/zones","reducer":"Join"},
		{"path":"/status/readyReplicas","reducer":"CEL","expression":"values.map(v, v.value).max()"}]}`)
	zones := []any{"fra-a", "sha-a", "sha-b"}
	eventually(t, normal, func() error {
		return mergedIs(ctx, w, map[string]any{"observedGeneration": int64(1), "readyReplicas": int64(3), "zones": zones})
	})
	aggregate(t, p, `{"reducers":[{"path":"/status/version","reducer":"Join"},{"path":"/status/zones","reducer":"Join"}]}`)
	want := map[string]any{"observedGeneration": int64(1), "readyReplicas": int64(5), "version": "v1, v2", "zones": zones}
	eventually(t, normal, func() error { return mergedIs(ctx, w, want) })
	for name, version := range memberVersions(ctx, t, ns) {
		if versions[name] != version {
			t.Errorf("%s was written", name)
		}
	}

	// The reducers stay in effect after their placement is deleted.
	must(t, suite.Hub.Delete(ctx, p))
	eventually(t, normal, func() error {
		return bindingCondition(ctx, w, hubv1.ConditionScheduled, "True", hubv1.ReasonPlacementGone)
	})
	must(t, reports(ctx, frankfurt, w, `{"version":"v3","zones":["fra-b"]}`))
	want["version"], want["zones"] = "v2, v3", []any{"fra-b", "sha-a", "sha-b"}
	eventually(t, normal, func() error { return mergedIs(ctx, w, want) })
}

func TestAStatusIsTakenBackWhenThePlacementKeepsItInTheBinding(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	w := widget(ns, "lamp")
	p := placeWidgets(t, ns, shanghai)
	must(t, suite.Hub.Create(ctx, w))
	eventually(t, normal, func() error { return reports(ctx, shanghai, w, `{"observedGeneration":1,"readyReplicas":3}`) })
	reported := map[string]any{"observedGeneration": int64(1), "readyReplicas": int64(3)}
	eventually(t, normal, func() error { return mergedIs(ctx, w, reported) })

	aggregate(t, p, `{"mode":"BindingOnly"}`)
	eventually(t, normal, func() error {
		return bindingCondition(ctx, w, hubv1.ConditionStatusWritten, "False", hubv1.ReasonBindingOnly)
	})
	eventually(t, normal, func() error { return mergedIs(ctx, w, nil) })
	aggregate(t, p, `{"mode":"OnObject"}`)
	eventually(t, normal, func() error { return mergedIs(ctx, w, reported) })
}
