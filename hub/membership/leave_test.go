package membership

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// bind creates a binding that names the clusters.
func (s scene) bind(namespace, name string, clusters ...string) hubv1.BindingObject {
	s.Helper()
	b := hubv1.NewBinding(types.NamespacedName{Namespace: namespace, Name: name})
	b.BindingSpec().ObjectRef = hubv1.ObjectReference{APIVersion: "example.com/v1", Kind: "Widget", Name: name, UID: "uid"}
	b.BindingSpec().Clusters = targets(clusters...)
	s.must(hub.Create(s.Context(), b))
	s.Cleanup(func() { _ = hub.Delete(context.WithoutCancel(s.Context()), b) })
	return b
}

func targets(clusters ...string) []hubv1.BindingTarget {
	var list []hubv1.BindingTarget
	for _, name := range clusters {
		list = append(list, hubv1.BindingTarget{Name: name, State: hubv1.TargetPresent})
	}
	return list
}

func (s scene) retarget(b hubv1.BindingObject, clusters ...string) {
	s.Helper()
	b.BindingSpec().Clusters = targets(clusters...)
	s.must(hub.Update(s.Context(), b))
}

func TestAClusterWithoutObjectsLeavesAtOnce(t *testing.T) {
	s := newScene(t, "leaves")
	s.ready("leaves-id")
	s.bind("default", "elsewhere", "another-cluster")
	s.must(hub.Delete(t.Context(), s.get()))
	s.gone()
	s.linked(nil)
}

func TestAClusterThatNeverConnectedLeavesAtOnce(t *testing.T) {
	s := newScene(t, "never")
	s.join()
	s.is(hubv1.ConditionReady, metav1.ConditionFalse, hubv1.ReasonSecretMissing, "")
	s.must(hub.Delete(t.Context(), s.get()))
	s.gone()
}

func TestAClusterLeavesAfterItsLastObject(t *testing.T) {
	s := newScene(t, "last")
	s.ready("last-id")
	namespaced := s.bind("default", "web", "another-cluster", s.name)
	whole := s.bind("", "web-class", s.name)
	s.must(hub.Delete(t.Context(), s.get()))
	s.is(hubv1.ConditionReady, metav1.ConditionTrue, hubv1.ReasonLeaving, "2 objects are left, such as Widget default/web")
	s.retarget(namespaced, "another-cluster")
	s.is(hubv1.ConditionReady, metav1.ConditionTrue, hubv1.ReasonLeaving, "1 object is left: Widget web-class")
	s.linked(&want{s.name, "last-id"})
	s.retarget(whole)
	s.gone()
	s.linked(nil)
}

func TestTheMessageNamesWhatDelaysTheRemainingObjects(t *testing.T) {
	const cluster = "c"
	entry := func(name string, state hubv1.TargetState, applied metav1.ConditionStatus, reason string) hubv1.BindingObject {
		b := hubv1.NewBinding(types.NamespacedName{Namespace: "default", Name: name})
		b.BindingSpec().ObjectRef = hubv1.ObjectReference{APIVersion: "example.com/v1", Kind: "Widget", Name: name, UID: "uid"}
		b.BindingSpec().Clusters = []hubv1.BindingTarget{{Name: cluster, State: state}}
		b.BindingStatus().Clusters = []hubv1.ClusterRow{{Name: cluster, Applied: applied, Reason: reason, Message: "words"}}
		return b
	}
	notYet := entry("not-yet", hubv1.TargetAbsent, metav1.ConditionTrue, hubv1.ReasonApplied)
	forbidden := entry("forbidden", hubv1.TargetAbsent, metav1.ConditionFalse, hubv1.ReasonForbidden)
	failing := entry("failing", hubv1.TargetPresent, metav1.ConditionFalse, hubv1.ReasonServerError)
	tests := map[string]struct {
		bindings []hubv1.BindingObject
		want     left
	}{
		"what is only not done yet has no reason": {[]hubv1.BindingObject{notYet}, left{count: 1, example: "Widget default/not-yet"}},
		"what is held up is the better example": {
			[]hubv1.BindingObject{notYet, forbidden, notYet}, left{count: 3, example: "Widget default/forbidden", heldUp: "Forbidden: words"},
		},
		"a row from before the cluster left says nothing": {[]hubv1.BindingObject{failing}, left{count: 1, example: "Widget default/failing"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got left
			for _, b := range tc.bindings {
				got.add(b, cluster)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(left{})); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAClusterThatIsAwaySaysWhatItsEndWaitsFor(t *testing.T) {
	tests := map[string]struct {
		leave hubv1.LeavePolicy
		words string
	}{
		"it waits":    {hubv1.LeavePolicy{}, "1 object is left: Widget default/it-waits: they are withdrawn when the cluster answers"},
		"it gives up": {hubv1.LeavePolicy{WhenUnreachable: hubv1.UnreachableAbandon, TimeoutSeconds: ptr.To[int32](60)}, "they are abandoned if the cluster does not answer by 2"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, strings.ReplaceAll(name, " ", "-"))
			s.ready(s.name, func(c *hubv1.MemberCluster) { c.Spec.Leave = tc.leave })
			b := s.bind("default", s.name, s.name)
			links.become(s.name, away(connected(s.name)))
			s.must(hub.Delete(t.Context(), s.get()))
			s.is(hubv1.ConditionReady, metav1.ConditionFalse, hubv1.ReasonUnreachable, tc.words)
			s.is(hubv1.ConditionReady, metav1.ConditionFalse, hubv1.ReasonUnreachable, "it refuses connections; the cluster leaves, and 1 object is left")
			s.unchanged("what is said already", func() {
				links.become(s.name, connecting)
				links.become(s.name, away(connected(s.name)))
			})
			s.retarget(b)
			s.gone()
		})
	}
}

func TestTheMessageOffersAbandonAfterAnHourWithoutAnObservation(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(ago time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(-ago)} }
	const offer, waits = "to abandon them, set spec.leave.whenUnreachable to Abandon", "they are withdrawn when the cluster answers"
	for name, tc := range map[string]struct {
		seen  *metav1.Time
		since time.Duration // how long Ready has been False
		words string
	}{
		"a second":                               {at(time.Second), 0, waits},
		"59 minutes":                             {at(59 * time.Minute), 59 * time.Minute, waits},
		"an hour":                                {at(time.Hour), time.Hour, offer},
		"an hour, and it has just lost its link": {at(time.Hour), 0, offer},
		"a cluster that was never observed":      {nil, 2 * time.Hour, offer},
		"one that joined just now":               {nil, time.Minute, waits},
	} {
		t.Run(name, func(t *testing.T) {
			c := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: now}}}
			c.Status.LastObservedTime = tc.seen
			c.Status.Conditions = []metav1.Condition{{
				Type: hubv1.ConditionReady, Status: metav1.ConditionFalse, Reason: hubv1.ReasonUnreachable, LastTransitionTime: *at(tc.since),
			}}
			describeRemaining(c, left{count: 1, example: "Widget w"}, now)
			if got := c.Status.Conditions[0].Message; !strings.Contains(got, tc.words) {
				t.Errorf("it says %q", got)
			}
		})
	}
}

func TestAClusterThatLeavesSaysWhatBecomesOfItsObjects(t *testing.T) {
	s := newScene(t, "deletes")
	s.ready("deletes-id", func(c *hubv1.MemberCluster) { c.Spec.Leave.Policy = hubv1.RemovalDelete })
	s.bind("default", "deleted-there", s.name)
	s.must(hub.Delete(t.Context(), s.get()))
	s.is(hubv1.ConditionReady, metav1.ConditionTrue, hubv1.ReasonLeaving, "its copies are deleted")
}

func TestAFinalizerTakenOffByHandEndsTheLink(t *testing.T) {
	s := newScene(t, "by-hand")
	s.ready("by-hand-id")
	s.bind("default", "by-hand", s.name)
	s.must(hub.Delete(t.Context(), s.get()))
	s.is(hubv1.ConditionReady, metav1.ConditionTrue, hubv1.ReasonLeaving, "")
	s.must(hub.Patch(t.Context(), s.get(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	s.gone()
	s.linked(nil)
}
