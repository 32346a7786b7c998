package health

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestExpression(t *testing.T) {
	const machine = "{apiVersion: example.com/v1, kind: Machine, metadata: {generation: 2}, spec: {on: true}, status: {mode: run, lamps: {a: green, b: red}}}"
	byExpression := func(h hubv1.Health, message string) Verdict { return Verdict{h, ReasonByExpression, message} }
	tests := map[string]struct {
		expression string
		manifest   string
		want       Verdict
	}{
		"true is healthy":   {expression: "object.status.mode == 'run'", want: Verdict{Health: hubv1.HealthHealthy}},
		"false is degraded": {expression: "object.status.mode == 'stop'", want: byExpression(hubv1.HealthDegraded, "the placement's health expression is false")},
		"a word is the verdict": {
			expression: "object.status.lamps.exists(l, object.status.lamps[l] == 'red') ? 'Progressing' : 'Healthy'",
			want:       byExpression(hubv1.HealthProgressing, "set by the placement's health expression"),
		},
		"a map has a message": {
			expression: "{'health': 'Degraded', 'message': 'mode is ' + object.status.mode}", want: byExpression(hubv1.HealthDegraded, "mode is run"),
		},
		"a message of a healthy object is dropped": {expression: "{'health': 'Healthy', 'message': 'fine'}", want: Verdict{Health: hubv1.HealthHealthy}},
		"it may ask for what is not there": {
			expression: "has(object.status.none) ? 'Healthy' : 'Unknown'", want: byExpression(hubv1.HealthUnknown, "set by the placement's health expression"),
		},
		"it judges in place of the conventions": {
			manifest:   "{apiVersion: example.com/v1, kind: Machine, status: {conditions: [{type: Ready, status: 'False', reason: Failed}]}}",
			expression: "true", want: Verdict{Health: hubv1.HealthHealthy},
		},
		"an object that is being deleted is progressing all the same": {
			manifest:   "{apiVersion: example.com/v1, kind: Machine, metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}}",
			expression: "true", want: Verdict{hubv1.HealthProgressing, ReasonTerminating, "the object is being deleted"},
		},
		"a status of an older generation is progressing all the same": {
			manifest:   "{apiVersion: example.com/v1, kind: Machine, metadata: {generation: 3}, status: {observedGeneration: 2}}",
			expression: "true", want: Verdict{hubv1.HealthProgressing, ReasonGenerationNotObserved, "status.observedGeneration is 2, metadata.generation is 3"},
		},
		"so is one with a condition of an older generation": {
			manifest:   "{apiVersion: example.com/v1, kind: Machine, metadata: {generation: 3}, status: {conditions: [{type: Ready, status: 'True', observedGeneration: 2}]}}",
			expression: "true", want: Verdict{hubv1.HealthProgressing, ReasonGenerationNotObserved, "status.observedGeneration is 2, metadata.generation is 3"},
		},
		"a paused object is judged by the status that it has": {
			manifest:   "{apiVersion: example.com/v1, kind: Machine, metadata: {generation: 3}, spec: {pause: true}, status: {observedGeneration: 2}}",
			expression: "'Degraded'",
			want: Verdict{hubv1.HealthDegraded, ReasonGenerationNotObserved,
				"it is paused; status.observedGeneration is 2, metadata.generation is 3; set by the placement's health expression"},
		},
		"a pod is judged if somebody asks": {
			manifest: "{apiVersion: v1, kind: Pod, status: {phase: Running}}", expression: "object.status.phase == 'Running'", want: Verdict{Health: hubv1.HealthHealthy},
		},
		"a Secret is judged by none, or the verdict would tell of its values": {
			manifest: "{apiVersion: v1, kind: Secret, data: {password: eA==}}", expression: "object.data.password == 'eA=='", want: Verdict{Health: hubv1.HealthHealthy},
		},
		"nor is one with another value": {
			manifest: "{apiVersion: v1, kind: Secret, data: {password: eQ==}}", expression: "object.data.password == 'eA=='", want: Verdict{Health: hubv1.HealthHealthy},
		},
		"a field that is missing makes it unknown": {
			expression: "object.status.none == 1", want: Verdict{hubv1.HealthUnknown, ReasonExpressionFailed, "no such key, at line 1, column 14"},
		},
		"another word is no verdict": {expression: "object.status.mode", want: Verdict{hubv1.HealthUnknown, ReasonExpressionFailed, notAVerdict}},
		"a map without health is no verdict": {
			expression: "{'message': 'x'}", want: Verdict{hubv1.HealthUnknown, ReasonExpressionFailed, notAVerdict},
		},
		"null is no verdict": {expression: "dyn(null)", want: Verdict{hubv1.HealthUnknown, ReasonExpressionFailed, notAVerdict}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.manifest == "" {
				tc.manifest = machine
			}
			e, err := Compile(tc.expression)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, (&Settings{Expression: e}).Assess(object(t, tc.manifest), Conventions{})); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExpressionThatCannotBeRead(t *testing.T) {
	for name, text := range map[string]string{
		"it is no expression":         "object.status.",
		"it gives a number":           "1 + 1",
		"it reads something else":     "cluster.name == 'a'",
		"it is longer than it may be": strings.Repeat("true && ", 1000) + "true",
	} {
		t.Run(name, func(t *testing.T) {
			e, err := Compile(text)
			if err == nil {
				t.Fatal("no error")
			}
			got := (&Settings{Expression: e}).Assess(object(t, "{apiVersion: v1, kind: ConfigMap}"), Conventions{})
			if got.Health != hubv1.HealthUnknown || got.Reason != ReasonExpressionFailed || got.Message == "" {
				t.Errorf("verdict %+v", got)
			}
		})
	}
}

func TestWithoutSettingsTheConventionsJudge(t *testing.T) {
	obj := object(t, "{apiVersion: example.com/v1, kind: Widget, status: {phase: Failed, replicas: 2}}")
	for name, w := range map[string]*Settings{"no settings": nil, "settings for something else": {Paths: []string{"/status/x"}}} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(Assess(obj, Conventions{}), w.Assess(obj, Conventions{})); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}
