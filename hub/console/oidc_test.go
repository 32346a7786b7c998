package console

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/hanse-dev/hanse/test/apiserver"
)

// mayRead gives a user of the provider the rights to read all objects of Hanse.
func (w *world) mayRead(user string) {
	w.Helper()
	role := metav1.ObjectMeta{Name: w.ns}
	must(w.T, w.hub.Create(w.Context(), &rbacv1.ClusterRole{ObjectMeta: role, Rules: reads()}))
	must(w.T, w.hub.Create(w.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: role, Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
	}))
	apiserver.AwaitRights(w.T, hubConfig, user, "", rbacv1.PolicyRule{APIGroups: reads()[0].APIGroups, Resources: []string{"memberclusters"}, Verbs: []string{"list"}})
}

// toProvider begins a sign-in, and returns the provider's address to which the browser is redirected.
func (b *browser) toProvider(next string) string {
	b.Helper()
	r := b.get(oidcPath + "?" + url.Values{"next": {next}}.Encode())
	if r.StatusCode != http.StatusSeeOther || !strings.HasPrefix(r.Header.Get("Location"), "https://") {
		b.Fatalf("beginning a sign-in: %s to %q: %s", r.Status, r.Header.Get("Location"), r.text)
	}
	return r.Header.Get("Location")
}

func TestAUserSignsInWithAnIdentityProvider(t *testing.T) {
	for client, methods := range map[string][]string{publicClient: {"none"}, secretClient: nil, secretClient + " ": {"client_secret_post"}} {
		t.Run(client, func(t *testing.T) {
			apiserver.Needed(t)
			trusted.set(t, func() {
				trusted.description = func(d map[string]any) {
					if methods != nil {
						d["token_endpoint_auth_methods_supported"] = methods
					}
				}
			})
			w := newWorld(t, trusted.options(t, strings.TrimSpace(client)))
			w.mayRead("oidc:alice")
			b := w.browser()
			shown := b.get("/signin?next=" + url.QueryEscape("/?namespace=shop"))
			if !strings.Contains(shown.text, `href="`+w.server.URL+oidcPath+`?next=%2F%3Fnamespace%3Dshop"`) || !strings.Contains(shown.text, "Sign in with 127.0.0.1") {
				t.Fatalf("the sign-in page does not lead to the provider: %s", shown.text)
			}
			address := b.toProvider("/?namespace=shop")
			asked, err := url.Parse(address)
			must(t, err)
			if scopes := asked.Query().Get("scope"); scopes != "openid email groups" {
				t.Errorf("asked for %q", scopes)
			}
			ended := b.get(trusted.visit(t, address))
			if ended.StatusCode != http.StatusOK || !strings.Contains(ended.text, `<meta http-equiv="refresh" content="0;url=/?namespace=shop">`) ||
				!strings.Contains(ended.text, `<a href="/?namespace=shop">`) {
				t.Fatalf("the sign-in ends with %s: %s", ended.Status, ended.text)
			}
			for _, c := range ended.Cookies() {
				if gone := c.Name == oidcCookie; gone != (c.MaxAge < 0) || !gone && c.SameSite != http.SameSiteStrictMode || !c.HttpOnly || !c.Secure {
					t.Errorf("cookie %s: %+v", c.Name, c)
				}
			}
			if page := b.get("/"); page.StatusCode != http.StatusOK || !strings.Contains(page.text, "oidc:alice") {
				t.Errorf("the first page: %s: %s", page.Status, page.text)
			}
		})
	}
}

func TestTheCookieOfASignInWithAProviderIsForTheWayBackOnly(t *testing.T) {
	w := newWorld(t, trusted.options(t, publicClient))
	b := w.browser()
	r := b.get(oidcPath + "?next=" + strings.Repeat("/long", 2000))
	if len(r.Cookies()) != 1 {
		t.Fatalf("cookies: %v", r.Cookies())
	}
	c := r.Cookies()[0]
	if c.Name != oidcCookie || !strings.HasPrefix(c.Name, "__Host-") || !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteLaxMode ||
		c.Path != "/" || c.Domain != "" || c.MaxAge != int(oidcLasts.Seconds()) || len(c.Value) > cookieSize {
		t.Errorf("cookie: %+v", c)
	}
	if strings.Contains(r.Header.Get("Location"), c.Value) {
		t.Error("the provider sees the cookie")
	}
}

// begun is a sign-in that has come back from the provider: the provider has redirected the browser to the console.
type begun struct {
	*browser
	callback *url.URL
}

func (w *world) begun() *begun {
	w.Helper()
	b := w.browser()
	callback, err := url.Parse(trusted.visit(w.T, b.toProvider("/")))
	must(w.T, err)
	return &begun{b, callback}
}

// with changes a parameter of the callback's query.
func (b *begun) with(name, value string) {
	q := b.callback.Query()
	q.Set(name, value)
	b.callback.RawQuery = q.Encode()
}

// cookie replaces the value of the cookie that has the state of the sign-in.
func (b *begun) cookie(value string) {
	b.Helper()
	u, err := url.Parse(b.server.URL)
	must(b.T, err)
	b.http.Jar.SetCookies(u, []*http.Cookie{attemptCookie(value, 60)})
}

// attempt returns the state of the sign-in, decrypted from the cookie.
func (b *begun) attempt() attempt {
	b.Helper()
	u, err := url.Parse(b.server.URL)
	must(b.T, err)
	var a attempt
	for _, c := range b.http.Jar.Cookies(u) {
		if c.Name == oidcCookie {
			must(b.T, b.console.unseal(oidcPurpose, c.Value, &a))
		}
	}
	return a
}

// seals replaces the cookie of the sign-in by a value that the console has encrypted for the given purpose.
func (b *begun) seals(purpose string, value any) {
	b.Helper()
	sealed, err := b.console.seal(purpose, value)
	must(b.T, err)
	b.cookie(sealed)
}

func TestASignInThatIsNotOfThisBrowserAndProviderIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		change func(b *begun)
		client string
		status int
		says   string
	}{
		"without a cookie":      {change: func(b *begun) { b.cookie("") }, status: http.StatusBadRequest, says: "has not begun the sign-in"},
		"with a cut cookie":     {change: func(b *begun) { b.cookie("AAAA") }, status: http.StatusBadRequest, says: "has not begun the sign-in"},
		"of another browser":    {change: func(b *begun) { b.callback = b.begun().callback }, status: http.StatusBadRequest, says: "to another sign-in"},
		"with another state":    {change: func(b *begun) { b.with("state", "other") }, status: http.StatusBadRequest, says: "to another sign-in"},
		"without a state":       {change: func(b *begun) { b.with("state", "") }, status: http.StatusBadRequest, says: "to another sign-in"},
		"of another issuer":     {change: func(b *begun) { b.with("iss", "https://evil.example.com") }, status: http.StatusBadRequest, says: "to another sign-in"},
		"with an expired start": {change: func(b *begun) { a := b.attempt(); a.Until = time.Now(); b.seals(oidcPurpose, a) }, status: http.StatusBadRequest, says: "has not begun the sign-in"},
		"with the cookie of a session": {
			change: func(b *begun) { b.seals(sessionPurpose, b.attempt()) }, status: http.StatusBadRequest, says: "has not begun the sign-in",
		},
		"without PKCE":         {change: func(b *begun) { a := b.attempt(); a.Verifier = ""; b.seals(oidcPurpose, a) }, status: http.StatusUnauthorized, says: "did not accept the sign-in"},
		"with another PKCE":    {change: func(b *begun) { a := b.attempt(); a.Verifier += "x"; b.seals(oidcPurpose, a) }, status: http.StatusUnauthorized, says: "did not accept the sign-in"},
		"with another nonce":   {change: func(b *begun) { a := b.attempt(); a.Nonce = "other"; b.seals(oidcPurpose, a) }, status: http.StatusUnauthorized, says: "token is not valid"},
		"with another code":    {change: func(b *begun) { b.with("code", "other") }, status: http.StatusUnauthorized, says: "did not accept the sign-in"},
		"without a code":       {change: func(b *begun) { b.with("code", "") }, status: http.StatusUnauthorized, says: "did not accept the sign-in"},
		"that the user denied": {change: func(b *begun) { b.with("error", "access_denied<b>") }, status: http.StatusUnauthorized, says: "refused the sign-in: access_denied&lt;b&gt;"},
		"with a replayed code": {
			change: func(b *begun) {
				a := b.attempt()
				if r := b.get(b.callback.RequestURI()); r.StatusCode != http.StatusOK {
					b.Errorf("the code does not work once: %s", r.Status)
				}
				b.http = b.browser.browser().http // use a browser that does not have the session
				b.seals(oidcPurpose, a)
			},
			status: http.StatusUnauthorized, says: "did not accept the sign-in",
		},
		"for another application": {client: foreignClient, status: http.StatusUnauthorized, says: "API server does not accept"},
		"with a token for another application": {
			change: func(b *begun) { trusted.set(b.T, func() { trusted.change = claims("aud", foreignClient) }) }, status: http.StatusUnauthorized, says: "token is not valid",
		},
		"with a token of another issuer": {
			change: func(b *begun) {
				trusted.set(b.T, func() { trusted.change = claims("iss", "https://evil.example.com") })
			}, status: http.StatusUnauthorized, says: "token is not valid",
		},
		"with an expired token": {
			change: func(b *begun) { trusted.set(b.T, func() { trusted.lasts = -time.Minute }) }, status: http.StatusUnauthorized, says: "token is not valid",
		},
		"with a token of another key": {
			change: func(b *begun) {
				key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
				must(b.T, err)
				trusted.set(b.T, func() { trusted.signer = key })
			},
			status: http.StatusUnauthorized, says: "token is not valid",
		},
		"with a token that is too long": {
			change: func(b *begun) {
				trusted.set(b.T, func() { trusted.change = claims("more", strings.Repeat("x", 12000)) })
			},
			status: http.StatusBadRequest, says: "longer than a browser keeps",
		},
		"while the provider is down": {change: func(b *begun) { trusted.set(b.T, func() { trusted.down = true }) }, status: http.StatusBadGateway, says: "provider does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			apiserver.Needed(t)
			if test.client == "" {
				test.client = publicClient
			}
			w := newWorld(t, trusted.options(t, test.client))
			b := w.begun()
			if test.change != nil {
				test.change(b)
			}
			r := b.get(b.callback.RequestURI())
			if r.StatusCode != test.status || !strings.Contains(r.text, test.says) || !strings.Contains(r.text, `role="alert"`) {
				t.Errorf("the answer: %s, want %d and %q: %s", r.Status, test.status, test.says, r.text)
			}
			if slices.ContainsFunc(r.Cookies(), func(c *http.Cookie) bool { return c.MaxAge >= 0 }) {
				t.Errorf("it set cookies: %v", r.Cookies())
			}
			if r := b.get("/"); r.StatusCode != http.StatusSeeOther {
				t.Errorf("a page after it: %s", r.Status)
			}
		})
	}
}

// claims returns a function that changes a claim of a token.
func claims(name string, value any) func(map[string]any) {
	return func(c map[string]any) { maps.Copy(c, map[string]any{name: value}) }
}

func TestAFormOfAnotherSiteEndsNoSignIn(t *testing.T) {
	b := newWorld(t, trusted.options(t, publicClient)).begun()
	r := b.post(callbackPath, b.callback.Query())
	if r.StatusCode != http.StatusMethodNotAllowed || len(r.Cookies()) > 0 {
		t.Errorf("a form: %s, cookies %v", r.Status, r.Cookies())
	}
}

func TestAProviderThatIsDownKeepsNoUserOut(t *testing.T) {
	apiserver.Needed(t)
	p := newIDP()
	t.Cleanup(p.Close)
	p.set(t, func() { p.down = true })
	clock := clocktesting.NewFakePassiveClock(time.Now())
	w := newWorld(t, p.options(t, publicClient), func(o *Options, _ string) { o.Clock = clock })
	b := w.browser()
	if r := b.get(oidcPath); r.StatusCode != http.StatusBadGateway || !strings.Contains(r.text, "identity provider does not answer") || !strings.Contains(r.text, `name="token"`) {
		t.Errorf("a sign-in: %s: %s", r.Status, r.text)
	}
	if r := w.signedIn(w.token(nil, reads())).get("/"); r.StatusCode != http.StatusOK {
		t.Errorf("a user with a token: %s", r.Status)
	}
	p.set(t, func() { p.down = false })
	if r := b.get(oidcPath); r.StatusCode != http.StatusBadGateway {
		t.Errorf("the console asks the provider again at once: %s", r.Status)
	}
	clock.SetTime(clock.Now().Add(providerAgain))
	b.toProvider("/")
}

func TestAProviderLeadsTheConsoleNowhereElse(t *testing.T) {
	for name, description := range map[string]map[string]any{
		"another issuer":         {"issuer": "https://evil.example.com"},
		"a token address: http":  {"token_endpoint": "http://127.0.0.1:1/token"},
		"keys at http":           {"jwks_uri": "http://127.0.0.1:1/keys"},
		"a token address: leads": {"token_endpoint": trusted.URL + "/elsewhere"},
	} {
		t.Run(name, func(t *testing.T) {
			apiserver.Needed(t)
			trusted.set(t, func() { trusted.description = func(d map[string]any) { maps.Copy(d, description) } })
			w := newWorld(t, trusted.options(t, publicClient))
			b := w.browser()
			begun := b.get(oidcPath)
			if begun.StatusCode == http.StatusBadGateway {
				return
			}
			if r := b.get(trusted.visit(t, begun.Header.Get("Location"))); r.StatusCode < 400 || !strings.Contains(r.text, `role="alert"`) {
				t.Errorf("the sign-in: %s: %s", r.Status, r.text)
			}
		})
	}
}

func TestASignInWithAProviderEndsWithItsToken(t *testing.T) {
	apiserver.Needed(t)
	trusted.set(t, func() { trusted.lasts = 4 * time.Second })
	w := newWorld(t, trusted.options(t, publicClient))
	w.mayRead("oidc:alice")
	b := w.begun()
	if r := b.get(b.callback.RequestURI()); r.StatusCode != http.StatusOK {
		t.Fatalf("the sign-in: %s: %s", r.Status, r.text)
	}
	// The page's stream ends when the token expires. Then the browser loads the page again.
	stream := b.get("/live?scope=*")
	if !strings.HasPrefix(stream.text, "event: open\n") || !strings.HasSuffix(stream.text, "event: ended\ndata:\n\n") {
		t.Errorf("the stream of a page: %s: %q", stream.Status, stream.text)
	}
	r := b.get("/?namespace=shop")
	to := r.Header.Get("Location")
	if r.StatusCode != http.StatusSeeOther || !strings.HasPrefix(to, "/signin?ended=") {
		t.Fatalf("a page after it: %s to %q", r.Status, to)
	}
	if shown := b.get(to); !strings.Contains(shown.text, "Your session has ended.") || !strings.Contains(shown.text, oidcPath+"?next=") {
		t.Errorf("the sign-in page: %s", shown.text)
	}
}

func TestOptionsOfAProviderAreChecked(t *testing.T) {
	good := OIDC{Issuer: "https://login.example.com/realms/a", ClientID: "console", ConsoleURL: "https://hanse.example.com/"}
	must(t, good.Validate())
	must(t, OIDC{ConsoleURL: "https://hanse.example.com"}.Validate())
	for name, change := range map[string]func(*OIDC){
		"console-oidc-issuer":                      func(o *OIDC) { o.Issuer = "http://login.example.com" },
		"console-oidc-issuer must be":              func(o *OIDC) { o.Issuer = "https://login.example.com?x" },
		"console-oidc-client-id":                   func(o *OIDC) { o.ClientID = "" },
		"need --console-oidc-issuer":               func(o *OIDC) { o.Issuer = "" },
		"console-url":                              func(o *OIDC) { o.ConsoleURL = "" },
		"--console-url, an https URL with a host":  func(o *OIDC) { o.ConsoleURL = "http://hanse.example.com" },
		"such as https://hanse.example.com: have ": func(o *OIDC) { o.ConsoleURL = "https://hanse.example.com/console" },
	} {
		o := good
		change(&o)
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%+v: %v, want an error about %s", o, err, name)
		}
	}
}
