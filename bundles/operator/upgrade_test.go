package operator

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/crd"
)

func TestAnOlderChartIsAnEarlierVersionOfTheSameChart(t *testing.T) {
	t.Parallel()
	of := func(name, version string) *hubv1.RenderedChart {
		return &hubv1.RenderedChart{Name: name, Version: version}
	}
	for name, tt := range map[string]struct {
		chart, stored *hubv1.RenderedChart
		want          bool
	}{
		"an earlier version is older":                    {of("rotors", "1.9.0"), of("rotors", "1.10.0"), true},
		"a v before the number is no difference":         {of("rotors", "v1.9.0"), of("rotors", "1.10.0"), true},
		"a release candidate is older than its release":  {of("rotors", "2.0.0-rc.1"), of("rotors", "2.0.0"), true},
		"a later version is not older":                   {of("rotors", "1.10.0"), of("rotors", "1.9.0"), false},
		"the same version is not older":                  {of("rotors", "1.0.0"), of("rotors", "1.0.0"), false},
		"another chart is not older":                     {of("gears", "1.0.0"), of("rotors", "2.0.0"), false},
		"the first chart is not older":                   {of("rotors", "1.0.0"), nil, false},
		"manifests are not older":                        {nil, of("rotors", "1.0.0"), false},
		"a version that cannot be compared is not older": {of("rotors", "1"), of("rotors", "2.0.0"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := isOlder(tt.chart, tt.stored); got != tt.want {
				t.Errorf("isOlder is %t", got)
			}
		})
	}
}

func TestAnUpgradeIsJudgedByTheObjectsInUse(t *testing.T) {
	t.Parallel()
	definition := func(fields string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: rotors.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: rotors, singular: rotor, kind: Rotor, listKind: RotorList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {`+fields+`}}}}}}]
`), &u.Object); err != nil {
			t.Fatal(err)
		}
		return u
	}
	rotor := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Rotor", "metadata": map[string]any{"name": "main", "namespace": "shop"}, "spec": map[string]any{"size": int64(3)},
	}}
	const both, one = "size: {type: integer}, color: {type: string}", "color: {type: string}"
	broken := ChangedDefinition{Before: definition(both), After: definition(one), Objects: []crd.Object{{Content: rotor, Clusters: []string{"eu-1"}}}}
	of := func(version string) *hubv1.RenderedChart {
		return &hubv1.RenderedChart{Name: "rotors", Version: version}
	}
	for name, c := range map[string]struct {
		upgrade         Upgrade
		reason, message string
	}{
		"a removed field that no object has": {upgrade: Upgrade{Definitions: []ChangedDefinition{{Before: definition(both), After: definition("size: {type: integer}"), Objects: broken.Objects}}}},
		"a removed field that an object has": {Upgrade{Definitions: []ChangedDefinition{broken}}, hubv1.ReasonUpgradeBlocked, "path /spec/size"},
		"an acknowledged removal": {upgrade: Upgrade{Definitions: []ChangedDefinition{broken}, Acknowledged: []hubv1.AcknowledgedChange{
			{CRD: "rotors.example.com", Rule: crd.RuleFieldRemoved, Path: "/spec/size"},
		}}},
		"a removal by an older chart":           {Upgrade{Definitions: []ChangedDefinition{broken}, Chart: of("1.0.0"), Stored: of("2.0.0")}, hubv1.ReasonUndoBlocked, "chart rotors 1.0.0 is older than the stored 2.0.0: "},
		"a definition that cannot be read":      {Upgrade{Definitions: []ChangedDefinition{{Before: definition(one), After: &unstructured.Unstructured{Object: map[string]any{"spec": "a"}}}}}, hubv1.ReasonManifestInvalid, "the stored objects stay"},
		"an upgrade that changes no definition": {},
		"a field that only a definition in an earlier wave lacks": {Upgrade{Definitions: []ChangedDefinition{{
			Before: definition(one), Held: []*unstructured.Unstructured{definition(both)}, After: definition(one), Objects: broken.Objects,
		}}}, hubv1.ReasonUpgradeBlocked, "1 change breaks"},
		"the same change of two definitions": {Upgrade{Definitions: []ChangedDefinition{{
			Before: definition(both), Held: []*unstructured.Unstructured{definition(both + ", hue: {type: string}")}, After: definition(one), Objects: broken.Objects,
		}}}, hubv1.ReasonUpgradeBlocked, "1 change breaks"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			verdict, err := c.upgrade.Judge(t.Context())
			if err != nil || verdict.Reason != c.reason || !strings.Contains(verdict.Message, c.message) {
				t.Errorf("the verdict is %+v, %v", verdict, err)
			}
		})
	}
}
