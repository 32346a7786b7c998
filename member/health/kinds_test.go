//go:build !race

package health

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/operators"
)

// kindRow is a row of the table of kinds in docs/status.md.
type kindRow struct {
	conditions, fields map[string]bool
	verdicts           map[hubv1.Health]bool
	silent             bool // whether no controller writes a status of the kind
}

func (r *kindRow) add(e Explanation) {
	r.verdicts[e.Health] = true
	for _, read := range e.Read {
		if kind, ok := strings.CutPrefix(read.Name, "condition "); ok {
			r.conditions[kind] = true
			continue
		}
		r.fields[read.Name] = true
	}
}

func (r *kindRow) read() string {
	var parts []string
	for _, part := range []struct {
		title string
		names map[string]bool
	}{{"conditions ", r.conditions}, {"fields ", r.fields}} {
		if len(part.names) > 0 {
			parts = append(parts, part.title+"`"+strings.Join(slices.Sorted(maps.Keys(part.names)), "`, `")+"`")
		}
	}
	switch {
	case len(parts) > 0:
		return strings.Join(parts, "; ")
	case r.silent:
		return "nothing: Healthy as soon as it exists"
	}
	return "nothing"
}

const kindsHeader = "| kind | what is read | health in the tests |\n|---|---|---|\n"

// kindsTable returns the table of all kinds in the samples and situations of package operators.
func kindsTable(t *testing.T) string {
	t.Helper()
	rows := map[string]*kindRow{}
	add := func(obj *unstructured.Unstructured) {
		t.Helper()
		gvk := obj.GroupVersionKind()
		if strings.HasSuffix(gvk.Group, "example.com") || strings.HasSuffix(gvk.Group, "hanse.dev") {
			return // an invented kind
		}
		name := gvk.GroupKind().String()
		if rows[name] == nil {
			rows[name] = &kindRow{silent: isSilent(gvk.GroupKind()), conditions: map[string]bool{}, fields: map[string]bool{}, verdicts: map[hubv1.Health]bool{}}
		}
		rows[name].add(Explain(obj, ReadConventions(operators.Definition(t, gvk.GroupKind()), gvk.Version)))
	}
	for _, s := range operators.Samples(t) {
		add(s.Object)
	}
	for _, s := range operators.Situations(t) {
		for _, cluster := range s.Names() {
			add(s.On(t, cluster))
		}
	}
	var out strings.Builder
	out.WriteString(kindsHeader)
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		var verdicts []string
		for _, h := range append(slices.Clone(healths), hubv1.HealthUnknown) {
			if rows[name].verdicts[h] {
				verdicts = append(verdicts, string(h))
			}
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s |\n", name, rows[name].read(), strings.Join(verdicts, ", "))
	}
	return out.String()
}

func TestTheTableOfKinds(t *testing.T) {
	want := kindsTable(t)
	page, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := bytes.Cut(page, []byte(kindsHeader))
	if !ok {
		t.Fatalf("%s has no table of kinds", guide)
	}
	table, after, _ := bytes.Cut(rest, []byte("\n\n"))
	if got := kindsHeader + string(table) + "\n"; got != want {
		if !*update {
			t.Errorf("the table of kinds in %s (-want +got): run this test with -update\n%s", guide, cmp.Diff(want, got))
			return
		}
		out := slices.Concat(before, []byte(want), []byte("\n"), after)
		if err := os.WriteFile(guide, out, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestExplainTellsWhatIsIgnored(t *testing.T) {
	obj := object(t, `{"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"name":"a","generation":3},"status":{
		"observedGeneration":3,"phase":"Running","colour":"blue","power":{"volts":230},
		"conditions":[{"type":"Ready","status":"False","reason":"ImageInvalid"},{"type":"Blooming","status":"True"}]}}`)
	got := Explain(obj, Conventions{HasStatus: true})
	if got.Health != hubv1.HealthDegraded || got.Reason != "ImageInvalid" {
		t.Errorf("%s (%s)", got.Health, got.Reason)
	}
	if diff := cmp.Diff([]string{"condition Blooming", "colour", "power"}, got.Ignored); diff != "" {
		t.Errorf("ignored (-want +got):\n%s", diff)
	}
	want := []Reading{
		{Name: "condition Ready", Value: "False", Means: hubv1.HealthDegraded},
		{Name: "observedGeneration", Value: "3", Means: hubv1.HealthUnknown},
		{Name: "phase", Value: "Running", Means: hubv1.HealthHealthy},
	}
	if diff := cmp.Diff(want, got.Read); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	if deployment := Explain(object(t, `{"apiVersion":"apps/v1","kind":"Deployment","status":{"x":1}}`), Conventions{}); !deployment.ByKind || deployment.Read != nil {
		t.Errorf("a Deployment is judged by the rules for its kind: %+v", deployment)
	}
}
