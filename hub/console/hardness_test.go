package console

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// send sends a request with these headers, as a browser would.
func (b *browser) send(method, path string, form url.Values, headers map[string]string) response {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), method, b.server.URL+path, strings.NewReader(form.Encode()))
	must(b.T, err)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	return b.do(r)
}

// setCookies replaces the values of the cookies of a session.
func (b *browser) setCookies(values ...string) {
	b.Helper()
	u, err := url.Parse(b.server.URL)
	must(b.T, err)
	for i, value := range values {
		b.http.Jar.SetCookies(u, []*http.Cookie{cookie(i, value, time.Now().Add(time.Hour))})
	}
}

// cookies returns the values of the session cookies.
func (b *browser) cookies() []string {
	b.Helper()
	u, err := url.Parse(b.server.URL)
	must(b.T, err)
	var out []string
	for _, c := range b.http.Jar.Cookies(u) {
		out = append(out, c.Value)
	}
	return out
}

func TestEveryAnswerTellsTheBrowserToTrustNothingElse(t *testing.T) {
	w := newWorld(t, trusted.options(t, publicClient))
	nobody, user := w.browser(), w.signedIn(w.token(nil, reads()))
	for _, answer := range []response{
		nobody.get("/"), nobody.get("/signin"), nobody.get("/assets/console.css"), nobody.get("/assets/console.js"), nobody.get("/assets/icon.svg"),
		nobody.get("/assets/"), nobody.get("/nothing"), nobody.get("//evil.example.com"), nobody.get("/live?scope=*"),
		nobody.get(oidcPath), nobody.get(callbackPath),
		nobody.post("/signin", url.Values{"token": {"x"}}), nobody.send(http.MethodPost, "/signin", nil, map[string]string{"Sec-Fetch-Site": "cross-site"}),
		nobody.send(http.MethodGet, "/", nil, map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}),
		user.get("/"), user.get("/?namespace=none"), user.get("/?namespace=%2Fetc"), user.post("/signout", nil), user.get("/live?scope=%2Fetc"),
	} {
		for header, want := range map[string]string{
			"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if have := answer.Header.Get(header); have != want {
				t.Errorf("%s %s: %s is %q", answer.Request.Method, answer.Request.URL, header, have)
			}
		}
		if answer.StatusCode == http.StatusOK && answer.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s may be stored: %q", answer.Request.URL, answer.Header.Get("Cache-Control"))
		}
	}
	for _, weak := range []string{"unsafe", "*", "http:", "https:", "blob:"} {
		if strings.Contains(policy, weak) {
			t.Errorf("the policy has %s", weak)
		}
	}
	if r := nobody.get("/assets/"); r.StatusCode != http.StatusSeeOther {
		t.Errorf("the folder of assets: %s", r.Status)
	}
}

// inline matches inline styles and scripts, which the Content-Security-Policy makes browsers ignore.
var inline = regexp.MustCompile(`(?i)\sstyle\s*=|<style|<script(>|\s+[^s])|\son[a-z]+\s*=|javascript:|<base|<iframe|<object|<embed|(src|href|action)="(https?:)?//`)

func TestNoTemplateHasAnInlineScriptOrStyle(t *testing.T) {
	err := fs.WalkDir(sources, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := sources.ReadFile(path)
		if found := inline.Find(text); found != nil {
			t.Errorf("%s has %q", path, found)
		}
		return err
	})
	must(t, err)
}

func TestOnlyTheConsolesOwnFormsChangeAnything(t *testing.T) {
	w := newWorld(t)
	token := w.token(nil, reads())
	b, other := w.signedIn(token), w.signedIn(token)
	own, foreign := b.csrf("/"), other.csrf("/")
	if own == foreign {
		t.Error("two sessions of a user have the same token for forms")
	}
	for name, test := range map[string]struct {
		path    string
		form    url.Values
		headers map[string]string
	}{
		"no token":                   {},
		"an empty token":             {form: url.Values{csrfField: {""}}},
		"a token in the address":     {path: "?" + csrfField + "=" + own},
		"a token of another session": {form: url.Values{csrfField: {foreign}}},
		"a form of another site":     {form: url.Values{csrfField: {own}}, headers: map[string]string{"Sec-Fetch-Site": "cross-site"}},
		"a form of a sibling":        {form: url.Values{csrfField: {own}}, headers: map[string]string{"Sec-Fetch-Site": "same-site"}},
		"another origin":             {form: url.Values{csrfField: {own}}, headers: map[string]string{"Origin": "https://evil.example.com"}},
		"another port":               {form: url.Values{csrfField: {own}}, headers: map[string]string{"Origin": "https://127.0.0.1:1"}},
		"a hidden origin":            {form: url.Values{csrfField: {own}}, headers: map[string]string{"Origin": "null"}},
	} {
		r := b.send(http.MethodPost, "/signout"+test.path, test.form, test.headers)
		if r.StatusCode != http.StatusForbidden || len(r.Cookies()) > 0 {
			t.Errorf("%s: %s, cookies %v", name, r.Status, r.Cookies())
		}
	}
	if r := b.get("/signout"); r.StatusCode != http.StatusNotFound {
		t.Errorf("a link that signs out: %s", r.Status)
	}
	if r := b.get("/"); r.StatusCode != http.StatusOK {
		t.Errorf("the session after it: %s", r.Status)
	}
	// A form of another site must not sign the browser in as another user.
	r := w.browser().send(http.MethodPost, "/signin", url.Values{"token": {token}}, map[string]string{"Sec-Fetch-Site": "cross-site"})
	if r.StatusCode != http.StatusForbidden || len(r.Cookies()) > 0 {
		t.Errorf("a sign-in of another site: %s, cookies %v", r.Status, r.Cookies())
	}
	r = b.send(http.MethodPost, "/signout", url.Values{csrfField: {own}}, map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": b.server.URL})
	if r.StatusCode != http.StatusSeeOther {
		t.Errorf("the own form: %s", r.Status)
	}
}

func TestALinkOfAnotherSiteFindsTheSession(t *testing.T) {
	b := newWorld(t).browser()
	link := map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
	if r := b.send(http.MethodGet, "/?namespace=shop", nil, link); r.StatusCode != http.StatusOK || !strings.Contains(r.text, `content="0;url=/?namespace=shop"`) {
		t.Errorf("a link: %s: %s", r.Status, r.text)
	}
	link["Sec-Fetch-Site"] = "same-origin"
	if r := b.send(http.MethodGet, "/?namespace=shop", nil, link); r.StatusCode != http.StatusSeeOther {
		t.Errorf("the page to which it leads: %s", r.Status)
	}
}

var nexts = map[string]string{
	"/": "/", "/clusters/eu-1?namespace=shop": "/clusters/eu-1?namespace=shop", "/a%2Fb": "/a%2Fb", "/ü": "/%C3%BC", "/signal": "/", "/a#b": "/a",
	"": "/", "a": "/", "//evil.example.com": "/", "///evil.example.com": "/", `\\evil.example.com`: "/", `/\evil.example.com`: "/", `\/evil.example.com`: "/",
	"https://evil.example.com": "/", "https:evil.example.com": "/", "//user@evil.example.com/": "/", "javascript:alert(1)": "/", "JAVASCRIPT:alert(1)": "/",
	"/\tevil": "/", "/\r\nSet-Cookie: a=b": "/", "/\x00": "/", "/\x7f": "/", "\t//evil.example.com": "/", " //evil.example.com": "/", "/%": "/",
	"/signin": "/", "/signout": "/", "/signin/oidc?next=/": "/", "/sign%69n": "/", "/%2Fevil.example.com/ ": "/", "/%2F ": "/", "/live?scope=*": "/", "data:text/html,x": "/", "/?next=//evil.example.com": "/?next=//evil.example.com",
}

func TestASignInLeadsToThisConsoleOnly(t *testing.T) {
	for next, want := range nexts {
		if have := localPath(next); have != want {
			t.Errorf("%q leads to %q, want %q", next, have, want)
		}
	}
	w := newWorld(t)
	token := w.token(nil, reads())
	for _, next := range []string{"//evil.example.com", `/\evil.example.com`, "https://evil.example.com", "/signout"} {
		if r := w.browser().post("/signin", url.Values{"token": {token}, "next": {next}}); r.Header.Get("Location") != "/" {
			t.Errorf("%q leads to %q", next, r.Header.Get("Location"))
		}
		if r := w.browser().get("/signin?" + url.Values{"next": {next}}.Encode()); !strings.Contains(r.text, `name="next" value="/"`) {
			t.Errorf("%q is in the page: %s", next, r.text)
		}
	}
}

func FuzzLocalPath(f *testing.F) {
	for next := range nexts {
		f.Add(next)
	}
	base := &url.URL{Scheme: "https", Host: "hanse.example.com", Path: "/signin"}
	f.Fuzz(func(t *testing.T, next string) {
		path := localPath(next)
		// Browsers treat a backslash as a slash, and drop tabs and line ends.
		seen := strings.Map(func(r rune) rune {
			if r == '\\' {
				return '/'
			}
			if r < ' ' {
				return -1
			}
			return r
		}, strings.TrimSpace(path))
		to, err := base.Parse(seen)
		if err != nil || to.Host != base.Host || to.Scheme != base.Scheme || !strings.HasPrefix(seen, "/") || strings.HasPrefix(seen, "//") {
			t.Errorf("%q leads to %q", next, path)
		}
		if again := localPath(path); again != path {
			t.Errorf("%q leads to %q, and that to %q", next, path, again)
		}
	})
}

// sealed returns a Console that can only encrypt and decrypt.
func sealed(key string) *Console {
	return &Console{opts: Options{Key: func() ([]byte, error) { return []byte(key), nil }, Clock: clock.RealClock{}}}
}

func FuzzSession(f *testing.F) {
	c := sealed("a key of 32 bytes for test alone")
	only := session{Token: "t", User: "u", Until: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)}
	good, err := c.seal(sessionPurpose, only)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good, "")
	f.Add(good[:10], good[10:])
	f.Add("", good)
	f.Fuzz(func(t *testing.T, first, second string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		must(t, err)
		for i, value := range []string{first, second} {
			r.AddCookie(&http.Cookie{Name: cookie(i, "", time.Time{}).Name, Value: value})
		}
		if s, err := c.session(r); err == nil && s != only {
			t.Errorf("%q and %q are the session %+v", first, second, s)
		}
	})
}

func TestOnlyASealedSessionOfThisHubIsOne(t *testing.T) {
	w := newWorld(t)
	token := w.token(nil, reads())
	seal := func(c *Console, purpose string, s session) string {
		text, err := c.seal(purpose, s)
		must(t, err)
		return text
	}
	good := session{Token: token, User: "alice", CSRF: "x", Until: time.Now().Add(time.Hour)}
	text := seal(w.console, sessionPurpose, good)
	ended := good
	ended.Until = time.Now()
	for name, test := range map[string]struct {
		cookies []string
		status  int
	}{
		"whole":              {[]string{text}, http.StatusOK},
		"in four parts":      {[]string{text[:10], text[10:20], text[20:30], text[30:]}, http.StatusOK},
		"in five parts":      {[]string{text[:10], text[10:20], text[20:30], text[30:40], text[40:]}, http.StatusSeeOther},
		"cut":                {[]string{text[:len(text)-4]}, http.StatusSeeOther},
		"without its start":  {[]string{text[4:]}, http.StatusSeeOther},
		"in another order":   {[]string{text[len(text)/2:], text[:len(text)/2]}, http.StatusSeeOther},
		"changed":            {[]string{strings.ToLower(text)}, http.StatusSeeOther},
		"not encoded":        {[]string{"{}"}, http.StatusSeeOther},
		"of another key":     {[]string{seal(sealed("another key of 32 bytes for test"), sessionPurpose, good)}, http.StatusSeeOther},
		"of another purpose": {[]string{seal(w.console, oidcPurpose, good)}, http.StatusSeeOther},
		"expired":            {[]string{seal(w.console, sessionPurpose, ended)}, http.StatusSeeOther},
		"of a stolen cookie, with a token of another hub": {[]string{seal(w.console, sessionPurpose, session{Token: "x", User: "alice", Until: good.Until})}, http.StatusSeeOther},
	} {
		b := w.browser()
		b.setCookies(test.cookies...)
		r := b.get("/")
		if to := r.Header.Get("Location"); r.StatusCode != test.status || r.StatusCode == http.StatusSeeOther && to != "/signin?ended=" {
			t.Errorf("a session %s: %s to %q", name, r.Status, to)
		}
		if r.StatusCode == http.StatusSeeOther && len(b.cookies()) > 0 && name != "in five parts" {
			t.Errorf("a session %s stays in the browser", name)
		}
	}
}

func TestAHubWithoutTheKeyOfSessionsSaysSo(t *testing.T) {
	w := newWorld(t, func(o *Options, _ string) {
		o.Key = func() ([]byte, error) { return nil, errors.New("the Secret is gone") }
	})
	b := w.browser()
	if r := b.post("/signin", url.Values{"token": {w.token(nil, reads())}}); r.StatusCode != http.StatusInternalServerError || !strings.Contains(r.text, "cannot read the key of sessions") {
		t.Errorf("a sign-in: %s: %s", r.Status, r.text)
	}
	b.setCookies("AAAA")
	if r := b.get("/"); r.StatusCode != http.StatusInternalServerError || !strings.Contains(r.text, "cannot read the key of sessions") || strings.Contains(r.text, "Secret is gone") || len(b.cookies()) != 1 {
		t.Errorf("a page: %s: %s", r.Status, r.text)
	}
}

func TestATokenThatNoBrowserKeepsIsRefused(t *testing.T) {
	w := newWorld(t)
	for token, status := range map[string]int{
		strings.Repeat("x", 9001): http.StatusBadRequest, strings.Repeat("x", 60000): http.StatusBadRequest, strings.Repeat("x", 100000): http.StatusUnauthorized, "": http.StatusUnauthorized,
		"two words": http.StatusUnauthorized, "a\nb": http.StatusUnauthorized, "ü": http.StatusUnauthorized, "x": http.StatusUnauthorized, strings.Repeat("x", 8800): http.StatusUnauthorized,
	} {
		r := w.browser().post("/signin", url.Values{"token": {token}})
		if r.StatusCode != status || len(r.Cookies()) > 0 || !strings.Contains(r.text, `role="alert"`) || strings.Contains(r.text, strings.Repeat("x", 20)) {
			t.Errorf("a token of %d bytes: %s, cookies %v: %s", len(token), r.Status, r.Cookies(), r.text)
		}
	}
}

func TestAUserWithoutRightsSeesThisAndNoCounts(t *testing.T) {
	w := newWorld(t)
	b := w.signedIn(w.token(nil, nil))
	// The answer to the first path is a page that asks for a namespace.
	for path, status := range map[string]int{"/": http.StatusOK, "/?namespace=" + w.ns: http.StatusForbidden} {
		r := b.get(path)
		if r.StatusCode != status || !strings.Contains(r.text, "hanse-view") || strings.Contains(r.text, " ready</h2>") || strings.Contains(r.text, "Nothing.") {
			t.Errorf("%s: %s: %s", path, r.Status, r.text)
		}
	}
	for _, scope := range []string{"*", "%2F", w.ns} {
		if r := b.get("/live?scope=" + scope); r.StatusCode != http.StatusForbidden {
			t.Errorf("changes in %s: %s", scope, r.Status)
		}
	}
	own := w.signedIn(w.token(reads(), nil))
	if r := own.get("/?namespace=" + w.ns); r.StatusCode != http.StatusOK || !strings.Contains(r.text, "You do not see the clusters") {
		t.Errorf("a user of a namespace: %s: %s", r.Status, r.text)
	}
}

// clusterWith creates a MemberCluster with this status.
func (w *world) clusterWith(status hubv1.MemberClusterStatus) {
	w.Helper()
	c := &hubv1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{GenerateName: w.ns + "-"},
		Spec: hubv1.MemberClusterSpec{
			Connection:        hubv1.Connection{Type: hubv1.ConnectionDirect, Direct: &hubv1.DirectConnection{KubeconfigSecretRef: hubv1.SecretKeyRef{Name: w.ns}}},
			AllowedNamespaces: hubv1.AllowedNamespaces{From: hubv1.NamespacesFromAll},
		},
	}
	must(w.T, w.hub.Create(w.Context(), c))
	w.Cleanup(func() { _ = w.hub.Delete(context.WithoutCancel(w.Context()), c) })
	c.Status = status
	must(w.T, w.hub.Status().Update(w.Context(), c))
}

// binding creates the binding of a ConfigMap with this status.
func (w *world) binding(status hubv1.BindingStatus) {
	w.Helper()
	id := hubv1.ObjectIdentity{Kind: "ConfigMap", Namespace: w.ns, Name: "web"}
	b := &hubv1.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: id.BindingName()}}
	b.Spec.ObjectRef = hubv1.ObjectReference{APIVersion: "v1", Kind: id.Kind, Name: id.Name, UID: types.UID("1")}
	for _, row := range status.Clusters {
		b.Spec.Clusters = append(b.Spec.Clusters, hubv1.BindingTarget{Name: row.Name, State: hubv1.TargetPresent})
	}
	must(w.T, w.hub.Create(w.Context(), b))
	b.Status = status
	must(w.T, w.hub.Status().Update(w.Context(), b))
}

// failed returns a condition with the status False.
func failed(kind, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: "Test", Message: message, LastTransitionTime: metav1.Now()}
}

func TestHostileTextStaysText(t *testing.T) {
	const hostile = "</td><script>alert(1)</script>\x1b[31m\u202eevil\u2066 \"'><img src=x onerror=alert(1)>\r\n{{.CSRF}}"
	w := newWorld(t)
	w.clusterWith(hubv1.MemberClusterStatus{
		Topology: hubv1.ClusterTopology{Region: "</h3><script>alert(1)</script>\u202e"}, Version: hubv1.ClusterVersion{Kubernetes: "v1<b>\u202e"},
		Conditions: []metav1.Condition{failed(hubv1.ConditionReady, hostile)},
	})
	w.binding(hubv1.BindingStatus{Conditions: []metav1.Condition{failed(hubv1.ConditionApplied, hostile)}})
	p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "all"}}
	p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{Kind: "ConfigMap"}}
	p.Spec.Clusters.LabelSelector = &metav1.LabelSelector{}
	must(t, w.hub.Create(t.Context(), p))
	p.Status.Conditions = []metav1.Condition{failed(hubv1.ConditionAccepted, hostile)}
	must(t, w.hub.Status().Update(t.Context(), p))
	r := w.signedIn(w.token(nil, reads())).get("/")
	if n := strings.Count(r.text, "&lt;script&gt;alert(1)&lt;/script&gt;"); r.StatusCode != http.StatusOK || n < 4 {
		t.Errorf("the text is %d times in the page: %s: %s", n, r.Status, r.text)
	}
	for _, text := range []string{"<script>", "<img", "\x1b", "\u202e", "\u2066", "<b>"} {
		if strings.Contains(r.text, text) {
			t.Errorf("the page has %q", text)
		}
	}
}

func TestAPageIsShortWhateverItsObjectsSay(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat("long ", 6500)
	w.clusterWith(hubv1.MemberClusterStatus{Conditions: []metav1.Condition{failed(hubv1.ConditionReady, long)}})
	status := hubv1.BindingStatus{Conditions: []metav1.Condition{failed(hubv1.ConditionApplied, long)}}
	for i := range 1500 {
		status.Clusters = append(status.Clusters, hubv1.ClusterRow{
			Name:    "c-" + strings.Repeat("x", 50) + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676)),
			Applied: metav1.ConditionFalse, Reason: "Test", Message: long[:256],
		})
	}
	w.binding(status)
	r := w.signedIn(w.token(nil, reads())).get("/")
	if r.StatusCode != http.StatusOK || len(r.text) > 100<<10 || !strings.Contains(r.text, "long…") {
		t.Errorf("the page: %s, %d bytes", r.Status, len(r.text))
	}
}

func TestTheConsoleHasNoRightsOfItsOwn(t *testing.T) {
	w := newWorld(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "s"}}
	must(t, w.hub.Create(t.Context(), secret))
	u := w.console.users.with(w.token([]rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}}}, nil))
	if err := u.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err == nil {
		t.Error("a user reads a Secret without the right to it")
	}
	if err := w.console.users.with("").List(t.Context(), &hubv1.MemberClusterList{}); err == nil {
		t.Error("the console lists clusters without a user")
	}
}
