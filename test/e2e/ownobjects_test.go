package e2e

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// ownConfigMaps and ownSecrets are the hub's own objects in hanse-system, besides the contents of revisions and the
// objects of bundles. TestSecretsAndConfigMapsOfTheHubComeBack finds an object that is missing here.
var (
	ownConfigMaps = []string{hubv1.EpochsConfigMap, "hanse-protected"}
	ownSecrets    = []string{"hanse-secret-key", "hanse-hub-webhook"}
)

// TestSecretsAndConfigMapsOfTheHubComeBack deletes each Secret and ConfigMap of the hub, first while the hub runs, and
// then while it does not. An object with a rollout is kept and changed as usual.
func TestSecretsAndConfigMapsOfTheHubComeBack(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	placeInWaves(t, ns)
	w := widgetWithRollout(t, ns, "kept")
	before := ownObjects(t)
	for _, name := range append([]string{"revision-"}, append(ownConfigMaps, ownSecrets...)...) {
		if !strings.Contains(strings.Join(namesOf(before), " "), name) {
			t.Fatalf("the hub has no %s: %v", name, namesOf(before))
		}
	}

	deleteAll(t, before)
	for name := range before {
		eventually(t, 2*time.Minute, func() error { return isBack(ctx, before[name], true) })
	}
	must(t, suite.hub.Stop())
	lost := maps.Clone(before)
	delete(lost, "Secret hanse-secret-key") // its loss while no hub runs makes a new key, and with it new revisions
	deleteAll(t, lost)
	startHub(t)
	// A copy that a member deletes is made again, although the hub has read no Secret of a revision since its start.
	must(t, suite.Members[shanghai].Delete(ctx, w.DeepCopy()))
	eventually(t, normal, func() error { return replicasOn(ctx, shanghai, w, 3) })
	for name := range lost {
		eventually(t, 2*time.Minute, func() error { return isBack(ctx, lost[name], false) })
	}
	resizeWidget(t, w, 5)
	for _, name := range members {
		eventually(t, time.Minute, func() error { return replicasOn(ctx, name, w, 5) })
	}
	eventually(t, time.Minute, func() error { return rolloutIs(ctx, w, hubv1.RolloutComplete, "") })
}

// TestALostRevisionKeepsItsCopiesUntilAPromotion deletes the Secret of a revision that the hub object does not have any
// more. What the message of the row names helps.
func TestALostRevisionKeepsItsCopiesUntilAPromotion(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	p := placeInWaves(t, ns)
	patchPlacement(t, p, `{"rollout":{"waves":[{"name":"europe","clusters":{"names":["eu-fra-1"]}},{"name":"rest","approval":"Manual"}]}}`)
	w := widgetWithRollout(t, ns, "lost")
	b, err := bindingOf(ctx, w)
	must(t, err)
	first := b.BindingSpec().Revisions[0]
	resizeWidget(t, w, 5)
	eventually(t, time.Minute, func() error { return rolloutIs(ctx, w, hubv1.RolloutWaitingForApproval, "rest") })

	must(t, suite.hub.Stop())
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: "revision-" + first.Template}}
	must(t, suite.Hub.Delete(ctx, secret))
	startHub(t)
	for _, name := range []string{singapore, shanghai} {
		eventually(t, normal, func() error { return rowIs(ctx, w, name, metav1.ConditionFalse, hubv1.ReasonRevisionMissing) })
		must(t, replicasOn(ctx, name, w, 3))
	}
	must(t, rowIs(ctx, w, frankfurt, metav1.ConditionTrue, ""))
	eventually(t, normal, func() error {
		return logged(suite.hub.LogFile, "The Secret with a part of a revision is missing", secret.Name)
	})
	out, _ := suite.Hansectl(ctx, "problems", "--checks")
	if !strings.Contains(out, "2 copies are not updated") {
		t.Errorf("no check tells of the lost revision:\n%s", out)
	}

	_, err = suite.Hansectl(ctx, "rollout", "promote", "staged", "-n", ns, "--full", "--reason", "its revision is lost", "--yes")
	must(t, err)
	for _, name := range members {
		eventually(t, time.Minute, func() error { return replicasOn(ctx, name, w, 5) })
		eventually(t, time.Minute, func() error { return rowIs(ctx, w, name, metav1.ConditionTrue, "") })
	}
}

// placeInWaves creates a placement of all Widgets of the namespace, with a rollout: Frankfurt, then all other clusters.
func placeInWaves(t *testing.T, ns string) *hubv1.Placement {
	t.Helper()
	var spec hubv1.PlacementSpec
	must(t, yaml.UnmarshalStrict([]byte(`
clusters: {labelSelector: {}}
statusAggregation: {healthExpression: "true"}
rollout:
  settleSeconds: 0
  healthGate: {minObservedSeconds: 0}
  waves:
  - {name: europe, clusters: {names: [eu-fra-1]}}
  - {name: rest}
`), &spec))
	return place(t, ns, "staged", hubv1.ResourceSelector{APIGroup: widgetKind.Group, Kind: widgetKind.Kind}, spec)
}

// widgetWithRollout creates a Widget, and waits until its first revision has passed on all clusters.
func widgetWithRollout(t *testing.T, ns, name string) *unstructured.Unstructured {
	t.Helper()
	w := widget(ns, name)
	must(t, suite.Hub.Create(t.Context(), w))
	for _, m := range members {
		eventually(t, time.Minute, func() error { return replicasOn(t.Context(), m, w, 3) })
	}
	eventually(t, time.Minute, func() error { return rolloutIs(t.Context(), w, hubv1.RolloutComplete, "") })
	return w
}

func resizeWidget(t *testing.T, w *unstructured.Unstructured, replicas int) {
	t.Helper()
	must(t, suite.Hub.Patch(t.Context(), w.DeepCopy(), client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))))
}

// ownObjects returns the hub's own Secrets and ConfigMaps, by kind and name. It fails the test if hanse-system has an
// object of which the test does not know whose it is.
func ownObjects(t *testing.T) map[string]client.Object {
	t.Helper()
	var secrets corev1.SecretList
	var configMaps corev1.ConfigMapList
	must(t, suite.Hub.List(t.Context(), &secrets, client.InNamespace(hubv1.SystemNamespace)))
	must(t, suite.Hub.List(t.Context(), &configMaps, client.InNamespace(hubv1.SystemNamespace)))
	var clusters hubv1.MemberClusterList
	must(t, suite.Hub.List(t.Context(), &clusters))
	isKubeconfig := func(name string) bool {
		return slices.ContainsFunc(clusters.Items, func(m hubv1.MemberCluster) bool {
			return m.Spec.Connection.Direct != nil && m.Spec.Connection.Direct.KubeconfigSecretRef.Name == name
		})
	}
	out := map[string]client.Object{}
	own := " " + strings.Join(append(ownConfigMaps, ownSecrets...), " ") + " "
	add := func(kind string, o client.Object, ofType corev1.SecretType) {
		switch {
		case ofType == hubv1.RevisionSecretType, ofType == hubv1.ManifestSecretType, ofType == hubv1.GeneratedValuesSecretType, strings.Contains(own, " "+o.GetName()+" "):
			out[kind+" "+o.GetName()] = o
		case ofType != "" && isKubeconfig(o.GetName()), o.GetLabels()[hubv1.ManagedByLabel] == hubv1.ManagedByHansectl,
			ofType == "helm.sh/release.v1", ofType == corev1.SecretTypeServiceAccountToken, o.GetName() == "kube-root-ca.crt",
			kind == "Secret" && o.GetName() == hubv1.TunnelSecret: // a lost key does not come back: agents know the hub by it
		default:
			t.Errorf("%s %s: add it to the hub's own objects, or say whose it is", kind, o.GetName())
		}
	}
	for i := range secrets.Items {
		add("Secret", &secrets.Items[i], secrets.Items[i].Type)
	}
	for i := range configMaps.Items {
		add("ConfigMap", &configMaps.Items[i], "")
	}
	return out
}

// logged returns nil if a line of the hub's log has all of the words.
func logged(file string, words ...string) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(raw)) {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
			return nil
		}
	}
	return fmt.Errorf("no line of the hub's log has %q", words)
}

func namesOf(objects map[string]client.Object) (names []string) {
	for name := range objects {
		names = append(names, name)
	}
	return names
}

func deleteAll(t *testing.T, objects map[string]client.Object) {
	t.Helper()
	for _, o := range objects {
		must(t, suite.Hub.Delete(t.Context(), o.DeepCopyObject().(client.Object)))
	}
}

// isBack returns nil if an object with the same name exists again. If same is true, the data of a Secret must be the
// same, and the list of epochs must begin with the same epochs.
func isBack(ctx context.Context, before client.Object, same bool) error {
	now := before.DeepCopyObject().(client.Object)
	if err := suite.Hub.Get(ctx, client.ObjectKeyFromObject(before), now); err != nil {
		return err
	}
	if now.GetUID() == before.GetUID() {
		return fmt.Errorf("%s is not deleted", before.GetName())
	}
	switch was := before.(type) {
	case *corev1.Secret:
		for key, value := range was.Data {
			if same && !bytes.Equal(now.(*corev1.Secret).Data[key], value) {
				return fmt.Errorf("Secret %s has another %s", was.Name, key)
			}
		}
	case *corev1.ConfigMap:
		for key, value := range was.Data {
			if same && !strings.HasPrefix(now.(*corev1.ConfigMap).Data[key], value) {
				return fmt.Errorf("ConfigMap %s has another %s", was.Name, key)
			}
		}
	}
	return nil
}
