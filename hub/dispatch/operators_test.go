package dispatch

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

var (
	webhooks   = schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"}
	rotor      = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Rotor"}
	deployment = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
)

// operated adds an operator that provides the kinds Gear and Rotor. Its Deployment is placed on the given members.
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

// becomes sets the health of the operator's Deployment on a member, and sends the event.
func becomes(w *world, cluster string, health hubv1.Health, message string) {
	turns(w, cluster, "rotor-operator", health, message)
}

// turns sets the health of a copy on a member, and sends the event.
func turns(w *world, cluster, name string, health hubv1.Health, message string) {
	m := w.members[cluster]
	m.mu.Lock()
	o := m.copies[name]
	o.Health, o.HealthMessage = health, message
	m.copies[name] = o
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
	w.reads("eu", "main", hubv1.ReasonApplied, "")
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
	w.reads("eu", "main", hubv1.ReasonApplied, "")
	operated(w, "eu")
	isWrittenAgain(w, "eu", hubv1.ObjectIdentity{Group: rotor.Group, Kind: rotor.Kind, Namespace: "ns", Name: "main"})
}

// isWrittenAgain changes a copy on the member, and waits until the dispatcher has corrected it.
func isWrittenAgain(w *world, cluster string, id hubv1.ObjectIdentity) {
	w.Helper()
	m := w.members[cluster]
	m.mu.Lock()
	before := m.served
	o := m.copies[id.Name]
	o.Hash, o.ResourceVersion = "changed", "1000"
	m.copies[id.Name] = o
	m.mu.Unlock()
	w.dispatcher.Observed(cluster, id.BindingKey(), o)
	w.eventually(5*time.Second, func() string {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.served == before {
			return "the copy was not written"
		}
		return ""
	})
}

// bundled adds an object to the operator's bundle, placed on all members.
func bundled(w *world, gvk schema.GroupVersionKind, name string) {
	b := w.add(gvk, name)
	w.mu.Lock()
	defer w.mu.Unlock()
	b.Spec.ObjectRef.Bundle = &hubv1.BundleReference{Kind: hubv1.FederatedOperatorKind, Name: "rotors"}
}

var clusterRole = schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}

func TestAWorkloadIsCreatedAfterTheRightsOfItsBundle(t *testing.T) {
	t.Parallel()
	w := newWorld(t, takes("eu"))
	operated(w, "eu")
	w.engage()
	bundled(w, clusterRole, "rotor-role")
	w.dispatcher.WakeCluster(t.Context(), "eu")
	w.reads("eu", "rotor-role", hubv1.ReasonApplied, "")
	w.reads("eu", "rotor-operator", hubv1.ReasonBundleNotReady,
		"the copy waits until the objects of FederatedOperator rotors, which its pods may need, are on the cluster: ClusterRole.rbac.authorization.k8s.io ns/rotor-role is not on the cluster")
	turns(w, "eu", "rotor-role", hubv1.HealthHealthy, "")
	w.reads("eu", "rotor-operator", hubv1.ReasonApplied, "")
}

func TestAWorkloadIsCreatedWithoutRightsThat(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		role func(*hubv1.ResourceBinding)
		want string
	}{
		"the cluster refuses": {role: func(b *hubv1.ResourceBinding) {
			b.Status.Clusters = []hubv1.ClusterRow{{Name: "eu", Applied: metav1.ConditionFalse, Reason: hubv1.ReasonForbidden}}
		}, want: hubv1.ReasonApplied},
		"are for other clusters": {role: func(b *hubv1.ResourceBinding) { b.Spec.Clusters = nil }, want: hubv1.ReasonApplied},
		"wait themselves": {role: func(b *hubv1.ResourceBinding) {
			b.Status.Clusters = []hubv1.ClusterRow{{Name: "eu", Applied: metav1.ConditionFalse, Reason: hubv1.ReasonBundleNotReady}}
		}, want: hubv1.ReasonBundleNotReady},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, takes("eu"))
			operated(w, "eu")
			bundled(w, clusterRole, "rotor-role")
			w.mu.Lock()
			tc.role(w.bindings[hubv1.ObjectIdentity{Group: clusterRole.Group, Kind: clusterRole.Kind, Namespace: "ns", Name: "rotor-role"}.BindingKey()])
			w.mu.Unlock()
			w.engage()
			w.reads("eu", "rotor-operator", tc.want, "")
		})
	}
}

func TestAWebhookConfigurationIsCreatedAfterTheOtherObjectsOfItsBundle(t *testing.T) {
	t.Parallel()
	w := newWorld(t, takes("eu"), takes("us"))
	operated(w, "eu", "us")
	bundled(w, schema.GroupVersionKind{Version: "v1", Kind: "Service"}, "answers")
	bundled(w, rotor, "main")
	bundled(w, webhooks, "rules")
	w.engage()
	says := func(cluster, want string) {
		t.Helper()
		w.eventually(5*time.Second, func() string {
			o := w.outcome(cluster, "rules")
			if full := "the copy is created after the other objects of FederatedOperator rotors are ready on the cluster: " + want; o.Reason != hubv1.ReasonBundleNotReady || o.Message != full {
				return cluster + " has " + o.Reason + ": " + o.Message
			}
			return ""
		})
	}
	for _, cluster := range []string{"eu", "us"} {
		w.eventually(5*time.Second, func() string {
			if w.holds(cluster) < 2 {
				return cluster + " has not all other objects"
			}
			return ""
		})
		says(cluster, "Deployment.apps ns/rotor-operator is not on the cluster, and 1 more")
		becomes(w, cluster, hubv1.HealthHealthy, "")
		says(cluster, "Service ns/answers is not on the cluster")
	}
	turns(w, "eu", "answers", hubv1.HealthHealthy, "")
	w.reads("eu", "rules", hubv1.ReasonApplied, "")
	says("us", "Service ns/answers is not on the cluster")
	t.Run("the custom resource of the bundle waits for the webhook configuration, which does not wait for it", func(t *testing.T) {
		if o := w.outcome("eu", "main"); o.Reason != hubv1.ReasonOperatorNotReady || !strings.Contains(o.Message, "ValidatingWebhookConfiguration") {
			t.Errorf("eu has %s: %s", o.Reason, o.Message)
		}
		turns(w, "eu", "rules", hubv1.HealthHealthy, "")
		w.reads("eu", "main", hubv1.ReasonApplied, "")
	})
}

func TestAWebhookConfigurationThatExistsIsWrittenWithoutItsPods(t *testing.T) {
	t.Parallel()
	w := newWorld(t, takes("eu"))
	w.engage()
	w.create(webhooks, "rules")
	w.reads("eu", "rules", hubv1.ReasonApplied, "")
	operated(w, "eu")
	w.mu.Lock()
	b := w.bindings[hubv1.ObjectIdentity{Group: webhooks.Group, Kind: webhooks.Kind, Namespace: "ns", Name: "rules"}.BindingKey()]
	b.Spec.ObjectRef.Bundle = &hubv1.BundleReference{Kind: hubv1.FederatedOperatorKind, Name: "rotors"}
	w.mu.Unlock()
	isWrittenAgain(w, "eu", hubv1.ObjectIdentity{Group: webhooks.Group, Kind: webhooks.Kind, Namespace: "ns", Name: "rules"})
}

// grows gives an object another content on the hub, without telling the dispatcher.
func grows(w *world, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fields == nil {
		w.fields = map[string]map[string]any{}
	}
	w.fields[name] = map[string]any{"spec": map[string]any{"size": int64(2)}}
}

// grown returns an empty text if the cluster eu has the content of grows.
func grown(w *world, name string) string {
	m := w.members["eu"]
	m.mu.Lock()
	defer m.mu.Unlock()
	if size, _, _ := unstructured.NestedInt64(m.manifests[name].Object, "spec", "size"); size != 2 {
		return name + " has not changed"
	}
	return ""
}

func TestAChangedWorkloadWaitsForTheNewRightsOfItsBundle(t *testing.T) {
	t.Parallel()
	m := takes("eu")
	var free atomic.Bool
	free.Store(true)
	m.answer = func(_ context.Context, object string) member.Outcome {
		if object == "rotor-role" && !free.Load() {
			return member.Outcome{Applied: metav1.ConditionFalse, Reason: hubv1.ReasonForbidden, Retry: member.RetrySlowly}
		}
		return member.Outcome{Applied: metav1.ConditionTrue, Reason: hubv1.ReasonApplied, Wrote: true}
	}
	w := newWorld(t, m)
	operated(w, "eu")
	w.engage()
	bundled(w, clusterRole, "rotor-role")
	w.dispatcher.WakeCluster(t.Context(), "eu")
	w.reads("eu", "rotor-role", hubv1.ReasonApplied, "")
	turns(w, "eu", "rotor-role", hubv1.HealthHealthy, "")
	w.reads("eu", "rotor-operator", hubv1.ReasonApplied, "")
	becomes(w, "eu", hubv1.HealthHealthy, "")

	free.Store(false)
	grows(w, "rotor-role")
	grows(w, "rotor-operator")
	w.dispatcher.WakeCluster(t.Context(), "eu")
	w.reads("eu", "rotor-role", hubv1.ReasonForbidden, "")
	w.reads("eu", "rotor-operator", hubv1.ReasonBundleNotReady,
		"the copy waits until the objects of FederatedOperator rotors, which its pods may need, are on the cluster: ClusterRole.rbac.authorization.k8s.io ns/rotor-role does not have its new content on the cluster")
	free.Store(true)
	w.dispatcher.WakeCluster(t.Context(), "eu")
	w.reads("eu", "rotor-role", hubv1.ReasonApplied, "")
	turns(w, "eu", "rotor-role", hubv1.HealthHealthy, "")
	w.reads("eu", "rotor-operator", hubv1.ReasonApplied, "")
	w.eventually(5*time.Second, func() string { return grown(w, "rotor-operator") })
}

func TestAChangedWebhookConfigurationWaitsForTheNewWorkloadsOfItsBundle(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		health hubv1.Health
		waits  string // empty: the configuration is written
	}{
		"and until they are healthy":             {hubv1.HealthProgressing, "Deployment.apps ns/rotor-operator is Progressing"},
		"and not for a workload that has failed": {hubv1.HealthDegraded, ""},
		"which are healthy":                      {hubv1.HealthHealthy, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, takes("eu"))
			operated(w, "eu")
			bundled(w, webhooks, "rules")
			w.engage()
			w.reads("eu", "rotor-operator", hubv1.ReasonApplied, "")
			becomes(w, "eu", hubv1.HealthHealthy, "")
			w.reads("eu", "rules", hubv1.ReasonApplied, "")

			grows(w, "rotor-operator")
			grows(w, "rules")
			w.dispatcher.WakeObject(t.Context(), hubv1.ObjectIdentity{Group: webhooks.Group, Kind: webhooks.Kind, Namespace: "ns", Name: "rules"})
			w.reads("eu", "rules", hubv1.ReasonBundleNotReady, "Deployment.apps ns/rotor-operator does not have its new content on the cluster")
			w.dispatcher.WakeObject(t.Context(), hubv1.ObjectIdentity{Group: deployment.Group, Kind: deployment.Kind, Namespace: "ns", Name: "rotor-operator"})
			w.eventually(5*time.Second, func() string { return grown(w, "rotor-operator") })
			becomes(w, "eu", tc.health, "")
			w.dispatcher.WakeCluster(t.Context(), "eu")
			if tc.waits != "" {
				w.reads("eu", "rules", hubv1.ReasonBundleNotReady, tc.waits)
				return
			}
			w.reads("eu", "rules", hubv1.ReasonApplied, "")
		})
	}
}

func TestAnObjectThatIsBeingRemovedHoldsNothingBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, takes("eu"))
	operated(w, "eu")
	bundled(w, deployment, "older")
	w.deleted = map[string]bool{"older": true}
	w.create(rotor, "main")
	w.engage()
	w.eventually(5*time.Second, func() string {
		if w.holds("eu") == 0 {
			return "eu has no operator"
		}
		return ""
	})
	becomes(w, "eu", hubv1.HealthHealthy, "")
	w.reads("eu", "main", hubv1.ReasonApplied, "")
}

func TestOnlyCopiesOfProvidedKindsWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t, takes("eu"))
	operated(w, "eu")
	w.engage()
	w.create(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Wheel"}, "main")
	w.reads("eu", "main", hubv1.ReasonApplied, "")
}

// The cluster may have a Role of this name that another client has made.
func TestInKubeSystemABindingIsCreatedAfterTheRoleOfItsOperator(t *testing.T) {
	t.Parallel()
	m := takes("eu")
	var free atomic.Bool
	m.answer = func(_ context.Context, object string) member.Outcome {
		if object == "leader" && !free.Load() {
			return member.Outcome{Applied: metav1.ConditionFalse, Reason: hubv1.ReasonAlreadyExists, Message: "Role kube-system/leader is not the hub's"}
		}
		return member.Outcome{Applied: metav1.ConditionTrue, Reason: hubv1.ReasonApplied, Wrote: true}
	}
	w := newWorld(t, m)
	bindsTo := func(role string) map[string]any {
		return map[string]any{
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "namespace": "rotors", "name": "rotors"}},
		}
	}
	w.fields = map[string]map[string]any{"binding": bindsTo("leader"), "reader": bindsTo("extension-apiserver-authentication-reader")}
	role := rbacv1.SchemeGroupVersion.WithKind("Role")
	for name, gvk := range map[string]schema.GroupVersionKind{
		"leader": role, "binding": rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), "reader": rbacv1.SchemeGroupVersion.WithKind("RoleBinding"),
	} {
		b := w.addIn("kube-system", gvk, name)
		b.Spec.ObjectRef.Bundle = &hubv1.BundleReference{Kind: hubv1.FederatedOperatorKind, Name: "rotors"}
		if name == "leader" {
			b.Status.Clusters = []hubv1.ClusterRow{{Name: "eu", Applied: metav1.ConditionFalse, Reason: hubv1.ReasonAlreadyExists, Message: "it is not the hub's"}}
		}
	}
	w.engage()
	w.reads("eu", "leader", hubv1.ReasonAlreadyExists, "")
	w.reads("eu", "reader", hubv1.ReasonApplied, "")
	w.reads("eu", "binding", hubv1.ReasonBundleNotReady, "the copy is written after its Role.rbac.authorization.k8s.io kube-system/leader, which no other client may have made, is on the cluster")

	free.Store(true)
	w.dispatcher.WakeCluster(t.Context(), "eu")
	w.reads("eu", "leader", hubv1.ReasonApplied, "")
	turns(w, "eu", "leader", hubv1.HealthHealthy, "")
	w.reads("eu", "binding", hubv1.ReasonApplied, "")

	// Another client replaces the Role, and deletes the binding.
	free.Store(false)
	m.mu.Lock()
	delete(m.copies, "leader")
	delete(m.copies, "binding")
	m.mu.Unlock()
	w.dispatcher.WakeCluster(t.Context(), "eu")
	w.reads("eu", "binding", hubv1.ReasonBundleNotReady, "")
}
