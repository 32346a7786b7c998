package health

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// RunsOnce reports whether objects of a kind run to completion: batch Jobs, Tekton's runs and Argo's Workflows.
func RunsOnce(gk schema.GroupKind) bool {
	return gk == job || isRun(gk)
}

var workflow = schema.GroupKind{Group: "argoproj.io", Kind: "Workflow"}

// Finished reports whether an object has run to completion, and whether it is then Healthy or Degraded. The projection
// is the part of the object's status that Project returns. For a kind that does not run to completion, Finished returns
// false.
func Finished(gk schema.GroupKind, projection []byte) (ended hubv1.Health, ok bool) {
	p, err := ReadProjection(projection)
	if err != nil || !RunsOnce(gk) {
		return "", false
	}
	status := p.Fields
	conditions := readConditions(status)
	switch {
	case gk == job:
		return either(holds(conditions, "Complete"), holds(conditions, "Failed"))
	case gk == workflow:
		phase, _ := status["phase"].(string)
		return either(phase == "Succeeded", phase == "Failed" || phase == "Error")
	default: // a run of Tekton
		for _, c := range conditions {
			if c.kind == "Succeeded" {
				return either(c.status == "True", c.status == "False")
			}
		}
	}
	return "", false
}

func isTektonRun(gk schema.GroupKind) bool {
	return gk.Group == "tekton.dev" && (gk.Kind == "PipelineRun" || gk.Kind == "TaskRun" || gk.Kind == "CustomRun")
}

// isRun reports whether objects of the kind run steps and end.
func isRun(gk schema.GroupKind) bool { return gk == workflow || isTektonRun(gk) }

// Essential returns the parts of a projection that a restarted hub needs: the fields from which Finished decides, and
// the observed generation. The result is nil if the projection has none of these parts.
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
	p, err := ReadProjection(projection)
	if err != nil {
		return nil
	}
	for _, c := range readConditions(p.Fields) {
		if c.status == "True" && (c.kind == "Complete" || c.kind == "Succeeded") {
			kept.Conditions = append(kept.Conditions, condition{Type: c.kind, Status: c.status})
		}
	}
	if g, ok := whole(p.Fields["observedGeneration"]); ok {
		kept.ObservedGeneration = &g
	}
	if p.Fields["phase"] == "Succeeded" {
		kept.Phase = "Succeeded"
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
