package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// paris is a cluster without controllers that is not in the topology. Tests add it, join it and remove it.
const paris = "eu-par-1"

// TestAClusterJoinsAndLeaves joins and removes a fourth cluster, with hansectl and by hand.
func TestAClusterJoinsAndLeaves(t *testing.T) {
	ctx := t.Context()
	_, err := suite.AddMember(ctx, paris, "--region", "eu-west-3", "--zones", "eu-west-3a", "--nodes", "1")
	must(t, err)
	t.Cleanup(func() { removeCluster(t, paris) })
	must(t, applyCRD(ctx, suite.Members[paris].Client, "testdata/widget-crd.yaml"))
	ns := namespace(t)
	placeWidgets(t, ns, paris)

	t.Run("join says what it did, and objects go there", func(t *testing.T) {
		out := joinParis(t, "Orphan")
		for _, want := range []string{"serviceaccount/hanse", "clusterrole/hanse", "grants test.hanse.dev/widgets", "secret/" + paris, "membercluster/" + paris} {
			if !strings.Contains(out, want) {
				t.Errorf("join does not say %q:\n%s", want, out)
			}
		}
		eventually(t, normal, func() error { // the hub reads the region from the nodes when the cluster is Ready
			out, err := suite.Hansectl(t.Context(), "clusters")
			if err == nil && (!strings.Contains(out, paris) || !strings.Contains(out, "eu-west-3")) {
				err = fmt.Errorf("clusters does not name %s and its region:\n%s", paris, out)
			}
			return err
		})
		must(t, suite.Hub.Create(t.Context(), widget(ns, "guest")))
		onParis(t, widget(ns, "guest"))
	})
	t.Run("the same cluster cannot join under another name", func(t *testing.T) {
		_, err := suite.Hansectl(t.Context(), "join", "eu-par-2", "--member-kubeconfig", suite.Members[paris].ProxyKubeconfig)
		if err == nil || !strings.Contains(err.Error(), "membercluster/"+paris) {
			t.Errorf("got %v, want a refusal that names %s", err, paris)
		}
	})
	t.Run("unjoin leaves objects without marks of the hub, and the hub's token is revoked", func(t *testing.T) {
		before, err := on(t.Context(), paris, widget(ns, "guest"))
		must(t, err)
		token := storedToken(t, paris)
		must(t, takesToken(t.Context(), paris, token))
		out, err := suite.Hansectl(t.Context(), "unjoin", paris, "--timeout", "60s")
		must(t, err)
		if !strings.Contains(out, "revoked on the member by the hub") {
			t.Errorf("unjoin does not say that the token is revoked:\n%s", out)
		}
		eventually(t, 30*time.Second, func() error { // the API server caches a valid token for ten seconds
			if err := takesToken(t.Context(), paris, token); !apierrors.IsUnauthorized(err) {
				return fmt.Errorf("the token is not refused: %w", err)
			}
			return nil
		})
		now, err := on(t.Context(), paris, widget(ns, "guest"))
		must(t, err)
		if now.GetUID() != before.GetUID() {
			t.Error("the object was deleted and made again")
		}
		must(t, replicasOn(t.Context(), paris, widget(ns, "guest"), 3))
		must(t, unmarked(now))
		must(t, gone(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: paris}}))
	})
	t.Run("objects that a tool restored with marks of the hub hold up neither deletion nor leave", func(t *testing.T) {
		joinParis(t, "Orphan")
		deleted, kept := restored(t), restored(t)
		must(t, suite.Hub.Delete(t.Context(), deleted))
		eventually(t, normal, func() error {
			b, err := bindingOf(t.Context(), deleted)
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("the binding is still there: %+v: %w", b.BindingStatus().Clusters, err)
		})
		_, err := suite.Hansectl(t.Context(), "unjoin", paris, "--timeout", "30s")
		must(t, err)
		for _, w := range []*unstructured.Unstructured{deleted, kept} {
			copied, err := on(t.Context(), paris, w)
			must(t, err)
			if copied.GetLabels()[hubv1.HubLabel] == "" {
				t.Errorf("%s was changed on %s, where it is not the hub's", w.GetName(), paris)
			}
		}
		eventually(t, normal, func() error { return eventSays(t.Context(), kept.GetNamespace(), "Withdrawn", paris, "left alone") })
	})
	t.Run("a cluster that joins again is given back what was left there, and with policy Delete takes it along", func(t *testing.T) {
		before, err := on(t.Context(), paris, widget(ns, "guest"))
		must(t, err)
		joinParis(t, "Delete")
		onParis(t, widget(ns, "guest"))
		now, err := on(t.Context(), paris, widget(ns, "guest"))
		must(t, err)
		if now.GetUID() != before.GetUID() || now.GetLabels()[hubv1.HubLabel] == "" {
			t.Errorf("it was made again, or is not the hub's: labels %v", now.GetLabels())
		}
		must(t, suite.Hub.Delete(t.Context(), parisOnHub()))
		eventually(t, normal, func() error { return goneFrom(t.Context(), paris, widget(ns, "guest")) })
		eventually(t, normal, func() error { return gone(t.Context(), parisOnHub()) })
	})
	t.Run("a MemberCluster that is deleted while it is away waits until it is given up", func(t *testing.T) {
		joinParis(t, "Orphan")
		onParis(t, widget(ns, "guest"))
		must(t, suite.Fault(t.Context(), paris, "reset"))
		eventually(t, normal, func() error {
			return memberCondition(t.Context(), paris, hubv1.ConditionReady, metav1.ConditionFalse, hubv1.ReasonUnreachable)
		})
		must(t, suite.Hub.Delete(t.Context(), parisOnHub()))
		eventually(t, normal, func() error { return messageHas(t.Context(), paris, "they are withdrawn when the cluster answers") })
		// The test checks no number, because the count includes objects of other tests that are placed on all clusters.
		must(t, messageHas(t.Context(), paris, " left"))
		abandon := []byte(`{"spec":{"leave":{"whenUnreachable":"Abandon","timeoutSeconds":0}}}`)
		must(t, suite.Hub.Patch(t.Context(), parisOnHub(), client.RawPatch(types.MergePatchType, abandon)))
		eventually(t, normal, func() error { return gone(t.Context(), parisOnHub()) })
		eventually(t, normal, func() error { return eventSays(t.Context(), ns, "LeftBehind", "guest", paris) })
		// The administrator's connection does not use the fault proxy.
		must(t, replicasOn(t.Context(), paris, widget(ns, "guest"), 3))
	})
}

// joined is the longest time until a new cluster has its first objects. In a run of the whole suite, the hub first
// sends it large CRDs that other tests have placed on all clusters.
const joined = 3 * normal

// joinParis joins the fourth cluster through its fault proxy and returns the output of hansectl.
func joinParis(t *testing.T, leave string) string {
	t.Helper()
	out, err := suite.Hansectl(t.Context(), "join", paris, "--member-kubeconfig", suite.Members[paris].ProxyKubeconfig,
		"--grant", "test.hanse.dev/widgets", "--grant", "configmaps", "--token-lifetime", "6h", "--leave-policy", leave,
		"--admission-policy=adopt") // the hub takes back what an earlier membership has left there
	must(t, err)
	return out
}

// restored places a Widget on the fourth cluster. The cluster already has an object of this name with the hub's labels
// and annotations, but the hub has never applied it.
func restored(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	ctx := t.Context()
	w := widget(namespace(t), "restored")
	must(t, suite.Hub.Create(ctx, w))
	var hub corev1.Namespace
	must(t, suite.Hub.Get(ctx, types.NamespacedName{Name: metav1.NamespaceSystem}, &hub))
	id := hubv1.ObjectIdentity{Group: widgetKind.Group, Kind: widgetKind.Kind, Namespace: w.GetNamespace(), Name: w.GetName()}
	copied := widget(w.GetNamespace(), w.GetName())
	copied.SetLabels(map[string]string{hubv1.HubLabel: string(hub.UID)})
	copied.SetAnnotations(map[string]string{hubv1.OwnerAnnotation: id.Owner(w.GetUID())})
	must(t, suite.Members[paris].Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.GetNamespace()}}))
	must(t, suite.Members[paris].Create(ctx, copied))
	placeWidgets(t, w.GetNamespace(), paris)
	eventually(t, joined, func() error { return rowIs(ctx, w, paris, metav1.ConditionFalse, hubv1.ReasonAlreadyExists) })
	return w
}

func onParis(t *testing.T, w *unstructured.Unstructured) {
	t.Helper()
	eventually(t, joined, func() error { return rowIs(t.Context(), w, paris, metav1.ConditionTrue, "") })
	must(t, replicasOn(t.Context(), paris, w, 3))
}

func parisOnHub() *hubv1.MemberCluster { return clusterOnHub(paris) }

func clusterOnHub(name string) *hubv1.MemberCluster {
	return &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// removeCluster removes an added cluster and its MemberCluster, also after a failed test.
func removeCluster(t *testing.T, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	give := []byte(`{"spec":{"leave":{"whenUnreachable":"Abandon","timeoutSeconds":0}}}`)
	_ = suite.Hub.Patch(ctx, clusterOnHub(name), client.RawPatch(types.MergePatchType, give))
	_ = suite.Hub.Delete(ctx, clusterOnHub(name))
	must(t, suite.RemoveMember(ctx, name))
	must(t, poll(ctx, time.Minute, func() error { return gone(ctx, clusterOnHub(name)) }))
	_ = suite.Hub.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: name}})
}

// gone returns nil if the object does not exist on the hub.
func gone(ctx context.Context, obj client.Object) error {
	err := suite.Hub.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("the hub still has %T %s: %w", obj, obj.GetName(), err)
}

// unmarked returns nil if a member object has no label or annotation of a copy.
func unmarked(obj *unstructured.Unstructured) error {
	for key := range obj.GetLabels() {
		if strings.HasPrefix(key, hubv1.Prefix) {
			return fmt.Errorf("%s %s has the label %s", obj.GetKind(), obj.GetName(), key)
		}
	}
	for key := range obj.GetAnnotations() {
		if strings.HasPrefix(key, hubv1.Prefix) {
			return fmt.Errorf("%s %s has the annotation %s", obj.GetKind(), obj.GetName(), key)
		}
	}
	for _, entry := range obj.GetManagedFields() {
		if entry.Manager == hubv1.FieldManager {
			return fmt.Errorf("%s %s has fields of manager %s", obj.GetKind(), obj.GetName(), entry.Manager)
		}
	}
	return nil
}

// eventSays returns nil if the namespace has an Event with this reason and all words in its message.
func eventSays(ctx context.Context, namespace, reason string, words ...string) error {
	var list corev1.EventList
	if err := suite.Hub.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return err
	}
	var seen []string
	for _, e := range list.Items {
		reported := e.Reason == reason
		for _, w := range words {
			reported = reported && strings.Contains(e.Message, w)
		}
		if reported {
			return nil
		}
		seen = append(seen, e.Reason+": "+e.Message)
	}
	return fmt.Errorf("no event %s in %s says %q: %q", reason, namespace, words, seen)
}
