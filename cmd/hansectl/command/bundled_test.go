package command

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/chart"
	"github.com/hanse-dev/hanse/hub/store/inputs"
)

// bundleOnHub creates a stored Bundle with a ConfigMap and an object of a kind that the hub does not serve. Both
// objects have a binding. The Bundle's ConfigMap manifests has a third object, which has no binding.
func bundleOnHub(t *testing.T) *hubv1.Bundle {
	t.Helper()
	fresh(t)
	aHubRan(t, time.Now())
	must(t, client.IgnoreAlreadyExists(onHub.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})))
	apply(t, onHub, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "manifests"}, Data: map[string]string{"more.yaml": "{apiVersion: v1, kind: Service, metadata: {name: unplaced}}"},
	})
	b := &hubv1.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{"app": "web"}}, Spec: hubv1.BundleSpec{
		ConfigMaps: []hubv1.ConfigMapSource{{Name: "manifests"}},
		Manifests: []runtime.RawExtension{
			{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings"},"data":{"mode":"light"}}`)},
			{Raw: []byte(`{"apiVersion":"test.hanse.dev/v1","kind":"Rotor","metadata":{"name":"main"},"spec":{"size":1}}`)},
		},
	}}
	apply(t, onHub, b)
	b.Status = hubv1.BundleStatus{ObservedGeneration: b.Generation, Objects: 3, Placed: 2, Conditions: []metav1.Condition{
		{Type: hubv1.ConditionStored, Status: metav1.ConditionTrue, Reason: hubv1.ReasonStored, LastTransitionTime: metav1.Now()},
	}}
	must(t, onHub.Status().Update(t.Context(), b))
	placement := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "all"}, Spec: hubv1.PlacementSpec{
		ResourceSelectors: []hubv1.ResourceSelector{{APIGroup: hubv1.GroupVersion.Group, Kind: hubv1.BundleKind}},
		Clusters:          hubv1.ClusterSelection{Names: []string{"ap-se-1"}},
	}}
	apply(t, onHub, placement)
	memberOf(t, "ap-se-1", nil)
	for _, id := range []hubv1.ObjectIdentity{{Kind: "ConfigMap", Namespace: "shop", Name: "settings"}, {Group: "test.hanse.dev", Kind: "Rotor", Namespace: "shop", Name: "main"}} {
		key := id.BindingKey()
		binding := &hubv1.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Spec: hubv1.BindingSpec{
			ObjectRef: hubv1.ObjectReference{
				APIVersion: strings.TrimPrefix(id.Group+"/v1", "/"), Kind: id.Kind, Name: id.Name, UID: b.UID, Bundle: &hubv1.BundleReference{Kind: "Bundle", Namespace: "shop", Name: "web"},
			},
			PlacementRef: &hubv1.PlacementReference{Kind: "Placement", Namespace: "shop", Name: "all", UID: placement.UID, Generation: 1},
			Clusters:     []hubv1.BindingTarget{{Name: "ap-se-1", State: hubv1.TargetPresent}},
		}}
		apply(t, onHub, binding)
		binding.Status = hubv1.BindingStatus{
			Summary:  hubv1.BindingSummary{Desired: 1, Applied: 1, Healthy: 1},
			Clusters: []hubv1.ClusterRow{{Name: "ap-se-1", Generation: 4, Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy}},
		}
		must(t, onHub.Status().Update(t.Context(), binding))
	}
	return b
}

func TestObjectsOfABundleAreFoundByTheirBindings(t *testing.T) {
	b := bundleOnHub(t)
	apply(t, onHub, &hubv1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "dark"}, Spec: hubv1.OverridePolicySpec{
		ResourceSelectors: []hubv1.ResourceSelector{{Kind: "ConfigMap"}},
		Rules:             []hubv1.OverrideRule{{Name: "mode", MergePatch: &apiextensionsv1.JSON{Raw: []byte(`{"data":{"mode":"dark"}}`)}}},
	}})
	for name, c := range map[string]struct {
		args  string
		words []string
	}{
		"the status of an object":                     {"status cm settings", []string{"ConfigMap shop/settings   in Bundle shop/web   generation 4   Placement/all", "ap-se-1   cn-shanghai   4/4   True"}},
		"the status of a kind that the hub lacks":     {"status rotor main", []string{"Rotor shop/main   in Bundle shop/web   generation 4"}},
		"the status with the group of that kind":      {"status rotors.test.hanse.dev main", []string{"Rotor shop/main   in Bundle shop/web"}},
		"the status of the namespace":                 {"status", []string{"ConfigMap shop/settings (Bundle shop/web)", "Rotor.test.hanse.dev shop/main (Bundle shop/web)"}},
		"the status of the bundle":                    {"status bundle web", []string{"Bundle shop/web   generation 1   objects 3   placed 2", "Stored=True (Stored)", "Service shop/unplaced", "NotSelected"}},
		"the tree of the bundle":                      {"tree bundle web", []string{"Bundle shop/web\n", "ConfigMap settings\n", "Rotor main\n", "Service unplaced\n", "no placement selects it"}},
		"the tree of the placement":                   {"tree all", []string{"Placement shop/all\n", "ConfigMap settings (Bundle shop/web)\n"}},
		"an object with an override":                  {"render cm settings", []string{"mode: dark", "OverridePolicy shop/dark"}},
		"an object of a kind that the hub lacks":      {"render rotor/main", []string{"kind: Rotor", "size: 1"}},
		"the decision":                                {"explain rotor main", []string{"Rotor shop/main in Bundle shop/web: 1 cluster selected by Placement shop/all"}},
		"the wait for an object that is applied":      {"wait cm/settings --for applied", []string{"applied on 1 of 1 cluster"}},
		"a plan of other objects counts, and says so": {"plan --summary -f " + planFile(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: other, namespace: shop}}`), []string{"Plan: no copy changes"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := hansectl(t, append(strings.Fields(c.args), "-n", "shop")...)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			wants(t, out, c.words...)
		})
	}
	for name, c := range map[string]struct{ args, fault string }{
		"an object without a placement": {"status service unplaced", "the hub has no Service shop/unplaced: Bundle shop/web contains the object, but no placement selects it"},
		"a withdrawal":                  {"withdraw cm settings --yes", "is an object of Bundle shop/web, and the hub itself has no such object: remove the object from Bundle shop/web"},
		"a cluster that is not there":   {"tree bundle web --cluster mars-1", "the hub has no membercluster/mars-1: there are "},
		"a bundle that does not exist":  {"tree bundle none", "the hub has no Bundle shop/none"},
	} {
		t.Run(name+" is refused", func(t *testing.T) {
			_, err := hansectl(t, append(strings.Fields(c.args), "-n", "shop")...)
			refused(t, err, c.fault)
		})
	}
	t.Run("a plan has what a file changes, creates and removes of the bundle", func(t *testing.T) {
		file := planFile(t, `{apiVersion: hanse.dev/v1alpha1, kind: Bundle, metadata: {name: web, namespace: shop}, spec: {configMaps: [{name: manifests}], manifests: [
	{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {mode: light, size: "2"}},
	{apiVersion: v1, kind: ConfigMap, metadata: {name: extra}}]}}`)
		out, err := hansectl(t, "plan", "-n", "shop", "-f", file)
		must(t, err)
		wants(t, out, "1 copy removed, 1 copy created, 1 copy changed", "Rotor shop/main", "ConfigMap shop/extra", "ConfigMap shop/settings",
			"HELD: the hub holds 1 removal until a user confirms: hansectl confirm", "Bundle shop/web", "the last copy of 1 object", "hansectl does not check whether ServiceAccount shop/default may write the objects of Bundle")
		_, err = hansectl(t, "render", "cm", "settings", "-n", "shop", "-f", file)
		refused(t, err, "the files have a bundle")
	})
	t.Run("a manifest that the hub refuses is said, and the binding is still shown", func(t *testing.T) {
		b.Spec.Manifests = append(b.Spec.Manifests, runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"elsewhere"}}`)})
		must(t, onHub.Update(t.Context(), b))
		out, err := hansectl(t, "status", "cm", "settings", "-n", "shop")
		must(t, err)
		wants(t, out, fmt.Sprintf("generation %d of Bundle shop/web is not stored yet", b.Generation), "reading the objects of Bundle shop/web: manifests[2]", "ConfigMap shop/settings   in Bundle shop/web   generation 4")
		_, err = hansectl(t, "render", "cm", "settings", "-n", "shop")
		refused(t, err, "reading the objects of Bundle shop/web: manifests[2]")
	})
}

func TestTheChartOfAnOperatorIsRenderedWithItsKeptValues(t *testing.T) {
	t.Parallel()
	o := &hubv1.FederatedOperator{ObjectMeta: metav1.ObjectMeta{Name: "rotors", UID: "1"}}
	o.Spec.Chart = &hubv1.OperatorChart{Namespace: "turbines", Archive: &hubv1.ArchiveSource{ConfigMap: "rotors-chart"}}
	o.Status.GeneratedValues = &hubv1.GeneratedValuesStatus{ID: "a", Values: 1}
	secret := hubv1.ObjectIdentity{Kind: "Secret", Namespace: "turbines", Name: "password"}
	stored := chart.StoredValues{ID: "a", Operator: "1", Values: chart.Kept{{Object: secret, Path: "/stringData/k", Value: "kept"}}}
	forbidden := apierrors.NewForbidden(corev1.Resource("secrets"), "generated", errors.New("no right"))
	for name, c := range map[string]struct {
		operator string // UID of the operator whose values are kept
		sets     string // the value that the chart sets; empty if the chart generates it
		err      error
		value    string
		says     string
	}{
		"values of the operator":                  {operator: "1", value: "kept"},
		"values of an earlier operator":           {operator: "0", value: "<generated>"},
		"no values":                               {err: apierrors.NewNotFound(corev1.Resource("secrets"), "generated"), value: "<generated>"},
		"a kept value that the chart now sets":    {operator: "1", sets: "fixed", says: "field /stringData/k has a kept value, but the chart no longer generates it"},
		"values that the user is not let to read": {err: forbidden, says: "reading Secret hanse-system/generated-"},
	} {
		t.Run(name, func(t *testing.T) {
			stored.Operator = types.UID(c.operator)
			rendered, err := renderedChart(o, inputs.Source{
				ConfigMap: func(client.ObjectKey) (*corev1.ConfigMap, error) {
					return &corev1.ConfigMap{BinaryData: map[string][]byte{"rotors.tgz": rotorChart(t, "1.0.0", map[string]string{
						"secret.yaml": `{apiVersion: v1, kind: Secret, metadata: {name: password}, stringData: {k: "` + cmp.Or(c.sets, "{{ randAlphaNum 20 }}") + `"}}`,
					})}}, nil
				},
				Secret: func(key client.ObjectKey) (*corev1.Secret, error) {
					if c.err != nil {
						return nil, c.err
					}
					return stored.Secret(key)
				},
			})
			if c.says != "" {
				refused(t, err, c.says)
				return
			}
			must(t, err)
			i := slices.IndexFunc(rendered.Objects, func(u *unstructured.Unstructured) bool { return hubv1.IdentityOf(u) == secret })
			if value, _, _ := unstructured.NestedString(rendered.Objects[i].Object, "stringData", "k"); value != c.value {
				t.Errorf("the value is %q, want %q", value, c.value)
			}
		})
	}
}

func TestTheChartOfAnOperatorIsRenderedWithValuesOfConfigMaps(t *testing.T) {
	t.Parallel()
	has := map[string]*corev1.ConfigMap{
		"rotors-chart": {BinaryData: map[string][]byte{"rotors.tgz": rotorChart(t, "1.0.0", nil)}},
		"values":       {Data: map[string]string{"values.yaml": "replicas: 5"}},
	}
	source := inputs.Source{
		Chart: renderedChart,
		ConfigMap: func(key client.ObjectKey) (*corev1.ConfigMap, error) {
			if m := has[key.Name]; m != nil && key.Namespace == hubv1.SystemNamespace {
				return m, nil
			}
			return nil, apierrors.NewNotFound(corev1.Resource("configmaps"), key.Name)
		},
		Namespaced: func(schema.GroupKind) (namespaced, known bool, err error) { return false, false, nil },
	}
	tests := map[string]struct {
		chart hubv1.OperatorChart
		says  string
	}{
		"values of a ConfigMap, and of one that may be missing": {chart: hubv1.OperatorChart{
			Archive: &hubv1.ArchiveSource{ConfigMap: "rotors-chart"}, ValuesFrom: []hubv1.ValuesSource{{ConfigMap: "values"}, {ConfigMap: "none", Optional: true}},
		}},
		"values of a missing ConfigMap": {
			chart: hubv1.OperatorChart{Archive: &hubv1.ArchiveSource{ConfigMap: "rotors-chart"}, ValuesFrom: []hubv1.ValuesSource{{ConfigMap: "none"}}},
			says:  "reading ConfigMap hanse-system/none: ",
		},
		"a chart of a repository": {
			chart: hubv1.OperatorChart{Repository: &hubv1.ChartRepository{URL: "oci://example.com", Name: "rotors", Version: "1.0.0"}},
			says:  "hansectl does not fetch the chart from oci://example.com: only the hub does",
		},
	}
	for name, tc := range tests {
		o := &hubv1.FederatedOperator{ObjectMeta: metav1.ObjectMeta{Name: "rotors"}}
		o.Spec.Chart = &tc.chart
		o.Spec.Chart.Namespace = "turbines"
		objects, err := source.Objects(o)
		if tc.says != "" {
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s: the error is %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		i := slices.IndexFunc(objects, func(u *unstructured.Unstructured) bool { return u.GetKind() == "Deployment" })
		if i < 0 {
			t.Fatalf("%s: there is no Deployment", name)
		}
		if replicas, _, _ := unstructured.NestedInt64(objects[i].Object, "spec", "replicas"); replicas != 5 {
			t.Errorf("%s: the Deployment has %d replicas", name, replicas)
		}
	}
}
