package policies

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/clusters"
	"github.com/hanse-dev/hanse/internal/informer"
)

// indexes adds the package's field indexes to a fake client.
type indexes struct{ *fake.ClientBuilder }

func (i indexes) IndexField(_ context.Context, o client.Object, field string, values client.IndexerFunc) error {
	i.WithIndex(o, field, values)
	return nil
}

func TestNumbersOfRegionsAloneAreWrittenEveryTenSeconds(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := hubv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "monitoring", Name: "metrics", UID: "p", Generation: 1}}
	p.Spec.Clusters.LabelSelector = &metav1.LabelSelector{}
	b := binding("web", metav1.ConditionTrue, metav1.ConditionTrue, "cn-1")
	b.Spec.PlacementRef = &hubv1.PlacementReference{Kind: "Placement", Namespace: p.Namespace, Name: p.Name, UID: p.UID, Generation: 1}
	cluster := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "cn-1", Labels: map[string]string{hubv1.RegionLabel: "cn-shanghai"}}}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(p, b, cluster).WithStatusSubresource(p, b)
	if err := index(indexes{builder}); err != nil {
		t.Fatal(err)
	}
	c := builder.Build()
	clock := testclock.NewFakePassiveClock(time.Now())
	placements := &placements{
		Options: Options{
			Client: c, Clusters: clusters.New(c), Templates: &fakeTemplates{state: informer.State{Synced: true}}, HubRunsWorkloads: func() bool { return false },
			Events: events.NewFakeRecorder(10), Clock: clock,
		},
		records: map[types.NamespacedName]*record{},
	}
	key := client.ObjectKeyFromObject(p)

	steps := []struct {
		what     string
		replicas int
		applied  metav1.ConditionStatus
		after    time.Duration // time since the previous step
		again    time.Duration
		want     int64 // number of replicas in the placement's status
	}{
		{"the first numbers", 1, metav1.ConditionTrue, 0, 0, 1},
		{"other numbers at once", 2, metav1.ConditionTrue, time.Second, 9 * time.Second, 1},
		{"and again", 3, metav1.ConditionTrue, 4 * time.Second, 5 * time.Second, 1},
		{"after ten seconds", 3, metav1.ConditionTrue, 5 * time.Second, 0, 3},
		{"numbers together with what matters", 4, metav1.ConditionFalse, time.Second, 0, 4},
		{"nothing", 4, metav1.ConditionFalse, time.Second, 0, 4},
	}
	for _, step := range steps {
		clock.SetTime(clock.Now().Add(step.after))
		status := binding("web", step.applied, step.applied, "cn-1").Status
		status.Clusters = []hubv1.ClusterRow{{
			Name: "cn-1", Applied: step.applied, Health: hubv1.HealthHealthy, Observed: &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"replicas":%d}`, step.replicas)},
		}}
		b.Status = status
		if err := c.Status().Update(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		got, err := placements.update(t.Context(), key)
		if err != nil || got != step.again {
			t.Errorf("%s: again after %s, want %s (%v)", step.what, got, step.again, err)
		}
		var now hubv1.Placement
		if err := c.Get(t.Context(), key, &now); err != nil {
			t.Fatal(err)
		}
		if got := now.Status.Topology; len(got) != 1 || got[0].Region != "cn-shanghai" || got[0].Replicas == nil || *got[0].Replicas != step.want {
			t.Errorf("%s: topology is %+v, want %d replicas", step.what, got, step.want)
		}
	}
}
