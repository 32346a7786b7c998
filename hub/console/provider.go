package console

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"k8s.io/utils/clock"

	"github.com/hanse-dev/hanse/hub/access"
	"github.com/hanse-dev/hanse/internal/answer"
)

const (
	// providerAgain is the minimum time between a failed read of the identity provider's discovery document and the next
	// read.
	providerAgain = 5 * time.Second
	// maxAnswerBytes is the maximum size, in bytes, of a response from the identity provider.
	maxAnswerBytes = 1 << 20
)

// OIDC configures an OpenID Connect provider at which users sign in. The hub's API server has to trust its ID tokens.
type OIDC struct {
	// Issuer is the provider's URL. If it is empty, users cannot sign in at a provider.
	Issuer   string
	ClientID string
	// SecretFile is the file with the secret of the console's OAuth client. It is empty for a public client. The file is
	// read for each sign-in.
	SecretFile string
	// Scopes are the OAuth scopes that the console requests. The scope openid is always added.
	Scopes []string
	// CAFile is a file with the PEM certificates of the identity provider's CAs. If it is empty, the CAs of the system are
	// used.
	CAFile string
	// ConsoleURL is the console's URL for browsers, such as https://hanse.example.com.
	ConsoleURL string
}

// Validate returns an error that names the flag with an invalid value.
func (o OIDC) Validate() error {
	if o.Issuer == "" {
		if o.ClientID != "" || o.SecretFile != "" || o.CAFile != "" {
			return errors.New("--console-oidc-client-id, --console-oidc-client-secret-file and --console-oidc-ca-file need --console-oidc-issuer")
		}
		return nil
	}
	if u, err := url.Parse(o.Issuer); err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("--console-oidc-issuer must be an https URL with a host and a path only, such as https://login.example.com: have %q", o.Issuer)
	}
	if o.ClientID == "" {
		return errors.New("--console-oidc-issuer needs --console-oidc-client-id")
	}
	u, err := url.Parse(o.ConsoleURL)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("--console-oidc-issuer needs --console-url, an https URL with a host only, such as https://hanse.example.com: have %q", o.ConsoleURL)
	}
	return nil
}

// at returns the URL with which browsers reach a path of the console.
func (o OIDC) at(path string) string { return strings.TrimRight(o.ConsoleURL, "/") + path }

// provider sends requests to the identity provider. It reads the provider's discovery document with the first sign-in.
type provider struct {
	options OIDC

	http  *http.Client
	slots *access.Slots
	clock clock.PassiveClock

	mu        sync.Mutex // held while the discovery document is read
	described *oidc.Provider
	failed    error
	failedAt  time.Time
}

// newProvider returns the identity provider of the options. It is nil if no issuer is configured. newProvider does not
// connect to the provider.
func newProvider(o OIDC, proxy func(*http.Request) (*url.URL, error), clock clock.PassiveClock) (*provider, error) {
	if err := o.Validate(); err != nil || o.Issuer == "" {
		return nil, err
	}
	transport := &http.Transport{
		Proxy: proxy, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: answer.Timeout, IdleConnTimeout: time.Minute, MaxConnsPerHost: maxExchanges,
	}
	if o.CAFile != "" {
		pem, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("reading --console-oidc-ca-file: %w", err)
		}
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("reading --console-oidc-ca-file: %s has no certificate in PEM", o.CAFile)
		}
	}
	return &provider{options: o, clock: clock, slots: access.New(maxExchanges), http: &http.Client{
		Transport: confined{transport}, Timeout: answer.Timeout,
		// A client secret or an authorization code is sent only to the address in the identity provider's discovery document.
		// A redirect to another address is not followed.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// confined allows only requests over TLS, and limits a response to maxAnswerBytes bytes.
type confined struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (c confined) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" {
		return nil, fmt.Errorf("the identity provider refers to %s://%s, which is not https", r.URL.Scheme, r.URL.Host)
	}
	answer, err := c.next.RoundTrip(r)
	if err == nil {
		answer.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(answer.Body, maxAnswerBytes), answer.Body}
	}
	return answer, err
}

// client returns the console's OAuth client, and the verifier of ID tokens. Both use the identity provider's discovery
// document.
func (p *provider) client(ctx context.Context) (*oauth2.Config, *oidc.IDTokenVerifier, error) {
	described, err := p.describe(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the discovery document of the identity provider %s: %w", p.options.Issuer, err)
	}
	client := &oauth2.Config{
		ClientID: p.options.ClientID, RedirectURL: p.options.at(callbackPath), Scopes: p.options.Scopes, Endpoint: described.Endpoint(),
	}
	if !slices.Contains(client.Scopes, oidc.ScopeOpenID) {
		client.Scopes = append([]string{oidc.ScopeOpenID}, client.Scopes...)
	}
	if p.options.SecretFile != "" {
		secret, err := os.ReadFile(p.options.SecretFile)
		if err != nil {
			return nil, nil, fmt.Errorf("reading --console-oidc-client-secret-file: %w", err)
		}
		client.ClientSecret = strings.TrimSpace(string(secret))
	}
	var supports struct {
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := described.Claims(&supports); err != nil {
		return nil, nil, fmt.Errorf("decoding the discovery document of the identity provider %s: %w", p.options.Issuer, err)
	}
	// With AuthStyleAutoDetect, the library would send the code twice to find the accepted style. A provider accepts a
	// code only once.
	client.Endpoint.AuthStyle = oauth2.AuthStyleInHeader
	if client.ClientSecret == "" || supports.Methods != nil && !slices.Contains(supports.Methods, "client_secret_basic") {
		client.Endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return client, described.Verifier(&oidc.Config{ClientID: p.options.ClientID, Now: p.clock.Now}), nil
}

// describe returns the discovery document of the identity provider. It reads the document only once. After a failed
// read, the next read is possible after a pause of providerAgain; until then, describe returns the error.
func (p *provider) describe(ctx context.Context) (*oidc.Provider, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.described != nil {
		return p.described, nil
	}
	if p.failed != nil && p.clock.Since(p.failedAt) < providerAgain {
		return nil, p.failed
	}
	// All users share the identity provider's discovery document. Therefore the request for it goes on if the browser that
	// caused the request closes its connection.
	ctx, cancel := context.WithTimeout(oidc.ClientContext(context.WithoutCancel(ctx), p.http), answer.Timeout)
	defer cancel()
	p.described, p.failed = oidc.NewProvider(ctx, p.options.Issuer)
	p.failedAt = p.clock.Now()
	return p.described, p.failed
}

// name returns the name of the identity provider that pages show.
func (p *provider) name() string {
	u, err := url.Parse(p.options.Issuer)
	if err != nil {
		return p.options.Issuer
	}
	return cmp.Or(u.Hostname(), p.options.Issuer)
}
