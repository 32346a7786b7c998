package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestNothingIsWithdrawnBeforeItsKindIsListed(t *testing.T) { // not parallel: delays all withdrawals
	s := newScene(t, "unsynced", "eu", "sg")
	objects.change(s.id, func() {
		objects.unlisted.Insert(s.id.GroupKind(), schema.GroupKind{Group: "example.com", Kind: "Gadget"})
	})
	p := s.place("web", "eu", "sg")
	s.create(p)
	s.object()
	s.becomes("eu", "sg")
	s.join("us")
	s.edit(p, func() { p.Spec.Clusters = s.only("us") })
	s.becomes("eu", "sg", "us")
	s.eventually("the condition says what it waits for", func() error {
		c, _, _, _ := scheduler.Decision(s.id.BindingKey())
		if !strings.HasSuffix(c.Message, "; no copy is withdrawn yet: the hub has not listed the objects of this kind yet") {
			return fmt.Errorf("it says %q", c.Message)
		}
		return nil
	})
	objects.change(s.id, func() { objects.unlisted.Delete(s.id.GroupKind()) }) // the other unlisted kind delays nothing
	s.becomes("-eu NotSelected Delete", "-sg NotSelected Delete", "us")
}

func TestLifeOfAnObject(t *testing.T) {
	t.Parallel()
	s := newScene(t, "life", "eu", "sg")
	p := s.place("web", "eu", "sg")
	s.create(p)
	first := s.object()
	s.becomes("eu", "sg")
	b := s.binding()
	if !slices.Contains(b.Finalizers, hubv1.WithdrawFinalizer) || b.Generation != 1 || b.Spec.ObjectRef.UID != first || b.Spec.PlacementRef.UID != p.UID {
		t.Errorf("a new binding is %+v", b)
	}

	s.edit(p, func() { p.Spec.Clusters = s.only("sg") })
	s.becomes("-eu NotSelected Delete", "sg")
	s.edit(p, func() { p.Spec.Clusters = s.only("eu", "sg") })
	s.becomes("eu", "sg")
	s.edit(p, func() { p.Spec.Clusters, p.Spec.Deletion.WhenUnselected = s.only("sg"), hubv1.RemovalOrphan })
	s.becomes("-eu NotSelected Orphan", "sg")
	s.withdraws()
	s.becomes("sg")

	objects.remove(s.id)
	s.becomes("-sg ObjectDeleted Delete")
	second := s.object()
	s.becomes("-sg MadeAnew Delete") // the copy of the deleted object goes first
	s.withdraws()
	s.becomes("sg")
	if got := s.binding(); got.Spec.ObjectRef.UID != second || got.UID != b.UID || got.Annotations[objectSinceAnnotation] == "" {
		t.Errorf("the binding of an object that is back is %+v", got)
	}

	objects.remove(s.id)
	s.becomes("-sg ObjectDeleted Delete")
	s.withdraws()
	s.becomes("no binding")
	s.eventually("nothing is kept of it", func() error {
		if _, _, _, known := scheduler.Decision(s.id.BindingKey()); known {
			return errors.New("a decision is")
		}
		return nil
	})
}

func TestTheAPIServerIsNotAskedAboutAWithdrawalThatIsUnderWay(t *testing.T) {
	t.Parallel()
	s := newScene(t, "asked", "eu", "sg")
	s.create(s.place("web", "eu", "sg"))
	asked := func() int {
		objects.mu.Lock()
		defer objects.mu.Unlock()
		return objects.asked[s.id]
	}
	s.object()
	s.becomes("eu", "sg")
	objects.remove(s.id)
	s.becomes("-eu ObjectDeleted Delete", "-sg ObjectDeleted Delete")
	s.object()
	s.becomes("-eu MadeAnew Delete", "-sg MadeAnew Delete")
	s.withdraws()
	s.becomes("eu", "sg")
	first := asked()
	objects.remove(s.id)
	s.becomes("-eu ObjectDeleted Delete", "-sg ObjectDeleted Delete")
	// The scheduler asks Live about a missing object only if the cached binding has no Absent clusters in its spec yet.
	// The reconcile that ends a withdrawal sees the Absent clusters, and so do all later reconciles.
	s.withdraws("sg")
	s.becomes("-eu ObjectDeleted Delete")
	second := asked()
	if first == 0 || second == first {
		t.Errorf("about the first object, Live was asked %d times, with the second %d times", first, second)
	}
	s.withdraws()
	s.becomes("no binding")
	if got := asked(); got != second {
		t.Errorf("while the withdrawal was under way, Live was asked %d times more", got-second)
	}
}

func TestADecisionIsWrittenOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t, "once", "eu", "sg")
	p := s.place("web", "eu")
	s.create(p)
	s.object()
	s.becomes("eu")
	before := s.binding().ResourceVersion
	s.edit(p, func() { p.Spec.Apply.Adoption = hubv1.AdoptionAlways })
	u, _ := objects.Get(s.id)
	objects.set(s.id, u)
	// The later edit is decided last, so its result shows that the earlier edit has been decided, too.
	s.edit(p, func() { p.Spec.Priority = 7 })
	s.join("us")
	s.edit(p, func() { p.Spec.Suspend.Scheduling = true })
	s.decides(hubv1.ReasonSuspended)
	if after := s.binding().ResourceVersion; after != before {
		t.Errorf("the binding was written without a change of the decision: %s, %s", before, after)
	}
}

func TestAPlacementThatIsGoneWithdrawsNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t, "gone", "eu")
	p := s.place("web", "eu")
	p.Spec.Deletion.WhenDeleted = hubv1.RemovalOrphan
	s.create(p)
	s.object()
	s.becomes("eu")
	s.edit(p, func() { p.Spec.Apply.Mode = hubv1.ApplyReportOnly })
	s.eventually("the binding keeps how the placement wants copies to be written", func() error {
		if got := hubv1.LastSettings(s.binding()).Apply.Mode; got != hubv1.ApplyReportOnly {
			return fmt.Errorf("mode %q", got)
		}
		return nil
	})
	if err := hubClient.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	s.decides(hubv1.ReasonPlacementGone)
	s.becomes("eu")
	if got := hubv1.LastSettings(s.binding()).Apply.Mode; got != hubv1.ApplyReportOnly {
		t.Errorf("without its placement, the binding says mode %q", got)
	}
	s.eventually("the kind is wanted as long as it has bindings", func() error {
		objects.mu.Lock()
		defer objects.mu.Unlock()
		if !objects.wanted.Has(s.id.GroupKind()) {
			return fmt.Errorf("wanted are %v", objects.wanted)
		}
		return nil
	})
	objects.remove(s.id)
	s.becomes("-eu ObjectDeleted Orphan")
	// The scheduler stores a decision before it records the event about this decision. A later reconcile of the object
	// has written the binding, so the reconcile that records the event has ended.
	if diff := cmp.Diff([]string{hubv1.ReasonPlacementGone}, observed.of(s.id.Namespace)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestAPlacementTakesOverOnlyWithPreemption(t *testing.T) {
	t.Parallel()
	s := newScene(t, "preempt", "eu", "sg")
	s.create(s.place("web", "eu"))
	s.object()
	s.becomes("eu")
	p := s.place("first", "sg")
	p.Spec.Priority = 5
	s.create(p)
	s.eventually("the other placement is listed", func() error {
		if _, _, others, _ := scheduler.Decision(s.id.BindingKey()); fmt.Sprint(others) != "[Placement/first]" {
			return fmt.Errorf("listed are %q", others)
		}
		return nil
	})
	s.becomes("eu")
	s.edit(p, func() { p.Spec.Preemption = hubv1.PreemptionAlways })
	s.becomes("-eu NotSelected Delete", "sg")
}

func TestASuspendedPlacementKeepsItsDecision(t *testing.T) {
	t.Parallel()
	s := newScene(t, "suspend", "eu", "sg")
	p := s.place("web", "eu")
	s.create(p)
	s.object()
	s.becomes("eu")
	s.edit(p, func() { p.Spec.Suspend.Scheduling, p.Spec.Clusters = true, s.only("sg") })
	s.decides(hubv1.ReasonSuspended)
	s.becomes("eu")
	s.edit(p, func() { p.Spec.Suspend.Scheduling = false })
	s.becomes("-eu NotSelected Delete", "sg")
}

func TestALeavingClusterIsReleased(t *testing.T) {
	t.Parallel()
	s := newScene(t, "leaving", "eu", "sg")
	s.create(s.place("web", "eu", "sg"))
	s.object()
	s.becomes("eu", "sg")
	s.leave("eu")
	s.becomes("-eu ClusterLeaving Orphan", "sg")
	s.withdraws()
	s.becomes("sg")
}

func TestAMissingMemberCluster(t *testing.T) {
	t.Parallel()
	s := newScene(t, "missing", "eu", "sg")
	p := s.place("web", "eu", "sg")
	s.create(p)
	s.object()
	s.becomes("eu", "sg")
	s.vanish("eu")
	s.eventually("the decision knows", func() error {
		if c, _, _, _ := scheduler.Decision(s.id.BindingKey()); !strings.Contains(c.Message, "1 without a MemberCluster") {
			return errors.New(c.Message)
		}
		return nil
	})
	s.becomes("eu", "sg")
	objects.remove(s.id)
	s.becomes("-sg ObjectDeleted Delete")
	s.eventually("an event tells what was left behind", func() error {
		if got := observed.of(s.id.Namespace); !slices.Contains(got, "LeftBehind") {
			return fmt.Errorf("told was %q", got)
		}
		return nil
	})
}

func TestABindingDeletedByHandIsMadeAgain(t *testing.T) {
	t.Parallel()
	s := newScene(t, "byhand", "eu")
	s.create(s.place("web", "eu"))
	s.object()
	s.becomes("eu")
	before := s.binding()
	if err := hubClient.Delete(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	s.eventually("another binding is there", func() error {
		if b := s.binding(); b == nil || b.UID == before.UID {
			return errors.New("not yet")
		}
		return nil
	})
	s.becomes("eu")
}

func TestABindingIsKeptUntilItsNamespaceHasTakenTheObject(t *testing.T) {
	t.Parallel()
	s := newScene(t, "ending", "eu")
	s.create(s.place("web", "eu"))
	s.object()
	s.becomes("eu")
	before := s.binding()
	for _, o := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.id.Namespace}}, before} {
		if err := hubClient.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	s.eventually("the deletion is known", func() error {
		b := &hubv1.ResourceBinding{}
		if err := scheduler.opts.Client.Get(t.Context(), s.id.BindingKey(), b); err != nil || b.DeletionTimestamp == nil {
			return fmt.Errorf("not deleted (error: %w)", err)
		}
		return nil
	})
	if _, err := scheduler.Reconcile(t.Context(), s.id); err != nil {
		t.Fatal(err)
	}
	s.becomes("eu")
	objects.remove(s.id)
	s.becomes("-eu ObjectDeleted Delete")
	if b := s.binding(); b.UID != before.UID {
		t.Error("it is another binding")
	}
	s.withdraws()
	s.becomes("no binding")
}

func TestAClusterMayLeaveWhileAKindIsNotServed(t *testing.T) {
	t.Parallel()
	s := newScene(t, "leavekind", "eu", "sg")
	p := s.place("web", "eu", "sg")
	s.create(p)
	s.object()
	s.becomes("eu", "sg")
	// The cache still has the object. The API server does not serve its kind, so that Live cannot tell whether the object
	// exists.
	objects.change(s.id, func() { objects.undecided = objects.undecided.Union(sets.New(s.id)) })
	s.edit(p, func() { p.Spec.Clusters = s.only("eu") })
	s.leave("eu")
	s.becomes("-eu ClusterLeaving Orphan", "sg")
	s.decides(hubv1.ReasonTemplateMissing)
}

func TestAnObjectThatVanishesWithItsKindIsKept(t *testing.T) {
	t.Parallel()
	s := newScene(t, "nokind", "eu")
	s.create(s.place("web", "eu"))
	s.object()
	s.becomes("eu")
	objects.change(s.id, func() { objects.undecided = objects.undecided.Union(sets.New(s.id)); delete(objects.cached, s.id) })
	s.decides(hubv1.ReasonTemplateMissing)
	s.becomes("eu")
}

func TestACacheThatIsBehindWithdrawsNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t, "behind", "eu", "sg")
	web, other := s.place("web", "eu"), s.place("other", "sg")
	labelled("web")(web)
	labelled("other")(other)
	s.create(web)
	s.create(other)
	s.object()
	s.becomes("eu")
	changed := template("x")
	live, _ := objects.Get(s.id)
	changed.SetUID(live.GetUID())
	changed.SetNamespace(s.id.Namespace)
	changed.SetLabels(map[string]string{"app": "other"})
	objects.change(s.id, func() { objects.cached[s.id] = changed })
	s.becomes("eu", "sg")
	objects.change(s.id, func() { objects.live[s.id] = changed })
	s.becomes("-eu NotSelected Delete", "sg")
}

func TestAKindThatTheHubWouldRunIsRefused(t *testing.T) {
	t.Parallel()
	s := newScene(t, "refused", "eu")
	s.id = key{Group: "rbac.authorization.k8s.io", Kind: "Role", Namespace: s.id.Namespace, Name: "web"}
	p := s.place("web", "eu")
	p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{APIGroup: s.id.Group, Kind: s.id.Kind}}
	s.create(p)
	s.object()
	s.decides(hubv1.ReasonHubWouldRun)
	s.becomes("no binding")
	s.object()
	if !scheduler.Refused(s.id.GroupKind()) || scheduler.Refused(schema.GroupKind{Group: "example.com", Kind: "Widget"}) {
		t.Error("Refused says something else than the decision")
	}
	s.edit(p, func() { p.Spec.HubExecution = hubv1.HubExecutionAllowed })
	s.becomes("eu")
	// The scheduler stores a decision before it records the event about this decision. A later reconcile of the object
	// has written the binding, so the reconcile that records the event has ended.
	if diff := cmp.Diff([]string{hubv1.ReasonHubWouldRun}, observed.of(s.id.Namespace)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
