package profile

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

var (
	noon   = metav1.NewTime(time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC))
	joined = metav1.NewTime(noon.Add(-time.Hour))
)

func member(edit func(*hubv1.MemberCluster)) *hubv1.MemberCluster {
	c := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{
		Name: "eu", CreationTimestamp: joined, Labels: map[string]string{"tier": "prod", "hanse.dev/x": "y", hubv1.ManagedByLabel: hubv1.ManagedByHansectl},
	}}
	c.Status = hubv1.MemberClusterStatus{
		ClusterID: "uid-1", LastObservedTime: &noon, Version: hubv1.ClusterVersion{Kubernetes: "v1.36.3"},
		Topology:   hubv1.ClusterTopology{Region: "eu-central-1", Zones: []string{"a", "b"}},
		Nodes:      hubv1.NodeSummary{Total: 3, Ready: 2},
		Capacity:   corev1.ResourceList{"cpu": resource.MustParse("12"), "nvidia.com/gpu": resource.MustParse("4")},
		Operators:  []hubv1.OperatorFact{{Name: "prometheus", Version: "0.92.1", Installed: true}, {Name: "rotor", Installed: true}, {Name: "new"}},
		Conditions: []metav1.Condition{{Type: hubv1.ConditionReady, Status: metav1.ConditionTrue, Reason: "WatchesDeliver", LastTransitionTime: joined}},
	}
	if edit != nil {
		edit(c)
	}
	return c
}

func values(p Profile) map[string]string {
	out := map[string]string{}
	for _, at := range p.Properties {
		out[at.Name] = at.Value
	}
	return out
}

func TestAClusterIsPublishedWithWhatTheHubKnows(t *testing.T) {
	p := Of(member(nil))
	want := map[string]string{
		"cluster.clusterset.k8s.io": "uid-1", "topology.kubernetes.io/region": "eu-central-1", "hanse.dev/zones": "a,b",
		"nodes.hanse.dev/total": "3", "nodes.hanse.dev/ready": "2", "capacity.hanse.dev/cpu": "12", "capacity.hanse.dev/nvidia.com_gpu": "4",
		"operators.hanse.dev/prometheus": "0.92.1", "operators.hanse.dev/rotor": "unknown", "operators.hanse.dev/new": "installing",
	}
	if diff := cmp.Diff(want, values(p)); diff != "" {
		t.Errorf("properties (-want +got):\n%s", diff)
	}
	for _, at := range p.Properties {
		if !at.LastObservedTime.Equal(&noon) {
			t.Errorf("%s has the time %v", at.Name, at.LastObservedTime)
		}
	}
	if diff := cmp.Diff(map[string]string{"tier": "prod", ManagerLabel: Manager}, p.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}

func TestTheHubCallsOnlyAClusterHealthyThatAnswers(t *testing.T) {
	ready := func(status metav1.ConditionStatus, reason string) func(*hubv1.MemberCluster) {
		return func(c *hubv1.MemberCluster) {
			c.Status.Conditions[0].Status, c.Status.Conditions[0].Reason = status, reason
		}
	}
	tests := map[string]struct {
		edit   func(*hubv1.MemberCluster)
		want   metav1.ConditionStatus
		reason string
	}{
		"it answers":                 {nil, metav1.ConditionTrue, "WatchesDeliver"},
		"it does not answer":         {ready(metav1.ConditionFalse, "Unreachable"), metav1.ConditionUnknown, "Unreachable"},
		"the hub does not know yet":  {ready(metav1.ConditionUnknown, "Connecting"), metav1.ConditionUnknown, "Connecting"},
		"the hub has not reached it": {func(c *hubv1.MemberCluster) { c.Status = hubv1.MemberClusterStatus{} }, metav1.ConditionUnknown, "NotObserved"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := Of(member(tc.edit)).Conditions[0]
			if got.Type != "ControlPlaneHealthy" || got.Status != tc.want || got.Reason != tc.reason || got.LastTransitionTime.IsZero() {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestPropertiesOverTheLimitsAreLeftOutAndSaid(t *testing.T) {
	p := Of(member(func(c *hubv1.MemberCluster) {
		c.Status.Topology.Zones = nil
		for range 64 {
			c.Status.Topology.Zones = append(c.Status.Topology.Zones, strings.Repeat("z", 63))
		}
		c.Status.Operators[0].Name = strings.Repeat("o", 253)
	}))
	if got := len(values(p)["hanse.dev/zones"]); got > maxValue || got < maxValue-64 {
		t.Errorf("the zones have %d characters", got)
	}
	c := p.Conditions[1]
	if c.Type != "PropertiesComplete" || c.Status != metav1.ConditionFalse || !strings.HasPrefix(c.Message, "2 properties") {
		t.Errorf("got %v", c)
	}
}

func TestWhatIsWorthAWrite(t *testing.T) {
	later := func(d time.Duration) func(*hubv1.MemberCluster) {
		return func(c *hubv1.MemberCluster) { c.Status.LastObservedTime = &metav1.Time{Time: noon.Add(d)} }
	}
	for name, tc := range map[string]struct {
		edit func(*hubv1.MemberCluster)
		want bool
	}{
		"nothing":                {nil, false},
		"a later time":           {later(30 * time.Second), false},
		"a much later time":      {later(5 * time.Minute), true},
		"an upgraded operator":   {func(c *hubv1.MemberCluster) { c.Status.Operators[0].Version = "0.93.0" }, true},
		"a cluster that is away": {func(c *hubv1.MemberCluster) { c.Status.Conditions[0].Status = metav1.ConditionFalse }, true},
		"another label":          {func(c *hubv1.MemberCluster) { c.Labels["tier"] = "test" }, true},
	} {
		if got := Due(Of(member(nil)), Of(member(tc.edit))); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestTheEntriesOfOthersStay(t *testing.T) {
	o := Of(member(nil)).New("fleet")
	o.SetLabels(map[string]string{"other": "label"})
	o.Object["status"] = map[string]any{
		"conditions":      []any{map[string]any{"type": "Joined", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}},
		"properties":      []any{map[string]any{"name": "other.example.com/x", "value": "1"}, map[string]any{"name": "operators.hanse.dev/removed", "value": "1"}},
		"accessProviders": []any{map[string]any{"name": "x"}},
	}
	got, err := Of(member(nil)).On(o)
	if err != nil {
		t.Fatal(err)
	}
	conditions, _, _ := unstructured.NestedSlice(got.Object, "status", "conditions")
	properties, _, _ := unstructured.NestedSlice(got.Object, "status", "properties")
	providers, _, _ := unstructured.NestedSlice(got.Object, "status", "accessProviders")
	if len(conditions) != 3 || len(providers) != 1 || len(properties) != 11 || got.GetLabels()["other"] != "label" || got.GetLabels()["tier"] != "prod" {
		t.Errorf("%d conditions, %d properties, %d providers, labels %v", len(conditions), len(properties), len(providers), got.GetLabels())
	}
	if name, _, _ := unstructured.NestedString(properties[0].(map[string]any), "name"); name != "other.example.com/x" {
		t.Errorf("the first property is %s", name)
	}
}
