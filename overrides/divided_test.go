package overrides

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestADividedNumberComesBeforeTheRules(t *testing.T) {
	spec := func() map[string]any {
		return map[string]any{"replicas": int64(12), "size": int64(1), "deep": map[string]any{"a/b": int64(1)}, "list": []any{"x"}}
	}
	const refused = `OverridePolicy team/p, rule "r": path /spec/replicas is divided between clusters by the placement: remove it from the rule, and use spec.replicas.divide of the placement`
	tests := map[string]struct {
		rule    string
		divided []Divided
		want    map[string]any // the fields of the spec that the rule changes
		says    string
	}{
		"the number of the cluster takes the place of the template's": {rule: `mergePatch: {spec: {size: 2}}`, divided: []Divided{{"/spec/replicas", 5}}, want: map[string]any{"replicas": int64(5), "size": int64(2)}},
		"a share of nothing":                          {rule: `mergePatch: {spec: {size: 2}}`, divided: []Divided{{"/spec/replicas", 0}}, want: map[string]any{"replicas": int64(0), "size": int64(2)}},
		"a number that the template does not have":    {rule: `mergePatch: {spec: {size: 2}}`, divided: []Divided{{"/spec/more/of", 4}}, want: map[string]any{"more": map[string]any{"of": int64(4)}, "size": int64(2)}},
		"an escaped key":                              {rule: `mergePatch: {spec: {size: 2}}`, divided: []Divided{{"/spec/deep/a~1b", 4}}, want: map[string]any{"deep": map[string]any{"a/b": int64(4)}, "size": int64(2)}},
		"a rule may read it":                          {rule: `patches: [{op: test, path: /spec/replicas, value: 5}, {op: copy, from: /spec/replicas, path: /spec/size}]`, divided: []Divided{{"/spec/replicas", 5}}, want: map[string]any{"replicas": int64(5), "size": int64(5)}},
		"a rule may change what stands beside it":     {rule: `mergePatch: {spec: {replicasMax: 3}}, patches: [{op: add, path: /spec/replica, value: 1}]`, divided: []Divided{{"/spec/replicas", 5}}, want: map[string]any{"replicas": int64(5), "replicasMax": int64(3), "replica": int64(1)}},
		"an object on the way changes nothing":        {rule: `mergePatch: {spec: {}}`, divided: []Divided{{"/spec/replicas", 5}}, want: map[string]any{"replicas": int64(5)}},
		"a rule may not replace it":                   {rule: `patches: [{op: replace, path: /spec/replicas, value: 3}]`, divided: []Divided{{"/spec/replicas", 5}}, says: refused},
		"nor with the same value":                     {rule: `patches: [{op: replace, path: /spec/replicas, value: 5}]`, divided: []Divided{{"/spec/replicas", 5}}, says: refused},
		"nor remove it":                               {rule: `patches: [{op: remove, path: /spec/replicas}]`, divided: []Divided{{"/spec/replicas", 5}}, says: refused},
		"nor move it":                                 {rule: `patches: [{op: move, from: /spec/replicas, path: /spec/size}]`, divided: []Divided{{"/spec/replicas", 5}}, says: refused},
		"nor copy something there":                    {rule: `patches: [{op: copy, from: /spec/size, path: /spec/replicas}]`, divided: []Divided{{"/spec/replicas", 5}}, says: refused},
		"nor replace what it is in":                   {rule: `patches: [{op: replace, path: /spec, value: {size: 1}}]`, divided: []Divided{{"/spec/replicas", 5}}, says: refused},
		"nor put something below it":                  {rule: `patches: [{op: add, path: /spec/replicas/of, value: 1}]`, divided: []Divided{{"/spec/replicas", 5}}, says: refused},
		"nor merge a value over it":                   {rule: `mergePatch: {spec: {replicas: 5}}`, divided: []Divided{{"/spec/replicas", 5}}, says: refused},
		"nor merge it away":                           {rule: `mergePatch: {spec: {replicas: null}}`, divided: []Divided{{"/spec/replicas", 5}}, says: refused},
		"nor merge away what it is in":                {rule: `mergePatch: {spec: null}`, divided: []Divided{{"/spec/replicas", 5}}, says: refused},
		"nor an object in its place":                  {rule: `mergePatch: {spec: {replicas: {of: 1}}}`, divided: []Divided{{"/spec/replicas", 5}}, says: refused},
		"a rule for another cluster does no harm":     {rule: `clusters: {names: [us-1]}, patches: [{op: replace, path: /spec/replicas, value: 3}]`, divided: []Divided{{"/spec/replicas", 5}}, want: map[string]any{"replicas": int64(5)}},
		"nothing is divided":                          {rule: `patches: [{op: replace, path: /spec/replicas, value: 3}]`, want: map[string]any{"replicas": int64(3)}},
		"a way through a list is none":                {rule: `mergePatch: {spec: {size: 2}}`, divided: []Divided{{"/spec/list/0", 4}}, says: "the hub object: path /spec/list/0 goes through a value that is not an object: correct spec.replicas.path of the placement"},
		"a number of the metadata is not for changes": {rule: `mergePatch: {spec: {size: 2}}`, divided: []Divided{{"/metadata/generation", 4}}, says: "the hub object: path /metadata/generation is metadata that cannot be overridden: name one key of /metadata/labels or /metadata/annotations"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			rule := parseRule(t, tc.rule)
			template := objectWith(spec())
			got, err := render(template, Cluster{Name: "eu-1"}, []hubv1.OverridePolicyObject{policyWith("p", rule)}, tc.divided...)
			if diff := cmp.Diff(tc.says, message(err)); diff != "" {
				t.Fatalf("error -want +got:\n%s", diff)
			}
			if diff := cmp.Diff(spec(), template.Object["spec"]); diff != "" {
				t.Errorf("the template was changed: %s", diff)
			}
			if tc.says != "" {
				return
			}
			want := spec()
			for k, v := range tc.want {
				want[k] = v
			}
			if diff := cmp.Diff(want, got.Manifest.Object["spec"]); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestWhateverTheRulesADividedNumberIsAsDecided(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := drawObject(t, 3)
		spec["replicas"] = int64(12)
		policy := policyWith("p", drawRule(t, "r", spec))
		got, err := render(objectWith(spec), Cluster{Name: "eu-1"}, []hubv1.OverridePolicyObject{policy}, Divided{"/spec/replicas", 5})
		if err != nil {
			return
		}
		if n, _ := (pointer{"spec", "replicas"}).lookup(got.Manifest.Object); n != int64(5) {
			t.Fatalf("it is %v after %s", n, raw(policy.Spec.Rules).Raw)
		}
	})
}

func TestADividedErrorIsOfItsOwnKind(t *testing.T) {
	rule := parseRule(t, `mergePatch: {spec: {replicas: 1}}`)
	_, err := render(objectWith(map[string]any{"replicas": int64(3)}), Cluster{}, []hubv1.OverridePolicyObject{policyWith("p", rule)}, Divided{"/spec/replicas", 1})
	if divided := (*DividedError)(nil); !errors.As(err, &divided) || divided.Path != "/spec/replicas" {
		t.Errorf("%v", err)
	}
}
