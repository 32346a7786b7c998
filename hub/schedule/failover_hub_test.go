package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
)

// set edits a MemberCluster of the scene and its status.
func (s *scene) set(name string, change func(*hubv1.MemberCluster)) {
	s.t.Helper()
	s.eventually("the MemberCluster is written", func() error {
		c := &hubv1.MemberCluster{}
		if err := hubClient.Get(s.t.Context(), client.ObjectKey{Name: s.cluster(name)}, c); err != nil {
			return err
		}
		change(c)
		status := c.Status
		if err := hubClient.Update(s.t.Context(), c); err != nil {
			return err
		}
		c.Status = status
		return hubClient.Status().Update(s.t.Context(), c)
	})
}

func falls(c *hubv1.MemberCluster) {
	at := metav1.Now().Rfc3339Copy()
	c.Status.Conditions[0].Status, c.Status.Conditions[0].Reason = metav1.ConditionFalse, hubv1.ReasonUnreachable
	c.Status.Taints = []corev1.Taint{
		{Key: hubv1.UnreachableTaint, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &at},
		{Key: hubv1.UnreachableTaint, Effect: corev1.TaintEffectNoExecute, TimeAdded: &at},
	}
}

func rises(c *hubv1.MemberCluster) {
	c.Status.Conditions[0].Status, c.Status.Conditions[0].Reason = metav1.ConditionTrue, hubv1.ReasonConnected
	c.Status.Taints = nil
}

// reads waits until the binding's spec.clusters has these entries, in the form of entriesOf, but without the common
// prefix of the clusters' names.
func (s *scene) reads(want ...string) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("the binding reads %q", want), func() error {
		b := s.binding()
		if b == nil {
			return errors.New("no binding")
		}
		var got []string
		for _, e := range entriesOf(&b.Spec) {
			got = append(got, strings.ReplaceAll(e, s.cluster(""), ""))
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("it reads %q", got)
		}
		return nil
	})
}

// play acts as the members: it writes the rows of a binding that the members would report, except for unreachable
// clusters.
func (s *scene) play(b *hubv1.ResourceBinding, away ...string) error {
	b.Status.ObservedGeneration = b.Generation
	b.Status.Clusters = nil
	for _, e := range b.Spec.Clusters {
		row := hubv1.ClusterRow{Name: e.Name, Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy, Digest: "d"}
		switch {
		case slices.Contains(away, e.Name[len(s.id.Namespace)+1:]):
			row.Applied, row.Health = metav1.ConditionUnknown, hubv1.HealthUnknown
		case e.State == hubv1.TargetAbsent:
			row = hubv1.ClusterRow{Name: e.Name, Applied: metav1.ConditionFalse, Reason: hubv1.ReasonWithdrawn}
		}
		b.Status.Clusters = append(b.Status.Clusters, row)
	}
	return hubClient.Status().Update(s.t.Context(), b)
}

func (s *scene) plays(away ...string) {
	s.t.Helper()
	s.eventually("the rows are written", func() error { return s.play(s.binding(), away...) })
}

// spreading returns a placement that prefers the clusters in this order.
func (s *scene) spreading(number int32, clusters ...string) *hubv1.Placement {
	p := s.place("web", clusters...)
	p.Spec.Spread = &hubv1.SpreadPolicy{NumberOfClusters: &number}
	for i, c := range p.Spec.Clusters.Names {
		p.Spec.Spread.Preferences = append(p.Spec.Spread.Preferences, hubv1.ClusterPreference{Weight: int32(len(clusters) - i), Expression: fmt.Sprintf("name == %q", c)})
	}
	p.Spec.Failover.EvictAfterSeconds = ptr.To[int32](1)
	return p
}

func TestAClusterThatFallsSilentIsReplaced(t *testing.T) {
	t.Parallel()
	s := newScene(t, "failover", "eu", "sg", "us")
	s.create(s.spreading(1, "eu", "sg", "us"))
	s.object()
	s.reads("eu")
	s.plays()
	s.set("eu", falls)
	s.reads("~eu Evicted by sg", "sg")
	s.plays("eu", "sg")
	s.set("eu", rises)
	s.plays("sg")
	s.set("us", falls) // the event of us comes after the earlier events
	s.reads("~eu Evicted by sg", "sg")
	s.plays()
	s.reads("-eu Evicted Delete", "sg")
	s.plays()
	s.reads("sg")
	s.eventually("an event tells of it", func() error {
		if got := observed.of(s.id.Namespace); !slices.Contains(got, hubv1.ReasonEvicted) {
			return fmt.Errorf("told was %q", got)
		}
		return nil
	})
}

func TestADrainedClusterIsEmptiedOneByOne(t *testing.T) {
	t.Parallel()
	const objectsOnEU = 5
	s := newScene(t, "drain", "eu")
	p := s.spreading(1, "eu", "sg")
	s.create(p)
	everywhere := s.place("everywhere", "eu", "sg")
	labelled("everywhere")(everywhere)
	everywhere.Spec.Priority = 1
	s.create(everywhere)
	var ids []key
	for n := range objectsOnEU + 1 {
		id := s.id
		id.Name = fmt.Sprint("web-", n)
		u := template(uuid.NewUUID())
		u.SetNamespace(id.Namespace)
		u.SetName(id.Name)
		u.SetCreationTimestamp(metav1.Now())
		if n == objectsOnEU {
			u.SetLabels(map[string]string{"app": "everywhere"})
		}
		ids = append(ids, id)
		objects.set(id, u)
	}
	bindings := func() []hubv1.ResourceBinding {
		var list hubv1.ResourceBindingList
		if err := hubClient.List(t.Context(), &list, client.InNamespace(s.id.Namespace)); err != nil {
			t.Fatal(err)
		}
		return list.Items
	}
	s.eventually("all are on eu", func() error {
		if got := bindings(); len(got) != len(ids) {
			return fmt.Errorf("%d bindings", len(got))
		}
		return nil
	})
	s.join("sg")
	s.set("eu", func(c *hubv1.MemberCluster) { c.Spec.Drain = &hubv1.DrainPolicy{MaxUnavailable: ptr.To[int32](2)} })
	deadline := time.Now().Add(time.Minute)
	for left := len(ids); left > 1; {
		if time.Now().After(deadline) {
			t.Fatalf("%d are left", left)
		}
		moving, last := 0, 0
		all := bindings()
		for i := range all {
			for _, e := range all[i].Spec.Clusters {
				if e.Name != s.cluster("eu") {
					continue
				}
				last++
				if e.State == hubv1.TargetEvicting && len(decide.Awaited(&all[i], e, hubv1.HubObject{})) > 0 {
					moving++
				}
			}
		}
		if moving > 2 {
			t.Fatalf("%d objects are moving at a time", moving)
		}
		left = last
		for i := range all {
			_ = s.play(&all[i]) // the binding may be outdated: the next round tries again
		}
	}
	s.eventually("the MemberCluster says what is left", func() error {
		c := &hubv1.MemberCluster{}
		if err := hubClient.Get(t.Context(), client.ObjectKey{Name: s.cluster("eu")}, c); err != nil {
			return err
		}
		want := &hubv1.DrainStatus{
			Total: objectsOnEU + 1, Remaining: 1, Staying: 1,
			Message: "1 object stays: its placement puts the object on every cluster, such as " + ids[objectsOnEU].String(),
		}
		if diff := cmp.Diff(want, c.Status.Drain); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
	s.set("eu", func(c *hubv1.MemberCluster) { c.Spec.Drain = nil })
	s.eventually("it says nothing any more", func() error {
		c := &hubv1.MemberCluster{}
		if err := hubClient.Get(t.Context(), client.ObjectKey{Name: s.cluster("eu")}, c); err != nil || c.Status.Drain != nil {
			return fmt.Errorf("%+v (error: %w)", c.Status.Drain, err)
		}
		return nil
	})
}
