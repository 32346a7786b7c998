package overrides

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"pgregory.net/rapid"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// making returns an operation whose value is computed by an expression.
func making(op hubv1.PatchOp, path, expression string) hubv1.PatchOperation {
	return hubv1.PatchOperation{Op: op, Path: path, Expression: expression}
}

// where returns a rule that applies to the clusters for which the expression is true.
func where(expression string, patches ...hubv1.PatchOperation) hubv1.OverrideRule {
	rule := hubv1.OverrideRule{Name: "r", Patches: patches}
	if expression != "" {
		rule.Clusters = &hubv1.RuleClusters{Expression: expression}
	}
	return rule
}

func clusterOfTest(edits ...func(*Cluster)) Cluster {
	c := Cluster{
		Name: "eu-1", Labels: map[string]string{"tier": "1", hubv1.RegionLabel: "eu", hubv1.ZoneLabel: "eu-a"}, Version: "v1.36.0",
		Capacity:  corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("16Gi")},
		Operators: []hubv1.OperatorFact{{Name: "rotors", Version: "1.0.0", Installed: true}},
	}
	for _, e := range edits {
		e(&c)
	}
	return c
}

func TestDiffers(t *testing.T) {
	label := func(key, value string) func(*Cluster) { return func(c *Cluster) { c.Labels[key] = value } }
	version := func(v string) func(*Cluster) { return func(c *Cluster) { c.Version = v } }
	capacity := func(name corev1.ResourceName, q string) func(*Cluster) {
		return func(c *Cluster) { c.Capacity[name] = resource.MustParse(q) }
	}
	operators := func(facts ...hubv1.OperatorFact) func(*Cluster) { return func(c *Cluster) { c.Operators = facts } }
	newer := hubv1.OperatorFact{Name: "rotors", Version: "1.1.0", Installed: true}
	other := hubv1.OperatorFact{Name: "certs", Version: "1.19.0"}
	region := func(r string) hubv1.OverrideRule {
		return hubv1.OverrideRule{Name: "r", Clusters: &hubv1.RuleClusters{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{hubv1.RegionLabel: r}}}}
	}
	tests := map[string]struct {
		rule   hubv1.OverrideRule
		change func(*Cluster)
		want   bool
	}{
		"a selector that begins to match":                      {region("cn"), label(hubv1.RegionLabel, "cn"), true},
		"a selector that matches no more":                      {region("eu"), label(hubv1.RegionLabel, "cn"), true},
		"a selector that has no part in the change":            {region("eu"), label("tier", "2"), false},
		"a label that an expression reads":                     {where("labels.tier == '1'"), label("tier", "2"), true},
		"a label that it reads, with the same answer":          {where("labels.tier != '9'"), label("tier", "2"), false},
		"a label that it does not read":                        {where("labels.tier == '1'"), label("team", "sre"), false},
		"a version that an expression reads":                   {where("semver(version, true).minor() >= 37"), version("v1.37.0"), true},
		"a capacity that does not reach what is asked":         {where("capacity['cpu'].isGreaterThan(quantity('32'))"), capacity("cpu", "16"), false},
		"a capacity that does":                                 {where("capacity['cpu'].isGreaterThan(quantity('32'))"), capacity("cpu", "64"), true},
		"a value of the region":                                {where("", making(hubv1.PatchAdd, "/spec/a", "cluster.region")), label(hubv1.RegionLabel, "cn"), true},
		"a value of the zone":                                  {where("", making(hubv1.PatchAdd, "/spec/a", "cluster.zone")), label(hubv1.ZoneLabel, "eu-b"), true},
		"a value of the version":                               {where("", making(hubv1.PatchAdd, "/spec/a", "cluster.version")), version("v1.36.1"), true},
		"a value of one capacity, if another changes":          {where("", making(hubv1.PatchAdd, "/spec/a", "cluster.capacity['cpu']")), capacity("memory", "1Gi"), false},
		"a value of this one":                                  {where("", making(hubv1.PatchAdd, "/spec/a", "cluster.capacity.cpu")), capacity("cpu", "9"), true},
		"a value of all labels":                                {where("", making(hubv1.PatchAdd, "/spec/a", "cluster.labels")), label("team", "sre"), true},
		"a value of the object alone":                          {where("", making(hubv1.PatchAdd, "/spec/a", "object.spec.b")), version("v1.37.0"), false},
		"a value of the version where the rule does not apply": {where("name == 'cn'", making(hubv1.PatchAdd, "/spec/a", "cluster.version")), version("v1.37.0"), false},
		"an operator that an expression reads":                 {where("operators['rotors'].version == '1.0.0'"), operators(newer), true},
		"an operator that has left":                            {where("operators[?'rotors'].installed.orValue(false)"), operators(), true},
		"an operator that it does not read":                    {where("operators['rotors'].installed"), operators(hubv1.OperatorFact{Name: "rotors", Version: "1.0.0", Installed: true}, other), false},
		"a value of an operator":                               {where("", making(hubv1.PatchAdd, "/spec/a", "cluster.operators['rotors'].version")), operators(newer), true},
		"a value of an operator, if another one comes":         {where("", making(hubv1.PatchAdd, "/spec/a", "cluster.operators[?'rotors'].version.orValue('')")), operators(hubv1.OperatorFact{Name: "rotors", Version: "1.0.0", Installed: true}, other), false},
		"a value inside of a text": {
			hubv1.OverrideRule{Name: "r", Edits: []hubv1.StringEdit{{Path: "/data/a", Format: hubv1.TextYAML, Patches: []hubv1.EditOperation{{Op: hubv1.PatchAdd, Path: "/a", Expression: "cluster.version"}}}}},
			version("v1.37.0"), true,
		},
		"a rule that cannot be read":           {where("labels ="), label("team", "sre"), true},
		"a value that cannot be read":          {where("", making(hubv1.PatchAdd, "/spec/a", "cluster.")), label("team", "sre"), true},
		"an expression without an answer":      {where("labels.none == ''"), label("team", "sre"), true},
		"no change":                            {where("", making(hubv1.PatchAdd, "/spec/a", "cluster.labels")), func(*Cluster) {}, false},
		"a literal, whatever changes":          {where("", patch("add", "/spec/a", "", "1")), version("v1.37.0"), false},
		"a capacity that is written otherwise": {where("", making(hubv1.PatchAdd, "/spec/a", "cluster.capacity.cpu")), capacity("cpu", "8000m"), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Differs(policyWith("p", tc.rule), clusterOfTest(), clusterOfTest(tc.change)); got != tc.want {
				t.Errorf("differs is %t", got)
			}
		})
	}
}

func TestReadsFacts(t *testing.T) {
	tests := map[string]bool{
		"name == 'a' && labels.tier == '1' && region == zone": false,
		"semver(version, true).minor() > 3 || name == 'a'":    true,
		"has(capacity.cpu)": true,
		"'rotors' in operators && operators.rotors.installed": true,
		"labels =": false,
		"":         false,
		"['a'].all(capacities, name == capacities || 1 == 1)":  false,
		"capacity.exists(c, c == 'nvidia.com/gpu') && 1 == 1 ": true,
	}
	for text, want := range tests {
		t.Run(text, func(t *testing.T) {
			rule := where(text)
			if got := ReadsFacts(&rule); got != want {
				t.Errorf("reads facts is %t", got)
			}
		})
	}
}

func TestValidateReadsExpressions(t *testing.T) {
	bomb := "[1,2,3,4,5,6,7,8]" + strings.Repeat(".map(a, [1,2,3,4,5,6,7,8].map(b, [1,2,3,4,5,6,7,8].map(c, [1,2,3,4,5,6,7,8].map(d, [1,2,3,4,5,6,7,8].map(e, a)))))", 1)
	tests := map[string]struct {
		rule hubv1.OverrideRule
		want string
	}{
		"a choice of clusters that is no condition": {
			where("version", patch("add", "/spec/a", "", "1")), "spec.rules[0].clusters.expression: Invalid value: the result of the expression must be true or false, not string",
		},
		"a choice that reads what changes all the time": {
			where("nodes.ready > 1", patch("add", "/spec/a", "", "1")), "spec.rules[0].clusters.expression: Invalid value: line 1, column 1: undeclared reference to 'nodes'",
		},
		"a value that costs too much": {
			where("", making(hubv1.PatchAdd, "/spec/a", bomb)),
			"spec.rules[0].patches[0].expression: Invalid value: /spec/a has an expression that is refused: the expression costs too much, even with lists of 8 items: use fewer or smaller loops: correct it",
		},
		"a value that is too long": {
			where("", making(hubv1.PatchAdd, "/spec/a", "'"+strings.Repeat("a", 5000)+"'")),
			"spec.rules[0].patches[0].expression: Invalid value: /spec/a has an expression that is refused: the expression has more than 4096 bytes: make it shorter: correct it",
		},
		"an operation that takes none": {
			where("", making(hubv1.PatchRemove, "/spec/a", "1")), "spec.rules[0].patches[0].expression: Invalid value: /spec/a has an expression, which op remove does not take",
		},
		"everything in order": {where("region == 'eu'", making(hubv1.PatchAdd, "/spec/a", "cluster.name + object.metadata.name")), ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			spec := &hubv1.OverridePolicySpec{ResourceSelectors: []hubv1.ResourceSelector{{Kind: "Thing"}}, Rules: []hubv1.OverrideRule{tc.rule}}
			got := ""
			if errs := Validate(spec, field.NewPath("spec")); len(errs) > 0 {
				got = errs.ToAggregate().Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

// These expressions occur in generated rules. Some of them fail for some objects and clusters.
var (
	drawnTargets = rapid.SampledFrom([]string{"name == 'c'", "'a' in labels", "labels.a == 'b'", "capacity.cpu.isGreaterThan(quantity('1'))", "version != ''", "zone =="})
	drawnValues  = rapid.SampledFrom([]string{
		"object.spec", "object.metadata.name + cluster.name", "size(object.spec)", "object.spec.a", "cluster.labels", "object.spec.map(k, k)", "[cluster.capacity, 1]", "1 / size(object.spec)",
		"object.metadata.labels.transformMap(k, v, v + cluster.region)",
	})
)

func drawExpressive(t *rapid.T, name string, spec any) hubv1.OverrideRule {
	rule := drawRule(t, name, spec)
	if rapid.IntRange(0, 2).Draw(t, "chooses") == 0 {
		rule.Clusters = &hubv1.RuleClusters{Expression: drawnTargets.Draw(t, "target")}
	}
	for i := range rule.Patches {
		if p := &rule.Patches[i]; takesValue(p.Op) && rapid.Bool().Draw(t, "makes") {
			p.Value, p.Expression = nil, drawnValues.Draw(t, "expression")
		}
	}
	return rule
}

func drawCluster(t *rapid.T) Cluster {
	return Cluster{
		Name: rapid.SampledFrom([]string{"c", "d"}).Draw(t, "cluster"), Version: "v1.36.0",
		Labels:   rapid.MapOf(keys, rapid.SampledFrom([]string{"b", "c"})).Draw(t, "labels"),
		Capacity: corev1.ResourceList{"cpu": resource.MustParse(rapid.SampledFrom([]string{"1", "2"}).Draw(t, "cpu"))},
	}
}

func TestOrderOfPoliciesChangesNothingForExpressions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		template, cluster := drawTemplate(t), drawCluster(t)
		var policies []hubv1.OverridePolicyObject
		for _, name := range []string{"a", "b", "c"} {
			policies = append(policies, policyWith(name, drawExpressive(t, "one", template.Object["spec"]), drawExpressive(t, "two", template.Object["spec"])))
		}
		policies = append(policies, clusterPolicyWith("a", hubv1.TierAdmin, drawExpressive(t, "admin", template.Object["spec"])))
		before := raw([]any{template, policies}).Raw
		want, wantErr := render(template, cluster, policies)
		for range 3 {
			got, gotErr := render(template, cluster, rapid.Permutation(policies).Draw(t, "order"))
			if diff := cmp.Diff([]any{want, message(wantErr)}, []any{got, message(gotErr)}); diff != "" {
				t.Fatalf("-one order +another:\n%s", diff)
			}
		}
		if after := raw([]any{template, policies}).Raw; string(before) != string(after) {
			t.Fatalf("Render has changed its input from\n%s\nto\n%s", before, after)
		}
	})
}

// If Differs returns false for a change of a cluster, the object must be rendered in the same way before and after the
// change.
func TestWhatDoesNotDifferIsRenderedAlike(t *testing.T) {
	alike := 0
	rapid.Check(t, func(t *rapid.T) {
		template, before, after := drawTemplate(t), drawCluster(t), drawCluster(t)
		after.Name = before.Name
		policy := policyWith("p", drawExpressive(t, "one", template.Object["spec"]), drawExpressive(t, "two", template.Object["spec"]))
		if Differs(policy, before, after) {
			return
		}
		alike++
		was, wasErr := render(template, before, []hubv1.OverridePolicyObject{policy})
		is, isErr := render(template, after, []hubv1.OverridePolicyObject{policy})
		if diff := cmp.Diff([]any{was, message(wasErr)}, []any{is, message(isErr)}); diff != "" {
			t.Fatalf("%v and %v (-before +after):\n%s", before, after, diff)
		}
	})
	t.Logf("%d were alike", alike)
}

// FuzzExpression fails on a panic, on two different manifests for the same input, on a changed input, and on a value of
// a Secret in a message.
func FuzzExpression(f *testing.F) {
	f.Add("labels.tier == '1' && region == 'eu'", "object.spec.map(k, {'name': k, 'in': cluster.name})", `{"z":1,"a":[null,1.5]}`)
	f.Add("capacity.exists(c, capacity[c].isGreaterThan(quantity('1Gi')))", "[object]"+strings.Repeat(".map(a, [a, a])", 8), `{}`)
	f.Add("semver(version, true).minor() > 3", "object.spec.a.replace('', object.spec.a)", `{"a":"xxxxxxxxxxxxxxxx"}`)
	f.Add("name.matches(labels.tier)", "int(object.data.password)", `[]`)
	f.Add("zone.size() / 0 == 1", "{object.spec.a: {object.spec.a: cluster.capacity}}", `{"a":"b"}`)
	f.Add("true", "timestamp(object.spec.a) + duration('1h')", `{"a":"2026-01-01T00:00:00Z"}`)
	f.Fuzz(func(t *testing.T, target, value, spec string) {
		var decoded any
		if utiljson.Unmarshal([]byte(spec), &decoded) != nil {
			return
		}
		const secret = "correct-horse-battery"
		template := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "web", "namespace": "team"},
			"data": map[string]any{"password": secret}, "spec": decoded,
		}}
		before := raw(template.Object).Raw
		policies := []hubv1.OverridePolicyObject{policyWith("p", where(target, making(hubv1.PatchAdd, "/data/a", value), making(hubv1.PatchTest, "/data/a", value)))}
		one, err := render(template, clusterOfTest(), policies)
		other, otherErr := render(template, clusterOfTest(), policies)
		// The function cmp.Diff takes seconds for such manifests. It is therefore used only to show differences.
		if !reflect.DeepEqual(one, other) || message(err) != message(otherErr) {
			t.Fatalf("two renderings (-one +another):\n%s", cmp.Diff([]any{one, message(err)}, []any{other, message(otherErr)}))
		}
		if err != nil && strings.Contains(err.Error(), secret) && !strings.Contains(target+value, secret) {
			t.Fatalf("the message holds a value of the Secret: %s", err)
		}
		Differs(policies[0], clusterOfTest(), Cluster{Name: "eu-1"})
		Validate(policies[0].OverrideSpec(), field.NewPath("spec"))
		checkRendered(t, template, policies)
		if after := raw(template.Object).Raw; string(before) != string(after) {
			t.Fatalf("the template was changed from\n%s\nto\n%s", before, after)
		}
	})
}
