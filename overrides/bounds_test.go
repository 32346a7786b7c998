package overrides

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func patch(op hubv1.PatchOp, path, from, value string) hubv1.PatchOperation {
	out := hubv1.PatchOperation{Op: op, Path: path, From: from}
	if value != "" {
		out.Value = &apiextensionsv1.JSON{Raw: []byte(value)}
	}
	return out
}

func repeated(n int, op hubv1.PatchOperation) []hubv1.PatchOperation {
	out := make([]hubv1.PatchOperation, n)
	for i := range out {
		out[i] = op
	}
	return out
}

// rulesOf spreads operations over as many rules as they need.
func rulesOf(ops []hubv1.PatchOperation) []hubv1.OverrideRule {
	var out []hubv1.OverrideRule
	for len(ops) > 0 {
		n := min(len(ops), maxPatches)
		out = append(out, hubv1.OverrideRule{Name: fmt.Sprintf("r%d", len(out)), Patches: ops[:n]})
		ops = ops[n:]
	}
	return out
}

// Each is refused, within 50 ms and 16 MB.
func TestPatchBombsAreRefused(t *testing.T) {
	merge := func(text string) []hubv1.OverrideRule {
		return []hubv1.OverrideRule{{Name: "r", MergePatch: &apiextensionsv1.JSON{Raw: []byte(text)}}}
	}
	longList := func(n int) *unstructured.Unstructured {
		return objectWith(map[string]any{"list": make([]any, n), "map": map[string]any{}})
	}
	deepest := `{"spec":` + strings.Repeat(`{"a":`, 5000) + `1` + strings.Repeat(`}`, 5001)
	doubling := append([]hubv1.PatchOperation{patch("add", "/spec/a", "", `"`+strings.Repeat("x", 8<<10)+`"`)},
		repeated(maxPatches-1, patch("copy", "/spec/list/-", "/spec", ""))...)
	nested := append([]hubv1.PatchOperation{patch("add", "/spec/a", "", `{}`)},
		repeated(2*maxPatches, patch("copy", "/spec/a/a", "/spec/a", ""))...)
	tests := map[string]struct {
		template *unstructured.Unstructured
		rules    []hubv1.OverrideRule
		want     string
	}{
		"too many rules":              {rules: make([]hubv1.OverrideRule, maxRules+1), want: "has more than 64 rules"},
		"too many operations":         {rules: []hubv1.OverrideRule{{Name: "r", Patches: repeated(maxPatches+1, patch("remove", "/spec/a", "", ""))}}, want: "more than 64 operations"},
		"a rule that changes nothing": {rules: []hubv1.OverrideRule{{Name: "r"}}, want: "changes nothing"},
		"a value that is too large":   {rules: rulesOf([]hubv1.PatchOperation{patch("add", "/spec/a", "", `"`+strings.Repeat("x", maxValueBytes)+`"`)}), want: "larger than 64 KiB"},
		"a merge that is too large":   {rules: merge(`{"spec":"` + strings.Repeat("x", maxValueBytes) + `"}`), want: "larger than 64 KiB"},
		"a merge that is too deep":    {rules: merge(deepest), want: "deeper than 64 levels"},
		"a value that is too deep":    {rules: rulesOf([]hubv1.PatchOperation{patch("add", "/spec/a", "", strings.Repeat("[", 30000)+strings.Repeat("]", 30000))}), want: "deeper than 64 levels"},
		"brackets without end":        {rules: merge(strings.Repeat(`[`, maxValueBytes)), want: "deeper than 64 levels"},
		"brackets in a string":        {rules: merge(`{"a":"` + strings.Repeat(`[`, 1000) + `\"["`), want: "not valid JSON"},
		"much in many rules":          {rules: rulesOf(repeated(5, patch("add", "/spec/a", "", `"`+strings.Repeat("x", 60<<10)+`"`))), want: "256 KiB"},
		"a pointer that is too long":  {rules: rulesOf([]hubv1.PatchOperation{patch("remove", "/"+strings.Repeat("~1~0", 1000), "", "")}), want: "more than 512 bytes"},
		"a pointer that is too deep":  {rules: rulesOf([]hubv1.PatchOperation{patch("remove", strings.Repeat("/a", 65), "", "")}), want: "more than 64 steps"},
		"an escape that there is not": {rules: rulesOf([]hubv1.PatchOperation{patch("remove", "/spec/a~2", "", "")}), want: "~ must be written ~0"},
		"a huge index":                {template: longList(3), rules: rulesOf([]hubv1.PatchOperation{patch("add", "/spec/list/99999999999999999999", "", "1")}), want: "outside of the list"},
		"an index with leading zeros": {template: longList(3), rules: rulesOf([]hubv1.PatchOperation{patch("replace", "/spec/list/01", "", "1")}), want: "outside of the list"},
		"a negative index":            {template: longList(3), rules: rulesOf([]hubv1.PatchOperation{patch("remove", "/spec/list/-1", "", "")}), want: "outside of the list"},
		"an index above 10000":        {template: longList(20000), rules: rulesOf([]hubv1.PatchOperation{patch("replace", "/spec/list/10001", "", "1")}), want: "outside of the list"},
		"a long list that shrinks":    {template: longList(20000), rules: rulesOf([]hubv1.PatchOperation{patch("remove", "/spec/list/0", "", "")}), want: "too long to be changed"},
		"a long list that grows":      {template: longList(20000), rules: rulesOf([]hubv1.PatchOperation{patch("add", "/spec/list/-", "", "1")}), want: "too long to be changed"},
		"copies that double":          {template: longList(0), rules: rulesOf(doubling), want: "too large or too deep to be copied"},
		"copies in place of copies": {
			template: objectWith(map[string]any{"a": strings.Repeat("x", 60<<10)}),
			rules:    rulesOf(repeated(5, patch("copy", "/spec/b", "/spec/a", ""))), want: "too large or too deep to be copied",
		},
		"copies that nest":                                  {rules: rulesOf(nested), want: "too large or too deep to be copied"},
		"a move into itself":                                {rules: rulesOf([]hubv1.PatchOperation{patch("move", "/spec/map/a", "/spec/map", "")}), want: "cannot be moved into itself"},
		"an operation that there is not":                    {rules: rulesOf([]hubv1.PatchOperation{patch("replaceAll", "/spec", "", "1")}), want: "unknown operation"},
		"an operation without path":                         {rules: rulesOf([]hubv1.PatchOperation{patch("remove", "", "", "")}), want: "without path"},
		"an operation without value":                        {rules: rulesOf([]hubv1.PatchOperation{patch("add", "/spec/a", "", "")}), want: "has no value"},
		"an operation without from":                         {rules: rulesOf([]hubv1.PatchOperation{patch("copy", "/spec/a", "", "")}), want: "has no from"},
		"a removal with a value":                            {rules: rulesOf([]hubv1.PatchOperation{patch("remove", "/spec/a", "", "1")}), want: "has a value"},
		"a removal with a from":                             {rules: rulesOf([]hubv1.PatchOperation{patch("remove", "/spec/a", "/spec/b", "")}), want: "has a from"},
		"a relative pointer":                                {rules: rulesOf([]hubv1.PatchOperation{patch("remove", "spec/a", "", "")}), want: "must start with /"},
		"a template that is too large":                      {template: objectWith(map[string]any{"a": strings.Repeat("x", maxManifestBytes)}), want: ErrTooLarge.Error()},
		"a template of many small values that is too large": {template: objectWith(map[string]any{"a": make([]any, 300000)}), want: ErrTooLarge.Error()},
		"a result that is too large": {template: objectWith(map[string]any{"a": strings.Repeat("x", 1000<<10)}),
			rules: merge(`{"spec":{"b":"` + strings.Repeat("x", 60<<10) + `"}}`), want: ErrTooLarge.Error()},
		"a template that escapes make too large": {template: objectWith(map[string]any{"a": strings.Repeat("<", 200<<10)}), want: ErrTooLarge.Error()},
		"a template that is too deep":            {template: objectWith(deep(1000)), want: "deeper than 128 levels"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.template == nil {
				tc.template = objectWith(map[string]any{"map": map[string]any{}})
			}
			var err error
			bytes, took := cost(50*time.Millisecond, func() {
				_, err = render(tc.template, Cluster{}, []hubv1.OverridePolicyObject{policyWith("a", slices.Clone(tc.rules)...)})
			})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %.300v, want %q", err, tc.want)
			}
			if err != nil && len(err.Error()) > 600 {
				t.Errorf("the message has %d bytes", len(err.Error()))
			}
			if bytes > 16<<20 || took > 50*time.Millisecond {
				t.Errorf("took %s and %d KiB", took, bytes>>10)
			}
		})
	}
}

func deep(levels int) any {
	var v any = int64(1)
	for range levels {
		v = []any{v}
	}
	return v
}

// cost is the memory that f allocates and the time that it takes: the shortest of some times, and of more if that is not
// within the limit, since other work may share the machine.
func cost(limit time.Duration, f func()) (bytes uint64, took time.Duration) {
	took = time.Hour
	for i := 0; i < 3 || i < 30 && took > limit; i++ {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now() //nolint:forbidigo // the time that it takes is what is tested
		f()
		took = min(took, time.Since(start)) //nolint:forbidigo // see above
		runtime.ReadMemStats(&after)
		bytes = after.TotalAlloc - before.TotalAlloc
	}
	return bytes, took
}
