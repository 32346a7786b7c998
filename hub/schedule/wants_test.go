package schedule

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// TestWantedKindsAreReportedAfterTheFirstRead: the wanted kinds are unknown at first. As soon as they are known, the
// function of OnWanted is called, even if no kind is wanted.
func TestWantedKindsAreReportedAfterTheFirstRead(t *testing.T) {
	ctx, scheme := t.Context(), runtime.NewScheme()
	if err := hubv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	hub := fake.NewClientBuilder().WithScheme(scheme).Build()
	s := &Scheduler{shared: shared{removals: removals{pending: pending{clock: clock.RealClock{}}}}, wants: newWants(hub, &hubObjects{}, nil)}
	var reported [][]schema.GroupKind
	s.OnWanted(func(kinds []schema.GroupKind) { reported = append(reported, kinds) })
	if s.Wanted() != nil {
		t.Fatalf("wanted before anything was read: %v", s.Wanted())
	}
	collect := func() {
		t.Helper()
		if err := s.wants.collect(ctx); err != nil {
			t.Fatal(err)
		}
	}
	collect()
	if s.Wanted() == nil {
		t.Error("it is not known that nothing is wanted")
	}
	collect()
	p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings"}}
	p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{Kind: "ConfigMap"}}
	if err := hub.Create(ctx, p); err != nil {
		t.Fatal(err)
	}
	collect()
	collect()
	if diff := cmp.Diff([][]schema.GroupKind{{}, {{Kind: "ConfigMap"}}}, reported); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}
