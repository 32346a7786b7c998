// Package console serves web pages about the fleet: clusters, objects, rollouts and operators, and the reasons of their
// problems. Every replica serves the pages over HTTPS.
//
//   - The console has no rights of its own. It reads each page from the hub's API server with the user's bearer token,
//     and from package views with the same token. Therefore a user sees exactly what the user may read. A page
//     reads bindings from the hub's cache, after the API server has accepted a list request with the user's token.
//   - Package view decides what a page shows, as it does for hansectl.
//   - A held removal is one of too many removals of copies, which wait for a user's confirmation.
//   - A user signs in with a bearer token, or at an identity provider that issues one; see signin.go and oidc.go.
//   - A session is a cookie that has the token. It is encrypted with a key that all replicas share; see session.go. The
//     hub stores no session.
//   - A form that changes an object has a CSRF token of the session, and requests from other origins are refused; see
//     action.go.
//   - An open page is updated after a change; see live.go. The server sends only a signal, and the browser then reads
//     the page again.
//   - The number of pages that are made at the same time is limited, in total and for each user, so that pages never
//     delay the hub's other work. Sign-ins have a limit of their own, in total and for each source address.
package console

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hanse-dev/hanse/hub/access"
)

const (
	// maxPages is the maximum number of pages that the process makes at a time, and maxPerUser the maximum for one user.
	// All ServiceAccounts of a namespace count as one user.
	maxPages   = 6
	maxPerUser = 2
	// maxWait is how long a request waits until it may make its page, if too many pages are being made.
	maxWait = 10 * time.Second
	// readWithin is the timeout of the reads for one page.
	readWithin = 20 * time.Second
	// answerWithin is the timeout of a whole request, until the browser has received the answer. Streams of changes have
	// their own timeout.
	answerWithin = maxWait + readWithin + 30*time.Second
	// maxFormBytes is the maximum size of the body of a request.
	maxFormBytes = 64 << 10
)

//go:embed assets
var assets embed.FS

// Options of a Console. The fields OIDC, Proxy, Views, Bindings and Clock are optional; all other fields are required.
type Options struct {
	// Config has the address and the CA of the hub's API server. Its credentials are not used.
	Config *rest.Config
	// Mapper maps the kinds of the hub.
	Mapper meta.RESTMapper
	// Views answers requests about members, see package views. It is nil if the hub does not answer such requests.
	Views http.Handler
	// Bindings is the hub's cache of bindings, from which pages are made. If it is nil, pages read bindings from the API
	// server.
	Bindings client.Reader
	// Key returns the key with which all replicas encrypt sessions: at least 32 random bytes.
	Key    func() ([]byte, error)
	Logger logr.Logger
	// OIDC is the identity provider at which users sign in. Its zero value means that there is no provider.
	OIDC OIDC
	// Proxy returns the proxy of connections to the provider. If it is nil, there is no proxy.
	Proxy func(*http.Request) (*url.URL, error)
	// Clock defaults to the real clock.
	Clock clock.PassiveClock
}

// Console handles the requests of browsers.
type Console struct {
	opts    Options
	users   *users
	pages   *access.Slots
	signIns *access.Slots
	// simulations lets only one what-if simulation run at a time, because a simulation keeps a processor busy.
	simulations *access.Slots
	// provider is the identity provider. It is nil if users sign in with tokens only.
	provider *provider
	// waitForSlot is how long a request waits until it may make its page, if too many pages are being made.
	waitForSlot time.Duration
	Live        *Live
	// listings has the namespaces that users may list.
	listings listings
	// membersWithin is how long a page waits for answers of members.
	membersWithin time.Duration
}

// New returns a Console, or an error for a wrong option.
func New(o Options) (*Console, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	u, err := newUsers(o.Config, o.Mapper)
	if err != nil {
		return nil, err
	}
	p, err := newProvider(o.OIDC, o.Proxy, o.Clock)
	if err != nil {
		return nil, err
	}
	return &Console{
		opts: o, users: u, pages: access.New(maxPages), signIns: access.New(maxSignIns), simulations: access.New(1), provider: p,
		waitForSlot: maxWait, Live: newLive(), membersWithin: membersWithin,
	}, nil
}

// Handler returns the handler of all requests.
func (c *Console) Handler() (http.Handler, error) {
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		return nil, fmt.Errorf("reading the assets of the console: %w", err)
	}
	mux := http.NewServeMux()
	// The pattern "GET /assets/{name}" matches only files. A pattern that also matches the folder would let the server
	// list the folder's files.
	mux.Handle("GET /assets/{name}", http.StripPrefix("/assets/", http.FileServerFS(files)))
	mux.HandleFunc("GET /signin", c.showSignIn)
	mux.HandleFunc("POST /signin", c.signIn)
	mux.HandleFunc("POST /signout", c.signOut)
	if c.provider != nil {
		mux.HandleFunc("GET "+oidcPath, c.beginOIDC)
		mux.HandleFunc("GET "+callbackPath, c.endOIDC)
	}
	mux.HandleFunc("GET /live", c.live)
	mux.HandleFunc(anyOther, c.page(noPage))
	for pattern, read := range pages() {
		mux.HandleFunc("GET "+pattern, c.page(read))
	}
	for pattern, act := range actions() {
		mux.HandleFunc("POST "+pattern, c.action(act))
	}
	mux.HandleFunc("POST /whatif", c.whatIf)
	return guarded(counted(mux)), nil
}

// pages returns, for each path pattern, the function that makes the page for a signed-in user.
func pages() map[string]func(context.Context, *visit) (*page, error) {
	return map[string]func(context.Context, *visit) (*page, error){
		"/{$}":                fleetPage,
		"/rollouts":           rolloutsPage,
		"/rollouts/placement": rolloutPage,
		"/rollouts/object":    rolloutObjectPage,
		"/operators":          operatorsPage,
		"/whatif":             whatIfPage,
		"/objects":            matrixPage,
		"/object":             objectPage,
		"/clusters/{name}":    clusterPage,
	}
}

// anyOther is the pattern of all paths that have no page.
const anyOther = "GET /"

// policy is the Content-Security-Policy of each page. A page may load scripts and styles only from the console's
// origin, and may send requests and forms only to this origin. Inline scripts and styles have no effect. No page can
// show a page of the console in a frame.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// guarded sets the headers of every response, limits the size and the time of each request, and refuses requests of
// other origins that change an object.
func guarded(next http.Handler) http.Handler {
	next = http.NewCrossOriginProtection().Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		// SetWriteDeadline fails only for the response recorder of a test.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerWithin))
		r.Body = http.MaxBytesReader(w, r.Body, maxFormBytes)
		next.ServeHTTP(w, r)
	})
}

// visit is one request of a signed-in user.
type visit struct {
	*http.Request
	session session
	user    *user
	now     time.Time
	// namespace is the only namespace of the page. It is empty if the page shows all namespaces that the user may see.
	namespace string
	// namespaces are those from which the user can choose, see namespacesOf.
	namespaces []string
	// membersWithin is the timeout of requests to members.
	membersWithin time.Duration
}

// scope returns the objects that the page shows: those of its namespace, or all objects if it has no namespace.
func (v *visit) scope() scope {
	if v.namespace == "" {
		return everywhere
	}
	return in(v.namespace)
}

var (
	errBusy      = errors.New("the console is busy: reload the page in a few seconds")
	errNamespace = errors.New("the namespace is not valid: use lowercase letters, digits and dashes")
)

// enter finds the session of a request, and waits until the request may make its page. The caller calls leave when the
// page is made. If there is no session, enter sends the browser to the sign-in page and returns false.
func (c *Console) enter(w http.ResponseWriter, r *http.Request) (v *visit, leave func(), ok bool) {
	s, err := c.session(r)
	if err != nil {
		c.toSignIn(w, r, err)
		return nil, nil, false
	}
	return c.admitted(w, r, s)
}

// admitted waits until a user's request may make its page, because the number of pages made at a time is limited. If it
// waits too long, or if the namespace is invalid, it answers with an error page and returns false.
func (c *Console) admitted(w http.ResponseWriter, r *http.Request, s session) (v *visit, leave func(), ok bool) {
	v = &visit{Request: r, session: s, now: c.opts.Clock.Now(), namespace: r.URL.Query().Get("namespace")}
	if v.namespace != "" && len(validation.IsDNS1123Label(v.namespace)) > 0 {
		v.namespace = ""
		c.fail(w, v, http.StatusBadRequest, errNamespace)
		return nil, nil, false
	}
	ctx, cancel := context.WithTimeout(r.Context(), c.waitForSlot)
	defer cancel()
	leave, ok = c.pages.Take(ctx, access.Party{Name: s.party(), Max: maxPerUser})
	if !ok {
		w.Header().Set("Retry-After", "5")
		c.fail(w, v, http.StatusServiceUnavailable, errBusy)
		return nil, nil, false
	}
	v.now, v.membersWithin = c.opts.Clock.Now(), c.membersWithin
	v.user = c.users.with(s.Token).narrowed(v.namespace, c.viewsOf(s.Token))
	return v, leave, true
}

// page returns the handler of a page.
func (c *Console) page(read func(context.Context, *visit) (*page, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, leave, ok := c.enter(w, r)
		if !ok {
			return
		}
		answer, err := func() ([]byte, error) {
			defer leave() // freed before the answer is sent, so that a slow browser holds no slot
			v.user.cache = c.opts.Bindings
			ctx, cancel := context.WithTimeout(r.Context(), readWithin)
			defer cancel()
			v.namespaces = withChosen(c.namespacesOf(ctx, v.session), v.namespace)
			p, err := read(ctx, v)
			if err != nil {
				return nil, err
			}
			return p.render(v)
		}()
		if err != nil {
			c.refuse(w, v, err)
			return
		}
		send(w, http.StatusOK, answer)
	}
}

func send(w http.ResponseWriter, status int, answer []byte) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = bytes.NewReader(answer).WriteTo(w)
}
