package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestEveryPageNeedsASignIn(t *testing.T) {
	w := newWorld(t)
	for pattern := range pages() {
		path := strings.NewReplacer("{$}", "", "{", "", "}", "").Replace(pattern)
		r := w.browser().get(path)
		if to := r.Header.Get("Location"); r.StatusCode != http.StatusSeeOther || !strings.HasPrefix(to, "/signin") {
			t.Errorf("GET %s without a session: %s to %q", path, r.Status, to)
		}
	}
	for pattern := range actions() {
		path := strings.NewReplacer("{", "", "}", "").Replace(pattern)
		r := w.browser().post(path, url.Values{})
		if to := r.Header.Get("Location"); r.StatusCode != http.StatusSeeOther || !strings.HasPrefix(to, "/signin") {
			t.Errorf("POST %s without a session: %s to %q", path, r.Status, to)
		}
	}
	if r := w.browser().get("/live?scope=*"); r.StatusCode != http.StatusSeeOther {
		t.Errorf("changes without a session: %s", r.Status)
	}
}

func TestAUserSignsInWithATokenAndOut(t *testing.T) {
	w := newWorld(t)
	b := w.browser()
	r := b.post("/signin", url.Values{"token": {w.token(nil, reads())}, "next": {"/"}})
	if r.StatusCode != http.StatusSeeOther || r.Header.Get("Location") != "/" {
		t.Fatalf("signing in: %s to %q: %s", r.Status, r.Header.Get("Location"), r.text)
	}
	for _, c := range r.Cookies() {
		if !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || !strings.HasPrefix(c.Name, "__Host-") {
			t.Errorf("cookie %s: %+v", c.Name, c)
		}
	}
	page := b.get("/")
	if page.StatusCode != http.StatusOK || !strings.Contains(page.text, `You are <code>system:serviceaccount:`+w.ns) {
		t.Fatalf("the first page: %s: %s", page.Status, page.text)
	}
	if r := b.post("/signout", url.Values{}); r.StatusCode != http.StatusForbidden {
		t.Errorf("signing out without the form's token: %s", r.Status)
	}
	if r := b.post("/signout", url.Values{"csrf": {b.csrf("/")}}); r.StatusCode != http.StatusSeeOther {
		t.Errorf("signing out: %s", r.Status)
	}
	if r := b.get("/"); r.StatusCode != http.StatusSeeOther {
		t.Errorf("a page after signing out: %s", r.Status)
	}
}

func TestAnExpiredOrForeignTokenDoesNotSignIn(t *testing.T) {
	w := newWorld(t)
	for _, token := range []string{"", "no token", "eyJhbGciOiJSUzI1NiJ9.e30.c2lnbmF0dXJl"} {
		r := w.browser().post("/signin", url.Values{"token": {token}})
		if r.StatusCode != http.StatusUnauthorized || len(r.Cookies()) > 0 || !strings.Contains(r.text, "does not know the token") {
			t.Errorf("signing in with %q: %s", token, r.Status)
		}
	}
}

func TestTheFleetPageShowsProblemsAndClusters(t *testing.T) {
	w := newWorld(t)
	page := w.signedIn(w.token(nil, reads())).get("/")
	if page.StatusCode != http.StatusOK || !strings.Contains(page.text, "What needs you") {
		t.Errorf("%s: %s", page.Status, page.text)
	}
}
