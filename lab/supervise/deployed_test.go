package supervise

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hanse-dev/hanse/lab/kube"
)

const ofOperator = "hanse.dev/prometheus-operator:v1.0.0"

// operatorPod returns a pod of prometheus-operator that kwok has started. The pod was created this number of minutes
// after a fixed time.
func operatorPod(name string, minutes int, args ...string) kube.Pod {
	var pod kube.Pod
	pod.Metadata.Namespace, pod.Metadata.Name, pod.Metadata.UID = "monitoring", name, "uid of "+name
	pod.Metadata.CreationTimestamp = time.Date(2026, 1, 1, 0, minutes, 0, 0, time.UTC)
	pod.Spec = kube.PodSpec{ServiceAccountName: "operator", Containers: []kube.Container{{Image: ofOperator, Args: args}}}
	pod.Status.Phase = "Running"
	return pod
}

func TestOnlyStartedPodsOfTheOperatorWantItsProcess(t *testing.T) {
	deleted, pending, other := operatorPod("deleted", 3), operatorPod("pending", 3), operatorPod("other", 3)
	deleted.Metadata.DeletionTimestamp = &deleted.Metadata.CreationTimestamp
	pending.Status.Phase = "Pending"
	other.Spec.Containers[0].Image = "hanse.dev/prometheus-operator:v0.0.1"
	runs := func(pod kube.Pod) bool { return pod.Spec.Containers[0].Image == ofOperator }
	var names []string
	for _, pod := range startedPods([]kube.Pod{operatorPod("old", 1), deleted, pending, other, operatorPod("new", 2)}, runs) {
		names = append(names, pod.Metadata.Name)
	}
	if diff := cmp.Diff([]string{"new", "old"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestThePodThatHasTheProcess(t *testing.T) {
	tests := map[string]struct {
		pods []kube.Pod // newest first
		last kube.Pod
		want string
	}{
		"the newest pod has it if no pod had it":             {[]kube.Pod{operatorPod("new", 2), operatorPod("old", 1)}, kube.Pod{}, "new"},
		"the pod that has it keeps it beside an equal one":   {[]kube.Pod{operatorPod("new", 2), operatorPod("old", 1)}, operatorPod("old", 1), "old"},
		"the newest pod takes it with other arguments":       {[]kube.Pod{operatorPod("new", 2, "--a"), operatorPod("old", 1)}, operatorPod("old", 1), "new"},
		"another pod takes it when the pod that had it ends": {[]kube.Pod{operatorPod("new", 2)}, operatorPod("old", 1), "new"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := electLeader(test.pods, test.last).Metadata.Name; got != test.want {
				t.Errorf("the pod %s has the process, want %s", got, test.want)
			}
		})
	}
}
