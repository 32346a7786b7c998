package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// bindings returns the bindings of the scene's namespace.
func (s *scene) bindings() []hubv1.ResourceBinding {
	s.t.Helper()
	var list hubv1.ResourceBindingList
	if err := hubClient.List(s.t.Context(), &list, client.InNamespace(s.id.Namespace)); err != nil {
		s.t.Fatal(err)
	}
	return list.Items
}

// counts returns three numbers of items in spec.clusters of all bindings. absent counts the items that are Absent. held
// counts the items whose removal is held, and present counts all others.
func (s *scene) counts() (present, held, absent int) {
	s.t.Helper()
	for _, b := range s.bindings() {
		for _, e := range b.Spec.Clusters {
			switch {
			case e.Absent != nil:
				absent++
			case e.Removal != nil:
				held++
			default:
				present++
			}
		}
	}
	return present, held, absent
}

func (s *scene) counting(what string, present, held, absent int) {
	s.t.Helper()
	s.within(5*time.Minute, what, func() error {
		if p, h, a := s.counts(); p != present || h != held || a != absent {
			return fmt.Errorf("%d entries are Present, %d held, %d Absent; want %d, %d and %d", p, h, a, present, held, absent)
		}
		return nil
	})
}

// neverAbsent fails the test when a cluster in spec.clusters of a binding of the scene becomes Absent. It watches until
// the returned function is called.
func (s *scene) neverAbsent() (off func()) {
	s.t.Helper()
	d, err := dynamic.NewForConfig(hubConfig)
	if err != nil {
		s.t.Fatal(err)
	}
	w, err := d.Resource(hubv1.GroupVersion.WithResource("resourcebindings")).Namespace(s.id.Namespace).Watch(s.t.Context(), metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range w.ResultChan() {
			if e.Type != apiwatch.Error && slices.ContainsFunc(entriesIn(e), func(state string) bool { return state == string(hubv1.TargetAbsent) }) {
				s.t.Errorf("an Absent entry was written")
			}
		}
	}()
	return func() { w.Stop(); <-done }
}

func entriesIn(e apiwatch.Event) []string {
	var out []string
	u, ok := e.Object.(interface{ UnstructuredContent() map[string]any })
	if !ok {
		return nil
	}
	spec, _ := u.UnstructuredContent()["spec"].(map[string]any)
	clusters, _ := spec["clusters"].([]any)
	for _, c := range clusters {
		entry, _ := c.(map[string]any)
		state, _ := entry["state"].(string)
		out = append(out, state)
	}
	return out
}

// holds waits until the scheduler reports that it holds removals of the placement web.
func (s *scene) holds() *hubv1.RemovalHeld {
	s.t.Helper()
	return s.holdsOf("Placement", "web")
}

// holdsOf waits until the scheduler reports that it holds removals of an object of this kind.
func (s *scene) holdsOf(kind, name string) *hubv1.RemovalHeld {
	s.t.Helper()
	var held *hubv1.RemovalHeld
	s.eventually("removals are held", func() error {
		var c *metav1.Condition
		if held, c = scheduler.Removal(kind, s.id.Namespace, name, nil); held == nil || c.Status != metav1.ConditionTrue {
			return fmt.Errorf("held are %+v, the condition is %+v", held, c)
		}
		return nil
	})
	return held
}

func (s *scene) confirmRemoval(placement, id string) {
	s.t.Helper()
	p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: s.id.Namespace, Name: placement}}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, hubv1.ConfirmRemovalAnnotation, id)
	if err := hubClient.Patch(s.t.Context(), p, client.RawPatch(types.MergePatchType, patch)); err != nil {
		s.t.Fatal(err)
	}
}

// byTier returns a placement that selects the clusters of the scene with the label tier: prod.
func (s *scene) byTier(name string) *hubv1.Placement {
	p := s.place(name)
	p.Spec.Clusters = hubv1.ClusterSelection{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"scene": s.id.Namespace, "tier": "prod"}}}
	return p
}

func TestAWrongLabelOnAllClustersRemovesNothingUntilItIsConfirmed(t *testing.T) {
	t.Parallel()
	const objects = 10
	s := newScene(t, "wronglabel", "eu", "sg", "us")
	label := func(tier string) {
		for _, c := range []string{"eu", "sg", "us"} {
			s.label(c, map[string]any{"scene": s.id.Namespace, "tier": tier})
		}
	}
	label("prod")
	s.create(s.byTier("web"))
	s.many(0, objects)
	s.counting("all clusters have all objects", 3*objects, 0, 0)
	off := s.neverAbsent()
	label("prdo")
	s.counting("all copies are held", 0, 3*objects, 0)
	held := s.holds()
	if held.Copies != 3*objects || len(held.Clusters) != 3 {
		t.Errorf("held is %+v", held)
	}
	// The test waits, because a decision is published only after the binding is written.
	s.eventually("the decision says why", func() error {
		if c, _, _, _ := scheduler.Decision(s.nth(0).BindingKey()); c.Reason != hubv1.ReasonNoClusterSelected {
			return fmt.Errorf("it is %+v", c)
		}
		return nil
	})

	label("prod")
	s.counting("what is put right is held no more", 3*objects, 0, 0)
	s.eventually("the placement says so", func() error {
		if held, c := scheduler.Removal("Placement", s.id.Namespace, "web", held); held != nil || c == nil || c.Reason != hubv1.ReasonRemovalCancelled {
			return fmt.Errorf("held are %+v, the condition is %+v", held, c)
		}
		return nil
	})

	label("prdo")
	s.counting("all copies are held again", 0, 3*objects, 0)
	again := s.holds()
	if again.ID == held.ID {
		t.Error("another removal has the id of the one before")
	}
	off()
	s.confirmRemoval("web", again.ID)
	began := time.Now()
	s.counting("what is confirmed goes", 0, 0, 3*objects)
	t.Logf("after %s all were Absent", time.Since(began).Round(10*time.Millisecond))
	for _, want := range []string{hubv1.ReasonRemovalHeld, hubv1.ReasonRemovalCancelled, hubv1.ReasonRemovalConfirmed, hubv1.ReasonNoClusterSelected} {
		s.eventually("there is an event "+want, func() error {
			if got := observed.of(s.id.Namespace); !slices.Contains(got, want) {
				return fmt.Errorf("there are %v", got)
			}
			return nil
		})
	}
}

func TestAHundredSmallPlacementsUnderOneWrongLabelLoseNothing(t *testing.T) {
	t.Parallel()
	const placements = 100
	s := newScene(t, "small", "eu", "sg", "us", "other")
	for _, c := range []string{"eu", "sg", "us", "other"} {
		s.label(c, map[string]any{"scene": s.id.Namespace, "tier": "prod"})
	}
	for i := range placements {
		p := s.byTier(fmt.Sprint("p", i))
		labelled(fmt.Sprint("app", i))(p)
		s.create(p)
		s.labelledObject(i)
	}
	s.counting("all clusters have all objects", 4*placements, 0, 0)
	off := s.neverAbsent()
	for _, c := range []string{"eu", "sg", "us"} { // the fourth cluster keeps a copy of each object
		s.label(c, map[string]any{"tier": "prdo"})
	}
	s.counting("all copies are held but those of one cluster", placements, 3*placements, 0)
	off()
}

func (s *scene) labelledObject(i int) {
	u := template(types.UID(fmt.Sprint(s.id.Namespace, i)))
	u.SetNamespace(s.id.Namespace)
	u.SetName(s.nth(i).Name)
	u.SetCreationTimestamp(metav1.Now())
	u.SetLabels(map[string]string{"app": fmt.Sprint("app", i)})
	objects.set(s.nth(i), u)
}

func TestAClusterThatLeavesWithItsCopiesWaitsForAConfirmation(t *testing.T) {
	t.Parallel()
	const objects = 8
	s := newScene(t, "leaves", "eu", "sg")
	s.create(s.place("web", "eu", "sg"))
	s.many(0, objects)
	s.counting("both clusters have all objects", 2*objects, 0, 0)
	s.set("eu", func(c *hubv1.MemberCluster) { c.Spec.Leave.Policy = hubv1.RemovalDelete })
	s.leave("eu")
	s.counting("the copies are held", objects, objects, 0)
	member := func() *hubv1.MemberCluster {
		c := &hubv1.MemberCluster{}
		if err := hubClient.Get(context.WithoutCancel(t.Context()), client.ObjectKey{Name: s.cluster("eu")}, c); err != nil {
			t.Fatal(err)
		}
		return c
	}
	s.eventually("the MemberCluster says so", func() error {
		if c := member(); c.Status.RemovalHeld == nil || c.Status.RemovalHeld.Copies != objects {
			return errors.New("it does not")
		}
		return nil
	})
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, hubv1.ConfirmRemovalAnnotation, member().Status.RemovalHeld.ID)
	if err := hubClient.Patch(t.Context(), member(), client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
	s.counting("what is confirmed goes", objects, 0, objects)
}
