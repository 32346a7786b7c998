package rollup

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubectl/pkg/polymorphichelpers"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/health"
)

// copyOf is the copy of a workload on one cluster.
type copyOf struct {
	status     map[string]any
	health     hubv1.Health // Healthy if empty
	reason     string
	generation int64 // generation of its hub object; 3 if 0
	away       bool
	pending    bool
	share      *int32
}

// workloadOf is a hub object at generation 3, with its copies.
type workloadOf struct {
	kind   string
	spec   map[string]any
	before map[string]any
	copies map[string]copyOf
}

func (w workloadOf) merge(t test) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "web", "generation": int64(3)}, "spec": w.spec, "status": w.before,
	}}
	o.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind(w.kind))
	var rows []hubv1.ClusterRow
	var targets []hubv1.BindingTarget
	for _, name := range slices.Sorted(maps.Keys(w.copies)) {
		c := w.copies[name]
		row := hubv1.ClusterRow{
			Name: name, UID: types.UID(name), Generation: 3, Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy, Reason: c.reason,
			LastTransitionTime: &noon, Observed: raw(health.Project(schema.GroupKind{}, c.status)),
		}
		if c.generation != 0 {
			row.Generation = c.generation
		}
		if c.health != "" {
			row.Health = c.health
		}
		if c.away {
			row.Applied, row.Health, row.Reason, row.LastObservedTime = metav1.ConditionUnknown, hubv1.HealthUnknown, hubv1.ReasonUnreachable, &noon
		}
		if c.pending {
			row.Applied, row.Health, row.Reason = metav1.ConditionUnknown, hubv1.HealthProgressing, hubv1.ReasonPending
		}
		rows = append(rows, row)
		targets = append(targets, hubv1.BindingTarget{Name: name, State: hubv1.TargetPresent, Replicas: c.share})
	}
	s, ok := WorkloadSchema(o.GroupVersionKind())
	if !ok {
		t.Fatalf("%s has no schema", w.kind)
	}
	merged, leftOut, err := MergeStatus(s, Rules{}, o, rows, targets, noon)
	if err != nil || len(leftOut) > 0 {
		t.Fatalf("left out %v: %v", leftOut, err)
	}
	o.Object["status"] = merged
	return o
}

// deployed returns the status of a Deployment with the given numbers of replicas, updated pods and available pods.
func deployed(replicas, updated, available int64, progressing string) map[string]any {
	progresses, enough := "True", "True"
	if progressing == "ProgressDeadlineExceeded" {
		progresses = "False"
	}
	if available == 0 && replicas > 0 {
		enough = "False"
	}
	return map[string]any{
		"observedGeneration": int64(1), "replicas": replicas, "updatedReplicas": updated, "readyReplicas": available, "availableReplicas": available,
		"conditions": []any{
			map[string]any{"type": "Available", "status": enough, "reason": "MinimumReplicasAvailable"},
			map[string]any{"type": "Progressing", "status": progresses, "reason": progressing},
		},
	}
}

const (
	rolledOut = "NewReplicaSetAvailable"
	rolling   = "ReplicaSetUpdated"
	tooLate   = "ProgressDeadlineExceeded"
)

// stateful returns the status of a StatefulSet with three replicas.
func stateful(updated, ready int64) map[string]any {
	return map[string]any{
		"observedGeneration": int64(1), "replicas": int64(3), "updatedReplicas": updated, "currentReplicas": updated, "readyReplicas": ready,
		"availableReplicas": ready, "currentRevision": "web-1", "updateRevision": "web-1",
	}
}

func daemons(desired, updated, ready int64) map[string]any {
	return map[string]any{
		"observedGeneration": int64(1), "desiredNumberScheduled": desired, "currentNumberScheduled": desired, "updatedNumberScheduled": updated,
		"numberReady": ready, "numberAvailable": ready, "numberMisscheduled": int64(0),
	}
}

// pair returns the status of a ReplicaSet with two replicas.
func pair(ready int64) map[string]any {
	return map[string]any{
		"observedGeneration": int64(1), "replicas": int64(2), "fullyLabeledReplicas": int64(2), "readyReplicas": ready, "availableReplicas": ready,
	}
}

func replicasOf(n int64) map[string]any {
	return map[string]any{"replicas": n, "progressDeadlineSeconds": int64(600)}
}

// TestAWorkloadReadsAsThatOfOneCluster passes the merged status to the code of `kubectl rollout status` and of kstatus,
// which must understand it.
func TestAWorkloadReadsAsThatOfOneCluster(t *testing.T) {
	rollingUpdate := map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"partition": int64(0)}}
	partitioned := map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"partition": int64(2)}}
	before := map[string]any{"observedGeneration": int64(3)}
	tests := map[string]struct {
		in      workloadOf
		kubectl string // output of kubectl rollout status; empty if kubectl does not support the kind
		kstatus status.Status
	}{
		"a Deployment that is rolled out on all clusters": {
			in: workloadOf{kind: "Deployment", spec: replicasOf(2), copies: map[string]copyOf{
				"a": {status: deployed(2, 2, 2, rolledOut)}, "b": {status: deployed(2, 2, 2, rolledOut)},
			}},
			kubectl: "successfully rolled out", kstatus: status.CurrentStatus,
		},
		"a Deployment that a cluster has more of by an override": {
			in: workloadOf{kind: "Deployment", spec: replicasOf(2), copies: map[string]copyOf{
				"a": {status: deployed(5, 5, 5, rolledOut)}, "b": {status: deployed(2, 2, 2, rolledOut)},
			}},
			kubectl: "successfully rolled out", kstatus: status.CurrentStatus,
		},
		"a Deployment that a cluster has less of by an override": {
			in: workloadOf{kind: "Deployment", spec: replicasOf(2), copies: map[string]copyOf{
				"a": {status: deployed(1, 1, 1, rolledOut)}, "b": {status: deployed(2, 2, 2, rolledOut)},
			}},
			kubectl: "successfully rolled out", kstatus: status.CurrentStatus,
		},
		"a Deployment without replicas": {
			in: workloadOf{kind: "Deployment", spec: replicasOf(0), copies: map[string]copyOf{
				"a": {status: deployed(0, 0, 0, rolledOut)}, "b": {status: deployed(0, 0, 0, rolledOut)},
			}},
			kubectl: "successfully rolled out", kstatus: status.CurrentStatus,
		},
		"a Deployment whose pods one cluster still replaces": {
			in: workloadOf{kind: "Deployment", spec: replicasOf(3), copies: map[string]copyOf{
				"a": {status: deployed(4, 1, 3, rolling), health: hubv1.HealthProgressing, reason: "LessUpdated"}, "b": {status: deployed(3, 3, 3, rolledOut)},
			}},
			kubectl: "1 out of 3 new replicas have been updated", kstatus: status.InProgressStatus,
		},
		"a Deployment of which an old pod still ends on one cluster": {
			in: workloadOf{kind: "Deployment", spec: replicasOf(3), copies: map[string]copyOf{
				"a": {status: deployed(4, 3, 3, rolling), health: hubv1.HealthProgressing, reason: "ExtraPods"}, "b": {status: deployed(3, 3, 3, rolledOut)},
			}},
			kubectl: "2 of 3 updated replicas are available", kstatus: status.InProgressStatus,
		},
		"a Deployment scaled to nothing of which a pod still ends": {
			in: workloadOf{kind: "Deployment", spec: replicasOf(0), copies: map[string]copyOf{
				"a": {status: deployed(1, 0, 0, rolling), health: hubv1.HealthProgressing, reason: "ExtraPods"}, "b": {status: deployed(0, 0, 0, rolledOut)},
			}},
			kubectl: "1 old replicas are pending termination", kstatus: status.InProgressStatus,
		},
		"a cluster with more replicas by an override, one of which is not available": {
			in: workloadOf{kind: "Deployment", spec: replicasOf(3), copies: map[string]copyOf{
				"a": {status: deployed(5, 5, 4, rolling), health: hubv1.HealthProgressing, reason: "LessAvailable"}, "b": {status: deployed(3, 3, 3, rolledOut)},
			}},
			kubectl: "2 of 3 updated replicas are available", kstatus: status.InProgressStatus,
		},
		"a Deployment that one cluster cannot roll out in time": {
			in: workloadOf{kind: "Deployment", spec: replicasOf(2), copies: map[string]copyOf{
				"a": {status: deployed(3, 1, 2, tooLate), health: hubv1.HealthDegraded, reason: tooLate}, "b": {status: deployed(2, 2, 2, rolledOut)},
			}},
			kubectl: "exceeded its progress deadline", kstatus: status.FailedStatus,
		},
		"a Deployment whose controller on one cluster has not seen the change": {
			in: workloadOf{kind: "Deployment", spec: replicasOf(2), copies: map[string]copyOf{
				"a": {status: deployed(2, 2, 2, rolledOut), health: hubv1.HealthProgressing, reason: health.ReasonGenerationNotObserved},
				"b": {status: deployed(2, 2, 2, rolledOut)},
			}},
			kubectl: "spec update to be observed", kstatus: status.InProgressStatus,
		},
		"a Deployment that one cluster holds at an older generation": {
			in: workloadOf{
				kind: "Deployment", spec: replicasOf(2), before: map[string]any{"observedGeneration": int64(2)},
				copies: map[string]copyOf{
					"a": {status: deployed(2, 2, 2, rolledOut), generation: 2, pending: true}, "b": {status: deployed(2, 2, 2, rolledOut)},
				},
			},
			kubectl: "spec update to be observed", kstatus: status.InProgressStatus,
		},
		"a Deployment that is on its way to a cluster by a changed override": {
			in: workloadOf{kind: "Deployment", spec: replicasOf(2), before: before, copies: map[string]copyOf{
				"a": {status: deployed(2, 2, 2, rolledOut), pending: true}, "b": {status: deployed(2, 2, 2, rolledOut)},
			}},
			kubectl: "1 of 2 updated replicas are available", kstatus: status.InProgressStatus,
		},
		"a cluster that the placement has just chosen": {
			in: workloadOf{kind: "Deployment", spec: replicasOf(2), before: before, copies: map[string]copyOf{
				"a": {pending: true, generation: -1}, "b": {status: deployed(2, 2, 2, rolledOut)},
			}},
			kubectl: "0 out of 2 new replicas have been updated", kstatus: status.InProgressStatus,
		},
		"a cluster that went away when all was rolled out": {
			in: workloadOf{kind: "Deployment", spec: replicasOf(2), before: before, copies: map[string]copyOf{
				"a": {status: deployed(2, 2, 2, rolledOut), away: true}, "b": {status: deployed(2, 2, 2, rolledOut)},
			}},
			kubectl: "successfully rolled out", kstatus: status.InProgressStatus, // they differ, because Available is Unknown
		},
		"a change while a cluster is away": {
			in: workloadOf{
				kind: "Deployment", spec: replicasOf(2), before: map[string]any{"observedGeneration": int64(2)},
				copies: map[string]copyOf{
					"a": {status: deployed(2, 2, 2, rolledOut), generation: 2, away: true}, "b": {status: deployed(2, 2, 2, rolledOut)},
				},
			},
			kubectl: "spec update to be observed", kstatus: status.InProgressStatus,
		},
		"a divided Deployment that is rolled out": {
			in: workloadOf{kind: "Deployment", spec: replicasOf(5), copies: map[string]copyOf{
				"a": {status: deployed(2, 2, 2, rolledOut), share: ptr.To[int32](2)}, "b": {status: deployed(3, 3, 3, rolledOut), share: ptr.To[int32](3)},
			}},
			kubectl: "successfully rolled out", kstatus: status.CurrentStatus,
		},
		"a divided Deployment whose share an autoscaler has raised": {
			in: workloadOf{kind: "Deployment", spec: replicasOf(5), copies: map[string]copyOf{
				"a": {status: deployed(7, 7, 7, rolledOut), share: ptr.To[int32](2)}, "b": {status: deployed(3, 3, 3, rolledOut), share: ptr.To[int32](3)},
			}},
			kubectl: "successfully rolled out", kstatus: status.CurrentStatus,
		},
		"a divided Deployment of which a share is not available": {
			in: workloadOf{kind: "Deployment", spec: replicasOf(5), copies: map[string]copyOf{
				"a": {status: deployed(2, 2, 1, rolling), share: ptr.To[int32](2), health: hubv1.HealthProgressing}, "b": {status: deployed(3, 3, 3, rolledOut), share: ptr.To[int32](3)},
			}},
			kubectl: "4 of 5 updated replicas are available", kstatus: status.InProgressStatus,
		},
		"a divided Deployment for which the clusters have no room": {
			in: workloadOf{kind: "Deployment", spec: replicasOf(9), copies: map[string]copyOf{
				"a": {status: deployed(2, 2, 2, rolledOut), share: ptr.To[int32](2)}, "b": {status: deployed(3, 3, 3, rolledOut), share: ptr.To[int32](3)},
			}},
			kubectl: "5 out of 9 new replicas have been updated", kstatus: status.InProgressStatus,
		},
		"a StatefulSet that is rolled out": {
			in: workloadOf{kind: "StatefulSet", spec: map[string]any{"replicas": int64(3), "updateStrategy": rollingUpdate}, copies: map[string]copyOf{
				"a": {status: stateful(3, 3)}, "b": {status: stateful(3, 3)},
			}},
			kubectl: "roll out complete: 3 new pods", kstatus: status.CurrentStatus,
		},
		"a StatefulSet of which one cluster lacks a pod": {
			in: workloadOf{kind: "StatefulSet", spec: map[string]any{"replicas": int64(3), "updateStrategy": rollingUpdate}, copies: map[string]copyOf{
				"a": {status: stateful(3, 3)}, "b": {status: stateful(3, 2), health: hubv1.HealthProgressing},
			}},
			kubectl: "Waiting for 1 pods to be ready", kstatus: status.InProgressStatus,
		},
		"a StatefulSet with a partition": {
			in: workloadOf{kind: "StatefulSet", spec: map[string]any{"replicas": int64(3), "updateStrategy": partitioned}, copies: map[string]copyOf{
				"a": {status: stateful(1, 3)}, "b": {status: stateful(1, 3)},
			}},
			kubectl: "roll out complete: 1 new pods", kstatus: status.CurrentStatus,
		},
		"a DaemonSet that is rolled out": {
			in: workloadOf{kind: "DaemonSet", spec: map[string]any{"updateStrategy": map[string]any{"type": "RollingUpdate"}}, copies: map[string]copyOf{
				"a": {status: daemons(3, 3, 3)}, "b": {status: daemons(5, 5, 5)},
			}},
			kubectl: "successfully rolled out", kstatus: status.CurrentStatus,
		},
		"a DaemonSet that a cluster without nodes has, too": {
			in: workloadOf{kind: "DaemonSet", spec: map[string]any{"updateStrategy": map[string]any{"type": "RollingUpdate"}}, copies: map[string]copyOf{
				"a": {status: daemons(0, 0, 0)}, "b": {status: daemons(0, 0, 0)},
			}},
			kubectl: "successfully rolled out", kstatus: status.CurrentStatus,
		},
		"a DaemonSet of which one node lacks the pod": {
			in: workloadOf{kind: "DaemonSet", spec: map[string]any{"updateStrategy": map[string]any{"type": "RollingUpdate"}}, copies: map[string]copyOf{
				"a": {status: daemons(3, 3, 2), health: hubv1.HealthProgressing}, "b": {status: daemons(5, 5, 5)},
			}},
			kubectl: "7 of 8 updated pods are available", kstatus: status.InProgressStatus,
		},
		"a ReplicaSet that is complete": {
			in: workloadOf{kind: "ReplicaSet", spec: replicasOf(2), copies: map[string]copyOf{
				"a": {status: pair(2)}, "b": {status: pair(2)},
			}},
			kstatus: status.CurrentStatus,
		},
		"a ReplicaSet of which one cluster lacks a pod": {
			in: workloadOf{kind: "ReplicaSet", spec: replicasOf(2), copies: map[string]copyOf{
				"a": {status: pair(2)}, "b": {status: pair(1), health: hubv1.HealthProgressing},
			}},
			kstatus: status.InProgressStatus,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := tc.in.merge(t)
			t.Log(o.Object["status"])
			if got := kubectlSays(t, o); !strings.Contains(got, tc.kubectl) {
				t.Errorf("kubectl rollout status says %q, want %q", got, tc.kubectl)
			}
			result, err := status.Compute(o)
			if err != nil {
				t.Fatal(err)
			}
			if result.Status != tc.kstatus {
				t.Errorf("kstatus is %s (%s), want %s", result.Status, result.Message, tc.kstatus)
			}
		})
	}
}

// kubectlSays returns the output of `kubectl rollout status` for an object. It is empty if kubectl does not support the
// kind.
func kubectlSays(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	viewer, err := polymorphichelpers.StatusViewerFor(o.GroupVersionKind().GroupKind())
	if err != nil {
		return ""
	}
	reported, done, err := viewer.Status(o, 0)
	if err != nil {
		return err.Error()
	}
	if complete := strings.Contains(reported, "successfully") || strings.Contains(reported, "complete:"); done != complete {
		t.Errorf("kubectl says %q with done %v", reported, done)
	}
	return reported
}

// TestCountsOfAWorkloadAreTakenByTheServer merges random counts. It checks the rules that the API server has for these
// counts, such as that no count is larger than replicas.
func TestCountsOfAWorkloadAreTakenByTheServer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := workloadOf{kind: rapid.SampledFrom([]string{"Deployment", "StatefulSet", "ReplicaSet"}).Draw(t, "kind"), copies: map[string]copyOf{}}
		w.spec = replicasOf(rapid.Int64Range(0, 4).Draw(t, "replicas"))
		divided := rapid.Bool().Draw(t, "divided")
		for _, name := range []string{"a", "b", "c"}[:rapid.IntRange(0, 3).Draw(t, "clusters")] {
			status := map[string]any{"observedGeneration": int64(1)}
			for _, count := range []string{"replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "currentReplicas", "fullyLabeledReplicas"} {
				status[count] = rapid.SampledFrom([]int64{-1, 0, 1, 2, 3, 4, 9, 1 << 40}).Draw(t, count)
			}
			c := copyOf{
				status: status, health: rapid.SampledFrom([]hubv1.Health{hubv1.HealthHealthy, hubv1.HealthProgressing, hubv1.HealthDegraded}).Draw(t, "health"),
				generation: rapid.Int64Range(2, 3).Draw(t, "generation"), away: rapid.Bool().Draw(t, "away"),
			}
			if divided {
				c.share = ptr.To(rapid.Int32Range(0, 4).Draw(t, "share"))
			}
			w.copies[name] = c
		}
		merged, _ := w.merge(t).Object["status"].(map[string]any)
		of := func(name string) int64 { n, _ := merged[name].(int64); return n }
		for _, part := range []string{"updatedReplicas", "readyReplicas", "availableReplicas", "currentReplicas", "fullyLabeledReplicas"} {
			if of(part) < 0 || of(part) > of("replicas") {
				t.Fatalf("%s is not within replicas: %v", part, merged)
			}
		}
		if of("availableReplicas") > of("readyReplicas") {
			t.Fatalf("more replicas are available than ready: %v", merged)
		}
	})
}
