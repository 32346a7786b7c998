package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// TestTheMainJob runs the demo with its own files. It sends CRDs to the members, and one Prometheus with regional
// differences, which real operators run. It checks the merged status on the hub.
func TestTheMainJob(t *testing.T) {
	ctx := t.Context()
	examples := "../../docs/examples/metrics"
	crds, err := suite.LabCommand(ctx, "crds", "prometheus-operator")
	must(t, err)
	for _, crd := range documents(t, crds) {
		crd.SetLabels(map[string]string{"app.kubernetes.io/part-of": "prometheus-operator"})
		must(t, suite.Hub.Apply(ctx, client.ApplyConfigurationFromUnstructured(crd), client.FieldOwner("e2e"), client.ForceOwnership))
	}
	applyFile(t, "testdata/operator-crds.yaml")
	eventually(t, normal, func() error {
		var list unstructured.UnstructuredList
		list.SetAPIVersion("monitoring.coreos.com/v1")
		list.SetKind("PrometheusList")
		return suite.Hub.List(ctx, &list)
	})
	for _, file := range []string{"prometheus.yaml", "placement.yaml", "overrides.yaml"} {
		applyFile(t, filepath.Join(examples, file))
	}
	web := &unstructured.Unstructured{}
	web.SetAPIVersion("monitoring.coreos.com/v1")
	web.SetKind("Prometheus")
	web.SetNamespace("monitoring")
	web.SetName("web")

	eventually(t, 3*time.Minute, func() error { return available(ctx, web, 11) })
	for member, want := range map[string]int64{shanghai: 5, singapore: 3, frankfurt: 3} {
		must(t, replicasOn(ctx, member, web, want))
	}
	must(t, suite.Hub.Get(ctx, client.ObjectKeyFromObject(web), web))
	for _, left := range []string{"shards", "selector", "shardStatuses"} {
		if _, found, _ := unstructured.NestedFieldNoCopy(web.Object, "status", left); found {
			t.Errorf("status.%s cannot be merged and must be left out", left)
		}
	}
	eventually(t, normal, func() error { // the hub writes the rows after the status of the hub object
		out, err := suite.Hansectl(ctx, "status", "prometheus", "web", "-n", "monitoring")
		for _, want := range []string{"APPLIED 3/3", "HEALTHY 3/3", shanghai, "cn-shanghai", "5/5", "3/3"} {
			if err == nil && !strings.Contains(out, want) {
				err = fmt.Errorf("hansectl status does not say %q:\n%s", want, out)
			}
		}
		return err
	})

	policy := &hubv1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "monitoring", Name: "metrics-by-region"}}
	must(t, suite.Hub.Patch(ctx, policy, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"replace","path":"/spec/rules/0/patches/0/value","value":6}]`))))
	eventually(t, 90*time.Second, func() error { return available(ctx, web, 12) })

	must(t, suite.Hub.Delete(ctx, web))
	for _, m := range members {
		eventually(t, normal, func() error { return goneFrom(ctx, m, web) })
	}
}

// available returns nil if the hub object has this number of availableReplicas and the condition Available=True.
func available(ctx context.Context, web *unstructured.Unstructured, want int64) error {
	now := web.DeepCopy()
	if err := suite.Hub.Get(ctx, client.ObjectKeyFromObject(web), now); err != nil {
		return err
	}
	got, _, _ := unstructured.NestedInt64(now.Object, "status", "availableReplicas")
	conditions, _, _ := unstructured.NestedSlice(now.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == "Available" && m["status"] == "True" && got == want {
			return nil
		}
	}
	return fmt.Errorf("the hub's Prometheus has availableReplicas %d, want %d; conditions %v", got, want, conditions)
}

func applyFile(t *testing.T, path string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	must(t, err)
	for _, obj := range documents(t, string(raw)) {
		must(t, suite.Hub.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner("e2e"), client.ForceOwnership))
	}
}

// documents parses all documents of a YAML text.
func documents(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for doc := range strings.SplitSeq("\n"+text, "\n---") {
		u := &unstructured.Unstructured{}
		must(t, yaml.Unmarshal([]byte(doc), &u.Object))
		if len(u.Object) > 0 {
			out = append(out, u)
		}
	}
	return out
}
