package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// TestCredentialsAreRotatedAndRevoked replaces the kubeconfig in a member's Secret in every way. During all
// replacements the same hub process runs, and it deletes nothing on the member.
func TestCredentialsAreRotatedAndRevoked(t *testing.T) {
	ctx := t.Context()
	ns := namespace(t)
	w := widget(ns, "keeper")
	placeWidgets(t, ns)
	must(t, suite.Hub.Create(ctx, w))
	for _, m := range members {
		eventually(t, normal, func() error { return rowIs(ctx, w, m, metav1.ConditionTrue, "") })
	}
	uids, pid := memberUIDs(ctx, t, ns), suite.hub.PID
	t.Cleanup(func() {
		setSecret(t, frankfurt, goodKubeconfig(t, frankfurt, nil))
		must(t, poll(context.WithoutCancel(t.Context()), time.Minute, func() error { return memberReady(context.WithoutCancel(t.Context()), frankfurt) }))
	})
	replicas := int64(3)
	writes := func(t *testing.T) {
		t.Helper()
		replicas++
		must(t, suite.Hub.Patch(ctx, widget(ns, "keeper"), client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))))
		eventually(t, 20*time.Second, func() error { return replicasOn(ctx, frankfurt, w, replicas) })
	}

	// A token that is bound to a Secret becomes invalid when the Secret is deleted. The test revokes the old token in this
	// way after the hub uses the new one.
	bound := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, GenerateName: "bound-"}}
	must(t, suite.Members[frankfurt].Create(ctx, bound))
	setSecret(t, frankfurt, goodKubeconfig(t, frankfurt, bound))
	writes(t)
	setSecret(t, frankfurt, goodKubeconfig(t, frankfurt, nil))
	must(t, suite.Members[frankfurt].Delete(ctx, bound.DeepCopy()))
	writes(t)

	setSecret(t, frankfurt, kubeconfigWith(t, frankfurt, "revoked"))
	eventually(t, 15*time.Second, func() error {
		return memberCondition(ctx, frankfurt, hubv1.ConditionCredentialsValid, metav1.ConditionFalse, hubv1.ReasonUnauthorized)
	})
	setSecret(t, frankfurt, goodKubeconfig(t, frankfurt, nil))
	eventually(t, 20*time.Second, func() error {
		return memberCondition(ctx, frankfurt, hubv1.ConditionCredentialsValid, metav1.ConditionTrue, "")
	})
	eventually(t, 20*time.Second, func() error { return memberReady(ctx, frankfurt) })
	writes(t)

	must(t, suite.Hub.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: frankfurt}}))
	eventually(t, 15*time.Second, func() error {
		return memberCondition(ctx, frankfurt, hubv1.ConditionReady, metav1.ConditionFalse, hubv1.ReasonSecretMissing)
	})
	must(t, replicasOn(ctx, frankfurt, w, replicas))
	setSecret(t, frankfurt, goodKubeconfig(t, frankfurt, nil))
	eventually(t, 20*time.Second, func() error { return memberReady(ctx, frankfurt) })
	writes(t)

	sameCopies(t, uids, memberUIDs(ctx, t, ns))
	if suite.hub.PID != pid || suite.hub.Ended() {
		t.Error("the hub was started again")
	}
}

// TestATokenThatIsRevokedIsNoticed revokes the hub's token on the member. Nothing on the hub changes.
func TestATokenThatIsRevokedIsNoticed(t *testing.T) {
	ctx := t.Context()
	ns := namespace(t)
	w := widget(ns, "witness")
	placeWidgets(t, ns, singapore)
	must(t, suite.Hub.Create(ctx, w))
	eventually(t, normal, func() error { return rowIs(ctx, w, singapore, metav1.ConditionTrue, "") })
	t.Cleanup(func() {
		setSecret(t, singapore, goodKubeconfig(t, singapore, nil))
		must(t, poll(context.WithoutCancel(t.Context()), time.Minute, func() error { return memberReady(context.WithoutCancel(t.Context()), singapore) }))
	})
	bound := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, GenerateName: "bound-"}}
	must(t, suite.Members[singapore].Create(ctx, bound))
	setSecret(t, singapore, goodKubeconfig(t, singapore, bound))
	must(t, suite.Hub.Patch(ctx, widget(ns, "witness"), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":4}}`))))
	eventually(t, normal, func() error { return replicasOn(ctx, singapore, w, 4) })
	must(t, suite.Members[singapore].Delete(ctx, bound))
	// The API server caches a valid token for ten seconds.
	eventually(t, 30*time.Second, func() error {
		return memberCondition(ctx, singapore, hubv1.ConditionCredentialsValid, metav1.ConditionFalse, hubv1.ReasonUnauthorized)
	})
	must(t, replicasOn(ctx, singapore, w, 4))
	setSecret(t, singapore, goodKubeconfig(t, singapore, nil))
	eventually(t, 20*time.Second, func() error { return memberReady(ctx, singapore) })
	eventually(t, 20*time.Second, func() error { return rowIs(ctx, w, singapore, metav1.ConditionTrue, "") })
}

// TestATokenIsRotatedThroughTheLink joins a member with hansectl, and waits until the hub has replaced its token. The
// member must refuse the old token, and the hub must not list any kind again.
func TestATokenIsRotatedThroughTheLink(t *testing.T) {
	ctx := t.Context()
	ns := namespace(t)
	w := widget(ns, "rotated")
	placeWidgets(t, ns, singapore)
	must(t, suite.Hub.Create(ctx, w))
	eventually(t, normal, func() error { return rowIs(ctx, w, singapore, metav1.ConditionTrue, "") })
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: singapore}}
	must(t, suite.Hub.Patch(ctx, secret, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"app.kubernetes.io/managed-by":"hansectl"}}}`))))
	t.Cleanup(func() {
		setSecret(t, singapore, goodKubeconfig(t, singapore, nil))
		must(t, poll(context.WithoutCancel(t.Context()), time.Minute, func() error { return memberReady(context.WithoutCancel(t.Context()), singapore) }))
	})
	_, err := suite.Hansectl(ctx, "rotate", singapore, "--member-kubeconfig", suite.Members[singapore].ProxyKubeconfig)
	must(t, err)
	first := credentialsOf(t, singapore)
	if first.TokenSecret == nil || first.ExpireTime == nil || first.ExpireTime.Sub(first.IssueTime.Time) != 30*24*time.Hour {
		t.Fatalf("the token does not end with a Secret in 30 days: %+v", first)
	}
	old := storedToken(t, singapore)
	must(t, takesToken(ctx, singapore, old))
	log, err := os.Stat(suite.Members[singapore].AuditLog)
	must(t, err)

	out, err := suite.Hansectl(ctx, "rotate", singapore)
	must(t, err)
	if second := credentialsOf(t, singapore); second.ID == first.ID || second.TokenSecret == nil || second.TokenSecret.UID == first.TokenSecret.UID || !strings.Contains(out, "uses the new credentials") {
		t.Errorf("the token is the same, or ends with the same Secret: %+v:\n%s", second, out)
	}
	// The API server caches a valid token for ten seconds.
	eventually(t, 30*time.Second, func() error {
		if err := takesToken(ctx, singapore, old); !apierrors.IsUnauthorized(err) {
			return fmt.Errorf("the old token is not refused: %w", err)
		}
		return nil
	})
	must(t, takesToken(ctx, singapore, storedToken(t, singapore)))
	must(t, suite.Hub.Patch(ctx, w, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":4}}`))))
	eventually(t, normal, func() error { return replicasOn(ctx, singapore, w, 4) })
	must(t, memberReady(ctx, singapore))
	listed, err := listedSince(suite.Members[singapore].AuditLog, log.Size(), "widgets")
	must(t, err)
	if len(listed) > 0 {
		t.Errorf("Widgets were listed anew: %q", listed)
	}
}

func credentialsOf(t *testing.T, member string) *hubv1.CredentialsStatus {
	t.Helper()
	var c hubv1.MemberCluster
	must(t, suite.Hub.Get(t.Context(), types.NamespacedName{Name: member}, &c))
	if c.Status.Credentials == nil {
		t.Fatalf("MemberCluster %s says nothing of its credentials", member)
	}
	return c.Status.Credentials
}

// storedToken returns the token in the kubeconfig of the member's Secret on the hub.
func storedToken(t *testing.T, member string) string {
	t.Helper()
	var secret corev1.Secret
	must(t, suite.Hub.Get(t.Context(), types.NamespacedName{Namespace: hubv1.SystemNamespace, Name: member}, &secret))
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"])
	must(t, err)
	return config.BearerToken
}

// takesToken returns nil if the member's API server accepts the token.
func takesToken(ctx context.Context, member, token string) error {
	config := rest.AnonymousClientConfig(suite.Members[member].Config)
	config.BearerToken = token
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	_, err = clients.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	return err
}

// listedSince returns the hub's requests that list all objects of a resource. It reads an audit log from the byte
// offset from.
func listedSince(path string, from int64, resource string) ([]string, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var out []string
	for line := range bytes.Lines(raw[from:]) {
		var e auditEvent
		if json.Unmarshal(line, &e) != nil || e.User.Username != "system:serviceaccount:"+hubv1.SystemNamespace+":hanse" || e.ObjectRef.Resource != resource {
			continue
		}
		if e.Verb == "list" || strings.Contains(e.RequestURI, "sendInitialEvents=true") {
			out = append(out, e.RequestURI)
		}
	}
	return out, nil
}

// goodKubeconfig returns a kubeconfig with a new token of the hub's ServiceAccount on the member. If bound is not nil,
// the token is valid until this Secret is deleted.
func goodKubeconfig(t *testing.T, member string, bound *corev1.Secret) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), normal)
	defer cancel()
	clients, err := kubernetes.NewForConfig(suite.Members[member].Config)
	must(t, err)
	request := &authenticationv1.TokenRequest{}
	if bound != nil {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: bound.Name, UID: bound.UID}
	}
	answer, err := clients.CoreV1().ServiceAccounts(hubv1.SystemNamespace).CreateToken(ctx, "hanse", request, metav1.CreateOptions{})
	must(t, err)
	return kubeconfigWith(t, member, answer.Status.Token)
}

func kubeconfigWith(t *testing.T, member, token string) []byte {
	t.Helper()
	raw, err := suite.Members[member].KubeconfigFor(token, true)
	must(t, err)
	return raw
}

// setSecret writes this kubeconfig into the member's Secret on the hub.
func setSecret(t *testing.T, member string, kubeconfig []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), normal)
	defer cancel()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: member}, Data: map[string][]byte{"kubeconfig": kubeconfig},
	}
	err := suite.Hub.Update(ctx, secret)
	if client.IgnoreNotFound(err) == nil && err != nil {
		secret.ResourceVersion = ""
		err = suite.Hub.Create(ctx, secret)
	}
	must(t, err)
}

// sameCopies fails the test if the UID of a copy has changed, or if a copy is missing.
func sameCopies(t *testing.T, before, now map[string]string) {
	t.Helper()
	for name, uid := range before {
		if now[name] != uid {
			t.Errorf("%s was deleted: uid %s is now %q", name, uid, now[name])
		}
	}
}
