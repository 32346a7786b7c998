package health

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func object(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return obj
}

const prometheus = "{apiVersion: monitoring.coreos.com/v1, kind: Prometheus, metadata: {generation: 3}, status: "

func TestAssess(t *testing.T) {
	const (
		healthy     = hubv1.HealthHealthy
		progressing = hubv1.HealthProgressing
		degraded    = hubv1.HealthDegraded
		unknown     = hubv1.HealthUnknown
	)
	widget := func(status string) string {
		return "{apiVersion: example.com/v1, kind: Widget, metadata: {generation: 3}, status: " + status + "}"
	}
	tests := map[string]struct {
		manifest  string
		hasStatus bool
		want      Verdict
	}{
		"a ConfigMap is healthy when it exists": {
			manifest: "{apiVersion: v1, kind: ConfigMap}", want: Verdict{Health: healthy},
		},
		"a Role, whose kind has no status, is healthy when it exists": {
			manifest: "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role}", want: Verdict{Health: healthy},
		},
		"a pod is not judged": {
			manifest: "{apiVersion: v1, kind: Pod, status: {phase: Pending}}", want: Verdict{unknown, ReasonNotJudged, "pods are not judged"},
		},
		"an object that is being deleted is terminating whatever its status says": {
			manifest: "{apiVersion: example.com/v1, kind: Widget, metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}, status: {conditions: [{type: Ready, status: 'True'}]}}",
			want:     Verdict{progressing, ReasonTerminating, "the object is being deleted"},
		},

		"a Deployment that its controller has not seen is progressing": {
			manifest: "{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, spec: {replicas: 3}, status: {observedGeneration: 1}}",
			want:     Verdict{progressing, ReasonGenerationNotObserved, "status.observedGeneration is 1, metadata.generation is 2"},
		},
		"a Deployment with too few replicas is progressing": {
			manifest: "{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 3}, status: {replicas: 1}}",
			want:     Verdict{progressing, "LessReplicas", "Replicas: 1/3"},
		},
		"a Deployment past its deadline is degraded": {
			manifest: "{apiVersion: apps/v1, kind: Deployment, status: {conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded}]}}",
			want:     Verdict{degraded, "ProgressDeadlineExceeded", "Progress deadline exceeded"},
		},
		"a StatefulSet with all its replicas is healthy": {
			manifest: "{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 1}, status: {replicas: 1, readyReplicas: 1, currentReplicas: 1, updatedReplicas: 1}}",
			want:     Verdict{Health: healthy},
		},
		"a failed Job is degraded": {
			manifest: "{apiVersion: batch/v1, kind: Job, status: {failed: 1, conditions: [{type: Failed, status: 'True'}]}}",
			want:     Verdict{degraded, "JobFailed", "Job Failed. failed: 1/1"},
		},
		"a running Job is progressing": {
			manifest: "{apiVersion: batch/v1, kind: Job, status: {active: 1, startTime: '2026-01-01T00:00:00Z'}}",
			want:     Verdict{progressing, ReasonJobRunning, "Job in progress. success:0, active: 1, failed: 0"},
		},
		"a complete Job is healthy": {
			manifest: "{apiVersion: batch/v1, kind: Job, status: {succeeded: 1, conditions: [{type: Complete, status: 'True'}]}}", want: Verdict{Health: healthy},
		},
		"a built-in kind with a status of the wrong shape is unknown": {
			manifest: "{apiVersion: apps/v1, kind: Deployment, status: {conditions: surprise}}",
			want: Verdict{unknown, ReasonStatusUnreadable,
				"reading the status: cannot restore slice from string"},
		},

		"a custom resource that nothing has looked at is progressing": {
			manifest: "{apiVersion: example.com/v1, kind: Widget}", hasStatus: true,
			want: Verdict{progressing, ReasonStatusMissing, "no controller has written the object's status yet"},
		},
		"a custom resource whose kind has no status is healthy when it exists": {
			manifest: "{apiVersion: example.com/v1, kind: Widget}", want: Verdict{Health: healthy},
		},
		"a custom resource with an empty status is progressing": {
			manifest: widget("{}"), hasStatus: true, want: Verdict{progressing, ReasonStatusMissing, "no controller has written the object's status yet"},
		},
		"a status without anything that is known is unknown": {
			manifest: widget("{things: 3, conditions: [{type: Odd, status: 'False'}]}"), hasStatus: true,
			want: Verdict{unknown, ReasonStatusNotUnderstood, "the status follows no known convention: condition Odd is False, things is 3"},
		},
		"the status is of an older spec": {
			manifest: widget("{observedGeneration: 2, conditions: [{type: Ready, status: 'False', reason: Failed}]}"),
			want:     Verdict{progressing, ReasonGenerationNotObserved, "status.observedGeneration is 2, metadata.generation is 3"},
		},
		"an observed generation may be text": {
			manifest: widget("{observedGeneration: '2', phase: Healthy}"),
			want:     Verdict{progressing, ReasonGenerationNotObserved, "status.observedGeneration is 2, metadata.generation is 3"},
		},
		"a condition is of an older spec": {
			manifest: widget("{conditions: [{type: Ready, status: 'True', observedGeneration: 2}]}"),
			want:     Verdict{progressing, ReasonGenerationNotObserved, "status.observedGeneration is 2, metadata.generation is 3"},
		},
		"so is one that says nothing else": {
			manifest: widget("{conditions: [{type: Serving, status: 'True', observedGeneration: 2}]}"),
			want:     Verdict{progressing, ReasonGenerationNotObserved, "status.observedGeneration is 2, metadata.generation is 3"},
		},
		"and one of a part beside one of the whole that has no generation": {
			manifest: widget("{conditions: [{type: Ready, status: 'True'}, {type: DatabaseReady, status: 'True', observedGeneration: 2}]}"),
			want:     Verdict{progressing, ReasonGenerationNotObserved, "status.observedGeneration is 2, metadata.generation is 3"},
		},
		"one that says nothing else does not count beside one of this spec": {
			manifest: widget("{conditions: [{type: Ready, status: 'True', observedGeneration: 3}, {type: Serving, status: 'True', observedGeneration: 2}]}"),
			want:     Verdict{Health: healthy},
		},
		"nor in a status of this spec": {
			manifest: widget("{observedGeneration: 3, conditions: [{type: Serving, status: 'True', observedGeneration: 2}]}"),
			want:     Verdict{unknown, ReasonStatusNotUnderstood, "the status follows no known convention: condition Serving is True, observedGeneration is 3"},
		},
		"a condition whose observed generation was never set is believed": {
			manifest: widget("{conditions: [{type: Ready, status: 'True', observedGeneration: 0}]}"), want: Verdict{Health: healthy},
		},
		"Ready False for a while is progressing": {
			manifest: widget("{conditions: [{type: Ready, status: 'False', reason: Creating, message: one of two}]}"), want: Verdict{progressing, "Creating", "one of two"},
		},
		"Ready False with a reason that tells of a failure is degraded": {
			manifest: widget("{conditions: [{type: Ready, status: 'False', reason: BuildFailed, message: no such chart}]}"), want: Verdict{degraded, "BuildFailed", "no such chart"},
		},
		"Ready Unknown is progressing, and what is missing is filled in": {
			manifest: widget("{conditions: [{type: Ready, status: Unknown}]}"), want: Verdict{progressing, "ReadyUnknown", "condition Ready is Unknown"},
		},
		"Degraded True is degraded though it is available": {
			manifest: widget("{conditions: [{type: Available, status: 'True'}, {type: Degraded, status: 'True', reason: OneDown, message: one is down}]}"),
			want:     Verdict{degraded, "OneDown", "one is down"},
		},
		"Degraded False is no fault": {
			manifest: widget("{conditions: [{type: Degraded, status: 'False'}, {type: Available, status: 'True'}]}"), want: Verdict{Health: healthy},
		},
		"an error condition is degraded": {
			manifest: widget("{conditions: [{type: ReconcileError, status: 'True'}]}"), want: Verdict{degraded, "ReconcileErrorTrue", "condition ReconcileError is True"},
		},
		"a refused spec is degraded whatever the reason": {
			manifest: widget("{conditions: [{type: Ready, status: 'True'}, {type: Valid, status: 'False', reason: Whatever}]}"),
			want:     Verdict{degraded, "Whatever", "condition Valid is False"},
		},
		"a failed pipeline says Succeeded False": {
			manifest: widget("{conditions: [{type: Succeeded, status: 'False', reason: Timeout}]}"), want: Verdict{degraded, "Timeout", "condition Succeeded is False"},
		},
		"Stalled True is degraded": {
			manifest: widget("{conditions: [{type: Reconciling, status: 'True'}, {type: Stalled, status: 'True', reason: Stuck}]}"),
			want:     Verdict{degraded, "Stuck", "condition Stalled is True"},
		},
		"Reconciling True is progressing even while Ready tells of a failed try": {
			manifest: widget("{conditions: [{type: Ready, status: 'False', reason: BuildFailed}, {type: Reconciling, status: 'True', reason: Retrying, message: try 2}]}"),
			want:     Verdict{progressing, "Retrying", "try 2"},
		},
		"conditions that are no conditions are passed over": {
			manifest: widget("{conditions: [3, {type: 4}, {type: Ready, status: true}, {type: Ready, status: 'False', reason: 7}]}"),
			want:     Verdict{progressing, "ReadyFalse", "condition Ready is False"},
		},
		"a phase that means failure is degraded": {
			manifest: widget("{phase: Failed}"), want: Verdict{degraded, "Failed", "phase is Failed"},
		},
		"a state on its way is progressing": {
			manifest: widget("{state: Creating}"), want: Verdict{progressing, "Creating", "state is Creating"},
		},
		"conditions count more than a phase": {
			manifest: widget("{phase: Pending, conditions: [{type: Ready, status: 'True'}]}"), want: Verdict{Health: healthy},
		},

		"a Prometheus that is available and reconciled is healthy": {
			manifest: prometheus + "{conditions: [{type: Available, status: 'True', observedGeneration: 3}, {type: Reconciled, status: 'True', observedGeneration: 3}]}}",
			want:     Verdict{Health: healthy},
		},
		"a Prometheus of an older generation is progressing though it is available": {
			manifest: prometheus + "{conditions: [{type: Available, status: 'True', observedGeneration: 3}, {type: Reconciled, status: 'True', observedGeneration: 2}]}}",
			want:     Verdict{progressing, ReasonGenerationNotObserved, "status.observedGeneration is 2, metadata.generation is 3"},
		},
		"a Prometheus with some pods that are not ready is progressing": {
			manifest: prometheus + "{conditions: [{type: Available, status: Degraded, reason: SomePodsNotReady, message: 'pod a: x\n\npod b: y'}, {type: Reconciled, status: 'True'}]}}",
			want:     Verdict{progressing, "SomePodsNotReady", "pod a: x pod b: y"},
		},
		"a Prometheus with no pod ready is progressing": {
			manifest: prometheus + "{conditions: [{type: Available, status: 'False', reason: NoPodReady}, {type: Reconciled, status: 'True'}]}}",
			want:     Verdict{progressing, "NoPodReady", "condition Available is False"},
		},
		"a Prometheus that cannot be reconciled is degraded, and that is what is shown": {
			manifest: prometheus + "{conditions: [{type: Available, status: 'False', reason: StatefulSetNotFound}, {type: Reconciled, status: 'False', reason: ReconciliationFailed, message: bad spec}]}}",
			want:     Verdict{degraded, "ReconciliationFailed", "bad spec"},
		},
		"a positive condition that says Degraded is degraded": {
			manifest: widget("{conditions: [{type: Available, status: Degraded, reason: Slow}]}"), want: Verdict{degraded, "Slow", "condition Available is Degraded"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := Assess(object(t, strings.ReplaceAll(tc.manifest, "\n", " ")), Conventions{HasStatus: tc.hasStatus})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}

func TestVerdictFitsARow(t *testing.T) {
	obj := object(t, `{apiVersion: example.com/v1, kind: Widget, status: {conditions: [{type: Ready, status: "False"}]}}`)
	c := obj.Object["status"].(map[string]any)["conditions"].([]any)[0].(map[string]any)
	c["reason"] = strings.Repeat("Very long reason-", 10)
	c["message"] = strings.Repeat("上海\n", 200) + "\xff"
	got := Assess(obj, Conventions{HasStatus: true})
	if n := utf8.RuneCountInString(got.Message); n != maxMessage || !utf8.ValidString(got.Message) {
		t.Errorf("message of %d characters: %q", n, got.Message)
	}
	if len(got.Reason) != maxReason || strings.ContainsAny(got.Reason, " -") {
		t.Errorf("reason %q", got.Reason)
	}
}

func TestNoObjectIsUnknown(t *testing.T) {
	for _, obj := range []*unstructured.Unstructured{nil, {}} {
		if got := Assess(obj, Conventions{HasStatus: true}); got.Health != hubv1.HealthUnknown {
			t.Errorf("%v", got)
		}
		if got := ObservedGeneration(obj); got != -1 {
			t.Errorf("observed generation %d", got)
		}
	}
}

func TestObservedGeneration(t *testing.T) {
	tests := map[string]struct {
		status string
		want   int64
	}{
		"none":                                   {status: "{replicas: 1}", want: -1},
		"its own":                                {status: "{observedGeneration: 4, conditions: [{type: A, status: 'True', observedGeneration: 2}]}", want: 4},
		"its own as text":                        {status: "{observedGeneration: '4'}", want: 4},
		"text that is no number":                 {status: "{observedGeneration: abc}", want: -1},
		"the lowest of the conditions":           {status: "{conditions: [{type: A, status: 'True', observedGeneration: 5}, {type: B, status: 'True', observedGeneration: 2}, {type: C, status: 'True'}]}", want: 2},
		"conditions that never set it are no 0":  {status: "{conditions: [{type: A, status: 'True', observedGeneration: 0}]}", want: -1},
		"its own may be 0, before the first try": {status: "{observedGeneration: 0}", want: 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			obj := object(t, "{apiVersion: example.com/v1, kind: Widget, status: "+tc.status+"}")
			if got := ObservedGeneration(obj); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

// If only a time in the status changes, the reason must stay the same, because a new reason would write the row.
func TestTheReasonOfUnknownStaysWhileAStatusTicks(t *testing.T) {
	at := func(moment string) Verdict {
		obj := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "w"},
			"status": map[string]any{"colour": "blue", "lastHeartbeat": moment, "nodes": []any{moment}, "selector": moment},
		}}
		return Assess(obj, Conventions{HasStatus: true})
	}
	first, second := at("2026-01-01T00:00:00Z"), at("2026-01-01T00:00:10Z")
	if first != second || first.Health != hubv1.HealthUnknown || !strings.Contains(first.Message, "colour is blue") {
		t.Errorf("%+v, then %+v", first, second)
	}
}
