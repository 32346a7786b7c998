package admission_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// follows adds n widgets that follow the placement web, with a copy on each of the clusters.
func (h *hub) follows(n int, spec string, clusters ...string) {
	h.Helper()
	for i := range n {
		h.place(fmt.Sprintf("web-%d", i), `{replicas: 1}`, clusters...)
		b := h.objects[len(h.objects)-1].(*hubv1.ResourceBinding)
		b.Spec.PlacementRef = &hubv1.PlacementReference{Kind: "Placement", Namespace: "shop", Name: "web", UID: "web"}
	}
	p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web"}}
	h.must(yaml.Unmarshal([]byte(widgets(spec)), p))
	h.objects = append(h.objects, p)
	for _, o := range h.objects {
		if c, ok := o.(*hubv1.MemberCluster); ok {
			c.UID = types.UID(c.Name)
			c.Status.Conditions = []metav1.Condition{{Type: hubv1.ConditionReady, Status: metav1.ConditionTrue}}
		}
	}
}

func widgets(spec string) string {
	return `{kind: Placement, metadata: {namespace: shop, name: web, uid: web}, spec: {resourceSelectors: [{apiGroup: test.hanse.dev, kind: Widget}], ` + spec + `}}`
}

func TestAWarningNamesTheCopiesThatAPolicyWouldWithdraw(t *testing.T) {
	const both, one = `clusters: {names: [eu-1, cn-1]}`, `clusters: {names: [eu-1]}`
	tests := map[string]struct {
		objects        int
		before, policy string
		clusters       []string
		want           []string
	}{
		"a narrower placement": {
			objects: 2, before: both, clusters: []string{"cn-1", "eu-1"}, policy: widgets(one),
			want: []string{"the policy would withdraw 2 copies of 2 objects, from cn-1 (2): first Widget.test.hanse.dev shop/web-0; the removal is within the limit and needs no confirmation"},
		},
		"a narrower placement of more objects than the removal limit": {
			objects: 6, before: both, clusters: []string{"cn-1", "eu-1"}, policy: widgets(one),
			want: []string{"the policy would withdraw 6 copies of 6 objects, from cn-1 (6): first Widget.test.hanse.dev shop/web-0; the hub holds the removal until a user confirms it"},
		},
		"the removal limit of the edited placement counts": {
			objects: 2, before: both, clusters: []string{"cn-1", "eu-1"}, policy: widgets(one + `, removalLimit: {copies: 1, percent: 0}`),
			want: []string{"the policy would withdraw 2 copies of 2 objects, from cn-1 (2): first Widget.test.hanse.dev shop/web-0; the hub holds the removal until a user confirms it"},
		},
		"a cluster name that does not exist": {
			objects: 1, before: both, clusters: []string{"cn-1", "eu-1"}, policy: widgets(`clusters: {names: [typo]}`),
			want: []string{"no cluster is named typo: there are cn-1, eu-1", "the policy would withdraw 2 copies of 1 object, from cn-1 (1), eu-1 (1): first Widget.test.hanse.dev shop/web-0; the hub holds the removal until a user confirms it"},
		},
		"a wider placement": {objects: 2, before: one, clusters: []string{"eu-1"}, policy: widgets(both)},
		"a placement that selects other objects": {
			objects: 2, before: both, clusters: []string{"cn-1", "eu-1"},
			policy: strings.Replace(widgets(one), "kind: Widget", "kind: Widget, labelSelector: {matchLabels: {a: b}}", 1),
		},
		"another placement with a higher priority": {
			objects: 1, before: both, clusters: []string{"cn-1", "eu-1"},
			policy: strings.Replace(widgets(`priority: 5, preemption: Always, `+one), "name: web, uid: web", "name: new, uid: new", 1),
			want:   []string{"the policy would withdraw 1 copy of 1 object, from cn-1 (1): first Widget.test.hanse.dev shop/web-0; the removal is within the limit and needs no confirmation"},
		},
		"an override policy that excludes a cluster": {
			objects: 1, before: both, clusters: []string{"cn-1", "eu-1"}, policy: policy(`[{name: a, clusters: {names: [cn-1]}, exclude: true}]`),
			want: []string{"the policy would withdraw 1 copy of 1 object, from cn-1 (1): first Widget.test.hanse.dev shop/web-0; the removal is within the limit and needs no confirmation"},
		},
		"an override policy that excludes a cluster without copies": {
			objects: 1, before: one, clusters: []string{"eu-1"}, policy: policy(`[{name: a, clusters: {names: [cn-1]}, exclude: true}]`),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			h.follows(tt.objects, tt.before, tt.clusters...)
			answer := h.review(tt.policy, "")
			if !answer.Allowed {
				t.Fatalf("refused: %+v", answer.Result)
			}
			if diff := cmp.Diff(tt.want, answer.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAForecastThatTakesTooLongSaysSo(t *testing.T) {
	h := newHub(t)
	h.follows(12, `clusters: {names: [eu-1, cn-1]}`, "cn-1", "eu-1")
	reviewer := h.reviewer()
	synctest.Test(t, func(t *testing.T) {
		h.reading = func() { <-time.After(100 * time.Millisecond) }
		answer := reviewer.Handle(t.Context(), h.request("alice", widgets(`clusters: {names: [eu-1]}`), ""))
		want := []string{"could not compute within 1 s which copies the policy would withdraw, because there are too many objects: run hansectl plan"}
		if diff := cmp.Diff(want, answer.Warnings); !answer.Allowed || diff != "" {
			t.Errorf("allowed is %t, warnings (-want +got):\n%s", answer.Allowed, diff)
		}
	})
}
