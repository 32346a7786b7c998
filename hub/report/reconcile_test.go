package report

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestSameRow(t *testing.T) {
	now := metav1.Now()
	row := hubv1.ClusterRow{
		Name: "a", UID: "uid", Generation: 2, Digest: "digest", Hash: "hash", Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy,
		LastTransitionTime: &now, LastObservedTime: &now, Observed: &runtime.RawExtension{Raw: []byte(two)},
	}
	later := metav1.NewTime(now.Add(time.Second))
	tests := map[string]struct {
		change func(*hubv1.ClusterRow)
		same   bool
	}{
		"a copy": {change: func(*hubv1.ClusterRow) {}, same: true},
		"the same time in another zone": {
			change: func(r *hubv1.ClusterRow) { *r.LastTransitionTime = metav1.NewTime(now.UTC()) }, same: true,
		},
		"another word":             {change: func(r *hubv1.ClusterRow) { r.Message = "m" }},
		"another time":             {change: func(r *hubv1.ClusterRow) { r.LastTransitionTime = &later }},
		"another time of sight":    {change: func(r *hubv1.ClusterRow) { r.LastObservedTime = nil }},
		"another status":           {change: func(r *hubv1.ClusterRow) { r.Observed.Raw = []byte(three) }},
		"nothing that is observed": {change: func(r *hubv1.ClusterRow) { r.Observed = nil }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			other := *row.DeepCopy()
			tc.change(&other)
			if sameRow(row, other) != tc.same || sameRow(other, row) != tc.same {
				t.Errorf("same is %v, want %v", !tc.same, tc.same)
			}
		})
	}
}
