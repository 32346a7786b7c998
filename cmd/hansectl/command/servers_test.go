package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/credential"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wants fails the test unless the text contains all parts.
func wants(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("want %q in:\n%s", part, text)
		}
	}
}

// refused fails the test unless there is an error whose message contains all parts.
func refused(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("want an error that says %q", parts)
	}
	wants(t, err.Error(), parts...)
}

// exits fails the test unless the error has this exit code.
func exits(t *testing.T, err error, code int) {
	t.Helper()
	if got := ExitCode(err); got != code {
		t.Errorf("the exit code is %d, want %d: %v", got, code, err)
	}
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

// fresh resets both servers to their state before a join.
func fresh(t *testing.T) {
	t.Helper()
	needServers(t)
	systemNamespace(t, onHub)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		for _, name := range append([]string{credential.LastingSecret}, credential.TokenSecrets...) {
			remove(t, onMember, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: name}})
		}
		forOperators, err := madeForOperators(ctx, onMember)
		if err != nil {
			t.Error(err)
		}
		onEach, err := madeOnEach(ctx, nil)
		if err != nil {
			t.Error(err)
		}
		for _, made := range append(forOperators, onEach...) {
			remove(t, onMember, made.o)
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

// report writes the status of a MemberCluster, as the hub would.
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

// whenever calls what in the background, repeatedly until it returns no error or the test ends.
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
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings", Labels: map[string]string{hubv1.HubLabel: "hub-1"}}}
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
	t.Run("clusters shows it", func(t *testing.T) {
		out, err := hansectl(t, "clusters")
		must(t, err)
		wants(t, out, "NAME       READY   AS OF   REGION        VERSION   NODES   OBJECTS   AGE", "cn-sha-1   True?   -       cn-shanghai   v1.36.3   0/0     0")
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
	refused(t, err, "is managed by Helm, release hanse", "set grantedKinds, operators and admissionPolicy there")
	out, err := hansectl(t, join...)
	must(t, err)
	wants(t, out, "exists, managed by Helm, release hanse: its RBAC is left as it is", "allowedNamespaces All, leave Orphan")
	if err := onMember.Get(t.Context(), client.ObjectKey{Name: accountName}, &rbacv1.ClusterRole{}); !apierrors.IsNotFound(err) {
		t.Errorf("a ClusterRole was made: %v", err)
	}

	t.Run("what placements want and the chart does not grant is named", func(t *testing.T) {
		must(t, client.IgnoreAlreadyExists(onHub.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})))
		p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "all"}}
		p.Spec.Clusters.LabelSelector = &metav1.LabelSelector{}
		for _, kind := range []string{"ConfigMap", "Secret", "Service"} {
			p.Spec.ResourceSelectors = append(p.Spec.ResourceSelectors, hubv1.ResourceSelector{Kind: kind})
		}
		definitions := hubv1.ResourceSelector{APIGroup: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
		apply(t, onHub, p)
		everywhere := &hubv1.ClusterPlacement{ObjectMeta: metav1.ObjectMeta{Name: "definitions"}}
		everywhere.Spec.Clusters.LabelSelector = &metav1.LabelSelector{}
		everywhere.Spec.ResourceSelectors = []hubv1.ResourceSelector{definitions, {APIGroup: hubv1.GroupVersion.Group, Kind: hubv1.FederatedOperatorKind}}
		apply(t, onHub, everywhere)
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: accountName}, Rules: append(roleWith(t, memberValues{kinds: []kindGrant{{"", "configmaps"}}}),
			// Roles in namespaces grant the writes of Secrets.
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "watch"}},
		)}
		apply(t, onMember, role)
		out, err := hansectl(t, join...)
		must(t, err)
		wants(t, out, "lacks services, which Placement/shop/all wants there: add it to grantedKinds of the chart there",
			"lacks apiextensions.k8s.io/customresourcedefinitions, which ClusterPlacement/definitions wants there")
		if strings.Contains(out, "lacks configmaps") || strings.Contains(out, "lacks secrets") {
			t.Errorf("a kind that is granted is lacking:\n%s", out)
		}
		if strings.Contains(out, "federatedoperators") {
			t.Errorf("a kind that stays on the hub is lacking:\n%s", out)
		}
	})
}

func TestJoinAddsGrantsAndSaysWhichAreLacking(t *testing.T) {
	fresh(t)
	ctx := t.Context()
	must(t, client.IgnoreAlreadyExists(onHub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})))
	for name, clusters := range map[string][]string{"jobs": {"cn-sha-1"}, "elsewhere": {"us-1"}} {
		p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		p.Spec.Clusters.Names = clusters
		p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{APIGroup: "batch", Kind: "CronJob"}}
		if name == "elsewhere" {
			p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{Kind: "Service"}}
		}
		apply(t, onHub, p)
	}
	join := func(args ...string) (string, error) {
		return hansectl(t, append([]string{"join", "cn-sha-1", "--member-kubeconfig", onMember.kubeconfig, "--wait=false"}, args...)...)
	}
	out, err := join("--grant", "configmaps")
	must(t, err)
	wants(t, out, "+ configmaps", "lacks batch/cronjobs, which Placement/shop/jobs wants there: add it by --grant batch/cronjobs")
	if strings.Contains(out, "lacks services") {
		t.Errorf("a kind is lacking that is wanted elsewhere:\n%s", out)
	}
	for name, tc := range map[string]struct {
		grant string
		want  string
	}{
		"by resource and group": {"deployments.apps", "+ apps/deployments"},
		"by a short name":       {"cj", "+ batch/cronjobs"},
		"by the hub's kinds":    {"placements.hanse.dev", "hanse.dev/placements is not served by the member yet"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := join("--grant", tc.grant)
			must(t, err)
			wants(t, out, tc.want, "grants configmaps")
		})
	}
	t.Run("what nobody serves is refused", func(t *testing.T) {
		_, err := join("--grant", "deploymnets.apps")
		refused(t, err, "--grant apps/deploymnets: neither the member nor the hub serves this kind")
	})
	t.Run("one is taken away, and the others stay", func(t *testing.T) {
		out, err := join("--ungrant", "configmaps")
		must(t, err)
		wants(t, out, "- configmaps", "apps/deployments", "batch/cronjobs")
	})
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
	refused(t, err, "membercluster/cn-sha-1", "timed out after 1s", "check whether a hub runs")
	wants(t, out, "the hub has not processed it yet", "grants no kind yet")
	must(t, report(t.Context(), "cn-sha-1", metav1.ConditionFalse, hubv1.ReasonUnauthorized, ""))
	_, err = hansectl(t, join...)
	refused(t, err, "timed out after 1s: Unauthorized: as told by the test", "the cluster stays joined")
}

func TestJoinDoesNotChangeObjectsOfOthers(t *testing.T) {
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
	for _, args := range [][]string{{"join", "a", "--member-kubeconfig", onMember.kubeconfig}, {"unjoin", "a"}, {"clusters"}, {"status", "namespace", "default"}} {
		_, err := run(t, append(args, "--kubeconfig", onMember.kubeconfig, "--cache-dir", t.TempDir())...)
		refused(t, err, "the cluster of your kubeconfig has no hub of Hanse")
	}
}

func TestATokenEndsWithASecretOfItsOwnHub(t *testing.T) {
	fresh(t)
	systemNamespace(t, onMember)
	ctx := t.Context()
	must(t, client.IgnoreAlreadyExists(onMember.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: accountName}})))
	m := &memberCluster{Client: onMember.Client}
	issue := func(hub types.UID, inUse string) (issued, string, error) {
		var out bytes.Buffer
		made, err := m.token(ctx, &out, time.Hour, hub, inUse)
		return made, out.String(), err
	}
	exists := func(name string) error {
		return onMember.Get(ctx, client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: name}, &corev1.Secret{})
	}
	first, out, err := issue("hub-1", "")
	must(t, err)
	wants(t, out, "secret/"+first.Secret, "expires at 20", "the hub renews it")
	if left := time.Until(first.Expires); left > time.Hour || left < 50*time.Minute || first.UID == "" || !first.Own {
		t.Errorf("the token is %+v", first.Credential)
	}
	other, _, err := issue("hub-2", "")
	must(t, err)
	for range len(credential.TokenSecrets) - 2 {
		_, _, err = issue("hub-1", first.Secret)
		must(t, err)
	}
	t.Run("without room those that are not in use go, and those of other hubs stay", func(t *testing.T) {
		_, out, err := issue("hub-1", first.Secret)
		must(t, err)
		wants(t, out, "deleted on the member: its token is revoked")
		must(t, exists(first.Secret))
		must(t, exists(other.Secret))
	})
	t.Run("a token that does not expire goes if hansectl made it", func(t *testing.T) {
		lasting := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: credential.LastingSecret, Labels: map[string]string{managedByLabel: "Helm"}}}
		apply(t, onMember, lasting)
		var out bytes.Buffer
		must(t, m.revokeOthers(ctx, &out, "hub-1", first.Secret))
		wants(t, out.String(), "kept on the member: hansectl did not create this Secret")
		lasting.Labels = ourLabels()
		must(t, onMember.Update(ctx, lasting))
		must(t, m.revokeOthers(ctx, &out, "hub-1", first.Secret))
		if err := exists(credential.LastingSecret); !apierrors.IsNotFound(err) {
			t.Errorf("it is left: %v", err)
		}
		must(t, exists(first.Secret))
		must(t, exists(other.Secret))
	})
}

// reportCredentials writes the ID of the credentials in use to the status of a MemberCluster, as the hub would. These
// are the credentials in the Secret, or new credentials of the hub if an annotation requests a rotation. It always
// returns an error, so that the function whenever calls it until the test ends.
func reportCredentials(ctx context.Context, name string) error {
	var secret corev1.Secret
	if err := onHub.Get(ctx, client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: name}, &secret); err != nil {
		return err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"])
	if err != nil {
		return err
	}
	var m hubv1.MemberCluster
	if err := onHub.Get(ctx, client.ObjectKey{Name: name}, &m); err != nil {
		return err
	}
	id := credential.Of(config.BearerToken, "").ID
	if m.Annotations[hubv1.RotateCredentialsAnnotation] == id {
		id = "of-the-hub"
	}
	if m.Status.Credentials == nil || m.Status.Credentials.ID != id {
		m.Status.Credentials = &hubv1.CredentialsStatus{ID: id}
		if err := onHub.Status().Update(ctx, &m); err != nil {
			return err
		}
	}
	return errors.New("go on")
}

func TestRotateGivesTheHubANewToken(t *testing.T) {
	fresh(t)
	ctx := t.Context()
	_, err := hansectl(t, "join", "cn-sha-1", "--member-kubeconfig", onMember.kubeconfig, "--wait=false", "--member-server", "https://10.8.0.4:6443")
	must(t, err)
	must(t, report(ctx, "cn-sha-1", metav1.ConditionTrue, hubv1.ReasonConnected, memberID(t)))
	t.Run("a hub that has not reached the member cannot make one", func(t *testing.T) {
		_, err := hansectl(t, "rotate", "cn-sha-1")
		refused(t, err, "has not reached the member yet", "--member-kubeconfig")
	})
	stored := func() (*corev1.Secret, *rest.Config) {
		var secret corev1.Secret
		must(t, onHub.Get(ctx, client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: "cn-sha-1"}, &secret))
		config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"])
		must(t, err)
		return &secret, config
	}
	t.Run("an admin of the member makes one, and what the hub used before goes", func(t *testing.T) {
		apply(t, onMember, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: credential.LastingSecret, Labels: ourLabels()}})
		_, before := stored()
		role := &rbacv1.ClusterRole{}
		must(t, onMember.Get(ctx, client.ObjectKey{Name: accountName}, role))
		role.Rules = role.Rules[:1]
		must(t, onMember.Update(ctx, role))
		_, err := hansectl(t, "rotate", "cn-sha-1", "--member-kubeconfig", onMember.kubeconfig, "--timeout", "1s", "--member-server", "https://10.8.0.4:6443")
		refused(t, err, "timed out after 1s", "the hub does not use the new credentials yet")
		whenever(t, func(ctx context.Context) error { return reportCredentials(ctx, "cn-sha-1") })
		out, err := hansectl(t, "rotate", "cn-sha-1", "--member-kubeconfig", onMember.kubeconfig)
		must(t, err)
		wants(t, out, "the hub uses the new credentials", "secret/hanse-token ", "its token is revoked")
		must(t, onMember.Get(ctx, client.ObjectKey{Name: accountName}, role))
		if len(role.Rules) != 1 {
			t.Errorf("the role that an admin cut has the rules %v", role.Rules)
		}
		_, after := stored()
		if after.BearerToken == before.BearerToken || after.Host != "https://10.8.0.4:6443" {
			t.Errorf("the hub has the same token, or another address: %s", after.Host)
		}
		left := 0
		for _, name := range append([]string{credential.LastingSecret}, credential.TokenSecrets...) {
			if onMember.Get(ctx, client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: name}, &corev1.Secret{}) == nil {
				left++
			}
		}
		if left != 1 {
			t.Errorf("%d Secrets are left on the member, want that of the new token", left)
		}
	})
	t.Run("the hub makes one through its link", func(t *testing.T) {
		whenever(t, func(ctx context.Context) error { return reportCredentials(ctx, "cn-sha-1") })
		out, err := hansectl(t, "rotate", "cn-sha-1")
		must(t, err)
		wants(t, out, "requested a new token from the hub", "the hub uses the new credentials")
	})
	t.Run("a Secret that hansectl did not make is left alone", func(t *testing.T) {
		secret, _ := stored()
		secret.Labels = nil
		must(t, onHub.Update(ctx, secret))
		_, err := hansectl(t, "rotate", "cn-sha-1")
		refused(t, err, "hansectl does not manage the Secret")
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
		refused(t, err, "belongs to another cluster", "nothing was changed")
	})
	t.Run("without a hub it says what it waits for", func(t *testing.T) {
		out, err := hansectl(t, "unjoin", "cn-sha-1", "--abandon", "--timeout", "1s")
		refused(t, err, "membercluster/cn-sha-1", "timed out", hubv1.ReasonUnreachable)
		wants(t, out, "0 objects on the member will stay there", "is abandoned if the member does not answer")
		must(t, onHub.Get(ctx, client.ObjectKey{Name: "cn-sha-1"}, &m))
		if m.Spec.Leave.WhenUnreachable != hubv1.UnreachableAbandon || ptr.Deref(m.Spec.Leave.TimeoutSeconds, -1) != 0 {
			t.Errorf("leave is %+v", m.Spec.Leave)
		}
	})
	t.Run("to give it up is offered after an hour without a sight, if a hub runs", func(t *testing.T) {
		const offer = "or run it with --abandon"
		remove(t, onHub, &m)
		joined(t)
		for _, step := range []struct {
			what       string
			ran        time.Duration // how long ago the hub ran
			seen       time.Duration // how long ago the hub observed the cluster; 0: no change
			offersToGo bool
		}{
			{what: "it was lost just now"},
			{what: "it was not observed for an hour", seen: time.Hour, offersToGo: true},
			{what: "no hub has observed it", seen: time.Hour, ran: time.Hour},
		} {
			t.Run(step.what, func(t *testing.T) {
				aHubRan(t, time.Now().Add(-step.ran))
				if step.seen != 0 {
					seen := fmt.Appendf(nil, `{"status":{"lastObservedTime":%q}}`, time.Now().Add(-step.seen).UTC().Format(time.RFC3339))
					must(t, onHub.Status().Patch(ctx, &m, client.RawPatch(types.MergePatchType, seen)))
				}
				_, err := hansectl(t, "unjoin", "cn-sha-1", "--timeout", "1s")
				refused(t, err, "timed out", "run the command again to continue waiting")
				if strings.Contains(err.Error(), offer) != step.offersToGo {
					t.Errorf("it says %v", err)
				}
			})
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
