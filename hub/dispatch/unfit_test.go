package dispatch

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/overrides"
)

// pickyCluster accepts only small values of the field size.
type pickyCluster struct {
	fakeCluster
	asked int
}

func (c *pickyCluster) Misfits(_ context.Context, manifest *unstructured.Unstructured) []member.Misfit {
	c.asked++
	return tooLarge(manifest, 10)
}

func TestWhatNeverGoesToMembersIsNotSent(t *testing.T) {
	manifest := func(gvk schema.GroupVersionKind, field string, value any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{field: value}}
		u.SetGroupVersionKind(gvk)
		return u
	}
	host := map[string]any{"hostNetwork": true, "containers": []any{}}
	labels := map[string]string{"pod-security.kubernetes.io/enforce": "baseline"}
	for name, tc := range map[string]struct {
		manifest *unstructured.Unstructured
		want     string
	}{
		"a pod that the hub's namespace forbids": {manifest(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, "spec", host), hubv1.ReasonPodSecurityViolation},
		"a token of a ServiceAccount": {
			manifest(schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, "type", "kubernetes.io/service-account-token"), hubv1.ReasonSecretTypeRefused,
		},
		"an object of another kind": {manifest(kind, "spec", host), ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(&pickyCluster{}, 0)
			r.in.namespaceLabels = labels
			got := ""
			if o := r.unfit(t.Context(), tc.manifest); o != nil && o.Applied == metav1.ConditionFalse {
				got = o.Reason
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	r := newRun(&pickyCluster{}, 0)
	r.in.mcl = &hubv1.MemberCluster{Spec: hubv1.MemberClusterSpec{AllowedNamespaces: hubv1.AllowedNamespaces{From: hubv1.NamespacesFromAll}}}
	r.in.object.Namespace = "kube-system"
	if o, forbidden := r.forbidden(); !forbidden || o.Reason != hubv1.ReasonNamespaceRefused {
		t.Errorf("an object of kube-system: %+v", o)
	}
}

func tooLarge(manifest *unstructured.Unstructured, maxReplicas int64) []member.Misfit {
	size, _, _ := unstructured.NestedInt64(manifest.Object, "spec", "size")
	if size <= maxReplicas {
		return nil
	}
	return []member.Misfit{{Path: "/spec/size", Declared: "/spec/*", Message: "must be small", Value: map[bool]string{true: "50", false: "500"}[size == 50]}}
}

func TestAnInvalidManifestNamesTheRuleAndIsNotSent(t *testing.T) {
	rule := func(name string, patches ...hubv1.PatchOperation) hubv1.OverrideRule {
		return hubv1.OverrideRule{Name: name, Patches: patches}
	}
	set := func(path, value string) hubv1.PatchOperation {
		return hubv1.PatchOperation{Op: hubv1.PatchReplace, Path: path, Value: &apiextensionsv1.JSON{Raw: []byte(value)}}
	}
	copied := hubv1.PatchOperation{Op: hubv1.PatchCopy, From: "/spec/limit", Path: "/spec/size"}
	var many []hubv1.OverrideRule
	for i := range 64 {
		many = append(many, rule(fmt.Sprintf("r%d", i), set("/spec/limit", strconv.Itoa(i))))
	}
	many[17].Patches[0] = set("/spec/size", "50")
	tests := map[string]struct {
		size  int64
		kind  string
		rules []hubv1.OverrideRule
		asked bool     // whether the cluster is asked with a dry run
		want  []string // texts in the row; empty: the copy is sent
		not   string
	}{
		"without rules nothing is asked":       {size: 500},
		"a rule that fits":                     {size: 1, rules: []hubv1.OverrideRule{rule("r", set("/spec/size", "9"))}, asked: true},
		"what was too large without the rules": {size: 500, rules: []hubv1.OverrideRule{rule("r", set("/spec/limit", "1"))}, asked: true},
		"too large for the cluster":            {size: 1, rules: []hubv1.OverrideRule{rule("r", set("/spec/size", "50"))}, asked: true, want: []string{`OverridePolicy ns/p, rule "r"`, "path /spec/size must be small, not 50, by the cluster's schema"}},
		"too large for the hub":                {size: 1, rules: []hubv1.OverrideRule{rule("r", set("/spec/size", "500"))}, want: []string{"by the hub's schema"}},
		"the rule that did it is named":        {size: 1, rules: []hubv1.OverrideRule{rule("first", set("/spec/size", "50")), rule("last", set("/spec/limit", "1"))}, asked: true, want: []string{`rule "first"`}},
		"a rule beside two that did it is not": {
			size: 1, asked: true, want: []string{`rule "first"`},
			rules: []hubv1.OverrideRule{rule("first", set("/spec/size", "50")), rule("second", set("/spec/size", "50")), rule("last", set("/spec/limit", "1"))},
		},
		"one rule of many":                          {size: 1, rules: many, asked: true, want: []string{`rule "r17"`}},
		"a value that is not the rule's is no news": {size: 1, rules: []hubv1.OverrideRule{rule("r", copied)}, asked: true, want: []string{"path /spec/size must be small, by the cluster's schema"}, not: "50"},
		"of a Secret no value is told":              {size: 1, kind: "Secret", rules: []hubv1.OverrideRule{rule("r", set("/spec/size", "50"))}, asked: true, want: []string{"path /spec/* must be small, by"}, not: "50"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := &pickyCluster{}
			r := newRun(c, 0)
			r.queue.opts.Misfits = func(_ context.Context, manifest *unstructured.Unstructured) []member.Misfit {
				return tooLarge(manifest, 100)
			}
			if tt.kind != "" {
				r.in.object.ObjectIdentity = hubv1.ObjectIdentity{Kind: tt.kind, Namespace: "ns", Name: "web"}
			}
			o := r.unfit(t.Context(), rendered(t, r, map[string]any{"size": tt.size, "limit": int64(50)}, tt.rules))
			const maxDryRuns = 2 + 6 // dry runs: with the rules, without them, and 6 to search 64 rules
			if c.asked > 0 != tt.asked || c.asked > maxDryRuns {
				t.Errorf("the cluster was asked %d times", c.asked)
			}
			switch {
			case (o == nil) != (len(tt.want) == 0):
				t.Fatalf("got %+v", o)
			case o == nil:
				return
			}
			if o.Applied != metav1.ConditionFalse || o.Reason != hubv1.ReasonOverrideInvalid || o.Retry != member.RetrySlowly {
				t.Errorf("got %+v", o)
			}
			for _, words := range tt.want {
				if !strings.Contains(o.Message, words) {
					t.Errorf("%q does not say %q", o.Message, words)
				}
			}
			if tt.not != "" && strings.Contains(o.Message, tt.not) {
				t.Errorf("%q tells %q", o.Message, tt.not)
			}
		})
	}
}

// rendered returns the manifest of an object with this spec after a policy with these rules. It also stores in r how
// the manifest was made.
func rendered(t *testing.T, r *run, spec map[string]any, rules []hubv1.OverrideRule) *unstructured.Unstructured {
	t.Helper()
	template := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	template.SetGroupVersionKind(kind)
	template.SetName("web")
	prepared, err := overrides.Prepare(template, nil)
	if err != nil {
		t.Fatal(err)
	}
	policies := []hubv1.OverridePolicyObject{&hubv1.OverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}, Spec: hubv1.OverridePolicySpec{Rules: rules},
	}}
	result, err := prepared.Render(overrides.Cluster{Name: "eu"}, policies, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.out.rendering, r.out.prepared = &rendering{prepared: prepared}, prepared
	r.out.overridden = overridden{cluster: overrides.Cluster{Name: "eu"}, policies: policies, applied: result.Applied}
	return result.Manifest
}
