package rollup

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestTopologySumsUpCopiesByRegion(t *testing.T) {
	later := metav1.NewTime(earlier.Add(60e9))
	away := func(since metav1.Time) func(*hubv1.ClusterRow) {
		return func(r *hubv1.ClusterRow) {
			r.Applied, r.Health, r.LastObservedTime = metav1.ConditionUnknown, hubv1.HealthUnknown, &since
		}
	}
	named := func(name string) func(*hubv1.ClusterRow) {
		return func(r *hubv1.ClusterRow) { r.Name = name }
	}
	reports := func(text string) func(*hubv1.ClusterRow) {
		return func(r *hubv1.ClusterRow) { r.Observed = raw([]byte(text)) }
	}
	web := &hubv1.ResourceBinding{}
	web.Spec.Clusters = []hubv1.BindingTarget{
		{Name: "eu-1", State: hubv1.TargetPresent}, {Name: "cn-2", State: hubv1.TargetPresent}, {Name: "cn-1", State: hubv1.TargetPresent},
		{Name: "gone", State: hubv1.TargetEvicting}, {Name: "new", State: hubv1.TargetPresent},
	}
	web.Status.Clusters = []hubv1.ClusterRow{
		*held(named("cn-1"), reports(`{"availableReplicas":2,"replicas":3}`)), *held(named("cn-2"), reports(`{"availableReplicas":5,"replicas":5}`), away(later)),
		*held(named("eu-1"), reports(`{"phase":"Running"}`)), *held(named("gone"), away(earlier)),
	}
	settings := &hubv1.ResourceBinding{}
	settings.Spec.Clusters = []hubv1.BindingTarget{{Name: "cn-2", State: hubv1.TargetPresent}}
	settings.Status.Clusters = []hubv1.ClusterRow{*held(named("cn-2"), reports(`{}`), away(earlier))}

	var got Topology
	for _, b := range []hubv1.BindingObject{web, settings} {
		got.Add(b, func(cluster string) string {
			return map[string]string{"cn-1": "cn-shanghai", "cn-2": "cn-shanghai", "eu-1": "eu-central-1", "gone": "mars"}[cluster]
		})
	}
	want := []hubv1.RegionSummary{
		{Region: "", Desired: 1, Unknown: 1},
		{Region: "cn-shanghai", Desired: 3, Applied: 1, Healthy: 1, Unknown: 2, Replicas: ptr.To[int64](8), ReadyReplicas: ptr.To[int64](7)},
		{Region: "eu-central-1", Desired: 1, Applied: 1, Healthy: 1},
	}
	if diff := cmp.Diff(want, got.Regions()); diff != "" {
		t.Errorf("regions (-want +got):\n%s", diff)
	}
	if oldest := got.OldestObservedTime(); !oldest.Equal(&earlier) {
		t.Errorf("oldest is %v, want %v", oldest, earlier)
	}
	if diff := cmp.Diff([]string{"cn-2"}, got.Away()); diff != "" {
		t.Errorf("away (-want +got):\n%s", diff)
	}
}

func TestAClusterThatRefusesTheWatchOfAKindIsNotAway(t *testing.T) {
	b := &hubv1.ResourceBinding{}
	b.Spec.Clusters = []hubv1.BindingTarget{{Name: "cn-1", State: hubv1.TargetPresent}}
	observed := metav1.Now()
	b.Status.Clusters = []hubv1.ClusterRow{{
		Name: "cn-1", Applied: metav1.ConditionTrue, Health: hubv1.HealthUnknown, Reason: hubv1.ReasonForbidden, LastObservedTime: &observed,
	}}
	var got Topology
	got.Add(b, func(string) string { return "" })
	if got.OldestObservedTime() != nil || len(got.Away()) > 0 {
		t.Errorf("%v is away", got.Away())
	}
}

func TestTopologyIsBounded(t *testing.T) {
	b := &hubv1.ResourceBinding{}
	for i := range 2 * hubv1.MaxRegions {
		b.Spec.Clusters = append(b.Spec.Clusters, hubv1.BindingTarget{Name: fmt.Sprint("c", i), State: hubv1.TargetPresent})
	}
	var got Topology
	got.Add(b, func(cluster string) string { return "region-of-" + cluster })
	if n := len(got.Regions()); n != hubv1.MaxRegions {
		t.Errorf("%d regions, want %d", n, hubv1.MaxRegions)
	}
	if oldest := got.OldestObservedTime(); oldest != nil {
		t.Errorf("oldest is %v where no cluster is away", oldest)
	}
}

func TestReplicasAreFoundUnderTheNamesThatOperatorsUse(t *testing.T) {
	tests := map[string]struct{ observed, want string }{
		"a Deployment":                                   {`{"replicas":3,"readyReplicas":2,"availableReplicas":1,"unavailableReplicas":1}`, "[2,3]"},
		"a Deployment without a ready replica":           {`{"replicas":3,"unavailableReplicas":3}`, "[0,3]"},
		"a Prometheus":                                   {`{"replicas":5,"availableReplicas":5,"unavailableReplicas":0}`, "[5,5]"},
		"a cluster of CloudNativePG":                     {`{"instances":3,"readyInstances":2}`, "[2,3]"},
		"a DaemonSet":                                    {`{"desiredNumberScheduled":4,"numberReady":4}`, "[4,4]"},
		"a count of which it is not known what is ready": {`{"replicas":3}`, "[null,3]"},
		"no counts":                                      {`{"phase":"Running"}`, "[null,null]"},
		"numbers of what is below":                       {`{"pools":[{"replicas":7}],"of":{"replicas":8,"x":"}\""},"replicas":3,"y":{"replicas":9}}`, "[null,3]"},
		"a text that looks like one":                     {`{"message":"\"replicas\":5","replicas": 3,"readyReplicas":2}`, "[2,3]"},
		"a fraction":                                     {`{"replicas":3.5,"readyReplicas":1e3}`, "[null,null]"},
		"what is no JSON":                                {`{"replicas":3,"readyReplicas`, "[null,3]"},
		"numbers that are none":                          {`{"replicas":"three"}`, "[null,null]"},
		"nothing":                                        {``, "[null,null]"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ready, total := Replicas(raw([]byte(tc.observed)))
			got, err := json.Marshal([]*int64{ready, total})
			if err != nil || string(got) != tc.want {
				t.Errorf("got %s, want %s (%v)", got, tc.want, err)
			}
		})
	}
}
