package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// prometheusOfForms is a Prometheus, and policyOfForms an OverridePolicy that uses every form of override. NS stands
// for the namespace.
const (
	prometheusOfForms = `
apiVersion: monitoring.coreos.com/v1
kind: Prometheus
metadata: {namespace: NS, name: forms}
spec:
  replicas: 1
  image: quay.io/prometheus/prometheus:v3.5.0
  retention: 10d
  externalLabels: {team: metrics}
  resources: {requests: {memory: 400Mi}}
  web: {pageTitle: '{"title":"metrics","theme":"dark"}'}
  containers:
  - {name: sidecar, image: example.com/sidecar:1, args: [--quiet], env: [{name: REGION, value: none}, {name: DEBUG, value: "1"}]}
`
	policyOfForms = `
apiVersion: hanse.dev/v1alpha1
kind: OverridePolicy
metadata: {namespace: NS, name: forms}
spec:
  resourceSelectors: [{apiGroup: monitoring.coreos.com, kind: Prometheus}]
  rules:
  - name: shanghai
    clusters: {labelSelector: {matchLabels: {topology.kubernetes.io/region: cn-shanghai}}}
    images: [{path: /spec/image, registry: registry.cn-shanghai.example.com, tag: v3.5.1}]
    command: [{path: /spec/containers/0, value: [/bin/sidecar]}]
    args: [{path: /spec/containers/0, value: [--loud, --twice]}]
    env: [{path: /spec/containers/0, set: [{name: REGION, value: cn}], remove: [DEBUG]}]
    resources: [{path: /spec, requests: {memory: 1Gi}, limits: {memory: 2Gi}}]
    labels: {tier: busy}
    annotations: {example.com/owner: shanghai}
  - name: singapore
    clusters: {expression: "region == 'ap-southeast-1'"}
    mergePatch: {spec: {retention: 30d, externalLabels: {team: null}}}
    patches:
    - {op: test, path: /spec/replicas, value: 1}
    - {op: replace, path: /spec/replicas, value: 2}
    - {op: add, path: /spec/externalLabels/region, expression: "cluster.region + '/' + object.metadata.name"}
    edits: [{path: /spec/web/pageTitle, format: JSON, patches: [{op: replace, path: /title, value: singapore}]}]
  - name: where-there-are-seven
    patches: [{op: test, path: /spec/replicas, value: 7}, {op: replace, path: /spec/retention, value: 1d}]
  - name: not-in-frankfurt
    clusters: {names: [eu-fra-1]}
    exclude: true
`
)

// TestAPrometheusDiffersByRegionInEveryForm uses the CRD of prometheus-operator, three regions, every form of override,
// and one invalid override.
func TestAPrometheusDiffersByRegionInEveryForm(t *testing.T) {
	ctx := t.Context()
	ns := namespace(t)
	crds, err := suite.LabCommand(ctx, "crds", "prometheus-operator", "prometheuses")
	must(t, err)
	for _, crd := range documents(t, crds) {
		crd.SetLabels(map[string]string{"app.kubernetes.io/part-of": "prometheus-operator"})
		must(t, suite.Hub.Apply(ctx, client.ApplyConfigurationFromUnstructured(crd), client.FieldOwner("e2e"), client.ForceOwnership))
	}
	applyFile(t, "testdata/operator-crds.yaml")
	place(t, ns, "prometheuses", hubv1.ResourceSelector{APIGroup: "monitoring.coreos.com", Kind: "Prometheus"}, hubv1.PlacementSpec{Clusters: everyCluster()})
	var policy hubv1.OverridePolicy
	must(t, yaml.UnmarshalStrict([]byte(strings.ReplaceAll(policyOfForms, "NS", ns)), &policy))
	must(t, suite.Hub.Create(ctx, &policy))
	web := documents(t, strings.ReplaceAll(prometheusOfForms, "NS", ns))[0]
	eventually(t, normal, func() error { return client.IgnoreAlreadyExists(suite.Hub.Create(ctx, web.DeepCopy())) })
	t.Cleanup(func() { _ = suite.Hub.Delete(context.WithoutCancel(ctx), web.DeepCopy()) })

	wants := map[string]map[string]any{
		shanghai: {
			"replicas": int64(1), "image": "registry.cn-shanghai.example.com/prometheus/prometheus:v3.5.1", "retention": "10d",
			"externalLabels": map[string]any{"team": "metrics"},
			"resources":      map[string]any{"requests": map[string]any{"memory": "1Gi"}, "limits": map[string]any{"memory": "2Gi"}},
			"web":            map[string]any{"pageTitle": `{"title":"metrics","theme":"dark"}`},
			"containers": []any{map[string]any{
				"name": "sidecar", "image": "example.com/sidecar:1", "command": []any{"/bin/sidecar"}, "args": []any{"--loud", "--twice"},
				"env": []any{map[string]any{"name": "REGION", "value": "cn"}},
			}},
		},
		singapore: {
			"replicas": int64(2), "image": "quay.io/prometheus/prometheus:v3.5.0", "retention": "30d",
			"externalLabels": map[string]any{"region": "ap-southeast-1/forms"},
			"resources":      map[string]any{"requests": map[string]any{"memory": "400Mi"}},
			"web":            map[string]any{"pageTitle": `{"title":"singapore","theme":"dark"}`},
			"containers": []any{map[string]any{
				"name": "sidecar", "image": "example.com/sidecar:1", "args": []any{"--quiet"},
				"env": []any{map[string]any{"name": "REGION", "value": "none"}, map[string]any{"name": "DEBUG", "value": "1"}},
			}},
		},
	}
	for member, want := range wants {
		eventually(t, normal, func() error { return specIs(ctx, member, web, want) })
		eventually(t, normal, func() error { return rowIs(ctx, web, member, metav1.ConditionTrue, "") })
	}
	copied, err := on(ctx, shanghai, web)
	must(t, err)
	if copied.GetLabels()["tier"] != "busy" || copied.GetAnnotations()["example.com/owner"] != "shanghai" {
		t.Errorf("labels and annotations in Shanghai are %v, %v", copied.GetLabels(), copied.GetAnnotations())
	}
	eventually(t, normal, func() error { return goneFrom(ctx, frankfurt, web) })

	// The hub does not apply a copy that is invalid by the CRD, and the existing copy stays as it is.
	wrong := overrideOf(ns, "wrong", hubv1.OverrideRule{
		Name: "typo", Priority: 1, Clusters: &hubv1.RuleClusters{Names: []string{shanghai}},
		MergePatch: &apiextensionsv1.JSON{Raw: []byte(`{"spec":{"retention":"ten days"}}`)},
	})
	wrong.Spec.ResourceSelectors = policy.Spec.ResourceSelectors
	must(t, suite.Hub.Create(ctx, wrong))
	eventually(t, normal, func() error { return rowIs(ctx, web, shanghai, metav1.ConditionFalse, hubv1.ReasonOverrideInvalid) })
	must(t, rowSays(ctx, web, shanghai, "/spec/retention"))
	must(t, specIs(ctx, shanghai, web, wants[shanghai]))
	eventually(t, normal, func() error { return rowIs(ctx, web, singapore, metav1.ConditionTrue, "") })
	must(t, suite.Hub.Delete(ctx, wrong))
	eventually(t, normal, func() error { return rowIs(ctx, web, shanghai, metav1.ConditionTrue, "") })
	deleteHeld(t, shanghai, web)
}

// specIs returns nil if the copy on a member has these fields in spec. Other fields are ignored, because the CRD sets
// defaults.
func specIs(ctx context.Context, member string, obj *unstructured.Unstructured, want map[string]any) error {
	copied, err := on(ctx, member, obj)
	if err != nil {
		return fmt.Errorf("on %s: %w", member, err)
	}
	spec, _, _ := unstructured.NestedMap(copied.Object, "spec")
	got := map[string]any{}
	for field := range want {
		got[field] = spec[field]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		return errors.New("the spec on " + member + " (-want +got):\n" + diff)
	}
	return nil
}
