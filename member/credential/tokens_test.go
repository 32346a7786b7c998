package credential

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"

	"github.com/hanse-dev/hanse/internal/informer"
	"github.com/hanse-dev/hanse/test/apiserver"
	"github.com/hanse-dev/hanse/test/charts"
)

var config *rest.Config

func TestMain(m *testing.M) { os.Exit(apiserver.Run(m, &envtest.Environment{}, &config)) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, what string, missing func() error) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := missing()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("%s: %v", what, err)
		case <-tick.C:
		}
	}
}

// world is a member with a ServiceAccount that has only the rights in token.yaml of the member chart.
type world struct {
	admin  kubernetes.Interface
	issuer *Issuer
}

func newWorld(t *testing.T) world {
	t.Helper()
	apiserver.Needed(t)
	ctx := t.Context()
	admin, err := kubernetes.NewForConfig(config)
	must(t, err)
	_, err = admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: hubv1.SystemNamespace}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		must(t, err)
	}
	_, err = admin.CoreV1().ServiceAccounts(hubv1.SystemNamespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: Account}}, metav1.CreateOptions{})
	must(t, err)
	var role rbacv1.Role
	var binding rbacv1.RoleBinding
	objects := charts.Render(t, "hanse-member/templates/token.yaml", map[string]any{})
	must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(objects[0].Object, &role))
	must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(objects[1].Object, &binding))
	_, err = admin.RbacV1().Roles(hubv1.SystemNamespace).Create(ctx, &role, metav1.CreateOptions{})
	must(t, err)
	_, err = admin.RbacV1().RoleBindings(hubv1.SystemNamespace).Create(ctx, &binding, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = admin.CoreV1().ServiceAccounts(hubv1.SystemNamespace).Delete(ctx, Account, metav1.DeleteOptions{})
		_ = admin.RbacV1().Roles(hubv1.SystemNamespace).Delete(ctx, role.Name, metav1.DeleteOptions{})
		_ = admin.RbacV1().RoleBindings(hubv1.SystemNamespace).Delete(ctx, binding.Name, metav1.DeleteOptions{})
		for _, name := range TokenSecrets {
			_ = admin.CoreV1().Secrets(hubv1.SystemNamespace).Delete(ctx, name, metav1.DeleteOptions{})
		}
	})
	asHub := rest.CopyConfig(config)
	asHub.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + hubv1.SystemNamespace + ":" + Account}
	client, err := informer.NewClient(asHub)
	must(t, err)
	w := world{admin: admin, issuer: New(client, "hub-1")}
	eventually(t, "the rights", func() error { // the authorizer learns of new rights by a watch
		return w.issuer.Revoke(ctx, TokenSecrets[1], "")
	})
	return w
}

// works returns nil if the API server accepts the token, and an error otherwise.
func works(t *testing.T, token string) error {
	t.Helper()
	c := rest.AnonymousClientConfig(config)
	c.BearerToken = token
	client, err := kubernetes.NewForConfig(c)
	must(t, err)
	_, err = client.Discovery().ServerVersion()
	if err == nil { // anonymous users may read this path, too, but the server refuses an invalid token
		_, err = client.CoreV1().Secrets(hubv1.SystemNamespace).List(t.Context(), metav1.ListOptions{})
		if apierrors.IsForbidden(err) {
			return nil
		}
	}
	return err
}

func refused(t *testing.T, token string) error {
	t.Helper()
	if err := works(t, token); !apierrors.IsUnauthorized(err) {
		return errors.Join(errors.New("the token is not refused"), err)
	}
	return nil
}

func TestATokenEndsWithItsSecret(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	first, err := w.issuer.Issue(ctx, time.Hour)
	must(t, err)
	second, err := w.issuer.Issue(ctx, 2*time.Hour)
	must(t, err)
	a, b := Of(first, ""), Of(second, "")
	if !a.Usable(time.Now()) || !b.Usable(time.Now()) || a.Secret == b.Secret || a.Life() != time.Hour || b.Life() != 2*time.Hour {
		t.Errorf("the tokens are %+v and %+v", a, b)
	}
	must(t, works(t, first))
	must(t, works(t, second))

	must(t, w.issuer.Revoke(ctx, a.Secret, b.UID)) // the UID is that of another Secret
	must(t, works(t, first))
	must(t, w.issuer.Revoke(ctx, a.Secret, a.UID))
	eventually(t, "the end of the first token", func() error { return refused(t, first) })
	must(t, works(t, second))
	must(t, w.issuer.Revoke(ctx, a.Secret, a.UID)) // revoke the deleted Secret once more
}

func TestASecretThatExistsIsLeftToTheHubThatMadeIt(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	for range TokenSecrets {
		token, err := w.issuer.Issue(ctx, time.Hour)
		must(t, err)
		must(t, works(t, token))
	}
	if _, err := w.issuer.Issue(ctx, time.Hour); !errors.Is(err, ErrNoRoom) {
		t.Errorf("got %v, want %v", err, ErrNoRoom)
	}
}

func TestARefusedTokenLeavesNoSecret(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	must(t, w.admin.CoreV1().ServiceAccounts(hubv1.SystemNamespace).Delete(ctx, Account, metav1.DeleteOptions{}))
	if _, err := w.issuer.Issue(ctx, time.Hour); !apierrors.IsNotFound(err) {
		t.Errorf("without an account: %v", err)
	}
	for _, name := range TokenSecrets {
		if _, err := w.admin.CoreV1().Secrets(hubv1.SystemNamespace).Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("Secret %s is left: %v", name, err)
		}
	}
}

func TestTheHubMayNeitherReadSecretsNorDeleteOthersNorBeAnotherAccount(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	client := w.issuer.client
	_, err := client.Resource(secrets).Namespace(hubv1.SystemNamespace).List(ctx, metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("listing Secrets: %v", err)
	}
	_, err = client.Resource(secrets).Namespace(hubv1.SystemNamespace).Get(ctx, "hanse-token-a", metav1.GetOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("reading its own Secret: %v", err)
	}
	if err := w.issuer.Revoke(ctx, "database", ""); !apierrors.IsForbidden(err) {
		t.Errorf("deleting another Secret: %v", err)
	}
	request := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": map[string]any{"name": "default"}, "spec": map[string]any{"audiences": []any{}},
	}}
	_, err = client.Resource(accounts).Namespace(hubv1.SystemNamespace).Create(ctx, request, metav1.CreateOptions{}, "token")
	if !apierrors.IsForbidden(err) {
		t.Errorf("a token of another account: %v", err)
	}
}
