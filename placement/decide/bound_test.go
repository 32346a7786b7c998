package decide

import (
	"fmt"
	"strings"
	"testing"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// numbered returns n clusters, and their entries in a binding.
func numbered(n int) (clusters []*hubv1.MemberCluster, entries []hubv1.BindingTarget) {
	for i := range n {
		name := fmt.Sprintf("c%04d", i)
		clusters, entries = append(clusters, cluster(name)), append(entries, present(name))
	}
	return clusters, entries
}

// count returns the number of entries with a state.
func count(spec *hubv1.BindingSpec, state hubv1.TargetState) (n int) {
	for _, e := range spec.Clusters {
		if e.State == state {
			n++
		}
	}
	return n
}

func TestAnObjectWithMoreClustersThanABindingStoresGetsNone(t *testing.T) {
	t.Parallel()
	clusters, _ := numbered(hubv1.MaxTargets + 1)
	p := Decide(given{uid: "a", placements: only(policy("web")), clusters: clusters}.input())
	if p.Spec != nil || p.Status.Scheduled.Reason != hubv1.ReasonTooManyClusters {
		t.Fatalf("the plan is %v, want none, and the reason TooManyClusters", p.Status.Scheduled)
	}
	for _, number := range []string{"2000", "2001"} {
		if !strings.Contains(p.Status.Scheduled.Message, number) {
			t.Errorf("the message %q does not name %s", p.Status.Scheduled.Message, number)
		}
	}
}

func TestTheLargestDecisionIsStored(t *testing.T) {
	t.Parallel()
	clusters, _ := numbered(hubv1.MaxTargets)
	p := Decide(given{uid: "a", placements: only(policy("web")), clusters: clusters}.input())
	if p.Spec == nil || len(p.Spec.Clusters) != hubv1.MaxTargets {
		t.Fatalf("the plan is %v, want %d entries", p.Status.Scheduled, hubv1.MaxTargets)
	}
}

func TestOneClusterTooManyKeepsTheOthersAndRemovesCopies(t *testing.T) {
	t.Parallel()
	clusters, entries := numbered(hubv1.MaxTargets + 2)
	entries = entries[:hubv1.MaxTargets]
	names := make([]string, 0, len(clusters))
	for _, c := range clusters[1:] {
		names = append(names, c.Name)
	}
	p := Decide(given{uid: "a", binding: bound(entries...), placements: only(policy("web", named(names...))), clusters: clusters}.input())
	if got, want := count(p.Spec, hubv1.TargetPresent), hubv1.MaxTargets-1; got != want || p.Status.Scheduled.Reason != hubv1.ReasonTooManyClusters {
		t.Fatalf("%d clusters keep their copies with %v, want %d and TooManyClusters", got, p.Status.Scheduled, want)
	}
	if e := p.Spec.Target("c0000"); e == nil || e.State != hubv1.TargetAbsent {
		t.Errorf("the entry of the cluster that is not selected is %v, want Absent", e)
	}
}

func TestClustersAreReplacedAtTheLimit(t *testing.T) {
	t.Parallel()
	clusters, entries := numbered(hubv1.MaxTargets + 1)
	number := int32(hubv1.MaxTargets)
	clusters[0].Spec.Drain = &hubv1.DrainPolicy{}
	in := given{uid: "a", binding: bound(entries[:hubv1.MaxTargets]...), placements: only(policy("web", spreading(hubv1.SpreadPolicy{NumberOfClusters: &number}))), clusters: clusters}.input()
	p := Decide(in)
	if p.Spec.Target("c0000").State != hubv1.TargetEvicting || len(p.Spec.Clusters) != hubv1.MaxTargets+1 {
		t.Errorf("the plan has %d entries with %v, want a replacement beside the drained cluster", len(p.Spec.Clusters), p.Status.Scheduled)
	}
}
