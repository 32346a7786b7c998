package dispatch

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

var (
	rotor      = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Rotor"}
	deployment = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
)

// operated adds an operator of Rotors whose Deployment is placed on the given members.
func operated(w *world, on ...string) {
	b := w.add(deployment, "rotor-operator")
	of := &hubv1.BundleReference{Kind: hubv1.FederatedOperatorKind, Name: "rotors"}
	w.mu.Lock()
	defer w.mu.Unlock()
	b.Spec.ObjectRef.Bundle = of
	b.Spec.Clusters = nil
	for _, cluster := range on {
		b.Spec.Clusters = append(b.Spec.Clusters, hubv1.BindingTarget{Name: cluster, State: hubv1.TargetPresent})
	}
	o := hubv1.FederatedOperator{ObjectMeta: metav1.ObjectMeta{Name: "rotors"}}
	o.Status.Provides = []string{"Gear.example.com", "Rotor.example.com"}
	w.operators = append(w.operators, o)
}

// becomes sets the health of the operator's Deployment on a member, with the event that follows.
func becomes(w *world, cluster string, health hubv1.Health, message string) {
	m := w.members[cluster]
	m.mu.Lock()
	o := m.copies["rotor-operator"]
	o.Health, o.HealthMessage = health, message
	m.copies["rotor-operator"] = o
	m.mu.Unlock()
	w.dispatcher.HealthSeen(cluster, o)
}

func TestACopyIsCreatedAfterTheOperatorOfItsKindIsReady(t *testing.T) {
	t.Parallel()
	w := newWorld(t, takes("eu"), takes("us"))
	operated(w, "eu")
	w.engage()
	w.create(rotor, "main")
	w.eventually(5*time.Second, func() string {
		if o := w.outcome("us", "main"); o.Reason != hubv1.ReasonApplied {
			return "us, where no operator is placed, has " + o.Reason
		}
		o := w.outcome("eu", "main")
		if o.Reason != hubv1.ReasonOperatorNotReady || !strings.Contains(o.Message, "operator rotors is ready on the cluster: Deployment.apps ns/rotor-operator is ") {
			return "eu has " + o.Reason + ": " + o.Message
		}
		return ""
	})
	w.eventually(5*time.Second, func() string {
		if w.holds("eu") == 0 {
			return "eu has no operator"
		}
		return ""
	})
	becomes(w, "eu", hubv1.HealthProgressing, "0/1 replicas are available")
	w.dispatcher.WakeCluster(t.Context(), "eu")
	w.eventually(5*time.Second, func() string {
		o := w.outcome("eu", "main")
		if want := "the copy is created after operator rotors is ready on the cluster: Deployment.apps ns/rotor-operator is Progressing: 0/1 replicas are available"; o.Message != want {
			return "eu says " + o.Message
		}
		return ""
	})
	becomes(w, "eu", hubv1.HealthHealthy, "")
	w.eventually(5*time.Second, func() string {
		if o := w.outcome("eu", "main"); o.Reason != hubv1.ReasonApplied {
			return "eu has " + o.Reason + ": " + o.Message
		}
		return ""
	})
}

func TestWorkloadsOfAnOperatorHaveItsVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, takes("eu"))
	operated(w, "eu")
	w.add(deployment, "web")
	w.engage()
	for name, want := range map[string]string{"rotor-operator": "1.2.3", "web": ""} {
		w.eventually(5*time.Second, func() string {
			if o := w.outcome("eu", name); o.Reason != hubv1.ReasonApplied || o.HubVersion != want {
				return name + " has " + o.Reason + " and the version " + o.HubVersion
			}
			return ""
		})
	}
}

func TestACopyThatExistsIsWrittenWithoutItsOperator(t *testing.T) {
	t.Parallel()
	w := newWorld(t, takes("eu"))
	w.engage()
	w.create(rotor, "main")
	w.eventually(5*time.Second, func() string {
		if o := w.outcome("eu", "main"); o.Reason != hubv1.ReasonApplied {
			return "eu has " + o.Reason
		}
		return ""
	})
	operated(w, "eu")
	// The copy differs from the wanted one now.
	m := w.members["eu"]
	m.mu.Lock()
	before := m.served
	o := m.copies["main"]
	o.Hash, o.ResourceVersion = "changed", "1000"
	m.copies["main"] = o
	m.mu.Unlock()
	w.dispatcher.Observed("eu", hubv1.ObjectIdentity{Group: rotor.Group, Kind: rotor.Kind, Namespace: "ns", Name: "main"}.BindingKey(), o)
	w.eventually(5*time.Second, func() string {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.served == before {
			return "the copy was not written"
		}
		return ""
	})
}

func TestOnlyCopiesOfProvidedKindsWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t, takes("eu"))
	operated(w, "eu")
	w.engage()
	w.create(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Wheel"}, "main")
	w.eventually(5*time.Second, func() string {
		if o := w.outcome("eu", "main"); o.Reason != hubv1.ReasonApplied {
			return "eu has " + o.Reason
		}
		return ""
	})
}
