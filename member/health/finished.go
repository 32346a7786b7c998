package health

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Finished says of a projection made by Project whether an object that runs to completion has done so, and how it
// ended: Healthy or Degraded. It is false for every kind that goes on for ever, and for those that nothing is known of:
// batch Jobs, Tekton's runs and Argo's Workflows are known.
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
