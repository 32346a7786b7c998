package health

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// extended adds this text to the vocabulary, which says what the statuses of each kind mean, until the test ends.
func extended(t *testing.T, text string) {
	t.Helper()
	before := *words
	t.Cleanup(func() { *words = before })
	if err := Extend([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

func TestUsersSayWhatTheWordsOfAKindMean(t *testing.T) {
	lamp := func(status map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Lamp", "status": status}}
	}
	tests := map[string]struct {
		status       map[string]any
		before, with hubv1.Health
	}{
		"a word of a field that nobody knew":     {status: map[string]any{"lamp": "green"}, before: hubv1.HealthUnknown, with: hubv1.HealthHealthy},
		"a word of failure":                      {status: map[string]any{"lamp": "red"}, before: hubv1.HealthUnknown, with: hubv1.HealthDegraded},
		"a word in a nested field":               {status: map[string]any{"bulb": map[string]any{"heat": "cold"}}, before: hubv1.HealthUnknown, with: hubv1.HealthProgressing},
		"a word that means something else there": {status: map[string]any{"phase": "Failed"}, before: hubv1.HealthDegraded, with: hubv1.HealthHealthy},
		"a word that the entry leaves out":       {status: map[string]any{"lamp": "blue"}, before: hubv1.HealthUnknown, with: hubv1.HealthUnknown},
		"a condition of the kind":                {status: withCondition("Lit", "False"), before: hubv1.HealthUnknown, with: hubv1.HealthProgressing},
		"a condition that means something else":  {status: withCondition("Failed", "True"), before: hubv1.HealthDegraded, with: hubv1.HealthHealthy},
	}
	const text = `
kinds:
- group: example.com
  kind: Lamp
  conditions: [{types: [Lit, Failed], says: Whole}]
  means:
    lamp: {Healthy: [green], Progressing: [yellow], Degraded: [red]}
    bulb.heat: {Progressing: [cold]}
    phase: {Healthy: [Failed]}
`
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Assess(lamp(tt.status), Conventions{HasStatus: true}); got.Health != tt.before {
				t.Errorf("before: got %+v, want %s", got, tt.before)
			}
			extended(t, text)
			if got := Assess(lamp(tt.status), Conventions{HasStatus: true}); got.Health != tt.with {
				t.Errorf("with the words: got %+v, want %s", got, tt.with)
			}
		})
	}
	extended(t, text)
	of := schema.GroupKind{Group: "example.com", Kind: "Lamp"}
	if diff := cmp.Diff([][]string{{"green"}, {"yellow"}, {"red"}}, WordsOf(of, "lamp")); diff != "" {
		t.Errorf("words that are merged (-want +got):\n%s", diff)
	}
	if got := PolarityOf(of, "Failed"); got != GoodWhenTrue {
		t.Errorf("Failed is %s of a Lamp, want %s", got, GoodWhenTrue)
	}
	if got := PolarityOf(schema.GroupKind{Group: "example.com", Kind: "Fuse"}, "Failed"); got != GoodWhenFalse {
		t.Errorf("Failed is %s of another kind, want %s", got, GoodWhenFalse)
	}
}

func TestAGenerationInAnotherFieldIsRead(t *testing.T) {
	extended(t, "kinds: [{group: example.com, kind: Lamp, generation: operator.*.seen}]")
	lamp := func(status string) string {
		return "{apiVersion: example.com/v1, kind: Lamp, metadata: {generation: 3}, status: " + status + "}"
	}
	for status, want := range map[string]hubv1.Health{
		"{phase: Ready, operator: {eu: {seen: 3}, us: {seen: 3}}}":     hubv1.HealthHealthy,
		"{phase: Ready, operator: {eu: {seen: 3}, us: {seen: 2}}}":     hubv1.HealthProgressing,
		"{phase: Ready, operator: [{seen: '3'}, {seen: '2'}]}":         hubv1.HealthProgressing,
		"{phase: Ready, operator: [{seen: 3}], observedGeneration: 1}": hubv1.HealthHealthy,
		"{phase: Ready}": hubv1.HealthHealthy,
	} {
		if got := Assess(object(t, lamp(status)), Conventions{}); got.Health != want {
			t.Errorf("%s: %s (%s), want %s", status, got.Health, got.Message, want)
		}
	}
}

func withCondition(kind, status string) map[string]any {
	return map[string]any{"conditions": []any{map[string]any{"type": kind, "status": status}}}
}

func TestAnEntryThatCannotBeFollowedIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		`kinds: [{kind: Lamp, means: {lamp: {Healthy: [green]}}}]`:                                           "kinds[0] ( Lamp): group is missing",
		`kinds: [{group: example.com, means: {lamp: {Healthy: [green]}}}]`:                                   "kinds[0] (example.com ): kind is missing",
		`kinds: [{group: example.com, kind: Lamp}]`:                                                          "conditions, means, words or generation are missing",
		`kinds: [{group: example.com, conditions: [{says: Whole}]}]`:                                         "conditions[0].types is missing",
		`kinds: [{group: example.com, conditions: [{types: [Lit], says: Wholly}]}]`:                          `conditions[0].says is "Wholly", want one of [Failure Whole`,
		`kinds: [{group: example.com, conditions: [{types: [Lit], says: Whole, folds: Up}]}]`:                `conditions[0].folds is "Up"`,
		`kinds: [{group: example.com, kind: Lamp, means: {lamp: {Great: [green]}}}]`:                         `means.lamp has "Great"`,
		`kinds: [{group: example.com, kind: Lamp, means: {lamp: {Healthy: [green], Degraded: [green]}}}]`:    `means.lamp has the word "green" for Degraded and for Healthy`,
		`kinds: [{group: example.com, kind: Lamp, words: {lamp: [[a]]}, means: {lamp: {Healthy: [green]}}}]`: "words and means both have the field lamp",
		`conditions: [{types: [Ready], says: Part}]`:                                                         `unknown field "conditions"`,
	} {
		before := len(words.Kinds)
		err := Extend([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q in it", text, err, want)
		}
		if len(words.Kinds) != before {
			t.Errorf("%s: it is taken", text)
		}
	}
}
