package health

import (
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Finished reports whether an object has run to completion, and whether it is then Healthy or Degraded. The projection
// is the part of the object's status that Project returns. Finished supports batch Jobs, Tekton's runs and Argo's
// Workflows. For every other kind it returns false.
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

// Essential returns the parts of a projection that a restarted hub needs: the fields from which Finished decides, and
// the observed generation. A projection is the part of a status that the hub keeps. The result is nil if the projection
// has none of these parts.
func Essential(projection []byte) []byte {
	type condition struct {
		Type   string `json:"type"`
		Status string `json:"status"`
	}
	var kept struct {
		Conditions         []condition `json:"conditions,omitempty"`
		ObservedGeneration *int64      `json:"observedGeneration,omitempty"`
		Phase              string      `json:"phase,omitempty"`
	}
	if len(projection) == 0 || json.Unmarshal(projection, &kept) != nil {
		return nil
	}
	kept.Conditions = slices.DeleteFunc(kept.Conditions, func(c condition) bool {
		return c.Status != "True" || c.Type != "Complete" && c.Type != "Succeeded"
	})
	if kept.Phase != "Succeeded" {
		kept.Phase = ""
	}
	if len(kept.Conditions) == 0 && kept.ObservedGeneration == nil && kept.Phase == "" {
		return nil
	}
	out, _ := json.Marshal(kept) // cannot fail: kept has only texts and a number
	return out
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
