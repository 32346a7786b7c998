package console

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/hanse-dev/hanse/hub/access"
	"github.com/hanse-dev/hanse/internal/answer"
)

// A user signs in with OpenID Connect in three steps. The sign-in page links to beginOIDC, which redirects the browser
// to the provider. After the sign-in, the provider redirects the browser to endOIDC with a code. The console then
// exchanges this code for an ID token, which becomes the bearer token of the session. This is the authorization code
// flow with PKCE (RFC 7636).
const (
	oidcPath     = "/signin/oidc"
	callbackPath = "/signin/callback"
	// oidcCookie is the cookie with the state of a sign-in while the user is at the identity provider.
	oidcCookie  = "__Host-hanse-oidc"
	oidcPurpose = "hanse console sign-in v1"
	// oidcLasts is how long a sign-in at the identity provider may take.
	oidcLasts = 10 * time.Minute
	// maxExchanges is the maximum number of concurrent requests to the identity provider, and exchangesPerAddress the
	// maximum for browsers with one source address.
	maxExchanges        = 8
	exchangesPerAddress = 4
	// maxProviderText is the maximum length of a text from the identity provider in an error message.
	maxProviderText = 300
)

// attempt is the state of a sign-in while the user is at the identity provider.
type attempt struct {
	State    string    `json:"s"`
	Nonce    string    `json:"n"`
	Verifier string    `json:"v"`
	Next     string    `json:"p"`
	Until    time.Time `json:"e"`
}

// These errors are the reasons why a sign-in at the identity provider does not begin a session.
var (
	errNotBegun   = errors.New("this browser has not begun the sign-in at this address, or the sign-in took longer than 10 minutes: sign in again")
	errOtherState = errors.New("the answer of the identity provider belongs to another sign-in: sign in again")
	errCode       = errors.New("the identity provider did not accept the sign-in: sign in again")
	errIDToken    = errors.New("the identity provider's ID token is not valid for the console: an administrator finds the cause in the hub's log")
	errUntrusted  = errors.New("the hub's API server does not accept the identity provider's token: an administrator must set the issuer and the client ID in the API server's authentication configuration")
	errProvider   = errors.New("the identity provider does not answer: try again, or sign in with a token")
)

// beginOIDC redirects the browser to the identity provider for the sign-in.
func (c *Console) beginOIDC(w http.ResponseWriter, r *http.Request) {
	next := localPath(r.URL.Query().Get("next"))
	leave, ok := c.exchange(r)
	if !ok {
		c.sendBusy(w, r, next)
		return
	}
	defer leave()
	client, _, err := c.provider.client(r.Context())
	if err != nil {
		c.opts.Logger.Error(err, "Sending a user to the identity provider")
		c.failSignIn(w, r, http.StatusBadGateway, next, errProvider)
		return
	}
	a := attempt{
		State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Next: next, Until: c.opts.Clock.Now().Add(oidcLasts),
	}
	sealed, err := c.seal(oidcPurpose, a)
	if err != nil {
		c.opts.Logger.Error(err, "Sending a user to the identity provider")
		c.failSignIn(w, r, http.StatusInternalServerError, next, errKey)
		return
	}
	if len(sealed) > cookieSize { // the path in next is too long
		a.Next = "/"
		sealed, _ = c.seal(oidcPurpose, a)
	}
	http.SetCookie(w, attemptCookie(sealed, int(oidcLasts/time.Second)))
	http.Redirect(w, r, client.AuthCodeURL(a.State, oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)), http.StatusSeeOther)
}

// attemptCookie returns the cookie with the state of a sign-in. It has SameSite=Lax, because the identity provider is
// another site and redirects the browser back.
func attemptCookie(value string, seconds int) *http.Cookie {
	return &http.Cookie{Name: oidcCookie, Value: value, Path: "/", MaxAge: seconds, HttpOnly: true, Secure: true, SameSite: http.SameSiteLaxMode}
}

// endOIDC handles the browser's return from the identity provider. It exchanges the authorization code from the
// provider for an ID token, and begins a session.
func (c *Console) endOIDC(w http.ResponseWriter, r *http.Request) {
	a, err := c.attempt(r)
	if err != nil {
		c.failSignIn(w, r, http.StatusBadRequest, "/", err)
		return
	}
	http.SetCookie(w, attemptCookie("", -1)) // the attempt is over after one answer
	query := r.URL.Query()
	if refused := query.Get("error"); refused != "" {
		// The function attempt has checked that the state parameter matches the cookie, so that the error really comes from
		// the provider.
		c.failSignIn(w, r, http.StatusUnauthorized, a.Next, fmt.Errorf("the identity provider refused the sign-in: %.*s: %.*s",
			maxProviderText, refused, maxProviderText, query.Get("error_description")))
		return
	}
	leave, ok := c.exchange(r)
	if !ok {
		c.sendBusy(w, r, a.Next)
		return
	}
	token, err := func() (string, error) {
		defer leave()
		return c.idToken(r.Context(), query.Get("code"), a)
	}()
	var s session
	if err == nil {
		s, err = c.admit(r, token)
	}
	if err == nil {
		err = c.begin(w, r, s)
	}
	switch {
	case err == nil:
		c.sendOnward(w, r, a.Next)
	case errors.Is(err, errAdmitBusy):
		c.sendBusy(w, r, a.Next)
	default:
		if apierrors.IsUnauthorized(err) || errors.Is(err, errBadToken) {
			err = fmt.Errorf("%w: %w", errUntrusted, err)
		}
		c.opts.Logger.Error(err, "Signing a user in with an identity provider", "issuer", c.opts.OIDC.Issuer)
		status, shown := oidcFault(err)
		c.failSignIn(w, r, status, a.Next, shown)
	}
}

// oidcFault returns the status code and the error message for a user whose sign-in at the identity provider failed.
// Other details of err are only logged.
func oidcFault(err error) (status int, shown error) {
	for _, known := range []struct {
		why    error
		status int
	}{
		{errCode, http.StatusUnauthorized}, {errIDToken, http.StatusUnauthorized}, {errUntrusted, http.StatusUnauthorized},
		{errLongSession, http.StatusBadRequest}, {errProvider, http.StatusBadGateway}, {errKey, http.StatusInternalServerError},
	} {
		if errors.Is(err, known.why) {
			return known.status, known.why
		}
	}
	return http.StatusBadGateway, errNoAnswer
}

// attempt reads the state of the sign-in from the browser's cookie. It returns an error if the response of the identity
// provider belongs to another sign-in.
func (c *Console) attempt(r *http.Request) (attempt, error) {
	sealed, err := r.Cookie(oidcCookie)
	if err != nil {
		return attempt{}, errNotBegun
	}
	var a attempt
	if err := c.unseal(oidcPurpose, sealed.Value, &a); err != nil || !c.opts.Clock.Now().Before(a.Until) {
		return attempt{}, errNotBegun
	}
	query := r.URL.Query()
	if subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(a.State)) != 1 {
		return attempt{}, errOtherState
	}
	if issuer := query.Get("iss"); issuer != "" && issuer != c.opts.OIDC.Issuer { // the answer may name it, see RFC 9207
		return attempt{}, errOtherState
	}
	return a, nil
}

// exchange waits until a request may be sent to the identity provider, because the number of concurrent requests is
// limited. ok is false if it waits too long. The caller calls leave after the request.
func (c *Console) exchange(r *http.Request) (leave func(), ok bool) {
	ctx, cancel := context.WithTimeout(r.Context(), c.waitForSlot)
	defer cancel()
	return c.provider.slots.Take(ctx, access.Party{Name: access.Address(r), Max: exchangesPerAddress})
}

// idToken exchanges the authorization code from the identity provider for an ID token, and verifies the ID token.
func (c *Console) idToken(ctx context.Context, code string, a attempt) (string, error) {
	client, verifier, err := c.provider.client(ctx)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errProvider, err)
	}
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, c.provider.http), answer.Timeout)
	defer cancel()
	answer, err := client.Exchange(ctx, code, oauth2.VerifierOption(a.Verifier))
	if refusal := (*oauth2.RetrieveError)(nil); errors.As(err, &refusal) {
		kind := errCode
		if refusal.Response.StatusCode >= http.StatusInternalServerError {
			kind = errProvider
		}
		// The body of the identity provider's response is not logged, because it may contain a part of a token.
		return "", fmt.Errorf("%w: %s: %.*q %.*q", kind, refusal.Response.Status, maxProviderText, refusal.ErrorCode, maxProviderText, refusal.ErrorDescription)
	}
	if err != nil {
		return "", fmt.Errorf("%w: exchanging a code: %w", errProvider, err)
	}
	raw, _ := answer.Extra("id_token").(string)
	token, err := verifier.Verify(ctx, raw)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errIDToken, err)
	}
	if subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(a.Nonce)) != 1 {
		return "", fmt.Errorf("%w: its nonce belongs to another sign-in", errIDToken)
	}
	return raw, nil
}

// sendOnward answers with a page that makes the browser load the next page. A redirect is not possible: the browser
// would count it as caused by the identity provider, and would not send cookies with SameSite=Strict.
func (c *Console) sendOnward(w http.ResponseWriter, r *http.Request, next string) {
	p := &page{Title: "One moment", Onward: next, template: "onward", Body: next}
	answer, err := p.render(&visit{Request: r, now: c.opts.Clock.Now()})
	if err != nil {
		c.opts.Logger.Error(err, "Rendering the page that redirects the browser")
		http.Error(w, "the console cannot show the page", http.StatusInternalServerError)
		return
	}
	send(w, http.StatusOK, answer)
}
