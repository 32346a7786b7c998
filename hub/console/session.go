package console

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/hanse-dev/hanse/hub/access"
)

const (
	// cookieName is the first part of the name of each cookie of a session. Browsers accept the prefix __Host- only over a
	// secure connection, for this host alone, and for all paths (RFC 6265bis, section 4.1.3.2).
	cookieName = "__Host-hanse-"
	// maxCookies is the maximum number of cookies of one session. Each cookie is shorter than the limit of browsers,
	// 4,096 bytes with its name and attributes. A token may therefore have about 8,800 bytes.
	maxCookies = 4
	cookieSize = 3000
	// sessionLasts is the longest duration of a session, even if its token is valid for longer.
	sessionLasts = 12 * time.Hour
	// cookiesLast is how much longer than the session the browser keeps the cookies. A page can then say that the session
	// has ended.
	cookiesLast = time.Hour
	// sessionPurpose is the purpose from which the function sealer derives the key for sessions.
	sessionPurpose = "hanse console session v1"
)

// session is the session of a user, as stored in the cookies.
type session struct {
	Token string `json:"t"`
	// User is the name of the user on the hub's API server.
	User string `json:"u"`
	// CSRF is the token in the forms of the session's pages.
	CSRF  string    `json:"c"`
	Until time.Time `json:"e"`
}

// party returns the name under which the session's requests are counted. It is the same for all ServiceAccounts of a
// namespace.
func (s session) party() string {
	if namespace, ok := access.AccountNamespace(s.User); ok {
		return "namespace/" + namespace
	}
	return "user/" + s.User
}

var (
	errNoSession   = errors.New("sign in to see the fleet")
	errExpired     = errors.New("your session has ended: sign in again")
	errKey         = errors.New("the hub cannot read the key of sessions: an administrator finds the cause in the hub's log")
	errLongSession = fmt.Errorf("the token is longer than a browser keeps, about %d bytes: use a token with fewer claims", maxCookies*cookieSize*3/4)
)

// sealer returns the cipher for a purpose. Each purpose has its own key. A value that was encrypted for one purpose is
// therefore not accepted for another.
func (c *Console) sealer(purpose string) (cipher.AEAD, error) {
	secret, err := c.opts.Key()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errKey, err)
	}
	key, err := hkdf.Key(sha256.New, secret, nil, purpose, 32)
	if err != nil {
		return nil, fmt.Errorf("deriving the key of sessions: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("deriving the key of sessions: %w", err)
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// seal encrypts a value for a cookie.
func (c *Console) seal(purpose string, value any) (string, error) {
	plain, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("writing a cookie: %w", err)
	}
	aead, err := c.sealer(purpose)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(aead.Seal(nil, nil, plain, []byte(purpose))), nil
}

// unseal decrypts a value that was encrypted for the same purpose. The error is errKey if the hub has no key, and
// errExpired otherwise.
func (c *Console) unseal(purpose, sealed string, into any) error {
	aead, err := c.sealer(purpose)
	if err != nil {
		return err
	}
	raw, err := base64.RawURLEncoding.DecodeString(sealed)
	if err == nil {
		raw, err = aead.Open(nil, nil, raw, []byte(purpose))
	}
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		return errExpired // also returned if another key encrypted the value
	}
	return nil
}

// begin encrypts a new session, and sets the cookies that have it.
func (c *Console) begin(w http.ResponseWriter, r *http.Request, s session) error {
	s.CSRF = rand.Text()
	sealed, err := c.seal(sessionPurpose, s)
	if err != nil {
		return err
	}
	if len(sealed) > maxCookies*cookieSize {
		return errLongSession
	}
	endSession(w, r) // an earlier session may have more cookies
	for i := 0; len(sealed) > 0; i++ {
		n := min(len(sealed), cookieSize)
		http.SetCookie(w, cookie(i, sealed[:n], s.Until.Add(cookiesLast)))
		sealed = sealed[n:]
	}
	return nil
}

func cookie(i int, value string, until time.Time) *http.Cookie {
	return &http.Cookie{
		Name: fmt.Sprintf("%s%d", cookieName, i), Value: value, Path: "/", Expires: until,
		HttpOnly: true, Secure: true, SameSite: http.SameSiteStrictMode,
	}
}

// endSession deletes the session cookies that the request has.
func endSession(w http.ResponseWriter, r *http.Request) {
	for i := range maxCookies {
		gone := cookie(i, "", time.Unix(1, 0))
		if _, err := r.Cookie(gone.Name); err == nil {
			gone.MaxAge = -1
			http.SetCookie(w, gone)
		}
	}
}

// session returns the session of a request. The error is errNoSession, errExpired or errKey.
func (c *Console) session(r *http.Request) (session, error) {
	var sealed strings.Builder
	for i := range maxCookies {
		part, err := r.Cookie(fmt.Sprintf("%s%d", cookieName, i))
		if err != nil {
			break
		}
		sealed.WriteString(part.Value)
	}
	if sealed.Len() == 0 {
		return session{}, errNoSession
	}
	var s session
	if err := c.unseal(sessionPurpose, sealed.String(), &s); err != nil {
		return session{}, err
	}
	if !c.opts.Clock.Now().Before(s.Until) {
		return session{}, errExpired
	}
	return s, nil
}
