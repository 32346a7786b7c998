package charts

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// hubOf returns the Deployment that the chart of the hub makes of values.
func hubOf(t *testing.T, values map[string]any) *appsv1.Deployment {
	t.Helper()
	for _, o := range Install(t, "hanse-hub", values) {
		if o.GetKind() != "Deployment" {
			continue
		}
		var d appsv1.Deployment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &d); err != nil {
			t.Fatal(err)
		}
		return &d
	}
	t.Fatal("the chart has no Deployment")
	return nil
}

func TestAHubRunsWithNothingSet(t *testing.T) {
	d := hubOf(t, nil)
	if *d.Spec.Replicas != 2 {
		t.Errorf("%d replicas run, want 2", *d.Spec.Replicas)
	}
	pod := d.Spec.Template
	var spread []string
	for _, c := range pod.Spec.TopologySpreadConstraints {
		spread = append(spread, c.TopologyKey+" "+string(c.WhenUnsatisfiable))
	}
	if diff := cmp.Diff([]string{"kubernetes.io/hostname ScheduleAnyway", "topology.kubernetes.io/zone ScheduleAnyway"}, spread); diff != "" {
		t.Errorf("constraints (-want +got):\n%s", diff)
	}
	if pod.Spec.Affinity != nil || pod.Spec.PriorityClassName != "" || len(pod.Annotations) != 1 {
		t.Errorf("the pod has more than the chart promises: %+v, annotations %v", pod.Spec.Affinity, pod.Annotations)
	}
}

func TestThePodsOfTheHubTakeTheValuesForPods(t *testing.T) {
	term := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "pool", Operator: "In", Values: []string{"hub"}}}}
	d := hubOf(t, map[string]any{
		"podLabels": map[string]any{"team": "platform"}, "podAnnotations": map[string]any{"scrape": "true"}, "priorityClassName": "important",
		"affinity": map[string]any{"nodeAffinity": map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": map[string]any{
			"nodeSelectorTerms": []any{map[string]any{"matchExpressions": []any{map[string]any{"key": "pool", "operator": "In", "values": []any{"hub"}}}}},
		}}},
		"topologySpreadConstraints": []any{map[string]any{"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}},
	})
	pod := d.Spec.Template
	if pod.Labels["team"] != "platform" || pod.Labels["app.kubernetes.io/name"] != "hanse-hub" || pod.Annotations["scrape"] != "true" || pod.Annotations["kubectl.kubernetes.io/default-container"] != "hub" {
		t.Errorf("the pod has the labels %v and annotations %v", pod.Labels, pod.Annotations)
	}
	if pod.Spec.PriorityClassName != "important" {
		t.Errorf("the priority class is %q", pod.Spec.PriorityClassName)
	}
	want := &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}},
	}}
	if diff := cmp.Diff(want, pod.Spec.Affinity); diff != "" {
		t.Errorf("affinity (-want +got):\n%s", diff)
	}
	if c := pod.Spec.TopologySpreadConstraints; len(c) != 1 || c[0].TopologyKey != "rack" {
		t.Errorf("the constraints are %+v", c)
	}
	if _, changed := d.Spec.Selector.MatchLabels["team"]; changed {
		t.Error("a label of pods is in the selector, which cannot change")
	}
}
