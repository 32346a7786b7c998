package console

import (
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/apiserver"
)

var hubConfig *rest.Config

// trusted is the identity provider whose tokens the hub's API server accepts.
var trusted = newIDP()

func TestMain(m *testing.M) {
	environment := apiserver.Hub()
	remove := trusted.trustedBy(environment)
	code := apiserver.Run(m, environment, &hubConfig)
	remove()
	os.Exit(code)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// world has what a test of the console needs: a namespace on the hub, and a console served over TLS.
type world struct {
	*testing.T
	hub     client.Client // client with the rights of an administrator
	ns      string
	console *Console
	server  *httptest.Server
}

// newWorld returns a world. The functions in options change the console's Options. They get the console's URL for
// browsers as address.
func newWorld(t *testing.T, options ...func(o *Options, address string)) *world {
	t.Helper()
	apiserver.Needed(t)
	w := &world{T: t}
	scheme := runtime.NewScheme()
	must(t, errors.Join(clientgoscheme.AddToScheme(scheme), hubv1.AddToScheme(scheme)))
	var err error
	w.hub, err = client.New(hubConfig, client.Options{Scheme: scheme})
	must(t, err)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "shop-"}}
	must(t, w.hub.Create(t.Context(), ns))
	w.ns = ns.Name
	w.server = httptest.NewUnstartedServer(nil)
	o := Options{
		Config: hubConfig, Mapper: w.hub.RESTMapper(), Logger: logr.Discard(),
		Key: func() ([]byte, error) { return []byte("a key of 32 bytes for test alone"), nil },
	}
	for _, set := range options {
		set(&o, "https://"+w.server.Listener.Addr().String())
	}
	w.console, err = New(o)
	must(t, err)
	w.server.Config.Handler, err = w.console.Handler()
	must(t, err)
	w.server.EnableHTTP2 = true
	w.server.StartTLS()
	go func() { _ = w.console.Live.Start(t.Context()) }()
	t.Cleanup(func() {
		w.server.CloseClientConnections()
		w.server.Close()
	})
	return w
}

// elsewhere returns the same world with another namespace, in which its ServiceAccounts are.
func (w *world) elsewhere() *world {
	w.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "shop-"}}
	must(w.T, w.hub.Create(w.Context(), ns))
	other := *w
	other.ns = ns.Name
	return &other
}

// token returns the token of a new ServiceAccount with the first rules in the namespace and the second rules in all
// namespaces.
func (w *world) token(inNamespace, onHub []rbacv1.PolicyRule) string {
	w.Helper()
	ctx := w.Context()
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, GenerateName: "user-"}}
	must(w.T, w.hub.Create(ctx, sa))
	subject := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.ns, Name: sa.Name}}
	name := metav1.ObjectMeta{Namespace: w.ns, Name: sa.Name}
	must(w.T, w.hub.Create(ctx, &rbacv1.Role{ObjectMeta: name, Rules: inNamespace}))
	must(w.T, w.hub.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: name, Subjects: subject, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: sa.Name}}))
	global := metav1.ObjectMeta{Name: w.ns + "-" + sa.Name}
	must(w.T, w.hub.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: global, Rules: onHub}))
	must(w.T, w.hub.Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: global, Subjects: subject, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: global.Name}}))
	user := "system:serviceaccount:" + w.ns + ":" + sa.Name
	apiserver.AwaitRights(w.T, hubConfig, user, w.ns, inNamespace...)
	apiserver.AwaitRights(w.T, hubConfig, user, "", onHub...)
	request := &authenticationv1.TokenRequest{}
	must(w.T, w.hub.SubResource("token").Create(ctx, sa, request))
	return request.Status.Token
}

// reads returns the rules of a user who may read all objects of Hanse.
func reads() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{APIGroups: []string{hubv1.GroupVersion.Group}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}}}
}

// browser keeps the cookies of a user, and does not follow redirects.
type browser struct {
	*world
	http *http.Client
}

func (w *world) browser() *browser {
	jar, err := cookiejar.New(nil)
	must(w.T, err)
	c := *w.server.Client()
	c.Jar = jar
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &browser{world: w, http: &c}
}

// signedIn returns the browser of a user with this token.
func (w *world) signedIn(token string) *browser {
	w.Helper()
	b := w.browser()
	if r := b.post("/signin", url.Values{"token": {token}}); r.StatusCode != http.StatusSeeOther {
		w.Fatalf("signing in: %s: %s", r.Status, r.text)
	}
	return b
}

// response is an answer whose body has been read.
type response struct {
	*http.Response
	text string
}

func (b *browser) do(r *http.Request) response {
	b.Helper()
	answer, err := b.http.Do(r)
	must(b.T, err)
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	must(b.T, err)
	return response{answer, string(body)}
}

func (b *browser) get(path string) response {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, b.server.URL+path, nil)
	must(b.T, err)
	return b.do(r)
}

func (b *browser) post(path string, form url.Values) response {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, b.server.URL+path, strings.NewReader(form.Encode()))
	must(b.T, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return b.do(r)
}

var csrfInput = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

// csrf returns the CSRF token in the forms of a page.
func (b *browser) csrf(path string) string {
	b.Helper()
	found := csrfInput.FindStringSubmatch(b.get(path).text)
	if found == nil {
		b.Fatalf("%s has no form of the session", path)
	}
	return found[1]
}
