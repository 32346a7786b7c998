package schedule

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// sized sets the replicas of the scene's object.
func (s *scene) sized(size int64) {
	u := template("a")
	u.SetNamespace(s.id.Namespace)
	u.Object["spec"] = map[string]any{"size": size}
	objects.set(s.id, u)
}

func (s *scene) dividesInto(want string) {
	s.t.Helper()
	s.eventually("the shares are "+want, func() error {
		b := s.binding()
		if b == nil {
			return errors.New("there is no binding")
		}
		if got := strings.ReplaceAll(shares(&b.Spec), s.id.Namespace+"-", ""); got != want {
			return fmt.Errorf("they are %s", got)
		}
		return nil
	})
}

// allocates sets the number of CPUs that the nodes of a cluster can allocate.
func (s *scene) allocates(name string, cpus int64) {
	s.t.Helper()
	c := &hubv1.MemberCluster{}
	if err := hubClient.Get(s.t.Context(), types.NamespacedName{Name: s.cluster(name)}, c); err != nil {
		s.t.Fatal(err)
	}
	c.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(cpus, resource.DecimalSI)}
	c.Status.Nodes = hubv1.NodeSummary{Total: 1, Ready: 1}
	if err := hubClient.Status().Update(s.t.Context(), c); err != nil {
		s.t.Fatal(err)
	}
	s.eventually("the scheduler knows what the cluster can allocate", func() error {
		var known hubv1.MemberCluster
		if err := scheduler.opts.Client.Get(s.t.Context(), client.ObjectKeyFromObject(c), &known); err != nil {
			return err
		}
		if known.Status.Allocatable.Cpu().Value() != cpus {
			return errors.New("it does not")
		}
		return nil
	})
}

func TestWhatChangesSharesAndWhatDoesNot(t *testing.T) {
	t.Parallel()
	s := newScene(t, "shares", "eu", "sg")
	p := s.place("web", "eu", "sg")
	dividing(hubv1.DivideByWeight)(p)
	s.create(p)
	s.sized(10)
	s.dividesInto("eu=5 sg=5")
	if got := s.binding().Spec.Division; got == nil || got.Path != "/spec/size" {
		t.Errorf("the division is %+v", got)
	}

	s.sized(13)
	s.dividesInto("eu=7 sg=6")
	s.edit(p, func() {
		p.Spec.Replicas.Divide.Weights = []hubv1.ReplicaWeight{{Clusters: &hubv1.RuleClusters{Names: []string{s.cluster("sg")}}, Weight: 2}, {Weight: 1}}
	})
	s.dividesInto("eu=5 sg=8")
	s.join("us")
	s.edit(p, func() { p.Spec.Clusters = s.only("eu", "sg", "us") })
	s.dividesInto("eu=3 sg=7 us=3")

	before := s.binding().ResourceVersion
	s.sized(13)
	s.edit(p, func() { p.Spec.Replicas.Path = "/spec/of" })
	s.decides(hubv1.ReasonDivisionRefused)
	s.edit(p, func() { p.Spec.Replicas.Path = "/spec/size" })
	s.decides(hubv1.ReasonScheduled)
	if after := s.binding().ResourceVersion; after != before {
		t.Errorf("the binding was written without a change of the shares: %s, %s", before, after)
	}

	s.edit(p, func() { p.Spec.Replicas = hubv1.ReplicasPolicy{Type: hubv1.ReplicasDuplicate} })
	s.dividesInto("eu sg us")
	if got := s.binding().Spec.Division; got != nil {
		t.Errorf("nothing is divided any more, and the division is %+v", got)
	}
}

func TestARefusedDivisionIsAnEvent(t *testing.T) {
	t.Parallel()
	s := newScene(t, "refused", "eu", "sg")
	p := s.place("web", "eu", "sg")
	p.Spec.Replicas.Type = hubv1.ReplicasDivide
	s.create(p)
	s.sized(10)
	s.eventually("an event says so", func() error {
		if got := observed.of(s.id.Namespace); len(got) == 0 || got[0] != hubv1.ReasonDivisionRefused {
			return fmt.Errorf("the events are %q", got)
		}
		return nil
	})
	if b := s.binding(); b != nil {
		t.Errorf("there is a binding: %+v", b.Spec)
	}
	s.edit(p, func() { p.Spec.Replicas.Path = "/spec/size" })
	s.dividesInto("eu=5 sg=5")
}

func TestCapacityIsFollowedForANewObject(t *testing.T) {
	t.Parallel()
	s := newScene(t, "capacity", "eu", "sg")
	s.allocates("eu", 30)
	s.allocates("sg", 10)
	p := s.place("web", "eu", "sg")
	dividing(hubv1.DivideByCapacity)(p)
	s.create(p)
	s.sized(12)
	s.dividesInto("eu=9 sg=3")
	s.allocates("eu", 5) // the capacity was first seen just now, so it counts for a new number
	s.sized(50)
	s.decides(hubv1.ReasonReplicasUnplaced)
	s.dividesInto("eu=5 sg=10")
	s.eventually("the decision counts replicas without room", func() error {
		if c, _, _, _ := scheduler.Decision(s.id.BindingKey()); !strings.HasSuffix(c.Message, "; 35 of 50 replicas have no room") {
			return fmt.Errorf("it says %q", c.Message)
		}
		return nil
	})
}
