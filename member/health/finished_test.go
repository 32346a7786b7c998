package health

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestFinished(t *testing.T) {
	jobs := schema.GroupKind{Group: "batch", Kind: "Job"}
	run := schema.GroupKind{Group: "tekton.dev", Kind: "PipelineRun"}
	workflow := schema.GroupKind{Group: "argoproj.io", Kind: "Workflow"}
	tests := map[string]struct {
		kind   schema.GroupKind
		status string
		want   hubv1.Health // health of the finished object; empty: not finished
	}{
		"a job that is complete":                {jobs, `{"succeeded":1,"conditions":[{"type":"SuccessCriteriaMet","status":"True"},{"type":"Complete","status":"True"}]}`, hubv1.HealthHealthy},
		"a job that failed":                     {jobs, `{"failed":7,"conditions":[{"type":"FailureTarget","status":"True"},{"type":"Failed","status":"True","reason":"BackoffLimitExceeded"}]}`, hubv1.HealthDegraded},
		"a job that is about to be complete":    {jobs, `{"active":1,"conditions":[{"type":"SuccessCriteriaMet","status":"True"}]}`, ""},
		"a job that runs":                       {jobs, `{"active":1,"ready":1}`, ""},
		"a job that is suspended":               {jobs, `{"conditions":[{"type":"Suspended","status":"True"}]}`, ""},
		"a job that nobody has seen":            {jobs, ``, ""},
		"a pipeline run that succeeded":         {run, `{"conditions":[{"type":"Succeeded","status":"True","reason":"Completed"}]}`, hubv1.HealthHealthy},
		"a pipeline run that failed":            {run, `{"conditions":[{"type":"Succeeded","status":"False","reason":"Failed"}]}`, hubv1.HealthDegraded},
		"a pipeline run that runs":              {run, `{"conditions":[{"type":"Succeeded","status":"Unknown","reason":"Running"}]}`, ""},
		"a workflow that succeeded":             {workflow, `{"phase":"Succeeded","progress":"1/1"}`, hubv1.HealthHealthy},
		"a workflow that ended with an error":   {workflow, `{"phase":"Error"}`, hubv1.HealthDegraded},
		"a workflow that runs":                  {workflow, `{"phase":"Running"}`, ""},
		"a kind that goes on for ever":          {schema.GroupKind{Group: "apps", Kind: "Deployment"}, `{"conditions":[{"type":"Complete","status":"True"}]}`, ""},
		"a pipeline, which is not a run":        {schema.GroupKind{Group: "tekton.dev", Kind: "Pipeline"}, `{"conditions":[{"type":"Succeeded","status":"True"}]}`, ""},
		"what is no projection":                 {jobs, `[1]`, ""},
		"conditions that are not as they ought": {jobs, `{"conditions":{"Complete":"True"}}`, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			projection := []byte(tc.status)
			var status map[string]any
			if json.Unmarshal(projection, &status) == nil {
				projection = Project(schema.GroupKind{}, status) // the status in the form in which rows have it
			}
			got, ok := Finished(tc.kind, projection)
			if got != tc.want || ok != (tc.want != "") {
				t.Errorf("Finished is %q, %v; want %q", got, ok, tc.want)
			}
		})
	}
}
