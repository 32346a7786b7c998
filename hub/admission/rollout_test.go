package admission_test

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// rolling returns a placement with a rollout.
func rolling(kind, annotations, rollout string) string {
	namespace := "namespace: shop, "
	if kind == "ClusterPlacement" {
		namespace = ""
	}
	return `{kind: ` + kind + `, metadata: {` + namespace + `name: new, annotations: ` + annotations + `},
		spec: {resourceSelectors: [{apiGroup: test.hanse.dev, kind: Widget}], clusters: {labelSelector: {}}, rollout: ` + rollout + `}}`
}

func TestARolloutIsReviewed(t *testing.T) {
	tests := map[string]struct {
		annotations, rollout string
		want                 []string // words of the refusal; none: the placement is accepted
		warned               []string
	}{
		"one that is fine": {
			rollout: `{waves: [{name: canary, clusters: {labelSelector: {matchLabels: {tier: canary}}}}, {name: rest}],
				windows: [{schedule: "0 2 * * 1-5", durationSeconds: 14400, timeZone: Asia/Shanghai}]}`,
		},
		"a wave in the middle that takes all clusters": {
			rollout: `{waves: [{name: all}, {name: rest}]}`, want: []string{"spec.rollout.waves[0].clusters", "only the last wave may leave clusters unset"},
		},
		"a label selector that cannot be read, once": {
			rollout: `{waves: [{name: a, clusters: {labelSelector: {matchExpressions: [{key: tier, operator: Near}]}}}, {name: rest}]}`,
			want:    []string{"spec.rollout.waves[0].clusters.labelSelector"},
		},
		"an expression that cannot be read": {
			rollout: `{waves: [{name: a, clusters: {expression: "region.startsWith('eu-'"}}, {name: rest}]}`,
			want:    []string{"spec.rollout.waves[0].clusters.expression", "Syntax error"},
		},
		"an expression over what waves do not see": {
			rollout: `{waves: [{name: a, clusters: {expression: "nodes.ready > 2"}}, {name: rest}]}`,
			want:    []string{"spec.rollout.waves[0].clusters.expression", "undeclared reference to 'nodes'"},
		},
		"a window that never opens": {
			rollout: `{waves: [{name: all}], windows: [{schedule: "0 0 30 2 *", durationSeconds: 600}]}`,
			want:    []string{"spec.rollout.windows[0].schedule", "the schedule never fires"},
		},
		"a time zone that does not exist": {
			rollout: `{waves: [{name: all}], windows: [{schedule: "0 2 * * *", durationSeconds: 600, timeZone: Mars/Olympus}]}`,
			want:    []string{"spec.rollout.windows[0].timeZone"},
		},
		"a cluster in two waves is a warning": {
			rollout: `{waves: [{name: a, clusters: {names: [eu-1]}}, {name: b, clusters: {names: [eu-1]}}, {name: rest}]}`,
			warned:  []string{"cluster eu-1 belongs to wave a, which names it first"},
		},
		"a last wave that selects clusters is a warning": {
			rollout: `{waves: [{name: a, clusters: {names: [eu-1]}}, {name: b, clusters: {names: [cn-1]}}]}`,
			warned:  []string{"clusters that no wave selects belong to wave b, too"},
		},
		"annotations that cannot be read are warnings": {
			annotations: `{hanse.dev/rollout-approve: asia, hanse.dev/rollout-pause: "yes"}`,
			rollout:     `{waves: [{name: all}]}`,
			warned:      []string{`it is ignored: annotation hanse.dev/rollout-approve: "asia"`, `it is ignored: annotation hanse.dev/rollout-pause: "yes"`},
		},
	}
	for name, tt := range tests {
		for _, kind := range []string{"Placement", "ClusterPlacement"} {
			t.Run(name+" in a "+kind, func(t *testing.T) {
				annotations := tt.annotations
				if annotations == "" {
					annotations = "{}"
				}
				h := newHub(t)
				h.objects = append(h.objects, &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "us-1", Labels: map[string]string{"tier": "canary"}}})
				answer := h.review(rolling(kind, annotations, tt.rollout), "")
				if answer.Allowed != (len(tt.want) == 0) {
					t.Fatalf("allowed is %t: %+v", answer.Allowed, answer.Result)
				}
				for _, words := range tt.want {
					if answer.Result.Code != http.StatusUnprocessableEntity || strings.Count(answer.Result.Message, words) != 1 {
						t.Errorf("%d %q: does not say %q once", answer.Result.Code, answer.Result.Message, words)
					}
				}
				warned := strings.Join(answer.Warnings, "\n")
				for _, words := range tt.warned {
					if !strings.Contains(warned, words) {
						t.Errorf("the warnings are %q: no %q", warned, words)
					}
				}
				if len(tt.warned) == 0 && warned != "" {
					t.Errorf("it warns: %s", warned)
				}
			})
		}
	}
}
