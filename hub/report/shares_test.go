package report

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

// replicas start one reporter for each cluster, with only that cluster in its shard. The first reporter leads. Each
// cluster gets a MemberCluster, because the leader itself writes the row of a cluster that has none.
func replicas(w *world, clusters ...string) []*world {
	w.t.Helper()
	for _, c := range clusters {
		w.cluster(c)
	}
	out := make([]*world, len(clusters))
	for i, c := range clusters {
		one := &world{t: w.t, client: w.client, namespace: w.namespace, gvk: w.gvk, fleet: newFakeFleet(), decisions: w.decisions, events: w.events, clock: w.clock, withdrawn: w.withdrawn}
		one.holds = func(cluster string) bool { return cluster == c }
		one.follows = i > 0
		one.start()
		out[i] = one
	}
	return out
}

// cluster creates a MemberCluster until the test ends, because other tests use fake members of the same name.
func (w *world) cluster(name string) {
	w.t.Helper()
	c := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Spec.Connection = hubv1.Connection{
		Type: hubv1.ConnectionDirect, Direct: &hubv1.DirectConnection{KubeconfigSecretRef: hubv1.SecretKeyRef{Name: "s", Key: "kubeconfig"}},
	}
	c.Spec.AllowedNamespaces.From = hubv1.NamespacesFromAll
	if err := w.client.Create(w.t.Context(), c); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := w.client.Delete(context.WithoutCancel(w.t.Context()), c); err != nil {
			w.t.Error(err)
		}
	})
}

func TestReplicasShareTheRowsOfABinding(t *testing.T) {
	w := newWorld(t, "Widget")
	w.clock = slowClock{time.Now()}
	w.decisions.scheduled = metav1.Condition{Status: metav1.ConditionTrue, Reason: hubv1.ReasonScheduled}
	all := replicas(w, "a", "b", "c")
	o := w.object("web", present("a"), present("b"), present("c"))
	bindingWrites, objectWrites := w.writes(&hubv1.ResourceBindingList{}), w.writes(w.objects())
	for i, cluster := range []string{"a", "b", "c"} {
		all[i].applied(o, cluster, hubv1.HealthHealthy, two)
	}
	b := w.until("all rows", func(s *hubv1.BindingStatus) bool {
		return healthyEverywhere(s) && is(hubv1.ConditionStatusWritten, metav1.ConditionTrue, hubv1.ReasonWritten)(s)
	})
	for _, one := range all {
		one.quiet()
	}
	if got := []int{bindingWrites(), objectWrites()}; got[0] > 3 || got[1] > 1 {
		t.Errorf("writes of binding and object: %v, want one of the binding by each replica and one of the object", got)
	}
	if got := w.status()["replicas"]; got != int64(6) {
		t.Errorf("replicas on the hub object: %v, want 6", got)
	}
	if diff := cmp.Diff(hubv1.BindingSummary{Desired: 3, Applied: 3, Healthy: 3}, b.Status.Summary); diff != "" {
		t.Error(diff)
	}
	if reported := w.events.reported(); len(reported) > 0 {
		t.Errorf("events of what the object's status says: %q", reported)
	}

	all[2].observe(o, "c", hubv1.HealthHealthy, three)
	w.eventually("the new sum", func() (bool, string) {
		got := w.status()["replicas"]
		return got == int64(7), fmt.Sprint(got)
	})
}

func TestManyFanOutsOfReplicas(t *testing.T) {
	const objects = 50
	w := newWorld(t, "Widget")
	w.decisions.scheduled = metav1.Condition{Status: metav1.ConditionTrue, Reason: hubv1.ReasonScheduled}
	all := replicas(w, "a", "b", "c")
	bindingWrites, objectWrites := w.writes(&hubv1.ResourceBindingList{}), w.writes(w.objects())
	for i := range objects {
		o := w.object(fmt.Sprint("web-", i), present("a"), present("b"), present("c"))
		for j, cluster := range []string{"a", "b", "c"} {
			all[j].applied(o, cluster, hubv1.HealthHealthy, two)
		}
	}
	w.eventually("every binding", func() (bool, string) {
		var list hubv1.ResourceBindingList
		if err := w.client.List(t.Context(), &list, client.InNamespace(w.namespace)); err != nil {
			return false, err.Error()
		}
		done := 0
		for i := range list.Items {
			if healthyEverywhere(&list.Items[i].Status) {
				done++
			}
		}
		return done == objects, fmt.Sprint(done, " done")
	})
	for _, one := range all {
		one.quiet()
	}
	t.Logf("%d writes of bindings, %d of objects for %d fan-outs", bindingWrites(), objectWrites(), objects)
	// One replica needs at most four writes, including the binding's creation. Each further replica may need one more.
	if got := bindingWrites() + objectWrites(); got > 5*objects {
		t.Errorf("%d writes of bindings and %d of objects for %d fan-outs by three replicas", bindingWrites(), objectWrites(), objects)
	}
}

func TestAWithdrawalIsConfirmedToTheLeaderThoughDecisionsGoOn(t *testing.T) {
	w := newWorld(t, "Widget")
	all := replicas(w, "a", "b")
	o := w.object("web", present("a"), present("b"))
	all[0].applied(o, "a", hubv1.HealthHealthy, two)
	all[1].applied(o, "b", hubv1.HealthHealthy, two)
	w.until("both rows", healthyEverywhere)

	w.change(func(b *hubv1.ResourceBinding) {
		b.Spec.Clusters[1] = hubv1.BindingTarget{
			Name: "b", State: hubv1.TargetAbsent,
			Absent: &hubv1.Absence{Reason: hubv1.ReasonNotSelected, UID: o.GetUID(), Policy: hubv1.RemovalDelete},
		}
	})
	withdrawn := func(s *hubv1.BindingStatus) bool {
		row := s.Row("b")
		return row != nil && row.Reason == hubv1.ReasonWithdrawn
	}
	all[1].record("b", member.Outcome{Applied: metav1.ConditionFalse, Reason: hubv1.ReasonWithdrawn, CopyState: member.CopyState{UID: "member"}})
	w.until("the confirmation", withdrawn)

	// The leader acts first on this second decision.
	b := w.change(func(b *hubv1.ResourceBinding) { b.Spec.Clusters = append(b.Spec.Clusters, present("c")) })
	w.until("the confirmation again", func(s *hubv1.BindingStatus) bool {
		return s.ObservedGeneration == b.Generation && s.Row("c") != nil && withdrawn(s)
	})
}

func TestWhichRowsAReplicaWrites(t *testing.T) {
	applied := hubv1.ClusterRow{Name: "a", Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy, Generation: 1}
	failed := hubv1.ClusterRow{Name: "a", Applied: metav1.ConditionFalse, Reason: hubv1.ReasonForbidden}
	withdrawn := hubv1.ClusterRow{Name: "a", Applied: metav1.ConditionFalse, Reason: hubv1.ReasonWithdrawn}
	others := hubv1.ClusterRow{Name: "b", Applied: metav1.ConditionTrue}
	tests := map[string]struct {
		leads         bool
		before, after []hubv1.ClusterRow
		decided       int64 // generation of the binding; the rows show generation 1
		want          bool
	}{
		"the leader writes all":                                 {leads: true, want: true},
		"a row of its own that changed":                         {before: []hubv1.ClusterRow{applied}, after: []hubv1.ClusterRow{failed}, want: true},
		"its first row":                                         {after: []hubv1.ClusterRow{applied, others}, want: true},
		"a row of another replica is not written":               {before: []hubv1.ClusterRow{applied}, after: []hubv1.ClusterRow{applied, others}},
		"a new decision is left to the leader":                  {before: []hubv1.ClusterRow{applied}, after: []hubv1.ClusterRow{applied}, decided: 2},
		"a withdrawal is confirmed for the decision of the day": {before: []hubv1.ClusterRow{withdrawn}, after: []hubv1.ClusterRow{withdrawn}, decided: 2, want: true},
		"and only once":                                         {before: []hubv1.ClusterRow{withdrawn}, after: []hubv1.ClusterRow{withdrawn}, decided: 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := &run{
				part: part{leads: tc.leads, elsewhere: map[string]bool{"b": true}},
				out:  computed{after: hubv1.BindingStatus{ObservedGeneration: max(tc.decided, 1), Clusters: tc.after}},
			}
			if got := r.mayWrite(&hubv1.BindingStatus{ObservedGeneration: 1, Clusters: tc.before}); got != tc.want {
				t.Errorf("writes: %v, want %v", got, tc.want)
			}
		})
	}
}
