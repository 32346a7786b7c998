package plane

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestAStageGetsARequirement(t *testing.T) {
	stage := []byte("spec: {selector: {matchExpressions: [{key: .status.phase, operator: In, values: [Pending]}]}}")
	stages, err := selecting(nil, stage, requirement{"key": images, "operator": "NotIn", "values": []any{brokenImage}})
	if err != nil {
		t.Fatal(err)
	}
	const want = "- key: .spec.containers.[].image\n      operator: NotIn\n      values:\n      - hanse.dev/broken\n"
	if got := string(stages[0]); !strings.Contains(got, want) || !strings.Contains(got, ".status.phase") {
		t.Errorf("the Stage is\n%s\nwant it with\n%s", got, want)
	}
	if _, err := selecting(nil, []byte("spec: {}"), requirement{}); err == nil {
		t.Error("a Stage without a selector is taken")
	}
}

func TestOwnStagesAreValid(t *testing.T) {
	for name, stage := range map[string][]byte{"pod-image-missing": podImageMissing, "pod-started": podStarted} {
		var s struct{ Metadata struct{ Name string } }
		if err := yaml.Unmarshal(stage, &s); err != nil || s.Metadata.Name != name {
			t.Errorf("the Stage %s is named %q: %v", name, s.Metadata.Name, err)
		}
	}
}

func TestMissingImages(t *testing.T) {
	if got, want := missingImages(nil), `.spec.containers.[].image | select(test("^hanse\\.dev/broken([:@]|$)"))`; got != want {
		t.Errorf("without deployed operators the query is %s, want %s", got, want)
	}
	const want = `.spec.containers.[].image | select(test("^hanse\\.dev/broken([:@]|$)") or ` +
		`test("^hanse\\.dev/prometheus-operator([:@]|$)") and . != "hanse.dev/prometheus-operator:v1" and . != "hanse.dev/prometheus-operator:v2")`
	known := []string{OperatorImage(PrometheusOperator, "v1"), OperatorImage(PrometheusOperator, "v2")}
	if got := missingImages(map[string][]string{PrometheusOperator: known}); got != want {
		t.Errorf("with a deployed operator the query is %s, want %s", got, want)
	}
}
