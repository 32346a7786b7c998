package health

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func definition(t *testing.T, version string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	var v apiextensionsv1.CustomResourceDefinitionVersion
	if err := yaml.Unmarshal([]byte(version), &v); err != nil {
		t.Fatal(err)
	}
	v.Name = "v1"
	return &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1alpha1"}, v},
	}}
}

func TestReadConventions(t *testing.T) {
	column := func(name, path string) string {
		return "{additionalPrinterColumns: [{name: " + name + ", type: string, jsonPath: '" + path + "'}]}"
	}
	tests := map[string]struct {
		version string
		want    Conventions
	}{
		"nothing": {version: "{}"},
		"a status and a scale subresource": {
			version: "{subresources: {status: {}, scale: {specReplicasPath: .spec.instances, statusReplicasPath: .status.ready.count, labelSelectorPath: .status.selector}}}",
			want: Conventions{HasStatus: true, Scale: Scale{
				Spec: []string{"spec", "instances"}, Status: []string{"status", "ready", "count"}, Selector: []string{"status", "selector"},
			}},
		},
		"scale paths of a form that nobody uses are left alone": {
			version: "{subresources: {scale: {specReplicasPath: '.spec.pools[0].size', statusReplicasPath: .status.size}}}",
		},
		"a column over a field of the status": {
			version: column("Health", ".status.ceph.health"), want: Conventions{Columns: []Column{{Name: "Health", Path: []string{"status", "ceph", "health"}}}},
		},
		"a column over a condition": {
			version: column("Ready", `.status.conditions[?(@.type=="Usable")].status`), want: Conventions{Columns: []Column{{Name: "Ready", Condition: "Usable"}}},
		},
		"the reason of a condition is no verdict":  {version: column("Status", `.status.conditions[?(@.type=="Ready")].reason`)},
		"a column with another name tells nothing": {version: column("Backend", ".status.backend")},
		"a column over the spec tells nothing":     {version: column("Status", ".spec.status")},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, ReadConventions(definition(t, tc.version), "v1")); diff != "" {
				t.Errorf("conventions (-want +got):\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff(Conventions{}, ReadConventions(definition(t, "{}"), "v2")); diff != "" {
		t.Errorf("of a version that is not there:\n%s", diff)
	}
}

func TestAssessByConventions(t *testing.T) {
	const (
		healthy     = hubv1.HealthHealthy
		progressing = hubv1.HealthProgressing
		degraded    = hubv1.HealthDegraded
		unknown     = hubv1.HealthUnknown
	)
	widget := func(rest string) string {
		return "{apiVersion: example.com/v1, kind: Widget, metadata: {generation: 3}, " + rest + "}"
	}
	scaled := Conventions{Scale: Scale{Spec: []string{"spec", "size"}, Status: []string{"status", "size"}}}
	selected := Conventions{Scale: Scale{Spec: []string{"spec", "size"}, Status: []string{"status", "size"}, Selector: []string{"status", "selector"}}}
	column := func(name string) Conventions {
		return Conventions{Columns: []Column{{Name: name, Path: []string{"status", "x"}}}}
	}
	tests := map[string]struct {
		manifest    string
		conventions Conventions
		want        Verdict
	}{
		"fewer replicas than the spec asks for": {
			manifest: widget("spec: {size: 5}, status: {size: 3}"), conventions: scaled, want: Verdict{progressing, ReasonReplicas, "3 of 5 replicas are there"},
		},
		"more replicas than the spec asks for": {
			manifest: widget("spec: {size: 1}, status: {size: 3}"), conventions: scaled, want: Verdict{progressing, ReasonReplicas, "3 of 1 replicas are there"},
		},
		"as many replicas as the spec asks for":     {manifest: widget("spec: {size: 0}, status: {size: 0}"), conventions: scaled, want: Verdict{Health: healthy}},
		"a status that counts no replicas":          {manifest: widget("spec: {size: 5}, status: {x: y}"), conventions: scaled, want: Verdict{unknown, ReasonStatusNotUnderstood, "the status follows no known convention: x is true"}},
		"a spec that leaves the number to somebody": {manifest: widget("spec: {}, status: {size: 2}"), conventions: scaled, want: Verdict{unknown, ReasonStatusNotUnderstood, "the status follows no known convention: size is 2"}},
		"a scale subresource that selects no pods is not in force": {
			manifest: widget("spec: {size: 1}, status: {size: 0}"), conventions: selected, want: Verdict{unknown, ReasonStatusNotUnderstood, "the status follows no known convention: size is 0"},
		},
		"ready replicas count where the spec has the replicas": {
			manifest: widget("spec: {replicas: 3}, status: {replicas: 3, readyReplicas: 1}"), want: Verdict{progressing, ReasonReplicas, "1 of 3 replicas are ready"},
		},
		"ready replicas say nothing where the scale is of shards": {
			manifest: widget("spec: {replicas: 3, size: 2}, status: {size: 2, readyReplicas: 1}"), conventions: scaled, want: Verdict{Health: healthy},
		},
		"a column with a word of failure": {
			manifest: widget("status: {x: UpdateFailed}"), conventions: column("Status"), want: Verdict{degraded, "UpdateFailed", "Status is UpdateFailed"},
		},
		"a column that is false": {
			manifest: widget("status: {x: false}"), conventions: column("Ready"), want: Verdict{progressing, "ReadyFalse", "Ready is false"},
		},
		"a column that counts too few": {
			manifest: widget("status: {x: 1/3}"), conventions: column("Ready"), want: Verdict{progressing, ReasonReplicas, "Ready is 1/3"},
		},
		"a column that counts all": {manifest: widget("status: {x: 3/3}"), conventions: column("Ready"), want: Verdict{Health: healthy}},
		"a condition that a column names speaks for the whole": {
			manifest:    widget("status: {conditions: [{type: Usable, status: 'False', reason: Broken}]}"),
			conventions: Conventions{Columns: []Column{{Name: "Ready", Condition: "Usable"}}},
			want:        Verdict{progressing, "Broken", "condition Usable is False"},
		},
		"a phase on its way says nothing while conditions speak": {
			manifest: widget("status: {phase: Pending, conditions: [{type: Ready, status: 'True'}]}"), want: Verdict{Health: healthy},
		},
		"a phase of failure counts all the same": {
			manifest: widget("status: {phase: Failed, conditions: [{type: Ready, status: 'True'}]}"), want: Verdict{degraded, "Failed", "phase is Failed"},
		},
		"a health counts all the same": {
			manifest: widget("status: {health: yellow, conditions: [{type: Ready, status: 'True'}]}"), want: Verdict{progressing, "Yellow", "health is yellow"},
		},
		"a phase may be a sentence": {
			manifest: widget("status: {phase: The upgrade has failed}"), want: Verdict{degraded, "TheUpgradeHasFailed", "phase is The upgrade has failed"},
		},
		"the first word of a sentence counts": {
			manifest: widget("status: {state: Provisioning the first server}"), want: Verdict{progressing, "ProvisioningTheFirstServer", "state is Provisioning the first server"},
		},
		"not ready is the opposite of ready": {
			manifest: widget("status: {conditions: [{type: NotReady, status: 'True', reason: Creating, message: broker 0}]}"), want: Verdict{progressing, "Creating", "broker 0"},
		},
		"not ready because of a failure": {
			manifest: widget("status: {conditions: [{type: NotReady, status: 'True', reason: InvalidResourceException}]}"),
			want:     Verdict{degraded, "InvalidResourceException", "condition Ready is False"},
		},
		"a sentence that tells of no error": {manifest: widget("status: {phase: Running without errors}"), want: Verdict{unknown, ReasonStatusNotUnderstood, "the status follows no known convention: phase is Running without errors"}},
		"prose is no phase": {
			manifest: widget("status: {phase: '" + longText + " failed'}"), want: Verdict{unknown, ReasonStatusNotUnderstood, "the status follows no known convention: phase"},
		},
		"a pause that nobody asked for": {manifest: widget("status: {phase: Paused}"), want: Verdict{progressing, "Paused", "phase is Paused"}},
		"a pause that the spec asks for, of whatever generation": {
			manifest: widget("spec: {pause: true}, status: {phase: Paused, observedGeneration: 2}"),
			want:     Verdict{healthy, ReasonGenerationNotObserved, "it is paused; status.observedGeneration is 2, metadata.generation is 3"},
		},
		"a pause that the spec asks for, of conditions that are older": {
			manifest: widget("spec: {suspend: true}, status: {conditions: [{type: Ready, status: 'False', reason: BuildFailed, message: no file, observedGeneration: 2}]}"),
			want:     Verdict{degraded, ReasonGenerationNotObserved, "it is paused; status.observedGeneration is 2, metadata.generation is 3; no file"},
		},
		"a pause that the spec asks for and that was observed": {
			manifest: widget("spec: {pause: true}, status: {phase: Paused, observedGeneration: 3}"), want: Verdict{Health: healthy},
		},
		"parts are asked if nothing speaks for the whole": {
			manifest: widget("status: {conditions: [{type: DiskReady, status: 'False', reason: Formatting}]}"), want: Verdict{progressing, "Formatting", "condition DiskReady is False"},
		},
		"parts are not asked if something speaks for the whole": {
			manifest: widget("status: {conditions: [{type: DiskReady, status: 'False'}, {type: Ready, status: 'True'}]}"), want: Verdict{Health: healthy},
		},
		"a part that is for information": {
			manifest: widget("status: {conditions: [{type: DiskReady, status: 'False', severity: Info}]}"), want: Verdict{Health: healthy},
		},
		"not ready is no part that is ready": {
			manifest: widget("status: {conditions: [{type: UnReady, status: 'False'}]}"), want: Verdict{unknown, ReasonStatusNotUnderstood, "the status follows no known convention: condition UnReady is False"},
		},
		"Progressing True is progressing though it is available": {
			manifest: widget("status: {conditions: [{type: Available, status: 'True'}, {type: Progressing, status: 'True', reason: Updating}]}"),
			want:     Verdict{progressing, "Updating", "condition Progressing is True"},
		},
		"Progressing True that has come to its end": {
			manifest: widget("status: {conditions: [{type: Progressing, status: 'True', reason: NewReplicaSetAvailable}]}"), want: Verdict{Health: healthy},
		},
		"Progressing False is no fault": {
			manifest: widget("status: {conditions: [{type: Available, status: 'True'}, {type: Progressing, status: 'False', reason: AsExpected}]}"), want: Verdict{Health: healthy},
		},
		"Progressing False because its time is over": {
			manifest: widget("status: {conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded}]}"),
			want:     Verdict{degraded, "ProgressDeadlineExceeded", "condition Progressing is False"},
		},
		"a refusal that is a wait": {
			manifest: widget("status: {conditions: [{type: Accepted, status: 'False', reason: Pending}]}"), want: Verdict{progressing, "Pending", "condition Accepted is False"},
		},
		"a failure by its severity": {
			manifest: widget("status: {conditions: [{type: Ready, status: 'False', reason: QuotaReached, severity: Error}]}"),
			want:     Verdict{degraded, "QuotaReached", "condition Ready is False"},
		},
		"an error without a status": {
			manifest: widget("status: {conditions: [{type: ComparisonError, message: no such revision}]}"), want: Verdict{degraded, "ComparisonError", "no such revision"},
		},
		"the worst of the readers counts": {
			manifest: widget("status: {parents: [{conditions: [{type: Accepted, status: 'True'}]}, {conditions: [{type: Accepted, status: 'False', reason: NoMatchingParent}]}]}"),
			want:     Verdict{degraded, "NoMatchingParent", "condition Accepted is False"},
		},
		"a kind whose status nobody writes": {
			manifest: "{apiVersion: networking.istio.io/v1, kind: Gateway}", conventions: Conventions{HasStatus: true}, want: Verdict{Health: healthy},
		},
		"a status of empty lists says nothing yet": {
			manifest: widget("status: {parents: [], nested: {}}"), conventions: Conventions{HasStatus: true},
			want: Verdict{progressing, ReasonStatusMissing, "no controller has written the object's status yet"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Assess(object(t, tc.manifest), tc.conventions)); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}

const longText = "a text that goes on and on, longer than any phase of any operator that we have seen, so that it can only be prose that somebody wrote to be read"
