package crd_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/crd"
)

const lamps = `
metadata: {name: lamps.example.com}
spec:
  group: example.com
  names: {kind: Lamp, listKind: LampList, plural: lamps, singular: lamp}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [colour]
            x-kubernetes-validations: [{rule: self.colour != 'none', message: set a colour}]
            properties:
              colour: {type: string, maxLength: 63, description: Its colour.}
              mode: {type: string, enum: [Full, Half]}
              note: {type: string, nullable: true, pattern: "^[a-z]*$"}
              watts: {type: integer, maximum: 100}
              hours: {type: array, x-kubernetes-list-type: atomic, items: {type: object, properties: {start: {type: integer}, items: {type: string}}}}
              labels: {type: object, additionalProperties: {type: string}}
              names: {type: object, additionalProperties: {type: object, properties: {first: {type: string}}}}
              closed: {type: object}
              open: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status:
            type: object
            properties: {lit: {type: boolean}}
  - name: v1beta1
    served: true
    storage: false
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

const desk = `
- clusters: [eu-1, eu-2]
  object:
    apiVersion: example.com/v1
    kind: Lamp
    metadata: {name: desk, namespace: shop}
    spec: {colour: red, mode: Half, hours: [{start: 1}, {start: 22, items: a}], labels: {a.b/c: long}, names: {x: {first: Ada}}, open: {a: {b: 1}}}
    status: {lit: true}
`

// broken is an object that every definition of these tests refuses.
const broken = `
- object:
    apiVersion: example.com/v1
    kind: Lamp
    metadata: {name: broken}
    spec: {mode: Off}
`

func TestChangesOfADefinition(t *testing.T) {
	for name, tc := range map[string]struct {
		change   []string // pairs for strings.NewReplacer
		objects  string   // the live objects: empty means desk, "none" means no objects
		stored   map[string][]string
		accept   []hubv1.AcknowledgedChange
		blocked  []string // the rule and the path of each finding that blocks
		warnings []string
	}{
		"nothing changes":                          {},
		"a new optional field breaks nothing":      {change: []string{"mode: {", "size: {type: integer}\n              mode: {"}},
		"another value of an enum breaks nothing":  {change: []string{"[Full, Half]", "[Full, Half, Dim]"}},
		"a description breaks nothing":             {change: []string{"Its colour.", "The colour."}},
		"a higher limit breaks nothing":            {change: []string{"maxLength: 63", "maxLength: 99"}},
		"another message of a rule breaks nothing": {change: []string{"set a colour", "colour it"}},
		"a nullable field breaks nothing":          {change: []string{"watts: {", "watts: {nullable: true, "}},
		"no pattern any more breaks nothing":       {change: []string{`, pattern: "^[a-z]*$"`, ""}},
		"a map that takes keys breaks nothing":     {change: []string{"closed: {type: object}", "closed: {type: object, additionalProperties: {type: string}}"}},
		"an open map that was closed breaks nothing": {
			change: []string{"properties: {first: {type: string}}", "x-kubernetes-preserve-unknown-fields: true"},
		},

		"a lower limit of a field that an object sets blocks": {
			change: []string{"maxLength: 63", "maxLength: 10"}, blocked: []string{"maxLength /spec/colour"},
		},
		"a lower limit that an object exceeds blocks by the object, too": {
			change: []string{"maxLength: 63", "maxLength: 2"}, blocked: []string{"maxLength /spec/colour", "objectInvalid /spec/colour"},
		},
		"a lower limit of a field that no object sets is a warning": {
			change: []string{"maximum: 100", "maximum: 10"}, warnings: []string{"maximum /spec/watts"},
		},
		"a lower limit without objects is a warning": {
			change: []string{"maxLength: 63", "maxLength: 2"}, objects: "[]", warnings: []string{"maxLength /spec/colour"},
		},
		"an object of another kind sets no field": {
			change: []string{"maxLength: 63", "maxLength: 2"}, objects: strings.Replace(desk, "kind: Lamp", "kind: Torch", 1),
			warnings: []string{"maxLength /spec/colour"},
		},
		"an object of another version sets no field": {
			change: []string{"maxLength: 63", "maxLength: 2"}, objects: strings.Replace(desk, "/v1", "/v2", 1),
			warnings: []string{"maxLength /spec/colour"},
		},
		"a change in the status is a warning": {
			change: []string{"lit: {type: boolean}", "lit: {type: string}"}, warnings: []string{"type /status/lit"},
		},
		"a removed field of the status is a warning": {
			change: []string{"properties: {lit: {type: boolean}}", "properties: {}"}, warnings: []string{"existingFieldRemoval /status/lit"},
		},
		"a new default is a warning": {
			change: []string{"enum: [Full, Half]", "enum: [Full, Half], default: Full"}, warnings: []string{"default /spec/mode"},
		},
		"a value of an enum that an object has is removed": {
			change: []string{"[Full, Half]", "[Full]"}, blocked: []string{"enum /spec/mode", "objectInvalid /spec/mode"},
		},
		"a new required field that an object lacks": {
			change: []string{"required: [colour]", "required: [colour, watts]"}, blocked: []string{"required /spec", "objectInvalid /spec/watts"},
		},
		"a new required field with a default makes no object invalid": {
			change:   []string{"required: [colour]", "required: [colour, watts]", "maximum: 100", "maximum: 100, default: 5"},
			blocked:  []string{"required /spec"},
			warnings: []string{"default /spec/watts"},
		},
		"a new pattern that an object violates": {
			change:  []string{"colour: {", "colour: {pattern: \"^b\", "},
			blocked: []string{"pattern /spec/colour", "objectInvalid /spec/colour"},
		},
		"another type of a field in a list": {
			change:  []string{"start: {type: integer}", "start: {type: string}"},
			blocked: []string{"type /spec/hours/*/start", "objectInvalid /spec/hours/*/start"},
		},
		"a limit of a field that is named items": {
			change:  []string{"items: {type: string}", "items: {type: string, maxLength: 5}"},
			blocked: []string{"maxLength /spec/hours/*/items"},
		},
		"a limit of values of a map, whose keys have dots": {
			change:  []string{"additionalProperties: {type: string}", "additionalProperties: {type: string, maxLength: 3}"},
			blocked: []string{"maxLength /spec/labels/*", "objectInvalid /spec/labels/*"},
		},
		"a removed field that an object sets": {
			change: []string{"mode: {type: string, enum: [Full, Half]}", "power: {type: string}"}, blocked: []string{"existingFieldRemoval /spec/mode"},
		},
		"a removed field that no object sets": {
			change: []string{"watts: {type: integer, maximum: 100}", "power: {type: string}"}, warnings: []string{"existingFieldRemoval /spec/watts"},
		},
		"a removed field in a list": {
			change: []string{"{start: {type: integer}, ", "{"}, blocked: []string{"existingFieldRemoval /spec/hours/*/start"},
		},
		"a removed field in a map": {
			change: []string{"{first: {type: string}}", "{last: {type: string}}"}, blocked: []string{"existingFieldRemoval /spec/names/*/first"},
		},
		"a map that takes no keys any more": {
			change:  []string{"labels: {type: object, additionalProperties: {type: string}}", "labels: {type: object}"},
			blocked: []string{"existingFieldRemoval /spec/labels/*"},
		},
		"an open map that becomes closed": {
			change:  []string{"open: {type: object, x-kubernetes-preserve-unknown-fields: true}", "open: {type: object}"},
			blocked: []string{"existingFieldRemoval /spec/open/a", "x-kubernetes-preserve-unknown-fields /spec/open"},
		},
		"a field of an open map that gets a type": {
			change:  []string{"x-kubernetes-preserve-unknown-fields: true", "x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: integer}}"},
			blocked: []string{"existingFieldRemoval /spec/open/a/b", "objectInvalid /spec/open/a"},
		},
		"a new rule that an object violates": {
			change:  []string{"message: set a colour}", "message: set a colour}, {rule: has(self.watts)}"},
			blocked: []string{"objectViolatesRule /spec", "x-kubernetes-validations /spec"},
		},
		"a new rule that all objects follow": {
			change:  []string{"message: set a colour}", "message: set a colour}, {rule: has(self.mode)}"},
			blocked: []string{"x-kubernetes-validations /spec"},
		},
		"a list that becomes a set": {
			change:  []string{"hours: {type: array, x-kubernetes-list-type: atomic, items: {type: object,", "hours: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [start], items: {type: object, required: [start],"},
			objects: strings.Replace(desk, "start: 22", "start: 1", 1),
			blocked: []string{"objectInvalid /spec/hours/*", "required /spec/hours/*", "x-kubernetes-list-map-keys /spec/hours", "x-kubernetes-list-type /spec/hours"},
		},
		"an object that both definitions refuse does not count": {
			change: []string{"[Full, Half]", "[Full]"}, objects: broken, blocked: []string{"enum /spec/mode"},
		},
		"a field that objects set under a definition that refuses them is dropped": {
			change: []string{"mode: {type: string, enum: [Full, Half]}", "power: {type: string}"}, objects: broken,
			blocked: []string{"existingFieldRemoval /spec/mode"},
		},

		"a removed version at which an object is sent": {
			change: []string{"- name: v1\n", "- name: v2\n"}, blocked: []string{"servedVersionRemoval /spec/versions/v1"},
		},
		"a removed version at which no object is sent": {
			change: []string{"- name: v1beta1\n", "- name: v2\n"}, warnings: []string{"servedVersionRemoval /spec/versions/v1beta1"},
		},
		"a removed version that a cluster stores": {
			change: []string{"- name: v1beta1\n", "- name: v2\n"}, stored: map[string][]string{"us-1": {"v1", "v1beta1"}},
			blocked: []string{"storedVersionRemoval /spec/versions/v1beta1"}, warnings: []string{"servedVersionRemoval /spec/versions/v1beta1"},
		},
		"a version that is no longer served and that a cluster stores": {
			change: []string{"- name: v1beta1\n    served: true", "- name: v1beta1\n    served: false"}, stored: map[string][]string{"us-1": {"v1beta1"}},
			blocked: []string{"storedVersionRemoval /spec/versions/v1beta1"}, warnings: []string{"servedVersionRemoval /spec/versions/v1beta1"},
		},
		"a storage version that lacks a field drops it": {
			change: []string{
				"storage: true", "storage: false", "storage: false", "storage: true",
				"{type: object, x-kubernetes-preserve-unknown-fields: true}}", "{type: object, properties: {spec: {type: object, properties: {colour: {type: string}}}}}}",
			},
			blocked: []string{
				"existingFieldRemoval /spec/hours", "existingFieldRemoval /spec/labels", "existingFieldRemoval /spec/mode",
				"existingFieldRemoval /spec/names", "existingFieldRemoval /spec/open",
			},
			warnings: []string{"x-kubernetes-preserve-unknown-fields "},
		},
		"no status subresource any more": {
			change:   []string{"subresources: {status: {}}", "subresources: {}"},
			blocked:  []string{"subresource /spec/versions/v1/subresources/status"},
			warnings: []string{"subresource /spec/versions/v1beta1/subresources/status"},
		},
		"another scope":        {change: []string{"scope: Namespaced", "scope: Cluster"}, blocked: []string{"scope /spec/scope"}},
		"another group":        {change: []string{"group: example.com", "group: example.org"}, blocked: []string{"group /spec/group"}},
		"another kind":         {change: []string{"kind: Lamp,", "kind: Light,"}, blocked: []string{"kind /spec/names/kind"}},
		"another plural":       {change: []string{"plural: lamps", "plural: lights"}, objects: "[]", blocked: []string{"plural /spec/names/plural"}},
		"a conversion webhook": {change: []string{"scope: Namespaced", "scope: Namespaced\n  conversion: {strategy: Webhook}"}, blocked: []string{"conversion /spec/conversion/strategy"}},
		"a conversion strategy that is the default": {change: []string{"scope: Namespaced", "scope: Namespaced\n  conversion: {strategy: None}"}},

		"an acknowledged change is a warning": {
			change: []string{"maxLength: 63", "maxLength: 10"}, accept: []hubv1.AcknowledgedChange{{CRD: "lamps.example.com", Rule: "maxLength", Path: "/spec/colour"}},
			warnings: []string{"maxLength /spec/colour acknowledged"},
		},
		"an acknowledgement of a change lets no invalid object through": {
			change: []string{"maxLength: 63", "maxLength: 2"}, accept: []hubv1.AcknowledgedChange{{CRD: "lamps.example.com", Rule: "maxLength", Path: "/spec/colour"}},
			blocked: []string{"objectInvalid /spec/colour"}, warnings: []string{"maxLength /spec/colour acknowledged"},
		},
		"an acknowledgement of another path lets nothing through": {
			change: []string{"maxLength: 63", "maxLength: 10"}, accept: []hubv1.AcknowledgedChange{{CRD: "lamps.example.com", Rule: "maxLength", Path: "/spec"}},
			blocked: []string{"maxLength /spec/colour"}, warnings: []string{"maxLength /spec"},
		},
		"an acknowledgement of a warning fits": {
			change: []string{"maximum: 100", "maximum: 10"}, accept: []hubv1.AcknowledgedChange{{CRD: "lamps.example.com", Rule: "maximum", Path: "/spec/watts"}},
			warnings: []string{"maximum /spec/watts"},
		},
		"an acknowledgement of another definition is ignored": {
			accept: []hubv1.AcknowledgedChange{{CRD: "torches.example.com", Rule: "maxLength", Path: "/spec"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			changed := strings.NewReplacer(tc.change...).Replace(lamps)
			if changed == lamps && tc.change != nil {
				t.Fatal("the change changes nothing")
			}
			if tc.objects == "" {
				tc.objects = desk
			}
			in := crd.Input{
				Before: definition(t, lamps), After: definition(t, changed), Objects: objects(t, tc.objects),
				StoredVersions: tc.stored, Acknowledged: tc.accept,
			}
			report, err := crd.Check(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(tc.blocked)
			slices.Sort(tc.warnings)
			if diff := cmp.Diff(tc.blocked, lines(report.Blocked)); diff != "" {
				t.Errorf("blocked, -want +got:\n%s%v", diff, report.Blocked)
			}
			if diff := cmp.Diff(tc.warnings, lines(report.Warnings)); diff != "" {
				t.Errorf("warnings, -want +got:\n%s%v", diff, report.Warnings)
			}
		})
	}
}

// lines returns the rule and path of each finding, sorted.
func lines(findings []crd.Finding) []string {
	var out []string
	for _, f := range findings {
		line := f.Rule + " " + f.Path
		if f.Acknowledged {
			line += " acknowledged"
		}
		out = append(out, line)
	}
	slices.Sort(out)
	return out
}

func TestAVersionThatAClusterInventsBlocksNothing(t *testing.T) {
	invented := "v" + strings.ToLower(rand.Text())
	changed := definition(t, strings.ReplaceAll(lamps, "- name: v1beta1", "- name: v2"))
	for name, tc := range map[string]struct {
		in      crd.Input
		blocked []string
	}{
		"an upgrade": {in: crd.Input{Before: definition(t, lamps), After: definition(t, lamps)}},
		"an undo":    {in: crd.Input{After: definition(t, lamps), Earlier: []*apiextensionsv1.CustomResourceDefinition{changed}}},
		"an upgrade that removes a version that clusters store": {
			in: crd.Input{Before: definition(t, lamps), After: changed}, blocked: []string{"storedVersionRemoval /spec/versions/v1beta1"},
		},
		"an undo that removes a version that clusters store": {
			in:      crd.Input{After: changed, Earlier: []*apiextensionsv1.CustomResourceDefinition{definition(t, lamps)}},
			blocked: []string{"storedVersionRemoval /spec/versions/v1beta1"},
		},
		"an undo that removes an acknowledged version": {
			in: crd.Input{
				After: changed, Earlier: []*apiextensionsv1.CustomResourceDefinition{definition(t, lamps)},
				Acknowledged: []hubv1.AcknowledgedChange{crd.RemovedVersion("lamps.example.com", "v1beta1")},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.in.StoredVersions = map[string][]string{"evil": {"v1", invented}, "eu-1": {"v1"}, "us-1": {"v1", "v1beta1"}}
			report, err := crd.Check(t.Context(), tc.in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.blocked, lines(report.Blocked)); diff != "" {
				t.Errorf("blocked, -want +got:\n%s", diff)
			}
			want := "crd lamps.example.com, version " + invented + ", rule storedVersionUnknown, path /spec/versions/" + invented +
				": on cluster evil: no stored revision of the definition has this version"
			if got := crd.Warning(report); !strings.HasSuffix(got, want) {
				t.Errorf("the warning is %q, want %q", got, want)
			}
		})
	}
	if got := crd.Warning(crd.Report{}); got != "" {
		t.Errorf("the warning of an empty report is %q", got)
	}
}

func TestWithoutAnOldDefinitionOnlyStoredVersionsCount(t *testing.T) {
	report, err := crd.Check(t.Context(), crd.Input{
		After: definition(t, lamps), Objects: objects(t, broken),
		StoredVersions: map[string][]string{"us-1": {"v1alpha1", "v1"}, "eu-1": {"v1alpha1"}},
		Earlier:        []*apiextensionsv1.CustomResourceDefinition{definition(t, strings.ReplaceAll(lamps, "- name: v1beta1", "- name: v1alpha1"))},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := crd.Report{BlockedTotal: 1, Blocked: []crd.Finding{{
		CRD: "lamps.example.com", Rule: crd.RuleStoredVersion, Path: "/spec/versions/v1alpha1", Version: "v1alpha1",
		Clusters: []string{"eu-1", "us-1"}, Message: "the version is removed, but clusters store objects at this version",
	}}}
	if diff := cmp.Diff(want, report); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestDefinitionsThatCannotBeRead(t *testing.T) {
	unreadable := strings.Replace(lamps, "type: integer, maximum: 100", "$ref: elsewhere", 1)
	for name, tc := range map[string]struct {
		in   crd.Input
		want string
	}{
		"no new definition":                        {in: crd.Input{Before: definition(t, lamps)}, want: "no new definition"},
		"a new definition that cannot be read":     {in: crd.Input{Before: definition(t, lamps), After: definition(t, unreadable), Objects: objects(t, desk)}, want: "lamps.example.com: reading the schema of version v1"},
		"an old definition takes every object":     {in: crd.Input{Before: definition(t, unreadable), After: definition(t, lamps), Objects: objects(t, desk)}},
		"a definition without schemas is no error": {in: crd.Input{Before: definition(t, bare), After: definition(t, lamps), Objects: objects(t, desk)}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := crd.Check(t.Context(), tc.in)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got the error %v, want %q", err, tc.want)
			}
		})
	}
}

const bare = "metadata: {name: lamps.example.com}\nspec: {group: example.com, names: {kind: Lamp}, versions: [{name: v1, served: true}]}"

func TestRulesAreNotEvaluatedAfterTheEndOfTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := crd.Check(ctx, crd.Input{
		Before: definition(t, lamps), After: definition(t, strings.Replace(lamps, "'none'", "'red'", 1)), Objects: objects(t, desk),
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got the error %v", err)
	}
}

func TestTheInputIsNotChanged(t *testing.T) {
	read := func() crd.Input {
		return crd.Input{
			Before: definition(t, lamps), After: definition(t, strings.Replace(lamps, "mode: {type: string", "mode: {type: integer, default: 1", 1)),
			Objects: objects(t, desk+broken),
		}
	}
	in := read()
	if _, err := crd.Check(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(read(), in); diff != "" {
		t.Errorf("-before +after:\n%s", diff)
	}
}

func TestAReportIsBoundedAndDoesNotDependOnTheOrderOfObjects(t *testing.T) {
	before, after := definition(t, lamps), definition(t, lamps)
	spec := before.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	var in crd.Input
	for i := range 3 * crd.MaxFindings {
		spec.Properties[fmt.Sprintf("extra%03d", i)] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	}
	for i := range 200 {
		o := objects(t, desk)[0]
		o.Content.SetName(fmt.Sprintf("desk-%03d", i))
		o.Clusters = []string{fmt.Sprintf("cluster-%03d", i)}
		fields := o.Content.Object["spec"].(map[string]any)
		for name := range spec.Properties {
			if strings.HasPrefix(name, "extra") {
				fields[name] = "secret value"
			}
		}
		in.Objects = append(in.Objects, o)
	}
	in.Before, in.After = before, after
	report, err := crd.Check(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Blocked) != crd.MaxFindings || report.BlockedTotal != 3*crd.MaxFindings {
		t.Errorf("%d of %d findings", len(report.Blocked), report.BlockedTotal)
	}
	if f := report.Blocked[0]; f.Objects != 200 || len(f.Clusters) != 200 || f.Object.Name != "desk-000" || f.Path != "/spec/extra000" {
		t.Errorf("the first finding is %+v", f)
	}
	message := crd.Message(report, report)
	for _, part := range []string{"300 changes", "/spec/extra000", "shop/desk-000 and 199 more", "clusters cluster-000, cluster-001, cluster-002 and 197 more", "; and 29", "acknowledge"} {
		if !strings.Contains(message, part) {
			t.Errorf("the message lacks %q:\n%s", part, message)
		}
	}
	if n := utf8.RuneCountInString(message); n > 1024 || n < 700 {
		t.Errorf("the message has %d characters", n)
	}
	undo := crd.UndoMessage(824, "read the docs", report, report)
	for _, part := range []string{"300 changes", "/spec/extra000", "Migrate the objects and update status.storedVersions on these clusters first, or read the docs"} {
		if !strings.Contains(undo, part) {
			t.Errorf("the message of an undo lacks %q:\n%s", part, undo)
		}
	}
	if n := utf8.RuneCountInString(undo); n > 824 {
		t.Errorf("the message of an undo has %d characters, and may have 824", n)
	}
	slices.Reverse(in.Objects)
	again, err := crd.Check(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(report, again); diff != "" {
		t.Errorf("in another order, -want +got:\n%s", diff)
	}
}

func TestAMessageOfOneLongFindingNamesIt(t *testing.T) {
	long := strings.Repeat("ö", 5000)
	message := crd.Message(crd.Report{BlockedTotal: 2, Blocked: []crd.Finding{
		{CRD: "lamps.example.com", Rule: "enum", Path: "/spec/mode" + long, Message: long},
		{CRD: "lamps.example.com", Rule: "enum", Path: "/spec/zone" + long, Message: long},
	}})
	if n := utf8.RuneCountInString(message); n > 1024 || !strings.Contains(message, "/spec/mode") || !strings.Contains(message, "and 1 more") {
		t.Errorf("%d characters: %s", n, message)
	}
	if got := crd.Message(crd.Report{}); got != "" {
		t.Errorf("a report without blocked changes gives the message %q", got)
	}
}

func TestNoValueOfAnObjectIsInAFinding(t *testing.T) {
	const secret = "s3cr3t"
	colour := strings.Replace(desk, "colour: red", "colour: "+secret, 1)
	hours := strings.Replace(desk, "hours: [{start: 1}, {start: 22, items: a}]", "hours: ["+secret+", "+secret+"]", 1)
	list := strings.Replace(lamps, "items: {type: object, properties: {start: {type: integer}, items: {type: string}}}", "items: {type: string}", 1)
	for name, tc := range map[string]struct {
		before, objects string
		change          [2]string
	}{
		"a limit":    {lamps, colour, [2]string{"colour: {type: string, maxLength: 63", "colour: {type: string, maxLength: 3"}},
		"a type":     {lamps, colour, [2]string{"colour: {type: string, maxLength: 63", "colour: {type: integer"}},
		"a format":   {lamps, colour, [2]string{"colour: {type: string", "colour: {type: string, format: date-time"}},
		"an enum":    {lamps, colour, [2]string{"colour: {type: string", "colour: {type: string, enum: [a, b]"}},
		"a pattern":  {lamps, colour, [2]string{"colour: {type: string", "colour: {type: string, pattern: '^x'"}},
		"a negation": {lamps, colour, [2]string{"colour: {type: string", "colour: {type: string, not: {pattern: '^s'}"}},
		"a rule":     {lamps, colour, [2]string{"self.colour != 'none'", "self.colour == 'x'"}},
		"a set":      {list, hours, [2]string{"list-type: atomic", "list-type: set"}},
	} {
		t.Run(name, func(t *testing.T) {
			report, err := crd.Check(t.Context(), crd.Input{
				Before: definition(t, tc.before), After: definition(t, strings.Replace(tc.before, tc.change[0], tc.change[1], 1)), Objects: objects(t, tc.objects),
			})
			if err != nil {
				t.Fatal(err)
			}
			text := fmt.Sprint(report.Blocked, report.Warnings)
			if strings.Contains(text, secret) || !strings.Contains(text, "rule object") {
				t.Error(text)
			}
		})
	}
}

func definition(tb testing.TB, text string) *apiextensionsv1.CustomResourceDefinition {
	tb.Helper()
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict([]byte(text), &crd); err != nil {
		tb.Fatal(err)
	}
	return &crd
}

func objects(tb testing.TB, text string) []crd.Object {
	tb.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	var list []struct {
		Clusters []string       `json:"clusters"`
		Object   map[string]any `json:"object"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		tb.Fatal(err)
	}
	var out []crd.Object
	for _, entry := range list {
		out = append(out, crd.Object{Clusters: entry.Clusters, Content: &unstructured.Unstructured{Object: entry.Object}})
	}
	return out
}
