//go:build !race

package overrides

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func repeated(n int, op hubv1.PatchOperation) []hubv1.PatchOperation {
	out := make([]hubv1.PatchOperation, n)
	for i := range out {
		out[i] = op
	}
	return out
}

// Each policy is refused within 50 ms and 16 MB.
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
		"a huge index":                {template: longList(3), rules: rulesOf([]hubv1.PatchOperation{patch("add", "/spec/list/99999999999999999999", "", "1")}), want: "outside the list"},
		"an index with leading zeros": {template: longList(3), rules: rulesOf([]hubv1.PatchOperation{patch("replace", "/spec/list/01", "", "1")}), want: "outside the list"},
		"a negative index":            {template: longList(3), rules: rulesOf([]hubv1.PatchOperation{patch("remove", "/spec/list/-1", "", "")}), want: "outside the list"},
		"an index above 10000":        {template: longList(20000), rules: rulesOf([]hubv1.PatchOperation{patch("replace", "/spec/list/10001", "", "1")}), want: "outside the list"},
		"a long list that shrinks":    {template: longList(20000), rules: rulesOf([]hubv1.PatchOperation{patch("remove", "/spec/list/0", "", "")}), want: "to which a rule cannot add elements"},
		"a long list that grows":      {template: longList(20000), rules: rulesOf([]hubv1.PatchOperation{patch("add", "/spec/list/-", "", "1")}), want: "to which a rule cannot add elements"},
		"copies that double":          {template: longList(0), rules: rulesOf(doubling), want: "does not fit: all rules together may add 256 KiB to an object: copy a smaller part"},
		"copies in place of copies": {
			template: objectWith(map[string]any{"a": strings.Repeat("x", 60<<10)}),
			rules:    rulesOf(repeated(5, patch("copy", "/spec/b", "/spec/a", ""))), want: "path /spec/a does not fit: all rules together may add 256 KiB",
		},
		"copies that nest":                                  {rules: rulesOf(nested), want: "nests deeper than 64 levels: copy a smaller part"},
		"a move into itself":                                {rules: rulesOf([]hubv1.PatchOperation{patch("move", "/spec/map/a", "/spec/map", "")}), want: "cannot be moved into itself"},
		"an operation that there is not":                    {rules: rulesOf([]hubv1.PatchOperation{patch("replaceAll", "/spec", "", "1")}), want: "unknown operation"},
		"an operation without path":                         {rules: rulesOf([]hubv1.PatchOperation{patch("remove", "", "", "")}), want: "without path"},
		"an operation without value":                        {rules: rulesOf([]hubv1.PatchOperation{patch("add", "/spec/a", "", "")}), want: "has no value"},
		"an operation without from":                         {rules: rulesOf([]hubv1.PatchOperation{patch("copy", "/spec/a", "", "")}), want: "has no from"},
		"a removal with a value":                            {rules: rulesOf([]hubv1.PatchOperation{patch("remove", "/spec/a", "", "1")}), want: "has a value"},
		"a removal with a from":                             {rules: rulesOf([]hubv1.PatchOperation{patch("remove", "/spec/a", "/spec/b", "")}), want: "has a from"},
		"a relative pointer":                                {rules: rulesOf([]hubv1.PatchOperation{patch("remove", "spec/a", "", "")}), want: "must start with /"},
		"a template that is too large":                      {template: objectWith(map[string]any{"a": strings.Repeat("x", maxManifestBytes)}), want: ErrTooLarge.Error()},
		"a template of many small values that is too large": {template: objectWith(map[string]any{"a": make([]any, 1_000_000)}), want: ErrTooLarge.Error()},
		"a result that is too large": {template: objectWith(map[string]any{"a": strings.Repeat("x", maxManifestBytes-24<<10)}),
			rules: merge(`{"spec":{"b":"` + strings.Repeat("x", 60<<10) + `"}}`), want: ErrTooLarge.Error()},
		"a template that escapes make too large": {template: objectWith(map[string]any{"a": strings.Repeat("<", 800<<10)}), want: ErrTooLarge.Error()},
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

// cost returns the memory that f allocates and the time that f takes. It runs f at least three times, and returns the
// shortest time. If this time is above the limit, it runs f up to 30 times, because other work may slow the machine.
func cost(limit time.Duration, f func()) (bytes uint64, took time.Duration) {
	took = time.Hour
	for i := 0; i < 3 || i < 30 && took > limit; i++ {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		f()
		took = min(took, time.Since(start))
		runtime.ReadMemStats(&after)
		bytes = after.TotalAlloc - before.TotalAlloc
	}
	return bytes, took
}

// Each policy is refused within a second and with less than 64 MiB.
func TestHostileFormsAreRefused(t *testing.T) {
	containers := func(n int, container string) *unstructured.Unstructured {
		list := make([]any, n)
		for i := range list {
			list[i] = map[string]any{"name": fmt.Sprintf("c%d", i), "image": container}
		}
		return objectWith(map[string]any{"template": map[string]any{"spec": map[string]any{"containers": list}}})
	}
	text := func(s string) *unstructured.Unstructured { return objectWith(map[string]any{"text": s}) }
	rule := func(s string) []hubv1.OverrideRule { return []hubv1.OverrideRule{parseRule(t, s)} }
	edit := rule(`edits: [{path: /spec/text, format: YAML, mergePatch: {z: 1}}]`)
	editJSON := rule(`edits: [{path: /spec/text, format: JSON, mergePatch: {z: 1}}]`)
	bomb := "a: &a [x, x]\n"
	for c := 'b'; c < 'z'; c++ {
		bomb += fmt.Sprintf("%c: &%c [*%c, *%c]\n", c, c, c-1, c-1)
	}
	many := func(n int, r hubv1.OverrideRule) (out []hubv1.OverrideRule) {
		for range n {
			out = append(out, r)
		}
		return out
	}
	tests := map[string]struct {
		template *unstructured.Unstructured
		rules    []hubv1.OverrideRule
		want     string
	}{
		"a bomb of aliases":                        {text(bomb), edit, "anchors, aliases or merge keys"},
		"a text that nests":                        {text("a: " + strings.Repeat("[", 10000) + strings.Repeat("]", 10000)), edit, "deeper than 64 levels"},
		"a text that nests a little":               {text("a: " + strings.Repeat("[", 100) + strings.Repeat("]", 100)), edit, "deeper than 64 levels"},
		"JSON that nests":                          {text(`{"a":` + strings.Repeat("[", 10000) + strings.Repeat("]", 10000) + "}"), editJSON, "deeper than 64 levels"},
		"JSON that nests a little":                 {text(`{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + "}"), editJSON, "deeper than 64 levels"},
		"a text of many entries":                   {text("a:\n" + strings.Repeat("- 1\n", 60000)), edit, "too much to edit"},
		"a text of many keys":                      {text("a: {" + strings.Repeat("b,", 60000) + "}"), edit, "too much to edit"},
		"a text that is too large":                 {text("a: '" + strings.Repeat("x", 300<<10) + "'"), edit, "more than 256 KiB"},
		"a text that is edited often":              {text("a: '" + strings.Repeat("x", 200<<10) + "'"), many(6, edit[0]), "too much to edit"},
		"a text that grows":                        {text("a: 1\n"), rule(`edits: [{path: /spec/text, format: YAML, patches: [{op: add, path: /b, value: [1]}, ` + strings.Repeat(`{op: copy, from: /b, path: /b/-}, `, 30) + `{op: copy, from: /b, path: /b/-}]}]`), "path /b does not fit: all rules together may add 256 KiB to an object"},
		"too many edits":                           {text("a: 1\n"), []hubv1.OverrideRule{{Name: "r", Edits: make([]hubv1.StringEdit, maxEdits+1)}}, "more than 16 entries"},
		"an edit with too many patches":            {text("a: 1\n"), []hubv1.OverrideRule{{Name: "r", Edits: []hubv1.StringEdit{{Path: "/a", Format: "YAML", Patches: make([]hubv1.EditOperation, maxPatches+1)}}}}, "more than 64 operations"},
		"more containers than there are":           {containers(maxListed+1, "a"), rule(`images: [{tag: b}]`), "has more than 500 containers: set path in the rule to the index of one of them"},
		"many containers, many changes":            {containers(maxListed, "a"), many(9, rule(`images: [{tag: b}]`)[0]), "4096 operations"},
		"a large value, many containers":           {containers(maxListed, "a"), rule(`args: [{value: ["` + strings.Repeat("x", 1000) + `"]}]`), "256 KiB"},
		"an image that is too long":                {containers(1, strings.Repeat("a/", 1000)), rule(`images: [{tag: b}]`), "no image that can be read"},
		"parts of an image that are long":          {containers(1, "a"), rule(`images: [{repository: "` + strings.Repeat("a/", 1000) + `"}]`), "longer than an image"},
		"too many images":                          {containers(1, "a"), []hubv1.OverrideRule{{Name: "r", Images: make([]hubv1.ImageOverride, maxTyped+1)}}, "more than 32 entries"},
		"too many variables":                       {containers(1, "a"), []hubv1.OverrideRule{{Name: "r", Env: []hubv1.EnvOverride{{Remove: make([]string, maxVariables+1)}}}}, "more than 128 variables"},
		"a variable that is too large":             {containers(1, "a"), rule(`env: [{set: [{name: A, value: "` + strings.Repeat("x", maxValueBytes) + `"}]}]`), "larger than 64 KiB"},
		"arguments that are too large":             {containers(1, "a"), rule(`args: [{value: ["` + strings.Repeat("x", maxValueBytes) + `"]}]`), "larger than 64 KiB"},
		"too many arguments":                       {containers(1, "a"), []hubv1.OverrideRule{{Name: "r", Args: []hubv1.CommandOverride{{Value: make([]string, maxArguments+1)}}}}, "more than 256 arguments"},
		"too many names":                           {containers(1, "a"), []hubv1.OverrideRule{{Name: "r", Args: []hubv1.CommandOverride{{ContainerTarget: hubv1.ContainerTarget{Containers: make([]string, maxTyped+1)}}}}}, "more than 32 names"},
		"labels that are too large":                {containers(1, "a"), rule(`annotations: {a: "` + strings.Repeat("x", maxAdded) + `"}`), "256 KiB"},
		"* over more items than there may be":      {containers(maxListed+1, "a"), rule(`images: [{path: /spec/template/spec/containers/*/image, tag: b}]`), "selects among more than 500 items"},
		"a key among more items than there may be": {containers(maxListed+1, "a"), rule(`patches: [{op: remove, path: "/spec/template/spec/containers/[name=c500]"}]`), "selects among more than 500 items"},
		"a test by such a key":                     {containers(20_000, "a"), rule(`patches: [{op: test, path: "/spec/template/spec/containers/[name=c500]/name", value: c500}]`), "selects among more than 500 items"},
		"* in *":                                   {objectWith(map[string]any{"list": squared(23)}), rule(`patches: [{op: replace, path: /spec/list/*/*, value: 2}]`), "selects among more than 500 items"},
		"* over many items, many times":            {containers(maxListed, "a"), many(9, rule(`patches: [{op: replace, path: /spec/template/spec/containers/*/image, value: b}]`)[0]), "4096 operations"},
		"a large value, many items":                {containers(maxListed, "a"), rule(`patches: [{op: add, path: /spec/template/spec/containers/*/more, value: "` + strings.Repeat("x", 1000) + `"}]`), "256 KiB"},
		"many ways back":                           {objectWith(map[string]any{"a": strings.Repeat("x", 900<<10), "n": int64(1)}), many(8, rule(`patches: [{op: replace, path: /spec/n, value: 2}, {op: test, path: /spec/n, value: 1}]`)[0]), "move the test before all other operations"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var err error
			bytes, took := cost(time.Second, func() {
				_, err = render(tc.template, Cluster{}, []hubv1.OverridePolicyObject{policyWith("a", slices.Clone(tc.rules)...)})
			})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %.300v, want %q", err, tc.want)
			}
			if err != nil && len(err.Error()) > 700 {
				t.Errorf("the message has %d bytes", len(err.Error()))
			}
			if bytes > 64<<20 || took > time.Second {
				t.Errorf("took %s and %d KiB", took, bytes>>10)
			}
		})
	}
}

// squared returns n lists of n numbers.
func squared(n int) []any {
	out := make([]any, n)
	for i := range out {
		inner := make([]any, n)
		for j := range inner {
			inner[j] = int64(j)
		}
		out[i] = inner
	}
	return out
}

// Each policy is refused or rendered within a second and 64 MiB, for all of its rules together.
func TestExpressionBombsAreRefused(t *testing.T) {
	large := map[string]any{"text": strings.Repeat("x", 100<<10), "piece": strings.Repeat("x", 20<<10)}
	list := make([]any, 5000)
	for i := range list {
		list[i] = map[string]any{"k": "v", "name": "something"}
	}
	large["list"] = list
	tests := map[string]struct{ expression, want string }{
		"a value that is the object":           {"object.spec.list", "has an expression that gives more than 64 KiB: correct it"},
		"a loop in a loop over the object":     {"object.spec.list.all(a, object.spec.list.all(b, a == b))", "has an expression that gives no value: cost limit exceeded"},
		"a product of texts":                   {"object.spec.text.replace('x', object.spec.text)", "cost limit exceeded"},
		"expressions that cost much together":  {"object.spec.list.filter(a, a.k == 'w').size()", "the expressions cost too much together"},
		"expressions that give much, together": {"object.spec.piece", "all rules together may add 256 KiB"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var rules []hubv1.OverrideRule
			for i := range maxRules {
				rules = append(rules, hubv1.OverrideRule{Name: fmt.Sprint("r", i), Patches: []hubv1.PatchOperation{making(hubv1.PatchAdd, "/spec/a", tc.expression)}})
			}
			var err error
			bytes, took := cost(time.Second, func() {
				_, err = render(objectWith(large), Cluster{}, []hubv1.OverridePolicyObject{policyWith("p", rules...)})
			})
			if err == nil || !isInvalid(err) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %s", err, tc.want)
			}
			if bytes > 64<<20 || took > time.Second {
				t.Errorf("took %d KiB and %s", bytes>>10, took)
			}
		})
	}
}

// The test has the most expensive policies that are not refused.
func TestTheMostExpensiveRenderIsBounded(t *testing.T) {
	var long []hubv1.PatchOperation
	for range maxRules * maxPatches / 2 {
		long = append(long, patch("add", "/spec/list/0", "", "1"), patch("remove", "/spec/list/0", "", ""))
	}
	// Each of the 40 operations sets a value that contains the values of all deeper operations. The operations therefore
	// have no conflict.
	var nested []hubv1.PatchOperation
	leaves := map[string]any{"x": wide(400)}
	for depth := 40; depth > 0; depth-- {
		nested = append(nested, patch("replace", "/spec"+strings.Repeat("/a", depth), "", string(raw(leaves).Raw)))
		leaves = map[string]any{"a": leaves}
	}
	var crowd []hubv1.OverridePolicyObject
	for i := range 1000 {
		crowd = append(crowd, policyWith(fmt.Sprintf("p%03d", i), parseRule(t, `mergePatch: {spec: {a: {b: {c: {d: [1, 2, 3]}}}}}`)))
	}
	var setters []hubv1.OverridePolicyObject
	for i := range 1000 {
		setters = append(setters, policyWith(fmt.Sprintf("p%03d", i), parseRule(t, fmt.Sprintf(`env: [{path: /spec/c, set: [{name: "%d", value: x}]}]`, i%maxListed))))
	}
	var containers []any
	for i := range maxListed {
		containers = append(containers, map[string]any{"name": fmt.Sprint(i), "image": "x/y:1"})
	}
	env := make([]any, maxListed)
	for i := range env {
		env[i] = map[string]any{"name": fmt.Sprint(i)}
	}
	var variables, ways []hubv1.OverrideRule
	for i := range maxRules {
		rule := hubv1.OverrideRule{Name: fmt.Sprint(i)}
		for j := range maxTyped {
			rule.Env = append(rule.Env, hubv1.EnvOverride{ContainerTarget: hubv1.ContainerTarget{Path: "/spec/c"}, Set: []hubv1.EnvVariable{{EnvVar: corev1.EnvVar{Name: fmt.Sprint(j), Value: fmt.Sprint(i)}}}})
		}
		variables = append(variables, rule)
		ways = append(ways, parseRule(t, `patches: [{op: replace, path: /spec/n, value: 2}, {op: test, path: /spec/n, value: 1}]`))
	}
	flow := "a: [" + strings.Repeat(",1", maxMarks/2-10)[1:] + "]\nb: 0\n"
	edit := func(value string) hubv1.OverrideRule {
		return parseRule(t, `edits: [{path: /spec/text, format: YAML, mergePatch: {b: `+value+`}}]`)
	}
	tests := map[string]struct {
		template *unstructured.Unstructured
		policies []hubv1.OverridePolicyObject
	}{
		"two policies that edit a large text": {
			template: objectWith(map[string]any{"text": flow}),
			policies: []hubv1.OverridePolicyObject{policyWith("a", edit("1")), policyWith("b", edit("1"))},
		},
		"images of very many containers": {
			template: objectWith(map[string]any{"template": map[string]any{"spec": map[string]any{"containers": containers}}}),
			policies: []hubv1.OverridePolicyObject{policyWith("a", parseRule(t, `images: [{tag: "2"}]`), parseRule(t, `images: [{registry: a.io}]`)),
				policyWith("b", parseRule(t, `images: [{tag: "2", registry: a.io}]`))},
		},
		"two thousand changes of very many variables": {
			template: objectWith(map[string]any{"c": map[string]any{"env": env}}),
			policies: []hubv1.OverridePolicyObject{policyWith("a", variables...), policyWith("b", parseRule(t, `labels: {a: b}`))},
		},
		"rules that are taken back": {
			template: objectWith(map[string]any{"n": int64(1), "wide": wide(1500)}),
			policies: []hubv1.OverridePolicyObject{policyWith("a", ways...)},
		},
		"4096 shifts of a long list": {
			template: objectWith(map[string]any{"list": make([]any, maxIndex-1)}),
			policies: []hubv1.OverridePolicyObject{policyWith("a", rulesOf(long)...)},
		},
		"claims within claims": {
			template: objectWith(deepMap(62)),
			policies: []hubv1.OverridePolicyObject{policyWith("a", rulesOf(nested)...),
				policyWith("b", hubv1.OverrideRule{Name: "r", MergePatch: raw(map[string]any{"spec": leaves})})},
		},
		"a thousand policies that set variables of a long list": {
			template: objectWith(map[string]any{"c": map[string]any{"env": env}}), policies: setters,
		},
		"a thousand policies that agree": {template: objectWith(map[string]any{}), policies: crowd},
		"large merges that agree": {
			template: objectWith(map[string]any{}),
			policies: []hubv1.OverridePolicyObject{policyWith("a", hubv1.OverrideRule{Name: "r", MergePatch: raw(map[string]any{"spec": wide(4000)})}),
				policyWith("b", hubv1.OverrideRule{Name: "r", MergePatch: raw(map[string]any{"spec": wide(4000)})})},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var err error
			bytes, took := cost(time.Second, func() { _, err = render(tc.template, Cluster{}, tc.policies) })
			t.Logf("%s, %d KiB, %v", took, bytes>>10, err)
			if took > time.Second || bytes > 64<<20 {
				t.Errorf("took %s and %d KiB", took, bytes>>10)
			}
		})
	}
}

func wide(n int) map[string]any {
	out := map[string]any{}
	for i := range n {
		out[fmt.Sprintf("k%d", i)] = int64(i)
	}
	return out
}

func deepMap(levels int) map[string]any {
	out := map[string]any{}
	for range levels {
		out = map[string]any{"a": out}
	}
	return out
}
