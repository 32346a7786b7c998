package health

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Finished reports whether an object has run to completion, and whether it ended Healthy or Degraded. The input is a
// projection from Project. Known kinds are batch Jobs, Tekton's runs and Argo's Workflows. For every other kind it
// returns false.
func Finished(gk schema.GroupKind, projection []byte) (ended hubv1.Health, ok bool) {
	var status map[string]any
	if len(projection) == 0 || json.Unmarshal(projection, &status) != nil {
		return "", false
	}
	conditions := readConditions(status)
	switch {
	case gk == job:
		return either(holds(conditions, "Complete"), holds(conditions, "Failed"))
	case gk.Group == "tekton.dev" && (gk.Kind == "PipelineRun" || gk.Kind == "TaskRun" || gk.Kind == "CustomRun"):
		for _, c := range conditions {
			if c.kind == "Succeeded" {
				return either(c.status == "True", c.status == "False")
			}
		}
	case gk == schema.GroupKind{Group: "argoproj.io", Kind: "Workflow"}:
		phase, _ := status["phase"].(string)
		return either(phase == "Succeeded", phase == "Failed" || phase == "Error")
	}
	return "", false
}

func either(well, badly bool) (hubv1.Health, bool) {
	switch {
	case badly:
		return hubv1.HealthDegraded, true
	case well:
		return hubv1.HealthHealthy, true
	}
	return "", false
}
