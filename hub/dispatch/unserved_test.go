package dispatch

import (
	"context"
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

func TestFieldsThatAClusterLacksAreNamed(t *testing.T) {
	long := ".spec" + strings.Repeat(".deep", 100)
	manifest := &unstructured.Unstructured{Object: map[string]any{"kind": strings.Repeat("K", 63)}}
	rule := &overrides.RuleRef{Policy: overrides.PolicyRef{Kind: "OverridePolicy", Namespace: "shop", Name: "tiers"}, Rule: "gold"}
	tests := map[string]struct {
		paths  []string
		setter *overrides.RuleRef
		want   string
	}{
		"one that a rule sets":              {paths: []string{".spec.a", ".spec.b"}, setter: rule, want: `no .spec.a, .spec.b: OverridePolicy shop/tiers, rule "gold" sets .spec.a: update`},
		"one":                               {paths: []string{".spec.a"}, want: "no .spec.a: update"},
		"three":                             {paths: []string{".a", ".b", ".c"}, want: "no .a, .b, .c: update"},
		"of more than three how many":       {paths: []string{".a", ".b", ".c", ".d", ".e"}, want: "no .a, .b, .c and 2 more: update"},
		"of a long path the end":            {paths: []string{long}, want: ".deep.deep: update"},
		"of many long paths all, if barely": {paths: []string{long, long, long, long}, want: " and 1 more"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := lacking(manifest, tt.paths, tt.setter)
			if !strings.Contains(o.Message, tt.want) {
				t.Errorf("got %q, want %q in it", o.Message, tt.want)
			}
			if i := strings.Index(o.Message, tt.want) + len(tt.want); len([]rune(o.Message[:i])) > 256 {
				t.Errorf("%q is cut off in the row", tt.want)
			}
			if o.Applied != metav1.ConditionFalse || o.Reason != hubv1.ReasonFieldsNotServed || o.Retry != member.RetrySlowly {
				t.Errorf("got %+v", o)
			}
		})
	}
}

func TestAKindThatIsServedAtOtherVersionsIsNotMissing(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1beta1", Kind: "Gen"}
	tests := map[string]struct {
		reason   string
		versions []string // served versions of the kind, as the cluster has reported them
		want     string
	}{
		"at another version":             {reason: hubv1.ReasonKindNotServed, versions: []string{"v1"}, want: hubv1.ReasonVersionNotServed},
		"at none":                        {reason: hubv1.ReasonKindNotServed, want: hubv1.ReasonKindNotServed},
		"at this one until a moment ago": {reason: hubv1.ReasonKindNotServed, versions: []string{"v1", "v1beta1"}, want: hubv1.ReasonKindNotServed},
		"another failure":                {reason: hubv1.ReasonForbidden, versions: []string{"v1"}, want: hubv1.ReasonForbidden},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			mcl := &hubv1.MemberCluster{}
			mcl.Status.APIResources = []hubv1.ServedKind{{Group: kind.Group, Kind: kind.Kind, Versions: tt.versions}}
			o := atOtherVersions(member.Outcome{Reason: tt.reason, Message: "install its definition there", Retry: member.RetrySlowly}, kind, mcl)
			if o.Reason != tt.want || o.Retry != member.RetrySlowly {
				t.Errorf("got %+v, want %s", o, tt.want)
			}
			if says := strings.Contains(o.Message, "serves Gen at v1, but the hub can send it only at v1beta1"); says != (tt.want == hubv1.ReasonVersionNotServed) {
				t.Errorf("message %q", o.Message)
			}
		})
	}
}

func TestDroppedFieldsAreNamedInTheOutcome(t *testing.T) {
	const text = "sent without fields that the cluster's definition lacks: .a"
	tests := map[string]struct {
		reason, message, wantReason, want string
	}{
		"applied":                  {reason: hubv1.ReasonApplied, wantReason: hubv1.ReasonFieldsDropped, want: text},
		"applied with a note":      {reason: hubv1.ReasonAutoscaled, message: "note", wantReason: hubv1.ReasonFieldsDropped, want: text},
		"in sync when compared":    {reason: hubv1.ReasonInSync, message: "same", wantReason: hubv1.ReasonInSync, want: "same; " + text},
		"different when compared":  {reason: hubv1.ReasonDiffers, message: "other", wantReason: hubv1.ReasonDiffers, want: "other; " + text},
		"refused for other reason": {reason: hubv1.ReasonForbidden, message: "no", wantReason: hubv1.ReasonForbidden, want: "no"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := member.Outcome{Reason: tt.reason, Message: tt.message}
			if got := dropped(in, []string{".a"}); got.Reason != tt.wantReason || got.Message != tt.want {
				t.Errorf("got %s %q, want %s %q", got.Reason, got.Message, tt.wantReason, tt.want)
			}
			if got := dropped(in, nil); got.Reason != tt.reason || got.Message != tt.message {
				t.Errorf("without a dropped field, got %s %q", got.Reason, got.Message)
			}
		})
	}
}

// oldCluster is a cluster whose schema of the kind lacks the field spec.limit.
type oldCluster struct{ member.Cluster }

// Fit implements member.Cluster.
func (oldCluster) Fit(_ context.Context, manifest *unstructured.Unstructured) (*unstructured.Unstructured, []string) {
	fitting := manifest.DeepCopy()
	if _, found, _ := unstructured.NestedFieldNoCopy(fitting.Object, "spec", "limit"); !found {
		return fitting, nil
	}
	unstructured.RemoveNestedField(fitting.Object, "spec", "limit")
	return fitting, []string{".spec.limit"}
}

func TestTheRuleThatSetsAFieldWhichAClusterLacksIsNamed(t *testing.T) {
	set := func(name, path string) hubv1.OverrideRule {
		return hubv1.OverrideRule{Name: name, Patches: []hubv1.PatchOperation{{Op: hubv1.PatchAdd, Path: path, Value: &apiextensionsv1.JSON{Raw: []byte("1")}}}}
	}
	tests := map[string]struct {
		spec  map[string]any
		rules []hubv1.OverrideRule
		want  string
	}{
		"the hub object has it":              {spec: map[string]any{"limit": int64(5)}, want: "no .spec.limit: update its definition"},
		"the hub object has it beside rules": {spec: map[string]any{"limit": int64(5)}, rules: []hubv1.OverrideRule{set("r", "/spec/limit")}, want: "no .spec.limit: update its definition"},
		"one of three rules sets it": {
			spec: map[string]any{}, rules: []hubv1.OverrideRule{set("a", "/spec/size"), set("b", "/spec/limit"), set("c", "/spec/weight")},
			want: `no .spec.limit: OverridePolicy ns/p, rule "b" sets .spec.limit: update`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRun(oldCluster{}, 0)
			manifest := rendered(t, r, tt.spec, tt.rules)
			_, unserved := r.cluster.Fit(t.Context(), manifest)
			if o := r.notServed(t.Context(), manifest, unserved); !strings.Contains(o.Message, tt.want) || o.Reason != hubv1.ReasonFieldsNotServed {
				t.Errorf("got %s %q, want %q in it", o.Reason, o.Message, tt.want)
			}
		})
	}
}
