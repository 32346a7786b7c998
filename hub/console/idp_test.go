package console

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// These are the clients of the test's identity provider. The hub's API server accepts the tokens of the first two.
const (
	publicClient  = "console"
	secretClient  = "console-with-secret"
	foreignClient = "another-application"
	clientSecret  = "a secret of the test: /+%&"
)

// idp is an OpenID Connect provider with one user, who always agrees.
type idp struct {
	*httptest.Server

	key *ecdsa.PrivateKey

	mu     sync.Mutex
	codes  map[string]url.Values // the authorization request of each code
	lasts  time.Duration         // lifetime of new tokens
	change func(map[string]any)  // edits the claims of new tokens
	signer *ecdsa.PrivateKey
	// description changes the provider's OpenID Connect discovery document.
	description func(map[string]any)
	down        bool
}

func newIDP() *idp {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	p := &idp{key: key}
	p.reset()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.describe)
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		answerJSON(w, http.StatusOK, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "1", Algorithm: "ES256", Use: "sig"}}})
	})
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	p.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.down {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	return p
}

// reset undoes all changes of the provider.
func (p *idp) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.codes, p.lasts, p.signer, p.down = map[string]url.Values{}, time.Hour, p.key, false
	p.change, p.description = func(map[string]any) {}, func(map[string]any) {}
}

// set changes the behaviour of the provider until the end of the test.
func (p *idp) set(t *testing.T, change func()) {
	t.Helper()
	p.mu.Lock()
	change()
	p.mu.Unlock()
	t.Cleanup(p.reset)
}

func answerJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}

func (p *idp) describe(w http.ResponseWriter, _ *http.Request) {
	description := map[string]any{
		"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
		"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{"ES256"},
	}
	p.description(description)
	answerJSON(w, http.StatusOK, description)
}

func (p *idp) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" || q.Get("nonce") == "" || q.Get("state") == "" {
		http.Error(w, "want a code with PKCE, state and nonce", http.StatusBadRequest)
		return
	}
	code := rand.Text()
	p.codes[code] = q
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {p.URL}}.Encode(), http.StatusFound)
}

func (p *idp) token(w http.ResponseWriter, r *http.Request) {
	client, secret := r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	if name, password, ok := r.BasicAuth(); ok {
		client, _ = url.QueryUnescape(name)
		secret, _ = url.QueryUnescape(password)
	}
	if client == secretClient && secret != clientSecret || client != secretClient && secret != "" {
		answerJSON(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		return
	}
	code := r.PostFormValue("code")
	request, ok := p.codes[code]
	delete(p.codes, code)
	challenge := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if !ok || request.Get("client_id") != client || request.Get("redirect_uri") != r.PostFormValue("redirect_uri") ||
		request.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(challenge[:]) {
		answerJSON(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant", "error_description": "the code is not valid"})
		return
	}
	claims := map[string]any{
		"iss": p.URL, "sub": "alice", "aud": client, "nonce": request.Get("nonce"), "groups": []string{"fleet"},
		"iat": time.Now().Unix(), "exp": time.Now().Add(p.lasts).Unix(),
	}
	p.change(claims)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: p.signer, KeyID: "1"}}, nil)
	if err != nil {
		panic(err)
	}
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		panic(err)
	}
	answerJSON(w, http.StatusOK, map[string]any{"access_token": rand.Text(), "token_type": "Bearer", "expires_in": 3600, "id_token": token})
}

// ca returns the certificate of the provider's CA.
func (p *idp) ca() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw}))
}

// trustedBy makes an API server trust tokens of the provider. The returned function removes the file with the
// configuration.
func (p *idp) trustedBy(environment *envtest.Environment) (remove func()) {
	folder, err := os.MkdirTemp("", "hanse-console-")
	if err != nil {
		panic(err)
	}
	config, err := json.Marshal(map[string]any{
		"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
		"jwt": []any{map[string]any{
			"issuer": map[string]any{
				"url": p.URL, "certificateAuthority": p.ca(), "audiences": []string{publicClient, secretClient}, "audienceMatchPolicy": "MatchAny",
			},
			"claimMappings": map[string]any{
				"username": map[string]any{"claim": "sub", "prefix": "oidc:"}, "groups": map[string]any{"claim": "groups", "prefix": "oidc:"},
			},
		}},
	})
	if err != nil {
		panic(err)
	}
	file := filepath.Join(folder, "authentication.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		panic(err)
	}
	environment.ControlPlane.GetAPIServer().Configure().Set("authentication-config", file)
	return func() { _ = os.RemoveAll(folder) }
}

// options returns console options with which users sign in at the provider.
func (p *idp) options(t *testing.T, client string) func(*Options, string) {
	t.Helper()
	folder := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(folder, name)
		must(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	return func(o *Options, address string) {
		o.OIDC = OIDC{Issuer: p.URL, ClientID: client, CAFile: write("ca.crt", p.ca()), ConsoleURL: address, Scopes: []string{"email", "groups"}}
		if client == secretClient {
			o.OIDC.SecretFile = write("secret", clientSecret+"\n")
		}
	}
}

// visit acts as the browser at the provider: it returns the path to which the provider redirects the browser.
func (p *idp) visit(t *testing.T, address string) (callback string) {
	t.Helper()
	client := *p.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	must(t, err)
	answer, err := client.Do(r)
	must(t, err)
	must(t, answer.Body.Close())
	to, err := answer.Location()
	if err != nil {
		t.Fatal(fmt.Errorf("the provider at %s: %s: %w", address, answer.Status, err))
	}
	return to.RequestURI()
}
