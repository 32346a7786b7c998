package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

const (
	two   = `{"replicas":2,"conditions":[{"type":"Ready","status":"True","reason":"AllUp"}]}`
	three = `{"replicas":3,"conditions":[{"type":"Ready","status":"True","reason":"AllUp"}]}`
)

func is(kind string, status metav1.ConditionStatus, reason string) func(*hubv1.BindingStatus) bool {
	return func(s *hubv1.BindingStatus) bool {
		c := meta.FindStatusCondition(s.Conditions, kind)
		return c != nil && c.Status == status && c.Reason == reason
	}
}

func healthyEverywhere(s *hubv1.BindingStatus) bool {
	return is(hubv1.ConditionHealthy, metav1.ConditionTrue, hubv1.ReasonHealthyEverywhere)(s)
}

func TestAFanOutCostsOneWriteOfEach(t *testing.T) {
	w := newWorld(t, "Widget")
	w.start()
	w.decisions.scheduled = metav1.Condition{Status: metav1.ConditionTrue, Reason: hubv1.ReasonScheduled, Message: "3 of 12 clusters"}
	o := w.object("web", present("a"), present("b"), present("c"))
	bindingWrites, objectWrites := w.writes(&hubv1.ResourceBindingList{}), w.writes(w.objects())

	for _, cluster := range []string{"a", "b", "c"} {
		w.applied(o, cluster, hubv1.HealthHealthy, two)
	}
	b := w.until("all rows", healthyEverywhere)
	w.quiet()

	if got := []int{bindingWrites(), objectWrites()}; !slices.Equal(got, []int{1, 1}) {
		t.Errorf("writes of binding and object: %v, want one of each", got)
	}
	if reported := w.events.reported(); len(reported) > 0 {
		t.Errorf("events of what the object's status says: %q", reported)
	}
	if diff := cmp.Diff(hubv1.BindingSummary{Desired: 3, Applied: 3, Healthy: 3}, b.Status.Summary); diff != "" {
		t.Error(diff)
	}
	if !is(hubv1.ConditionStatusWritten, metav1.ConditionTrue, hubv1.ReasonWritten)(&b.Status) || !is(hubv1.ConditionScheduled, metav1.ConditionTrue, hubv1.ReasonScheduled)(&b.Status) {
		t.Errorf("conditions: %+v", b.Status.Conditions)
	}
	if b.Status.Decision == nil || b.Status.Decision.Rejected[0].Count != 9 || !slices.Equal(b.Status.OtherPlacements, []string{"other"}) {
		t.Errorf("what scheduling said is not there: %+v", b.Status)
	}
	if got := w.status()["replicas"]; got != int64(6) {
		t.Errorf("replicas on the hub object: %v, want 6", got)
	}
}

func TestManyFanOutsAtOnce(t *testing.T) {
	const objects = 100
	w := newWorld(t, "Widget")
	var all []*unstructured.Unstructured
	for i := range objects {
		all = append(all, w.object(fmt.Sprint("web-", i), present("a"), present("b"), present("c")))
	}
	bindingWrites, objectWrites := w.writes(&hubv1.ResourceBindingList{}), w.writes(w.objects())
	// The reporter collects the changes of a binding for a limited time. It starts after all objects exist, because
	// creating them may take longer.
	w.start()
	for _, cluster := range []string{"a", "b", "c"} { // each member reports at a different time
		for _, o := range all {
			w.applied(o, cluster, hubv1.HealthHealthy, two)
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
	w.quiet()
	if got := bindingWrites() + objectWrites(); got > 3*objects {
		t.Errorf("%d writes of bindings and %d of objects for %d fan-outs", bindingWrites(), objectWrites(), objects)
	}
	if reported := w.events.reported(); len(reported) > 0 {
		t.Errorf("events of what the status of the objects says: %q", reported)
	}
	t.Logf("%d writes of bindings, %d of objects", bindingWrites(), objectWrites())
}

func TestHealthThatComesLaterCostsOneMoreWrite(t *testing.T) {
	w := newWorld(t, "Widget")
	w.start()
	o := w.object("web", present("a"), present("b"))
	bindingWrites := w.writes(&hubv1.ResourceBindingList{})
	for _, cluster := range []string{"a", "b"} {
		w.applied(o, cluster, hubv1.HealthProgressing, "")
	}
	w.until("progress", is(hubv1.ConditionApplied, metav1.ConditionTrue, hubv1.ReasonAppliedEverywhere))
	for _, cluster := range []string{"a", "b"} {
		w.observe(o, cluster, hubv1.HealthHealthy, three)
	}
	w.until("health", healthyEverywhere)
	w.quiet()
	if got := bindingWrites(); got != 2 {
		t.Errorf("%d writes of the binding, want 2", got)
	}
}

func TestARestartWritesNothing(t *testing.T) {
	w := newWorld(t, "Widget")
	stop := w.start()
	o := w.object("web", present("a"), present("b"))
	for _, cluster := range []string{"a", "b"} {
		w.applied(o, cluster, hubv1.HealthHealthy, two)
	}
	before := w.until("all rows", healthyEverywhere)
	w.quiet()
	stop()

	bindingWrites, objectWrites := w.writes(&hubv1.ResourceBindingList{}), w.writes(w.objects())
	reported := len(w.events.reported())
	// While the first links are being made, the members' states are not known.
	w.fleet.link("a", member.LinkState{Ready: metav1.ConditionUnknown})
	w.fleet.link("b", member.LinkState{Ready: metav1.ConditionUnknown})
	w.start()
	w.quiet()
	for _, cluster := range []string{"a", "b"} {
		w.fleet.link(cluster, member.LinkState{Ready: metav1.ConditionTrue})
		w.reporter.WakeCluster(cluster)
		w.applied(o, cluster, hubv1.HealthHealthy, two)
	}
	w.quiet()

	if got := []int{bindingWrites(), objectWrites(), len(w.events.reported()) - reported}; !slices.Equal(got, []int{0, 0, 0}) {
		t.Errorf("writes of binding and object, events: %v, want none", got)
	}
	after := w.until("the same rows", healthyEverywhere)
	if before.ResourceVersion != after.ResourceVersion {
		t.Errorf("the binding was written: %s", cmp.Diff(before.Status, after.Status))
	}
}

func TestADecisionThatComesBetweenIsNotLost(t *testing.T) {
	w := newWorld(t, "Widget")
	w.start()
	o := w.object("web", present("a"))
	key := w.id("web").BindingKey()
	w.decisions.mu.Lock()
	w.decisions.meanwhile = func() { // after the binding is read and before its status is written
		var b hubv1.ResourceBinding
		if err := w.client.Get(t.Context(), key, &b); err != nil {
			t.Error(err)
			return
		}
		b.Spec.Clusters = append(b.Spec.Clusters, present("b"))
		if err := w.client.Update(t.Context(), &b); err != nil {
			t.Error(err)
		}
	}
	w.decisions.mu.Unlock()
	w.applied(o, "a", hubv1.HealthHealthy, two)
	b := w.until("a row of the new target", func(s *hubv1.BindingStatus) bool { return s.Row("b") != nil })
	if b.Status.ObservedGeneration != b.Generation || b.Status.Row("a").Applied != metav1.ConditionTrue {
		t.Errorf("status: %+v", b.Status)
	}
	w.applied(o, "b", hubv1.HealthHealthy, two)
	w.until("all rows", healthyEverywhere)
}

func TestAClusterWhoseLinkWasEndedSaysWhy(t *testing.T) {
	w := newWorld(t, "Widget")
	w.start()
	cluster := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{GenerateName: "ended-"}}
	cluster.Spec.Connection = hubv1.Connection{
		Type: hubv1.ConnectionDirect, Direct: &hubv1.DirectConnection{KubeconfigSecretRef: hubv1.SecretKeyRef{Name: "s", Key: "kubeconfig"}},
	}
	cluster.Spec.AllowedNamespaces.From = hubv1.NamespacesFromAll
	ready := func(status metav1.ConditionStatus, reason string) {
		t.Helper()
		meta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{Type: hubv1.ConditionReady, Status: status, Reason: reason})
		if err := w.client.Status().Update(t.Context(), cluster); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.client.Create(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	w.fleet.link(cluster.Name, member.LinkState{Ready: metav1.ConditionTrue})
	ready(metav1.ConditionTrue, hubv1.ReasonConnected)
	o := w.object("web", present(cluster.Name))
	w.applied(o, cluster.Name, hubv1.HealthHealthy, two)
	w.until("all rows", healthyEverywhere)

	w.fleet.unlink(cluster.Name)
	w.reporter.WakeCluster(cluster.Name)
	ready(metav1.ConditionFalse, hubv1.ReasonSecretMissing)
	w.until("the row to say that there is no link", func(s *hubv1.BindingStatus) bool {
		row := s.Row(cluster.Name)
		return row.Applied == metav1.ConditionUnknown && row.Reason == hubv1.ReasonSecretMissing
	})
}

func TestAClusterThatIsAwayKeepsItsNumbers(t *testing.T) {
	w := newWorld(t, "Widget")
	w.start()
	o := w.object("web", present("a"), present("b"))
	for _, cluster := range []string{"a", "b"} {
		w.applied(o, cluster, hubv1.HealthHealthy, two)
	}
	w.until("all rows", healthyEverywhere)

	observed := time.Now().Add(-time.Minute).Truncate(time.Second)
	w.fleet.link("b", member.LinkState{Ready: metav1.ConditionFalse, Reason: hubv1.ReasonUnreachable, Message: "no watch data", LastObserved: observed})
	w.reporter.WakeCluster("b")
	b := w.until("the row of b to say that it is away", func(s *hubv1.BindingStatus) bool { return s.Row("b").Applied == metav1.ConditionUnknown })
	row := b.Status.Row("b")
	if row.Reason != hubv1.ReasonUnreachable || row.Hash != "hash" || row.LastObservedTime == nil || !row.LastObservedTime.Time.Equal(observed) {
		t.Errorf("row: %+v", row)
	}
	w.quiet()
	if got := w.status()["replicas"]; got != int64(4) {
		t.Errorf("replicas on the hub object: %v, want the last known 4", got)
	}
	reported := len(w.events.reported())

	w.fleet.link("b", member.LinkState{Ready: metav1.ConditionTrue})
	w.reporter.WakeCluster("b")
	w.applied(o, "b", hubv1.HealthHealthy, two)
	w.until("b to be back", healthyEverywhere)
	if got := w.events.reported()[reported:]; len(got) != 0 {
		t.Errorf("events for a link that came back: %v", got)
	}
}

func TestTheEventOfAFailureNamesClusterAndReason(t *testing.T) {
	w := newWorld(t, "Widget")
	w.start()
	o := w.object("web", present("a"), present("b"))
	w.applied(o, "a", hubv1.HealthHealthy, two)
	w.record("b", member.Outcome{
		Applied: metav1.ConditionFalse, Reason: hubv1.ReasonForbidden, Message: "grant create widgets",
	})
	b := w.until("the failure", is(hubv1.ConditionApplied, metav1.ConditionFalse, hubv1.ReasonFailedOnSome))
	if row := b.Status.Row("b"); row.Reason != hubv1.ReasonForbidden || row.Message != "grant create widgets" {
		t.Errorf("row: %+v", row)
	}
	w.quiet()
	if diff := cmp.Diff([]string{"Warning ApplyFailed web: failed on 1 cluster: b (Forbidden: grant create widgets)"}, w.events.reported()); diff != "" {
		t.Errorf("events: %s", diff)
	}
}

func TestDriftIsReportedOnceAMinute(t *testing.T) {
	w := newWorld(t, "Widget")
	w.start()
	o := w.object("web", present("a"))
	w.applied(o, "a", hubv1.HealthHealthy, two)
	w.until("all rows", healthyEverywhere)
	bindingWrites := w.writes(&hubv1.ResourceBindingList{})
	for range 3 {
		drifted := w.outcome(o)
		drifted.Wrote, drifted.Drifted = true, []member.FieldDrift{{Path: ".spec.replicas", Manager: "kubectl-edit"}}
		w.record("a", drifted)
		w.eventually("the first correction to be told", func() (bool, string) { return len(w.events.reported()) > 0, "" })
		w.quiet()
	}
	want := []string{"Normal DriftCorrected web: restored .spec.replicas on a after a change by kubectl-edit"}
	if diff := cmp.Diff(want, w.events.reported()); diff != "" {
		t.Errorf("events: %s", diff)
	}
	if got := bindingWrites(); got != 0 {
		t.Errorf("%d writes of the binding for rows that did not change", got)
	}
}

func TestAWithdrawalIsReported(t *testing.T) {
	w := newWorld(t, "Widget")
	w.start()
	o := w.object("web", present("a"), present("b"))
	for _, cluster := range []string{"a", "b"} {
		w.applied(o, cluster, hubv1.HealthHealthy, two)
	}
	w.until("all rows", healthyEverywhere)
	w.change(func(b *hubv1.ResourceBinding) {
		b.Spec.Clusters[1] = hubv1.BindingTarget{
			Name: "b", State: hubv1.TargetAbsent,
			Absent: &hubv1.Absence{Reason: hubv1.ReasonNotSelected, UID: o.GetUID(), Policy: hubv1.RemovalDelete},
		}
	})
	w.until("the row of b to say what is due", func(s *hubv1.BindingStatus) bool { return s.Row("b").Reason == hubv1.ReasonDeleting })
	w.record("b", member.Outcome{Applied: metav1.ConditionFalse, Reason: hubv1.ReasonWithdrawn, CopyState: member.CopyState{UID: "member"}})
	w.until("the row of b to say that it is done", func(s *hubv1.BindingStatus) bool { return s.Row("b").Reason == hubv1.ReasonWithdrawn })
	w.eventually("the event", func() (bool, string) {
		reported := w.events.reported()
		return slices.Contains(reported, "Normal Withdrawn web: withdrawn from 1 cluster: b"), cmp.Diff(nil, reported)
	})
	w.quiet()
	if got := w.status()["replicas"]; got != int64(2) {
		t.Errorf("replicas on the hub object: %v, want those of the one cluster that is left", got)
	}
}

// TestAWithdrawalThatLeftAnObjectAloneEnds: the member's watch still shows the object with the hub's labels after the
// withdrawal, as if a backup tool restored it.
func TestAWithdrawalThatLeftAnObjectAloneEnds(t *testing.T) {
	tests := map[string]func(*hubv1.ResourceBinding, types.UID){
		"one cluster is left": func(b *hubv1.ResourceBinding, uid types.UID) {
			b.Spec.Clusters[1] = leaving("b", hubv1.ReasonClusterLeaving, hubv1.RemovalOrphan, uid)
		},
		"the hub object is deleted": func(b *hubv1.ResourceBinding, uid types.UID) {
			b.Spec.Clusters = []hubv1.BindingTarget{leaving("b", hubv1.ReasonObjectDeleted, hubv1.RemovalDelete, uid)}
		},
	}
	for name, decide := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "Widget")
			w.start()
			o := w.object("web", present("a"), present("b"))
			for _, cluster := range []string{"a", "b"} {
				w.applied(o, cluster, hubv1.HealthHealthy, two)
			}
			w.until("all rows", healthyEverywhere)
			w.change(func(b *hubv1.ResourceBinding) { decide(b, o.GetUID()) })
			w.until("the row of b to say what is due", func(s *hubv1.BindingStatus) bool { return s.Row("b").Reason == hubv1.ReasonDeleting })
			w.record("b", member.Outcome{
				Applied: metav1.ConditionTrue, Reason: hubv1.ReasonWithdrawn, Message: "Widget web was left alone",
				CopyState: member.CopyState{UID: "member", ResourceVersion: "7"},
			})
			w.until("the row of b to say that it is done", func(s *hubv1.BindingStatus) bool {
				row := s.Row("b")
				return row.Reason == hubv1.ReasonWithdrawn && row.Message == "Widget web was left alone"
			})
			w.eventually("the event", func() (bool, string) {
				reported := w.events.reported()
				return slices.Contains(reported, "Normal Withdrawn web: withdrawn from 1 cluster: b (Widget web was left alone)"), cmp.Diff(nil, reported)
			})
		})
	}
}

func leaving(cluster, reason string, policy hubv1.RemovalPolicy, uid types.UID) hubv1.BindingTarget {
	return hubv1.BindingTarget{Name: cluster, State: hubv1.TargetAbsent, Absent: &hubv1.Absence{Reason: reason, UID: uid, Policy: policy}}
}

func TestWhereTheMergedStatusMustNotGo(t *testing.T) {
	foreign := func(t *testing.T, w *world, o *unstructured.Unstructured) {
		t.Helper()
		o.Object["status"] = map[string]any{"selector": "mine"}
		if err := w.client.Status().Update(t.Context(), o, client.FieldOwner("operator")); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct {
		kind    string
		hub     string
		prepare func(*testing.T, *world, *unstructured.Unstructured)
		want    string
		status  map[string]any
	}{
		"a CRD without a status subresource":         {kind: "Plain", want: hubv1.ReasonNoStatusSubresource},
		"a status that another manager writes":       {kind: "Widget", prepare: foreign, want: hubv1.ReasonStatusOwnedByOther, status: map[string]any{"selector": "mine"}},
		"an object that the hub itself runs":         {kind: "Widget", hub: "a", want: hubv1.ReasonStatusOwnedByOther},
		"a status that the API server does not take": {kind: "Strict", want: hubv1.ReasonStatusRefused},
		"a required field without a value":           {kind: "Demanding", want: hubv1.ReasonBindingOnly},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.kind)
			w.fleet.hub = tc.hub
			w.start()
			o := w.object("web", present("a"), present("b"))
			if tc.prepare != nil {
				tc.prepare(t, w, o)
			}
			for _, cluster := range []string{"a", "b"} {
				w.applied(o, cluster, hubv1.HealthHealthy, three)
			}
			w.until("the reason "+tc.want, is(hubv1.ConditionStatusWritten, metav1.ConditionFalse, tc.want))
			w.quiet()
			if diff := cmp.Diff(tc.status, w.status()); diff != "" {
				t.Errorf("status of the hub object: %s", diff)
			}
		})
	}
}

func TestAPlacementSaysHowFieldsAreMerged(t *testing.T) {
	w := newWorld(t, "Widget")
	w.start()
	o := w.object("web", present("a"), present("b"))
	settings := hubv1.PlacementSpec{StatusAggregation: hubv1.StatusAggregation{
		Reducers: []hubv1.StatusReducer{{Path: "/status/replicas", Reducer: hubv1.ReducerMax}, {Path: "/status/nowhere", Reducer: hubv1.ReducerCEL, Expression: "x"}},
	}}
	w.change(func(b *hubv1.ResourceBinding) {
		b.Annotations = map[string]string{hubv1.SettingsAnnotation: settings.Settings()}
	})
	w.applied(o, "a", hubv1.HealthHealthy, two)
	w.applied(o, "b", hubv1.HealthHealthy, three)
	w.until("the status on the object", is(hubv1.ConditionStatusWritten, metav1.ConditionTrue, hubv1.ReasonWritten))
	w.until("the rule that cannot be followed", func(s *hubv1.BindingStatus) bool {
		c := meta.FindStatusCondition(s.Conditions, hubv1.ConditionStatusWritten)
		return c.Message == "left out: nowhere, selector; statusAggregation.reducers[1].expression: line 1, column 1: undeclared reference to 'x'"
	})
	if got := w.status()["replicas"]; got != int64(3) {
		t.Errorf("replicas on the hub object: %v, want the most of any cluster", got)
	}
}

func TestARefusedStatusIsSentAgainWhenTheObjectChanges(t *testing.T) {
	w := newWorld(t, "Strict")
	w.start()
	o := w.object("web", present("a"), present("b"))
	for _, cluster := range []string{"a", "b"} {
		w.applied(o, cluster, hubv1.HealthHealthy, three)
	}
	w.until("the refusal", is(hubv1.ConditionStatusWritten, metav1.ConditionFalse, hubv1.ReasonStatusRefused))

	if err := w.client.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":2}}`))); err != nil {
		t.Fatal(err)
	}
	for _, cluster := range []string{"a", "b"} {
		w.applied(o, cluster, hubv1.HealthHealthy, two)
	}
	w.until("the status to be taken", is(hubv1.ConditionStatusWritten, metav1.ConditionTrue, hubv1.ReasonWritten))
	if got := w.status()["replicas"]; got != int64(4) {
		t.Errorf("replicas on the hub object: %v, want 4", got)
	}
}

func TestARefusedStatusLeavesNoOldOneAndDoesNotHoldUpTheNext(t *testing.T) {
	w := newWorld(t, "Strict")
	w.start()
	o := w.object("web", present("a"), present("b"))
	w.applied(o, "a", hubv1.HealthHealthy, two)
	w.applied(o, "b", hubv1.HealthHealthy, two)
	w.until("the status that is taken", is(hubv1.ConditionStatusWritten, metav1.ConditionTrue, hubv1.ReasonWritten))

	w.applied(o, "b", hubv1.HealthHealthy, three)
	w.until("the refusal", is(hubv1.ConditionStatusWritten, metav1.ConditionFalse, hubv1.ReasonStatusRefused))
	if got := w.status(); len(got) != 0 {
		t.Errorf("the hub object still says %v", got)
	}

	w.applied(o, "b", hubv1.HealthHealthy, two)
	w.until("the next status to be taken", is(hubv1.ConditionStatusWritten, metav1.ConditionTrue, hubv1.ReasonWritten))
	if got := w.status()["replicas"]; got != int64(4) {
		t.Errorf("replicas on the hub object: %v, want 4", got)
	}
}

func TestAPlacementCanKeepTheStatusInTheBinding(t *testing.T) {
	w := newWorld(t, "Widget")
	w.start()
	p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "p"}}
	p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{APIGroup: w.gvk.Group, Kind: w.gvk.Kind}}
	p.Spec.Clusters.LabelSelector = &metav1.LabelSelector{}
	if err := w.client.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	o := w.object("web", present("a"))
	w.change(func(b *hubv1.ResourceBinding) {
		b.Spec.PlacementRef = &hubv1.PlacementReference{Kind: "Placement", Namespace: w.namespace, Name: "p", UID: p.UID, Generation: 1}
	})
	w.applied(o, "a", hubv1.HealthHealthy, two)
	w.until("the status on the object", is(hubv1.ConditionStatusWritten, metav1.ConditionTrue, hubv1.ReasonWritten))

	p.Spec.StatusAggregation.Mode = hubv1.StatusBindingOnly
	if err := w.client.Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	w.until("the status in the binding only", is(hubv1.ConditionStatusWritten, metav1.ConditionFalse, hubv1.ReasonBindingOnly))
	if got := w.status(); len(got) != 0 {
		t.Errorf("the hub object still says %v", got)
	}

	// After the placement is deleted, the settings that the scheduler copied into the binding still apply.
	w.change(func(b *hubv1.ResourceBinding) {
		b.Annotations = map[string]string{hubv1.SettingsAnnotation: p.Spec.Settings()}
	})
	if err := w.client.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	w.observe(o, "a", hubv1.HealthHealthy, three)
	w.until("the new numbers", func(s *hubv1.BindingStatus) bool {
		return strings.Contains(string(s.Row("a").Observed.Raw), `"replicas":3`)
	})
	if got := w.status(); len(got) != 0 {
		t.Errorf("the hub object says %v again", got)
	}
}

// TestADeploymentOnTheHubReadsAsRolledOut writes to a real API server, which validates the counts and adds zeros.
func TestADeploymentOnTheHubReadsAsRolledOut(t *testing.T) {
	rolledOut := func(n int) string {
		return fmt.Sprintf(`{"observedGeneration":1,"replicas":%[1]d,"updatedReplicas":%[1]d,"readyReplicas":%[1]d,"availableReplicas":%[1]d,`+
			`"conditions":[{"type":"Available","status":"True","reason":"MinimumReplicasAvailable"},`+
			`{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable"}]}`, n)
	}
	stateful := func(n int) string {
		return fmt.Sprintf(`{"observedGeneration":1,"replicas":%[1]d,"updatedReplicas":%[1]d,"readyReplicas":%[1]d,"currentReplicas":%[1]d,"availableReplicas":%[1]d}`, n)
	}
	daemons := func(n int) string {
		return fmt.Sprintf(`{"observedGeneration":1,"desiredNumberScheduled":%[1]d,"currentNumberScheduled":%[1]d,"updatedNumberScheduled":%[1]d,`+
			`"numberReady":%[1]d,"numberAvailable":%[1]d,"numberMisscheduled":0}`, n)
	}
	replicaSet := func(n int) string {
		return fmt.Sprintf(`{"observedGeneration":1,"replicas":%[1]d,"fullyLabeledReplicas":%[1]d,"readyReplicas":%[1]d,"availableReplicas":%[1]d}`, n)
	}
	for kind, observed := range map[string]func(int) string{"Deployment": rolledOut, "StatefulSet": stateful, "DaemonSet": daemons, "ReplicaSet": replicaSet} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t, kind)
			w.gvk = appsv1.SchemeGroupVersion.WithKind(kind)
			stop := w.start()
			labels := map[string]any{"app": "web"}
			w.spec = map[string]any{
				"selector": map[string]any{"matchLabels": labels},
				"template": map[string]any{
					"metadata": map[string]any{"labels": labels},
					"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": "example.org/web:1"}}},
				},
			}
			o := w.object("web", present("a"), present("b"))
			w.applied(o, "a", hubv1.HealthHealthy, observed(2))
			w.applied(o, "b", hubv1.HealthHealthy, observed(5))
			w.until("the status on the object", is(hubv1.ConditionStatusWritten, metav1.ConditionTrue, hubv1.ReasonWritten))
			onHub := w.read()
			result, err := kstatus.Compute(onHub)
			if err != nil || result.Status != kstatus.CurrentStatus {
				t.Errorf("kstatus reads %v as %+v (%v), want Current", onHub.Object["status"], result, err)
			}
			// A restarted hub merges the same status from the same rows, and writes nothing.
			w.quiet()
			stop()
			version := w.read().GetResourceVersion()
			w.start()
			w.applied(o, "a", hubv1.HealthHealthy, observed(2))
			w.applied(o, "b", hubv1.HealthHealthy, observed(5))
			w.quiet()
			if again := w.read(); again.GetResourceVersion() != version {
				t.Errorf("the restart wrote to the hub object: %v, before %v", again.Object["status"], onHub.Object["status"])
			}
		})
	}
}
