package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/cmd/hansectl/view"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wants fails unless all these are in the text.
func wants(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("want %q in:\n%s", part, text)
		}
	}
}

// refused fails unless there is an error that says all of these.
func refused(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("want an error that says %q", parts)
	}
	wants(t, err.Error(), parts...)
}

// apply creates an object and removes it after the test.
func apply(t *testing.T, s server, o client.Object) {
	t.Helper()
	if err := s.Create(t.Context(), o); err != nil {
		t.Fatalf("creating %T %s: %v", o, o.GetName(), err)
	}
	t.Cleanup(func() { remove(t, s, o) })
}

func remove(t *testing.T, s server, o client.Object) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	if s.Get(ctx, client.ObjectKeyFromObject(o), o) != nil {
		return
	}
	if len(o.GetFinalizers()) > 0 {
		o.SetFinalizers(nil)
		_ = s.Update(ctx, o)
	}
	_ = client.IgnoreNotFound(s.Delete(ctx, o))
}

func systemNamespace(t *testing.T, s server) {
	t.Helper()
	must(t, client.IgnoreAlreadyExists(s.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: hubv1.SystemNamespace}})))
}

// fresh makes both servers as they are before a join.
func fresh(t *testing.T) {
	t.Helper()
	needServers(t)
	systemNamespace(t, onHub)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		for _, o := range []client.Object{
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: accountName}},
			&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: accountName}},
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: accountName}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: tokenSecret}},
		} {
			remove(t, onMember, o)
		}
		var members hubv1.MemberClusterList
		_ = onHub.List(ctx, &members)
		for i := range members.Items {
			remove(t, onHub, &members.Items[i])
		}
		_ = onHub.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(hubv1.SystemNamespace))
	})
}

func memberID(t *testing.T) string {
	t.Helper()
	var ns corev1.Namespace
	must(t, onMember.Get(t.Context(), client.ObjectKey{Name: "kube-system"}, &ns))
	return string(ns.UID)
}

// report plays the hub: it writes the status of a MemberCluster.
func report(ctx context.Context, name string, ready metav1.ConditionStatus, reason, clusterID string) error {
	var m hubv1.MemberCluster
	if err := onHub.Get(ctx, client.ObjectKey{Name: name}, &m); err != nil {
		return err
	}
	m.Status.ClusterID = clusterID
	m.Status.Version.Kubernetes = "v1.36.3"
	m.Status.Topology.Region = "cn-shanghai"
	meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{Type: hubv1.ConditionReady, Status: ready, Reason: reason, Message: "as told by the test"})
	return onHub.Status().Update(ctx, &m)
}

// whenever does something again and again until it has worked.
func whenever(t *testing.T, what func(context.Context) error) {
	t.Helper()
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(done)
		_ = wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) { return what(ctx) == nil, nil })
	}()
	t.Cleanup(func() { cancel(); <-done })
}

func TestJoinMakesAnAccountThatMayDoWhatIsGrantedAndNoMore(t *testing.T) {
	fresh(t)
	whenever(t, func(ctx context.Context) error {
		return report(ctx, "cn-sha-1", metav1.ConditionTrue, hubv1.ReasonConnected, memberID(t))
	})
	out, err := hansectl(t, "join", "cn-sha-1", "--member-kubeconfig", onMember.kubeconfig, "--grant", "configmaps", "--token-lifetime", "1h",
		"--region", "cn-shanghai", "--labels", "tier=gold", "--allowed-namespaces", "team in (a,b)", "--leave-policy", "Delete")
	must(t, err)
	wants(t, out, "serviceaccount/hanse", "created", "clusterrole/hanse", "grants configmaps", "expires at", "secret/cn-sha-1", "membercluster/cn-sha-1",
		"allowedNamespaces team in (a,b), leave Delete", "Ready: v1.36.3, region cn-shanghai")

	ctx := t.Context()
	var m hubv1.MemberCluster
	must(t, onHub.Get(ctx, client.ObjectKey{Name: "cn-sha-1"}, &m))
	if diff := cmp.Diff(map[string]string{hubv1.RegionLabel: "cn-shanghai", "tier": "gold"}, m.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	var secret corev1.Secret
	must(t, onHub.Get(ctx, client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: "cn-sha-1"}, &secret))
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"])
	must(t, err)
	if config.CertFile != "" || len(config.CertData) > 0 || config.BearerToken == "" {
		t.Error("the hub got other credentials than a token")
	}
	asHub, err := newClient(config)
	must(t, err)
	must(t, asHub.List(ctx, &corev1.NodeList{}))
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}}
	must(t, asHub.Create(ctx, settings))
	must(t, asHub.Delete(ctx, settings))
	if err := asHub.List(ctx, &corev1.SecretList{}); !apierrors.IsForbidden(err) {
		t.Errorf("the hub may read Secrets of the member: %v", err)
	}

	t.Run("again without grants it keeps them and changes what is named alone", func(t *testing.T) {
		out, err := hansectl(t, "join", "cn-sha-1", "--member-kubeconfig", onMember.kubeconfig, "--token-lifetime", "1h", "--wait=false", "--labels", "tier=silver")
		must(t, err)
		wants(t, out, "grants configmaps", "clusterrole/hanse                  unchanged", "secret/cn-sha-1                    updated", "leave Delete")
		must(t, onHub.Get(ctx, client.ObjectKey{Name: "cn-sha-1"}, &m))
		if m.Labels["tier"] != "silver" || m.Spec.AllowedNamespaces.From != hubv1.NamespacesFromSelector || m.Spec.Leave.Policy != hubv1.RemovalDelete {
			t.Errorf("the MemberCluster was changed: %v %+v", m.Labels, m.Spec)
		}
		var again corev1.Secret
		must(t, onHub.Get(ctx, client.ObjectKeyFromObject(&secret), &again))
		if bytes.Equal(again.Data["kubeconfig"], secret.Data["kubeconfig"]) {
			t.Error("the token was not refreshed")
		}
	})
	t.Run("under another name it is refused", func(t *testing.T) {
		_, err := hansectl(t, "join", "other", "--member-kubeconfig", onMember.kubeconfig)
		refused(t, err, memberID(t), "is a member already, as membercluster/cn-sha-1")
	})
	t.Run("get clusters shows it", func(t *testing.T) {
		out, err := hansectl(t, "get", "clusters")
		must(t, err)
		wants(t, out, "NAME       READY   REGION        VERSION   NODES   OBJECTS   AGE", "cn-sha-1   True    cn-shanghai   v1.36.3   0/0     0")
	})
}

func TestJoinUsesTheAccountOfTheMemberChart(t *testing.T) {
	fresh(t)
	systemNamespace(t, onMember)
	apply(t, onMember, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: hubv1.SystemNamespace, Name: accountName, Labels: map[string]string{managedByLabel: "Helm"},
		Annotations: map[string]string{"meta.helm.sh/release-name": "hanse"},
	}})
	join := []string{"join", "cn-sha-1", "--member-kubeconfig", onMember.kubeconfig, "--token-lifetime", "1h", "--wait=false"}
	_, err := hansectl(t, append(join, "--grant", "configmaps")...)
	refused(t, err, "is managed by Helm, release hanse", "set grantedKinds there")
	out, err := hansectl(t, join...)
	must(t, err)
	wants(t, out, "exists, managed by Helm, release hanse: its RBAC is left as it is", "allowedNamespaces All, leave Orphan")
	if err := onMember.Get(t.Context(), client.ObjectKey{Name: accountName}, &rbacv1.ClusterRole{}); !apierrors.IsNotFound(err) {
		t.Errorf("a ClusterRole was made: %v", err)
	}
}

func TestJoinAsADryRunChangesNothing(t *testing.T) {
	fresh(t)
	out, err := hansectl(t, "join", "cn-sha-1", "--member-kubeconfig", onMember.kubeconfig, "--dry-run=client", "--grant", "configmaps")
	must(t, err)
	wants(t, out, "Dry run: nothing is changed", "serviceaccount/hanse", "membercluster/cn-sha-1")
	ctx := t.Context()
	for _, err := range []error{
		onMember.Get(ctx, client.ObjectKey{Name: accountName}, &rbacv1.ClusterRole{}),
		onMember.Get(ctx, client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: accountName}, &corev1.ServiceAccount{}),
		onHub.Get(ctx, client.ObjectKey{Name: "cn-sha-1"}, &hubv1.MemberCluster{}),
		onHub.Get(ctx, client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: "cn-sha-1"}, &corev1.Secret{}),
	} {
		if !apierrors.IsNotFound(err) {
			t.Errorf("something was made: %v", err)
		}
	}
}

func TestJoinSaysWhyAMemberIsNotReady(t *testing.T) {
	fresh(t)
	join := []string{"join", "cn-sha-1", "--member-kubeconfig", onMember.kubeconfig, "--token-lifetime", "1h", "--timeout", "1s"}
	out, err := hansectl(t, join...)
	refused(t, err, "membercluster/cn-sha-1", "timed out after 1s", "does a hub run?")
	wants(t, out, "the hub has not looked at it yet", "grants no kind yet")
	must(t, report(t.Context(), "cn-sha-1", metav1.ConditionFalse, hubv1.ReasonUnauthorized, ""))
	_, err = hansectl(t, join...)
	refused(t, err, "timed out after 1s: Unauthorized: as told by the test", "it stays joined")
}

func TestJoinKeepsItsHandsOffWhatItDidNotMake(t *testing.T) {
	fresh(t)
	join := []string{"join", "cn-sha-1", "--member-kubeconfig", onMember.kubeconfig, "--token-lifetime", "1h", "--wait=false"}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: "cn-sha-1"}}
	must(t, onHub.Create(t.Context(), secret))
	_, err := hansectl(t, join...)
	refused(t, err, "hanse-system/cn-sha-1", "hansectl did not make")
	must(t, onHub.Delete(t.Context(), secret))

	remove(t, onMember, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: accountName}})
	apply(t, onMember, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: accountName}})
	_, err = hansectl(t, join...)
	refused(t, err, "preparing the member cn-sha-1", "clusterrole/hanse", "not made by hansectl")
}

func TestJoinNeedsAHubOfHanse(t *testing.T) {
	fresh(t)
	for _, args := range [][]string{{"join", "a", "--member-kubeconfig", onMember.kubeconfig}, {"unjoin", "a"}, {"get", "clusters"}, {"status", "namespace", "default"}} {
		_, err := run(t, append(args, "--kubeconfig", onMember.kubeconfig, "--cache-dir", t.TempDir())...)
		refused(t, err, "no hub of Hanse is installed there")
	}
}

func TestATokenLastsWhereAControllerFillsItsSecret(t *testing.T) {
	fresh(t)
	systemNamespace(t, onMember)
	ctx := t.Context()
	must(t, client.IgnoreAlreadyExists(onMember.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: accountName}})))
	m := &memberCluster{Client: onMember.Client}

	t.Run("without a controller one is requested and its end is told", func(t *testing.T) {
		var out bytes.Buffer
		token, err := m.token(ctx, &out, 0, time.Second)
		must(t, err)
		if token == "" {
			t.Error("there is no token")
		}
		wants(t, out.String(), "not filled after 1s: the member runs no token controller", "it expires at 20")
	})
	t.Run("with a controller its token is taken", func(t *testing.T) {
		whenever(t, func(ctx context.Context) error {
			var secret corev1.Secret
			if err := onMember.Get(ctx, client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: tokenSecret}, &secret); err != nil {
				return err
			}
			secret.Data = map[string][]byte{corev1.ServiceAccountTokenKey: []byte("lasting")}
			return onMember.Update(ctx, &secret)
		})
		var out bytes.Buffer
		token, err := m.token(ctx, &out, 0, 10*time.Second)
		must(t, err)
		if token != "lasting" {
			t.Errorf("got %q", token)
		}
		wants(t, out.String(), "does not expire")
	})
}

func TestUnjoinTakesAMemberOffBothSides(t *testing.T) {
	fresh(t)
	ctx := t.Context()
	var m hubv1.MemberCluster
	joined := func(t *testing.T) {
		t.Helper()
		_, err := hansectl(t, "join", "cn-sha-1", "--member-kubeconfig", onMember.kubeconfig, "--token-lifetime", "1h", "--wait=false")
		must(t, err)
		must(t, onHub.Get(ctx, client.ObjectKey{Name: "cn-sha-1"}, &m))
		controllerutil.AddFinalizer(&m, hubv1.WithdrawFinalizer)
		must(t, onHub.Update(ctx, &m))
		must(t, report(ctx, "cn-sha-1", metav1.ConditionFalse, hubv1.ReasonUnreachable, memberID(t)))
	}
	joined(t)

	t.Run("the kubeconfig of another cluster is refused", func(t *testing.T) {
		_, err := hansectl(t, "unjoin", "cn-sha-1", "--member-kubeconfig", onHub.kubeconfig)
		refused(t, err, "is of another cluster", "nothing was changed")
	})
	t.Run("without a hub it says what it waits for", func(t *testing.T) {
		out, err := hansectl(t, "unjoin", "cn-sha-1", "--abandon", "--timeout", "1s")
		refused(t, err, "membercluster/cn-sha-1", "timed out", hubv1.ReasonUnreachable)
		wants(t, out, "0 objects on the member to be left there as they are", "is given up if it does not answer")
		must(t, onHub.Get(ctx, client.ObjectKey{Name: "cn-sha-1"}, &m))
		if m.Spec.Leave.WhenUnreachable != hubv1.UnreachableAbandon || ptr.Deref(m.Spec.Leave.TimeoutSeconds, -1) != 0 {
			t.Errorf("leave is %+v", m.Spec.Leave)
		}
	})
	t.Run("with a hub nothing is left", func(t *testing.T) {
		remove(t, onHub, &m)
		joined(t)
		whenever(t, func(ctx context.Context) error {
			var m hubv1.MemberCluster
			if err := onHub.Get(ctx, client.ObjectKey{Name: "cn-sha-1"}, &m); err != nil {
				return client.IgnoreNotFound(err)
			}
			if m.DeletionTimestamp == nil {
				return fmt.Errorf("not yet")
			}
			m.Finalizers = nil
			return onHub.Update(ctx, &m)
		})
		out, err := hansectl(t, "unjoin", "cn-sha-1", "--member-kubeconfig", onMember.kubeconfig)
		must(t, err)
		wants(t, out, "gone", "secret/cn-sha-1", "clusterrole/hanse", "serviceaccount/hanse")
		for _, err := range []error{
			onHub.Get(ctx, client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: "cn-sha-1"}, &corev1.Secret{}),
			onMember.Get(ctx, client.ObjectKey{Name: accountName}, &rbacv1.ClusterRole{}),
			onMember.Get(ctx, client.ObjectKey{Name: accountName}, &rbacv1.ClusterRoleBinding{}),
			onMember.Get(ctx, client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: accountName}, &corev1.ServiceAccount{}),
		} {
			if !apierrors.IsNotFound(err) {
				t.Errorf("something is left: %v", err)
			}
		}
		_, err = hansectl(t, "unjoin", "cn-sha-1")
		refused(t, err, "the hub has no membercluster/cn-sha-1")
	})
}

// settings is a ConfigMap of the hub with a binding for two clusters.
func settings(t *testing.T) (*corev1.ConfigMap, *hubv1.ResourceBinding) {
	t.Helper()
	must(t, client.IgnoreAlreadyExists(onHub.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})))
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings"}}
	apply(t, onHub, object)
	key := hubv1.ObjectIdentity{Kind: "ConfigMap", Namespace: "shop", Name: "settings"}.BindingKey()
	binding := &hubv1.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Finalizers: []string{hubv1.WithdrawFinalizer}},
		Spec: hubv1.BindingSpec{
			ObjectRef:    hubv1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "settings", UID: object.UID},
			PlacementRef: &hubv1.PlacementReference{Kind: "Placement", Namespace: "shop", Name: "all", UID: "p", Generation: 1},
			Clusters:     []hubv1.BindingTarget{{Name: "ap-se-1", State: hubv1.TargetPresent}, {Name: "cn-sha-1", State: hubv1.TargetPresent}},
		},
	}
	return object, binding
}

func TestStatusFindsAnObjectAsKubectlDoes(t *testing.T) {
	fresh(t)
	object, binding := settings(t)

	t.Run("without a binding it says why", func(t *testing.T) {
		out, err := hansectl(t, "status", "configmap", "settings", "-n", "shop")
		must(t, err)
		wants(t, out, "ConfigMap shop/settings   not federated", "NotSelected: no placement selects it", "create a Placement in namespace shop")
	})

	apply(t, onHub, binding)
	binding.Status = hubv1.BindingStatus{
		Summary: hubv1.BindingSummary{Desired: 2, Applied: 1, Healthy: 1},
		Clusters: []hubv1.ClusterRow{
			{Name: "ap-se-1", Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy},
			{Name: "cn-sha-1", Applied: metav1.ConditionFalse, Health: hubv1.HealthUnknown, Reason: hubv1.ReasonForbidden, Message: "grant it"},
		},
	}
	must(t, onHub.Status().Update(t.Context(), binding))
	for _, args := range [][]string{{"configmap", "settings"}, {"configmaps", "settings"}, {"cm", "settings"}, {"ConfigMap", "settings"}, {"configmaps.v1.", "settings"}, {"cm/settings"}} {
		t.Run("as "+strings.Join(args, " "), func(t *testing.T) {
			out, err := hansectl(t, append(append([]string{"status"}, args...), "-n", "shop")...)
			must(t, err)
			wants(t, out, "ConfigMap shop/settings   Placement/all", "APPLIED 1/2   HEALTHY 1/2", "cn-sha-1   -        -     False     -       Unknown   live    Forbidden: grant it")
		})
	}
	t.Run("as JSON", func(t *testing.T) {
		out, err := hansectl(t, "status", "cm", "settings", "-n", "shop", "-o", "json")
		must(t, err)
		var s view.Status
		must(t, json.Unmarshal([]byte(out), &s))
		if s.Object.Name != "settings" || len(s.Clusters) != 2 || s.Clusters[1].Reason != hubv1.ReasonForbidden {
			t.Errorf("got %+v", s)
		}
	})
	t.Run("as YAML", func(t *testing.T) {
		out, err := hansectl(t, "status", "cm", "settings", "-n", "shop", "-o", "yaml")
		must(t, err)
		wants(t, out, "clusters:\n- applied: \"True\"\n  cluster: ap-se-1\n")
	})
	t.Run("a deleted object is still shown", func(t *testing.T) {
		must(t, onHub.Delete(t.Context(), object))
		out, err := hansectl(t, "status", "cm", "settings", "-n", "shop")
		must(t, err)
		wants(t, out, "ConfigMap shop/settings   deleted")
	})
	t.Run("what is not there is an error", func(t *testing.T) {
		_, err := hansectl(t, "status", "cm", "other", "-n", "shop")
		refused(t, err, "the hub has no ConfigMap shop/other")
		_, err = hansectl(t, "status", "prometheus", "web")
		refused(t, err, `the hub does not serve a kind "prometheus"`)
	})
}

// asHook are the flags that make a command run as the ServiceAccount of the chart's hook.
var asHook = []string{"--as", "system:serviceaccount:hanse-system:hanse-uninstall", "--as-group", "system:serviceaccounts", "--as-group", "system:authenticated"}

func TestUninstallStopsTheHubThenTakesItsFinalizersOff(t *testing.T) {
	fresh(t)
	ctx := t.Context()
	for _, o := range render(t, "hanse-hub/templates/uninstall-hook.yaml", map[string]any{
		"uninstallHook": map[string]any{"enabled": true, "image": map[string]any{"repository": "hansectl", "tag": "", "pullPolicy": "Always"}},
	}) {
		if o.GetKind() == "Job" {
			continue
		}
		o.SetAnnotations(nil)
		apply(t, onHub, o)
	}
	labels := map[string]string{"app.kubernetes.io/name": "hanse-hub"}
	pod := corev1.PodSpec{Containers: []corev1.Container{{Name: "hub", Image: "hub"}}}
	apply(t, onHub, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: hubName, Annotations: map[string]string{"meta.helm.sh/release-name": "league"}},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](2), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
		},
	})
	running := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: "hanse-hub-1", Labels: labels}, Spec: pod}
	apply(t, onHub, running)
	whenever(t, func(ctx context.Context) error { // the Deployment's controller and the kubelet
		var d appsv1.Deployment
		if err := onHub.Get(ctx, client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: hubName}, &d); err != nil || *d.Spec.Replicas > 0 {
			return fmt.Errorf("not yet: %w", err)
		}
		return onHub.Delete(ctx, running, client.GracePeriodSeconds(0))
	})
	apply(t, onHub, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: hubName},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To("hanse-hub-1_x"), LeaseDurationSeconds: ptr.To[int32](1), RenewTime: &metav1.MicroTime{Time: time.Now()}},
	})

	_, binding := settings(t)
	binding.Finalizers = []string{"example.com/other", hubv1.WithdrawFinalizer}
	apply(t, onHub, binding)
	leaving := &hubv1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "eu-fra-1", Finalizers: []string{hubv1.WithdrawFinalizer}},
		Spec: hubv1.MemberClusterSpec{
			Connection:        hubv1.Connection{Type: hubv1.ConnectionDirect, Direct: &hubv1.DirectConnection{KubeconfigSecretRef: hubv1.SecretKeyRef{Name: "eu-fra-1"}}},
			AllowedNamespaces: hubv1.AllowedNamespaces{From: hubv1.NamespacesFromAll},
		},
	}
	apply(t, onHub, leaving)
	must(t, onHub.Delete(ctx, leaving))

	many := pageSize + 50
	for i := range many {
		b := binding.DeepCopy()
		b.ResourceVersion, b.UID, b.Name, b.Spec.ObjectRef.Name = "", "", fmt.Sprintf("settings-%d", i), fmt.Sprintf("settings-%d", i)
		must(t, onHub.Create(ctx, b))
	}
	t.Cleanup(func() {
		_ = wait.PollUntilContextTimeout(context.WithoutCancel(t.Context()), time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			var left hubv1.ResourceBindingList
			if err := onHub.List(ctx, &left); err != nil || len(left.Items) == 0 {
				return err == nil, err
			}
			for i := range left.Items {
				remove(t, onHub, &left.Items[i])
			}
			return false, nil
		})
	})

	t.Run("without a terminal it wants to be told", func(t *testing.T) {
		_, err := hansectl(t, "uninstall")
		refused(t, err, "say --yes")
	})
	t.Run("with the rights of the chart's hook it does it", func(t *testing.T) {
		out, err := hansectl(t, append([]string{"uninstall", "--yes"}, asHook...)...)
		must(t, err)
		wants(t, out, "deployment/hanse-hub               scaled to 0", "no pod of the hub is left", "no hub leads any more",
			"memberclusters                     finalizer taken off 1", fmt.Sprintf("resourcebindings                   finalizer taken off %d", many+1),
			fmt.Sprintf("Left without finalizers: 0 MemberClusters, %d ResourceBindings", many+1), " 0 ClusterResourceBindings", "Next: helm uninstall league --namespace hanse-system")
		must(t, onHub.Get(ctx, client.ObjectKeyFromObject(binding), binding))
		if diff := cmp.Diff([]string{"example.com/other"}, binding.Finalizers); diff != "" {
			t.Errorf("finalizers (-want +got):\n%s", diff)
		}
		if err := onHub.Get(ctx, client.ObjectKeyFromObject(leaving), leaving); !apierrors.IsNotFound(err) {
			t.Errorf("what was being deleted hangs: %v", err)
		}
	})
	t.Run("again it finds nothing to do", func(t *testing.T) {
		out, err := hansectl(t, "uninstall", "--yes")
		must(t, err)
		wants(t, out, "is scaled to 0 already", "Left without finalizers: 0 MemberClusters, ")
	})
}

func TestUninstallRefusesWhileAHubRunsThatItCannotStop(t *testing.T) {
	fresh(t)
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: hubName},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To("somewhere_else"), LeaseDurationSeconds: ptr.To[int32](15)},
	}
	apply(t, onHub, lease)
	_, binding := settings(t)
	apply(t, onHub, binding)
	whenever(t, func(ctx context.Context) error {
		lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
		_ = onHub.Update(ctx, lease)
		return fmt.Errorf("again")
	})
	_, err := hansectl(t, "uninstall", "--yes")
	refused(t, err, "the Lease hanse-hub is renewed by somewhere_else", "end it, then run this again")
	must(t, onHub.Get(t.Context(), client.ObjectKeyFromObject(binding), binding))
	if !controllerutil.ContainsFinalizer(binding, hubv1.WithdrawFinalizer) {
		t.Error("a finalizer was taken off while a hub runs")
	}
}

func TestUninstallGetsAlongWithoutTheKinds(t *testing.T) {
	needServers(t)
	out, err := run(t, "uninstall", "--yes", "--kubeconfig", onMember.kubeconfig)
	must(t, err)
	wants(t, out, "deployment/hanse-hub               there is none", "memberclusters                     the hub does not serve the kind any more")
}
