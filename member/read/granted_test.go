package read

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

func rule(groups, resources, verbs []any, names ...any) any {
	r := map[string]any{"apiGroups": groups, "resources": resources, "verbs": verbs}
	if len(names) > 0 {
		r["resourceNames"] = names
	}
	return r
}

func TestRules(t *testing.T) {
	widgets := schema.GroupResource{Group: "shop", Resource: "widgets"}
	write := []any{"list", "patch"}
	for name, test := range map[string]struct {
		rules []any
		allow bool
	}{
		"an answer that is not complete may allow everything": {nil, true},
		"an answer without rules allows nothing":              {[]any{}, false},
		"one rule allows both verbs":                          {[]any{rule([]any{"shop"}, []any{"widgets"}, write)}, true},
		"two rules allow a verb each":                         {[]any{rule([]any{"shop"}, []any{"widgets"}, []any{"list"}), rule([]any{"*"}, []any{"*"}, []any{"patch"})}, true},
		"one verb is not enough":                              {[]any{rule([]any{"shop"}, []any{"widgets"}, []any{"list"})}, false},
		"a rule of another group does not count":              {[]any{rule([]any{"apps"}, []any{"widgets"}, write)}, false},
		"a rule for objects by name does not count":           {[]any{rule([]any{"shop"}, []any{"widgets"}, write, "one")}, false},
		"a rule that is no rule does not count":               {[]any{"odd"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (Rules{test.rules}).Allow(widgets, "list", "patch"); got != test.allow {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestRightsAreEqualIfOnlyTheOrderOfRulesDiffers(t *testing.T) {
	read := func(rules ...any) string {
		client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())
		client.PrependReactor("create", "selfsubjectrulesreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
			o := a.(clienttesting.CreateAction).GetObject().(*unstructured.Unstructured).DeepCopy()
			if ns, _, _ := unstructured.NestedString(o.Object, "spec", "namespace"); ns != "default" {
				t.Errorf("asked for the rights in namespace %q", ns)
			}
			return true, o, unstructured.SetNestedSlice(o.Object, rules, "status", "resourceRules")
		})
		text, err := Rights(t.Context(), client, "")
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	watch, write := rule([]any{"shop"}, []any{"widgets"}, []any{"watch"}), rule([]any{"shop"}, []any{"widgets"}, []any{"patch"})
	if read(watch, write) != read(write, watch, write) {
		t.Error("the same rules in another order are other rights")
	}
	if read(watch, write) == read(watch) {
		t.Error("fewer rules are the same rights")
	}
}

func TestGroups(t *testing.T) {
	groups, all := Rules{[]any{
		rule([]any{"shop", ""}, []any{"widgets"}, []any{"list"}), rule([]any{"shop"}, []any{"x"}, []any{"list"}), rule([]any{"apps"}, []any{"x"}, []any{"get"}),
	}}.Groups("list")
	if diff := cmp.Diff([]string{"", "shop"}, groups); diff != "" || all {
		t.Errorf("all %t %s", all, diff)
	}
	if _, all := (Rules{[]any{rule([]any{"*"}, []any{"*"}, []any{"*"})}}).Groups("list"); !all {
		t.Error("a rule for every group is not one")
	}
	if _, all := (Rules{}).Groups("list"); !all {
		t.Error("an answer that is missing may be of every group")
	}
}
