package membership

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/clusters"
)

func TestReadinessFollowsTheMemberClusters(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := hubv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	cluster := func(name string, ready metav1.ConditionStatus) *hubv1.MemberCluster {
		c := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Status.Conditions = []metav1.Condition{{Type: hubv1.ConditionReady, Status: ready}}
		return c
	}
	left := cluster("left", metav1.ConditionTrue)
	unobserved := cluster("unobserved", metav1.ConditionTrue)
	at := metav1.NewTime(time.Now().Add(-time.Hour))
	unobserved.Status.LastObservedTime = &at
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		left, unobserved, cluster("up", metav1.ConditionTrue), cluster("down", metav1.ConditionFalse), &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "new"}},
	).Build()
	if err := c.Delete(t.Context(), left); err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(Readiness{clusters.New(c)})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range families[0].GetMetric() {
		got = append(got, fmt.Sprint(m.GetLabel()[0].GetValue(), " ", m.GetGauge().GetValue()))
	}
	if diff := cmp.Diff([]string{"down 0", "new 0", "unobserved 0", "up 1"}, got); diff != "" {
		t.Errorf("readiness (-want +got):\n%s", diff)
	}
}
