package plane

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestAStageSparesPodsWithABrokenImage(t *testing.T) {
	stage, err := sparing([]byte("spec: {selector: {matchExpressions: [{key: .status.phase, operator: In, values: [Pending]}]}}"), brokenImage)
	if err != nil {
		t.Fatal(err)
	}
	const want = "- key: .spec.containers.[].image\n      operator: NotIn\n      values:\n      - hanse.dev/broken\n"
	if !strings.Contains(string(stage), want) || !strings.Contains(string(stage), ".status.phase") {
		t.Errorf("the Stage is\n%s\nwant it with\n%s", stage, want)
	}
	if _, err := sparing([]byte("spec: {}"), brokenImage); err == nil {
		t.Error("a Stage without a selector is taken")
	}
}

func TestTheStageOfBrokenPodsIsForTheSameImage(t *testing.T) {
	var stage any
	if err := yaml.Unmarshal(podImageMissing, &stage); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(podImageMissing), "- '"+brokenImage+"'") {
		t.Errorf("the Stage does not name %s", brokenImage)
	}
}
