package protect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/apiserver"
	"github.com/hanse-dev/hanse/test/charts"
)

var hubConfig *rest.Config

func TestMain(m *testing.M) { os.Exit(apiserver.Run(m, apiserver.Hub(), &hubConfig)) }

const (
	theHub      = "system:serviceaccount:hanse-system:hanse-hub"
	theHook     = "system:serviceaccount:hanse-system:hanse-uninstall"
	theCleaner  = "system:serviceaccount:kube-system:namespace-controller"
	theGarbage  = "system:serviceaccount:kube-system:generic-garbage-collector"
	aTenant     = "tenant"
	anOperator  = "operator" // may do everything, but is not in system:masters
	inEmergency = "hanse:break-glass"
)

// as returns a client of a user who may do everything with the kinds of Hanse and with ConfigMaps.
func as(t *testing.T, user string, groups ...string) client.Client {
	t.Helper()
	apiserver.Needed(t)
	config := rest.CopyConfig(hubConfig)
	if user != "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
	}
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, hubv1.AddToScheme} {
		must(t, add(s))
	}
	c, err := client.New(config, client.Options{Scheme: s})
	must(t, err)
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually repeats a check for at most 30 s, until it succeeds.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		t.Fatal(errors.Join(last, err))
	}
}

// installed installs the policies of the chart, and creates users who may do everything that the policies restrict.
func installed(t *testing.T) client.Client {
	t.Helper()
	admin := as(t, "")
	ctx := t.Context()
	must(t, client.IgnoreAlreadyExists(admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: hubv1.SystemNamespace}})))
	all := []string{"*"}
	for i, user := range []string{theHub, theHook, theCleaner, theGarbage, aTenant} {
		grant(t, admin, fmt.Sprintf("protect-%d", i), user, rbacv1.PolicyRule{APIGroups: []string{hubv1.GroupVersion.Group}, Resources: all, Verbs: all},
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: all})
	}
	grant(t, admin, "protect-all", anOperator, rbacv1.PolicyRule{APIGroups: all, Resources: all, Verbs: all})
	for _, o := range theChart(t, append(federated(samples...), ownKinds...)) {
		if strings.HasPrefix(o.GetKind(), "ValidatingAdmissionPolicy") || o.GetKind() == "ConfigMap" {
			must(t, client.IgnoreAlreadyExists(admin.Create(ctx, o)))
		}
	}
	tenant := as(t, aTenant)
	eventually(t, func() error { // the API server reads its policies by watches
		if err := tenant.Create(ctx, binding("default", "probe"), client.DryRunAll); !apierrors.IsForbidden(err) {
			return fmt.Errorf("a tenant's binding: %w", err)
		}
		return nil
	})
	return admin
}

// theChart returns the objects of the chart, with everything that gives rights to the hub. kinds is the value
// federatedKinds.
func theChart(t *testing.T, kinds []any) []*unstructured.Unstructured {
	t.Helper()
	return charts.Install(t, "hanse-hub", map[string]any{
		"protection":     map[string]any{"breakGlassGroups": []any{inEmergency}},
		"console":        map[string]any{"enabled": true},
		"webhook":        map[string]any{"dryRunRendered": true, "authors": true},
		"federatedKinds": kinds,
	})
}

// grant gives a user rights in the whole cluster, and waits until they are effective.
func grant(t *testing.T, admin client.Client, name, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	must(t, client.IgnoreAlreadyExists(admin.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules})))
	must(t, client.IgnoreAlreadyExists(admin.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})))
	apiserver.AwaitRights(t, hubConfig, user, "", rules...)
}

func binding(namespace, name string) *hubv1.ResourceBinding {
	b := &hubv1.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	b.Spec.ObjectRef = hubv1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: "u"}
	return b
}

// refused fails the test unless err is a policy's refusal with all of the words.
func refused(t *testing.T, err error, words ...string) {
	t.Helper()
	if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
		t.Fatalf("got %v, want a refusal", err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%v: does not say %q", err, w)
		}
	}
}

func TestTheHubChangesOnlySecretsOfHansectl(t *testing.T) {
	admin := installed(t)
	ctx := t.Context()
	rule := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"patch"}}
	grant(t, admin, "protect-secrets", theHub, rule)
	secret := func(name string, labels map[string]string) *corev1.Secret {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: name, Labels: labels}}
		must(t, admin.Create(ctx, s))
		t.Cleanup(func() { _ = admin.Delete(context.WithoutCancel(t.Context()), s) })
		return s
	}
	theirs := secret("helm-release", map[string]string{"owner": "helm"})
	ours := secret("cn-sha-1", map[string]string{hubv1.ManagedByLabel: hubv1.ManagedByHansectl})
	own := secret("hanse-hub-webhook", nil)
	hub := as(t, theHub)
	data := client.RawPatch(types.MergePatchType, []byte(`{"data":{"a":"Yg=="}}`))
	eventually(t, func() error { // the API server reads its policies by watches
		if err := hub.Patch(ctx, theirs.DeepCopy(), data); !apierrors.IsForbidden(err) {
			return fmt.Errorf("a Secret of another: %w", err)
		}
		return nil
	})
	label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"app.kubernetes.io/managed-by":"hansectl"}}}`))
	refused(t, hub.Patch(ctx, theirs.DeepCopy(), label), "the hub changes only Secrets that hansectl made")
	must(t, hub.Patch(ctx, ours.DeepCopy(), data))
	must(t, hub.Patch(ctx, own.DeepCopy(), data))
	must(t, admin.Patch(ctx, theirs, data))
}

func TestOnlyTheHubWritesBindings(t *testing.T) {
	admin := installed(t)
	hub, ctx := as(t, theHub), t.Context()
	const words = "are written by the hub alone"

	b := binding("default", "only-the-hub")
	b.Finalizers = []string{hubv1.WithdrawFinalizer}
	must(t, hub.Create(ctx, b))
	others := map[string]client.Client{"a tenant": as(t, aTenant), "an admin": admin, "the hook": as(t, theHook), "the namespace controller": as(t, theCleaner)}
	for who, c := range others {
		t.Run("neither created nor changed by "+who, func(t *testing.T) {
			refused(t, c.Create(ctx, binding("default", "forged")), words, "group "+inEmergency)
			refused(t, c.Patch(ctx, b.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"clusters":[{"name":"a","state":"Present"}]}}`))), words)
			refused(t, c.Patch(ctx, b.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"hanse.dev/settings":"x"}}}`))), words)
			refused(t, c.Patch(ctx, b.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":[],"labels":{"a":"b"}}}`))), words)
			refused(t, c.Status().Patch(ctx, b.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"status":{"observedGeneration":7}}`))), words)
		})
	}
	noFinalizer := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":[]}}`))
	finalizer := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["hanse.dev/withdraw"]}}`))
	t.Run("nor deleted, but by those who clean up", func(t *testing.T) {
		for _, who := range []string{"a tenant", "an admin", "the hook"} {
			refused(t, others[who].Delete(ctx, b.DeepCopy()), words)
			refused(t, others[who].DeleteAllOf(ctx, &hubv1.ResourceBinding{}, client.InNamespace("default")), words)
		}
		must(t, others["the namespace controller"].Delete(ctx, b.DeepCopy(), client.DryRunAll))
		must(t, others["the namespace controller"].DeleteAllOf(ctx, &hubv1.ResourceBinding{}, client.InNamespace("default"), client.DryRunAll))
		must(t, as(t, theGarbage).Delete(ctx, b.DeepCopy(), client.DryRunAll))
	})
	t.Run("its finalizer is taken off by those who may stop the hub", func(t *testing.T) {
		refused(t, others["a tenant"].Patch(ctx, b.DeepCopy(), noFinalizer), words)
		for who, c := range map[string]client.Client{
			"the hook": others["the hook"], "an admin": admin, "one who may patch the Deployment": as(t, anOperator), "the garbage collector": as(t, theGarbage),
		} {
			if err := c.Patch(ctx, b.DeepCopy(), noFinalizer); err != nil {
				t.Errorf("%s: %v", who, err)
			}
			must(t, hub.Patch(ctx, b.DeepCopy(), finalizer))
		}
	})
	t.Run("in an emergency everything is written", func(t *testing.T) {
		c := as(t, aTenant, inEmergency)
		must(t, c.Patch(ctx, b.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))))
		must(t, c.Patch(ctx, b.DeepCopy(), noFinalizer))
		must(t, c.Delete(ctx, b.DeepCopy()))
	})
}

func TestOnlyTheHubWritesStatuses(t *testing.T) {
	installed(t)
	hub, tenant, ctx := as(t, theHub), as(t, aTenant), t.Context()
	p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "statuses"}}
	p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{Kind: "ConfigMap"}}
	p.Spec.Clusters = hubv1.ClusterSelection{LabelSelector: &metav1.LabelSelector{}}
	must(t, tenant.Create(ctx, p))
	t.Cleanup(func() { _ = tenant.Delete(context.WithoutCancel(ctx), p) })
	status := client.RawPatch(types.MergePatchType, []byte(`{"status":{"observedGeneration":7}}`))
	refused(t, tenant.Status().Patch(ctx, p.DeepCopy(), status), "are written by the hub alone")
	must(t, hub.Status().Patch(ctx, p.DeepCopy(), status))
	must(t, tenant.Patch(ctx, p.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"priority":1}}`))))
}
