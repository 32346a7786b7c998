package rollup

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

// goneAway changes the row to that of an unreachable cluster.
func goneAway(r *hubv1.ClusterRow) {
	r.Applied, r.Health, r.Reason, r.Message = metav1.ConditionUnknown, hubv1.HealthUnknown, hubv1.ReasonUnreachable, "no answer"
	r.LastObservedTime = &earlier
}

func TestRowsOfClustersThatGoAndComeBack(t *testing.T) {
	lost := Fact{LinkReason: hubv1.ReasonUnreachable, LinkMessage: "no answer", LastObserved: earlier.Time}
	inGrace := lost
	inGrace.InGrace = true
	unreportedSince := Fact{LinkReason: hubv1.ReasonUnreachable, LinkMessage: "no answer"}
	tests := map[string]struct {
		previous *hubv1.ClusterRow
		target   hubv1.BindingTarget
		fact     Fact
		want     *hubv1.ClusterRow
	}{
		"a cluster that is away for a moment changes nothing": {
			previous: held(), target: shallHold, fact: inGrace, want: held(),
		},
		"but what it holds is not what is desired after a change": {
			previous: held(func(r *hubv1.ClusterRow) { r.Generation = 6 }), target: shallHold, fact: inGrace,
			want: held(func(r *hubv1.ClusterRow) {
				r.Generation, r.Applied, r.Reason, r.Message = 6, metav1.ConditionUnknown, hubv1.ReasonPending, "generation 7 is not applied yet; the cluster has generation 6"
			}),
		},
		"one that was away stays so when its link is lost anew": {
			previous: held(goneAway), target: shallHold, fact: inGrace, want: held(goneAway),
		},
		"one that nobody has heard since the start is as of when its row was made": {
			previous: held(), target: shallHold, fact: unreportedSince, want: held(goneAway),
		},
		"one that never held anything is as of no time": {
			target: shallHold, fact: unreportedSince,
			want: &hubv1.ClusterRow{Name: "a", Applied: metav1.ConditionUnknown, Health: hubv1.HealthUnknown, Reason: hubv1.ReasonUnreachable, Message: "no answer"},
		},
		"a link that is back says nothing yet": {
			previous: held(goneAway), target: shallHold, fact: Fact{Connected: true}, want: held(goneAway),
		},
		"the numbers of a copy that was confirmed are of before until the watch has shown it": {
			previous: held(goneAway), target: shallHold, fact: Fact{Connected: true, Outcome: confirmed()},
			want: held(goneAway, func(r *hubv1.ClusterRow) {
				r.Applied, r.Reason, r.Message = metav1.ConditionTrue, hubv1.ReasonPending, notShown
			}),
		},
		"also if a change was waiting for it": {
			previous: held(goneAway), target: shallHold,
			fact: Fact{Connected: true, Outcome: confirmed(func(o *member.Outcome) { o.Digest, o.Hash = "new", "new" })},
			want: held(goneAway, func(r *hubv1.ClusterRow) {
				r.Applied, r.Reason, r.Message, r.Digest, r.Hash = metav1.ConditionTrue, hubv1.ReasonPending, notShown, "new", "new"
			}),
		},
		"but not those of another copy": {
			previous: held(goneAway), target: shallHold,
			fact: Fact{Connected: true, Outcome: confirmed(func(o *member.Outcome) { o.UID = "member-2" })},
			want: held(func(r *hubv1.ClusterRow) {
				r.UID, r.Health, r.Reason, r.Message, r.Observed = "member-2", hubv1.HealthProgressing, hubv1.ReasonPending, notShown, nil
			}),
		},
		"a refusal after the return keeps them, too": {
			previous: held(goneAway), target: shallHold, fact: Fact{Connected: true, Outcome: refusedBy(hubv1.ReasonForbidden)},
			want: held(goneAway, func(r *hubv1.ClusterRow) {
				r.Applied, r.Reason, r.Message = metav1.ConditionFalse, hubv1.ReasonForbidden, "do something"
			}),
		},
		"what the watch has shown is live": {
			previous: held(goneAway), target: shallHold, fact: Fact{Connected: true, Synced: true, Outcome: confirmed(), Observation: seen()}, want: held(),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var previous hubv1.BindingStatus
			if tc.previous != nil {
				previous.Clusters = []hubv1.ClusterRow{*tc.previous}
			}
			in := input(tc.target, &tc.fact)
			got, _ := Status(previous, in)
			tc.want.LastTransitionTime = got.Clusters[0].LastTransitionTime
			if diff := cmp.Diff([]hubv1.ClusterRow{*tc.want}, got.Clusters); diff != "" {
				t.Errorf("row (-want +got):\n%s", diff)
			}
			in.Now = metav1.NewTime(noon.Add(time.Hour))
			again, _ := Status(got, in)
			if diff := cmp.Diff(got, again); diff != "" {
				t.Errorf("the same facts again change the status:\n%s", diff)
			}
		})
	}
}

var seenPrometheus = seen(func(o *member.Observation) {
	o.Observed = []byte(`{"availableReplicas":3,"conditions":[{"type":"Available","status":"True"}],"paused":false,"replicas":3,"unavailableReplicas":0,"updatedReplicas":3}`)
})

// hubObject7 is a Prometheus at generation 7, with the result of the last merge as its status.
type hubObject7 struct {
	schema   Schema
	template *unstructured.Unstructured
}

func newHubObject7(t *testing.T) hubObject7 {
	t.Helper()
	f := load(t, "prometheus")
	f.template.SetGeneration(7)
	return hubObject7{f.schema, f.template}
}

// fresh returns the same object without a status.
func (o hubObject7) fresh() hubObject7 {
	o.template = o.template.DeepCopy()
	delete(o.template.Object, "status")
	return o
}

func (o hubObject7) merge(t *rapid.T, in Input, rows []hubv1.ClusterRow) map[string]any {
	status, _, err := MergeStatus(o.schema, Rules{}, o.template, rows, in.Targets, in.Now)
	if err != nil {
		t.Fatal(err)
	}
	o.template.Object["status"] = status
	return status
}

// TestLinksThatFlickerChangeNothing interrupts the connections to the clusters of a healthy fleet in random order,
// always for less than the grace time. The statuses of the binding and of the hub object must not change.
func TestLinksThatFlickerChangeNothing(t *testing.T) {
	up := Fact{Connected: true, Synced: true, Outcome: confirmed(), Observation: seenPrometheus}
	moments := map[string]Fact{
		"up":                       up,
		"down":                     {LinkReason: hubv1.ReasonUnreachable, LinkMessage: "refused", InGrace: true},
		"down for another reason":  {LinkReason: hubv1.ReasonUnauthorized, LinkMessage: "401", LastObserved: noon.Time, InGrace: true},
		"back, and nothing done":   {Connected: true, Synced: true, Observation: seenPrometheus},
		"back with a new watch":    {Connected: true},
		"confirmed by a new watch": {Connected: true, Outcome: confirmed()},
	}
	prometheus := newHubObject7(t)
	rapid.Check(t, func(t *rapid.T) {
		object := prometheus.fresh()
		in := fleet(rapid.IntRange(1, 5).Draw(t, "clusters"), 0)
		for name := range in.Facts {
			in.Facts[name] = up
		}
		first, rows := Status(hubv1.BindingStatus{}, in)
		reported := object.merge(t, in, rows)
		status := first
		for range rapid.IntRange(1, 20).Draw(t, "moments") {
			in.Now = metav1.NewTime(in.Now.Add(time.Second))
			for _, target := range in.Targets {
				in.Facts[target.Name] = moments[rapid.SampledFrom([]string{
					"up", "down", "down for another reason", "back, and nothing done", "back with a new watch", "confirmed by a new watch",
				}).Draw(t, target.Name)]
			}
			if status, rows = Status(status, in); cmp.Diff(first, status) != "" {
				t.Fatalf("the status changed:\n%s", cmp.Diff(first, status))
			}
			if diff := cmp.Diff(reported, object.merge(t, in, rows)); diff != "" {
				t.Fatalf("the hub object's status changed:\n%s", diff)
			}
		}
	})
}

// TestClustersThatAreAwayNeverMakeTheRestLookWorse makes clusters of a healthy fleet unreachable and reachable in
// random order. Sums must not change. A good condition may become Unknown, but never False.
func TestClustersThatAreAwayNeverMakeTheRestLookWorse(t *testing.T) {
	moments := []Fact{
		{Connected: true, Synced: true, Outcome: confirmed(), Observation: seenPrometheus},
		{LinkReason: hubv1.ReasonUnreachable, LinkMessage: "refused", LastObserved: earlier.Time},
		{LinkReason: hubv1.ReasonForbidden, LinkMessage: "403", LastObserved: earlier.Time},
		{Connected: true, Synced: true, Observation: seenPrometheus},
		{Connected: true},
		{Connected: true, Outcome: confirmed()},
	}
	prometheus := newHubObject7(t)
	rapid.Check(t, func(t *rapid.T) {
		object := prometheus.fresh()
		in := fleet(rapid.IntRange(1, 5).Draw(t, "clusters"), 0)
		for name := range in.Facts {
			in.Facts[name] = moments[0]
		}
		status, rows := Status(hubv1.BindingStatus{}, in)
		reported := object.merge(t, in, rows)
		for range rapid.IntRange(1, 20).Draw(t, "moments") {
			for _, target := range in.Targets {
				in.Facts[target.Name] = rapid.SampledFrom(moments).Draw(t, target.Name)
			}
			status, rows = Status(status, in)
			for _, c := range status.Conditions {
				if c.Status == metav1.ConditionFalse {
					t.Fatalf("%s is False: %s: %s", c.Type, c.Reason, c.Message)
				}
			}
			healthy := meta.FindStatusCondition(status.Conditions, hubv1.ConditionHealthy)
			if n := status.Summary.Healthy; 0 < n && n < status.Summary.Desired && healthy.Reason != hubv1.ReasonPartiallyUnknown {
				t.Fatalf("%d of %d are healthy and the others away: %+v", n, status.Summary.Desired, healthy)
			}
			now := object.merge(t, in, rows)
			if diff := cmp.Diff(reported["replicas"], now["replicas"]); diff != "" {
				t.Fatalf("the sum changed:\n%s", diff)
			}
			if available := find(now, "Available"); available["status"] == "False" {
				t.Fatalf("Available is False: %v", available)
			}
		}
	})
}
