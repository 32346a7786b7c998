package view

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// failing returns the binding of an object with a condition that is False, and these rows.
func failing(name, condition, reason string, since time.Duration, rows ...hubv1.ClusterRow) hubv1.BindingObject {
	b := placedOn("Deployment", name, "all", rows...)
	b.BindingStatus().Conditions = []metav1.Condition{{
		Type: condition, Status: metav1.ConditionFalse, Reason: reason, Message: "on some", LastTransitionTime: metav1.NewTime(now.Add(-since)),
	}}
	return b
}

func TestOneCauseIsOneEntryAndTheWorstIsTheFirst(t *testing.T) {
	t.Parallel()
	members := matrixFleet()
	members[1].Status.RemovalHeld = &hubv1.RemovalHeld{ID: "1"}
	members[1].Status.Conditions = append(members[1].Status.Conditions, metav1.Condition{
		Type: hubv1.ConditionRemovalHeld, Status: metav1.ConditionTrue, Reason: "RemovalHeld", Message: "3 copies would go. If the removal is a mistake, undo it. Otherwise run: hansectl confirm membercluster a-2 (or more)",
	})
	degraded := hubv1.ClusterRow{Name: "a-1", Applied: metav1.ConditionTrue, Health: hubv1.HealthDegraded, Reason: "CrashLoop", Message: "the pod crashes"}
	silent := healthyOn("b-1")
	silent.Health = hubv1.HealthDegraded
	g := NewGatherer(members)
	g.Add(failing("api", hubv1.ConditionApplied, hubv1.ReasonFailedOnSome, time.Minute, refusedOn("a-2"), healthyOn("a-1")))
	g.Add(failing("web", hubv1.ConditionHealthy, hubv1.ReasonDegradedOnSome, time.Hour, degraded, healthyOn("a-2"), silent))
	g.Add(failing("lost", hubv1.ConditionHealthy, hubv1.ReasonDegradedOnSome, time.Hour, silent))
	g.Add(failing("slow", hubv1.ConditionHealthy, hubv1.ReasonProgressingOnSome, time.Hour, hubv1.ClusterRow{Name: "a-1", Applied: metav1.ConditionTrue, Health: hubv1.HealthProgressing}))
	broken := failing("broken", hubv1.ConditionHealthy, hubv1.ReasonDegradedOnSome, time.Hour, degraded)
	broken.BindingSpec().Rollout = &hubv1.BindingRollout{Phase: hubv1.RolloutFailed, Since: metav1.NewTime(now), Message: "revision 2 failed"}
	g.Add(broken)
	waiting := placedOn("Deployment", "next", "all")
	waiting.BindingSpec().PlacementRef.Namespace = "shop"
	waiting.BindingSpec().Rollout = &hubv1.BindingRollout{
		Phase: hubv1.RolloutWaitingForApproval, Wave: "rest", Since: metav1.NewTime(now), Message: "wave rest waits for approval: hansectl rollout approve all rest -n shop",
	}
	g.Add(waiting)
	g.AddPolicy("Placement shop/wrong", []metav1.Condition{{Type: hubv1.ConditionAccepted, Status: metav1.ConditionFalse, Reason: "Invalid", Message: "no such field"}})

	type entry struct {
		State                   ProblemState
		Of, Message, Where, Cmd string
	}
	var got []entry
	needs := g.Needs(10)
	for _, p := range needs.Entries {
		got = append(got, entry{p.State, p.Of, p.Message, p.Where, p.Do})
	}
	want := []entry{
		{ProblemDegraded, "Deployment.apps shop/web", "the pod crashes", "1 of 3 clusters: a-1", ""},
		{ProblemNotReady, "Placement shop/wrong", "no such field", "", ""},
		{ProblemNotReady, "Deployment.apps shop/api", "", "1 of 2 clusters: a-2", ""},
		{ProblemNotReady, "Deployment.apps shop/broken", "the pod crashes", "1 of 1 cluster: a-1", "hansectl rollout status Deployment broken -n shop"},
		{ProblemUnknown, "MemberCluster b-1", "", "2 copies", "hansectl problems --checks"},
		{ProblemWaits, "Placement shop/all", "wave rest waits for approval", "", "hansectl rollout approve all rest -n shop"},
		{ProblemHeld, "MemberCluster a-2", "3 copies would go", "", "hansectl confirm membercluster a-2"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	few := g.Needs(2)
	if len(few.Entries) != 2 || few.Total() != len(want) || few.Of[TopicObject] != 2 || few.Of[TopicRollout] != 2 {
		t.Errorf("%d entries, and in all %v", len(few.Entries), few.Of)
	}
}

func TestACopyOfAKindThatAClusterDoesNotGrantNeedsAUser(t *testing.T) {
	t.Parallel()
	refused := refusedOn("a-2")
	refused.LastObservedTime = &metav1.Time{Time: now.Add(-time.Hour)} // the hub may not watch the kind either
	refused.Reason, refused.Message = hubv1.ReasonForbidden, "the hub may not patch deployments"
	g := NewGatherer(matrixFleet())
	g.Add(failing("api", hubv1.ConditionApplied, hubv1.ReasonFailedOnSome, time.Minute, refused, healthyOn("a-1")))
	needs := g.Needs(10).Entries
	if len(needs) == 0 || needs[0].Of != "Deployment.apps shop/api" || needs[0].Reason != hubv1.ReasonForbidden || needs[0].Where != "1 of 2 clusters: a-2" {
		t.Errorf("got %+v", needs)
	}
}

func TestCopiesWithoutAPlacementAreNamedWithTheCommandThatRemovesThem(t *testing.T) {
	t.Parallel()
	orphan := failing("api", hubv1.ConditionScheduled, hubv1.ReasonPlacementGone, time.Minute, healthyOn("a-1"), healthyOn("a-2"))
	orphan.BindingStatus().Conditions[0].Status = metav1.ConditionTrue
	g := NewGatherer(nil)
	g.Add(orphan)
	needs := g.Needs(10).Entries
	if len(needs) != 1 || needs[0].State != ProblemWarning || needs[0].Where != "2 clusters" || needs[0].Do != "hansectl withdraw Deployment api -n shop" {
		t.Errorf("got %+v", needs)
	}
}

func TestObjectsWhoseRemovalIsHeldCountInItsEntry(t *testing.T) {
	t.Parallel()
	g := NewGatherer(matrixFleet())
	for _, name := range []string{"a", "b"} {
		b := failing(name, hubv1.ConditionScheduled, hubv1.ReasonNoClusterSelected, time.Hour, healthyOn("a-1"))
		b.BindingSpec().PlacementRef.Namespace, b.BindingSpec().PlacementRef.Name = "shop", map[string]string{"a": "held", "b": "other"}[name]
		g.Add(b)
	}
	g.AddPolicy("Placement shop/held", []metav1.Condition{{Type: hubv1.ConditionRemovalHeld, Status: metav1.ConditionTrue, Reason: "TooMany", Message: "1 copy would go"}})
	var got []string
	for _, p := range g.Needs(10).Entries {
		if p.Topic != TopicCluster {
			got = append(got, p.Of)
		}
	}
	if diff := cmp.Diff([]string{"Deployment.apps shop/b", "Placement shop/held"}, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}
