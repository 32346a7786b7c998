package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/hanse-dev/hanse/hub/access"
)

const (
	// maxSignIns is the maximum number of concurrent sign-ins, and signInsPerAddress the maximum from one source address.
	// A limit for each user is not possible, because a user is known only after the sign-in. All users behind an ingress
	// have the same address.
	maxSignIns        = 8
	signInsPerAddress = 4
)

// signInForm has the data for the template of the sign-in page.
type signInForm struct {
	// Next is the path of the page that the user requested.
	Next string
	// Fault says why the user has to sign in again. It is empty for the first sign-in.
	Fault string
	// Provider is the name of the identity provider, and Begin is the address at which a sign-in there begins. Both are
	// empty if there is no provider.
	Provider, Begin string
}

// toSignIn redirects a browser to the sign-in page.
func (c *Console) toSignIn(w http.ResponseWriter, r *http.Request, why error) {
	switch {
	case errors.Is(why, errKey):
		c.opts.Logger.Error(why, "Finding the session of a browser")
		c.fail(w, &visit{Request: r, now: c.opts.Clock.Now()}, http.StatusInternalServerError, errKey)
		return
	case errors.Is(why, errNoSession) && followsLink(r):
		c.sendOnward(w, r, localPath(r.URL.RequestURI())) // the browser may have a session after all
		return
	}
	endSession(w, r)
	to := url.Values{}
	if r.Method == http.MethodGet && r.URL.Path != "/" {
		to.Set("next", r.URL.RequestURI())
	}
	if !errors.Is(why, errNoSession) {
		to.Set("ended", "")
	}
	target := "/signin"
	if len(to) > 0 {
		target += "?" + to.Encode()
	}
	http.Redirect(w, r, target, http.StatusSeeOther)
}

// followsLink reports whether the user has followed a link from another site. In this case, the browser has not sent
// the session's cookies, because they have SameSite=Strict.
func followsLink(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return r.Method == http.MethodGet && (site == "cross-site" || site == "same-site") && r.Header.Get("Sec-Fetch-Mode") == "navigate"
}

func (c *Console) showSignIn(w http.ResponseWriter, r *http.Request) {
	form := signInForm{Next: localPath(r.FormValue("next"))}
	if r.URL.Query().Has("ended") {
		form.Fault = "Your session has ended. Sign in again."
	}
	c.sendSignIn(w, r, http.StatusOK, form)
}

func (c *Console) sendSignIn(w http.ResponseWriter, r *http.Request, status int, form signInForm) {
	if c.provider != nil {
		form.Provider = c.provider.name()
		form.Begin = c.provider.options.at(oidcPath) + "?" + url.Values{"next": {form.Next}}.Encode()
	}
	p := &page{Title: "Sign in", template: "signin", Body: form}
	answer, err := p.render(&visit{Request: r, now: c.opts.Clock.Now()})
	if err != nil {
		c.opts.Logger.Error(err, "Rendering the sign-in page")
		http.Error(w, "the console cannot show the sign-in page", http.StatusInternalServerError)
		return
	}
	send(w, status, answer)
}

// failSignIn answers with the sign-in page and the reason why there is no session.
func (c *Console) failSignIn(w http.ResponseWriter, r *http.Request, status int, next string, why error) {
	text := why.Error()
	c.sendSignIn(w, r, status, signInForm{Next: next, Fault: strings.ToUpper(text[:1]) + text[1:] + "."})
}

func (c *Console) sendBusy(w http.ResponseWriter, r *http.Request, next string) {
	w.Header().Set("Retry-After", "5")
	c.failSignIn(w, r, http.StatusServiceUnavailable, next, errAdmitBusy)
}

// signIn begins a session with the token in the sign-in form, if the hub's API server accepts this token.
func (c *Console) signIn(w http.ResponseWriter, r *http.Request) {
	next := localPath(r.PostFormValue("next"))
	token := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(r.PostFormValue("token")), "Bearer "))
	s, err := c.admit(r, token)
	if err == nil {
		err = c.begin(w, r, s)
	}
	switch {
	case err == nil:
		http.Redirect(w, r, next, http.StatusSeeOther)
	case errors.Is(err, errAdmitBusy):
		c.sendBusy(w, r, next)
	case apierrors.IsUnauthorized(err), errors.Is(err, errBadToken):
		c.failSignIn(w, r, http.StatusUnauthorized, next, errUnknownToken)
	case errors.Is(err, errLongSession):
		c.failSignIn(w, r, http.StatusBadRequest, next, errLongSession)
	case errors.Is(err, errKey):
		c.opts.Logger.Error(err, "Signing a user in")
		c.failSignIn(w, r, http.StatusInternalServerError, next, errKey)
	default:
		c.opts.Logger.Error(err, "Signing a user in")
		c.failSignIn(w, r, http.StatusBadGateway, next, errNoAnswer)
	}
}

var (
	errBadToken     = errors.New("the token is empty or has invalid characters")
	errUnknownToken = errors.New("the hub's API server does not know the token, or the token has expired: use a new token")
	errNoAnswer     = errors.New("the hub's API server did not answer: try again")
	errAdmitBusy    = errors.New("too many users sign in at the same time: try again in a few seconds")
)

// admit makes the session for a token. It first waits if too many users sign in at the same time.
func (c *Console) admit(r *http.Request, token string) (session, error) {
	ctx, cancel := context.WithTimeout(r.Context(), c.waitForSlot)
	defer cancel()
	leave, ok := c.signIns.Take(ctx, access.Party{Name: access.Address(r), Max: signInsPerAddress})
	if !ok {
		return session{}, errAdmitBusy
	}
	defer leave()
	return c.sessionOf(ctx, token)
}

// sessionOf asks the hub's API server for the user name of a token, in a request with this token.
func (c *Console) sessionOf(ctx context.Context, token string) (session, error) {
	if len(token) > maxCookies*cookieSize*3/4 {
		return session{}, errLongSession
	}
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return session{}, errBadToken
	}
	review := &authenticationv1.SelfSubjectReview{}
	if err := c.users.with(token).Create(ctx, review); err != nil {
		return session{}, fmt.Errorf("finding the user of a token: %w", err)
	}
	now := c.opts.Clock.Now()
	return session{Token: token, User: review.Status.UserInfo.Username, Until: endOf(token, now.Add(sessionLasts))}, nil
}

// signatures are the signature algorithms of tokens whose expiry can be read. API servers accept the same algorithms.
var signatures = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// endOf returns the expiry in a JSON Web Token, but no time after `latest`. For a token without an expiry, it returns
// `latest`. The signature is not checked, because the API server checks the token with each request.
func endOf(token string, latest time.Time) time.Time {
	parsed, err := jwt.ParseSigned(token, signatures)
	if err != nil {
		return latest
	}
	var claims jwt.Claims
	if err := parsed.UnsafeClaimsWithoutVerification(&claims); err != nil || claims.Expiry == nil {
		return latest
	}
	if until := claims.Expiry.Time(); until.Before(latest) {
		return until
	}
	return latest
}

func (c *Console) signOut(w http.ResponseWriter, r *http.Request) {
	s, err := c.session(r)
	if err == nil && !s.sent(r) {
		c.fail(w, &visit{Request: r, session: s, now: c.opts.Clock.Now()}, http.StatusForbidden, errForm)
		return
	}
	endSession(w, r)
	http.Redirect(w, r, "/signin", http.StatusSeeOther)
}

// localPath returns next if it is a path of this console, and otherwise "/".
func localPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(next, "/") ||
		strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\x00\r\n\t") || strings.HasPrefix(u.Path, "/sign") || u.Path == "/live" {
		return "/"
	}
	path := u.RequestURI()
	if strings.HasPrefix(path, "//") { // a path such as /%2F begins with // after decoding
		return "/"
	}
	return path
}
