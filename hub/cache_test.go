package hub

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestACachedBindingLacksItsManagedFieldsOnly(t *testing.T) {
	t.Parallel()
	rows := append(make([]hubv1.ClusterRow, 0, 4), hubv1.ClusterRow{
		Name: "a", Digest: "d", Observed: &runtime.RawExtension{Raw: append(make([]byte, 0, 100), `{"replicas":3}`...)},
	}, hubv1.ClusterRow{Name: "b"})
	b := &hubv1.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "x", Finalizers: []string{"f"}, Annotations: map[string]string{"k": "v"}},
		Spec:       hubv1.BindingSpec{Clusters: append(make([]hubv1.BindingTarget, 0, 4), hubv1.BindingTarget{Name: "a"}, hubv1.BindingTarget{Name: "b"})},
		Status:     hubv1.BindingStatus{Clusters: rows, Conditions: []metav1.Condition{{Type: "Applied"}}, Decision: &hubv1.DecisionStatus{}},
	}
	want := b.DeepCopy()
	b.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "hanse-hub"}}
	got, err := trimBinding(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if cap(b.Spec.Clusters) != 2 || cap(b.Status.Clusters) != 2 || cap(b.Status.Clusters[0].Observed.Raw) > 16 {
		t.Errorf("room for %d targets, %d rows and %d bytes is kept", cap(b.Spec.Clusters), cap(b.Status.Clusters), cap(b.Status.Clusters[0].Observed.Raw))
	}
	if _, err := trimBinding(metav1.Now()); err == nil {
		t.Error("something else passes for a binding")
	}
}
