package view

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func (f fixture) rollout() Rollout {
	in := RolloutInput{
		ID: web, Object: &unstructured.Unstructured{Object: integers(f.Object).(map[string]any)}, Binding: f.Binding, Members: f.Clusters, Now: now,
	}
	if len(f.Placements) > 0 {
		in.Placement = &f.Placements[0]
	}
	return RolloutOf(in)
}

func TestARolloutIsPrintedAsInTestdata(t *testing.T) {
	cases, err := filepath.Glob("testdata/rollout/*.yaml")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, path := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) {
			f := read(t, path)
			var text bytes.Buffer
			f.rollout().Write(&text, now)
			text.WriteString("\nhistory:\n")
			RolloutHistoryOf(web, f.Binding).Write(&text, now)
			golden(t, strings.TrimSuffix(path, ".yaml")+".txt", text.String())
		})
	}
}

func TestARolloutAsJSONHasStableFields(t *testing.T) {
	f := read(t, "testdata/rollout/a-wave-is-changing.yaml")
	text, err := json.MarshalIndent(map[string]any{"status": f.rollout(), "history": RolloutHistoryOf(web, f.Binding)}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/rollout/a-wave-is-changing.json", string(text)+"\n")
}

// A failed rollout has another exit code than a running or a complete one.
func TestTheResultOfARollout(t *testing.T) {
	for name, want := range map[string]RolloutResult{
		"a-wave-is-changing": RolloutRuns, "a-wave-waits-for-approval": RolloutRuns, "a-newer-generation-is-not-seen-yet": RolloutRuns,
		"a-change-is-too-large": RolloutRuns, "a-tenant-sees-no-clusters": RolloutRuns, "it-is-complete": RolloutDone, "an-undo-has-ended": RolloutDone,
		"the-first-wave-failed": RolloutBroken, "it-was-rolled-back": RolloutBroken, "policies-changed-after-a-rollback": RolloutBroken,
	} {
		if got := read(t, "testdata/rollout/"+name+".yaml").rollout(); got.Result != want {
			t.Errorf("%s: got %s, want %s: %s", name, got.Result, want, got.Progress)
		}
	}
}

func TestTheRolloutsOfAPlacementArePrintedAsInTestdata(t *testing.T) {
	at := metav1.NewTime(now.Add(-120e9))
	moving := read(t, "testdata/rollout/a-wave-waits-for-approval.yaml").Binding
	failed := read(t, "testdata/rollout/the-first-wave-failed.yaml").Binding
	failed.Spec.ObjectRef.Name, failed.Namespace = "logs", "monitoring"
	complete := read(t, "testdata/rollout/it-is-complete.yaml").Binding
	fresh := complete.DeepCopy()
	fresh.Spec.Rollout, fresh.Status.Summary.Updated, fresh.Spec.ObjectRef.Name = nil, nil, "new"
	tests := map[string]struct {
		annotations map[string]string
		status      *hubv1.PlacementRollout
		of          []hubv1.BindingObject
		want        RolloutResult
	}{
		"objects move": {
			annotations: map[string]string{hubv1.RolloutApproveAnnotation: "rest@2026-03-01T12:00:00Z"},
			status: &hubv1.PlacementRollout{
				Wave: "china", Phase: hubv1.RolloutWaitingForApproval, Objects: hubv1.RolloutObjects{Moving: 1, Passed: 37, Pending: 1},
				Message: "Prometheus.monitoring.coreos.com monitoring/web: wave china waits for approval",
			},
			of: []hubv1.BindingObject{moving, complete, fresh}, want: RolloutRuns,
		},
		"an object stops the placement": {
			annotations: map[string]string{hubv1.RolloutPauseAnnotation: "true"},
			status: &hubv1.PlacementRollout{
				Wave: "canary", Phase: hubv1.RolloutFailed, Objects: hubv1.RolloutObjects{Moving: 1, Passed: 37, Failing: 1},
				Stopped: &hubv1.RolloutStop{Object: "Prometheus.monitoring.coreos.com monitoring/logs", Revision: 7, Since: at},
				Message: "Prometheus.monitoring.coreos.com monitoring/logs: cn-lab-1 failed: Degraded",
			},
			of: []hubv1.BindingObject{moving, failed}, want: RolloutBroken,
		},
		"objects were rolled back": {status: &hubv1.PlacementRollout{Phase: hubv1.RolloutRolledBack, Objects: hubv1.RolloutObjects{Passed: 3, Failing: 1}}, want: RolloutBroken},
		"objects return":           {status: &hubv1.PlacementRollout{Wave: "canary", Phase: hubv1.RolloutRollingBack, Objects: hubv1.RolloutObjects{Passed: 3, Failing: 1}}, want: RolloutRuns},
		"all objects are complete": {status: &hubv1.PlacementRollout{Phase: hubv1.RolloutComplete, Objects: hubv1.RolloutObjects{Passed: 4}}, of: []hubv1.BindingObject{complete}, want: RolloutDone},
		"objects have no revision": {status: &hubv1.PlacementRollout{Phase: hubv1.RolloutComplete, Objects: hubv1.RolloutObjects{Pending: 4}}, want: RolloutRuns},
		"the hub has not counted":  {want: RolloutRuns},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "monitoring", Name: "metrics", Annotations: tt.annotations}}
			p.Status.Rollout = tt.status
			r := PlacementRolloutOf(p, tt.of)
			if r.Result != tt.want {
				t.Errorf("got %s, want %s", r.Result, tt.want)
			}
			var text bytes.Buffer
			r.Write(&text, now)
			golden(t, "testdata/rollout/placement-"+strings.ReplaceAll(name, " ", "-")+".txt", text.String())
		})
	}
}
