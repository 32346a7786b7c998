package certificate

import (
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// pathKey is the data key of the Secret for the random part of the webhooks' paths. By default, the API server does not
// authenticate itself when it calls a webhook. The path is therefore secret: only users who may read the Secret or one
// of the webhook configurations know it. Treat it like a password. Note that the API server may log the path of a
// failed call. To get a new random part, remove this key from the Secret.
const pathKey = "path"

// hiding matches a random part of a path that is long enough to be secret. API servers accept only small
// letters in the path of a service.
var hiding = regexp.MustCompile(`^[0-9a-z]{26,128}$`)

// sessionKey is the data key of the Secret for the random bytes with which the console encrypts its sessions. If a user
// removes this entry, all sessions end.
const (
	sessionKey     = "session-key"
	sessionKeySize = 32
)

// fill adds the random part of the path and the session key to the Secret's data, if they are missing.
func fill(data map[string][]byte) {
	if !hides(data[pathKey]) {
		data[pathKey] = newPart()
	}
	if len(data[sessionKey]) < sessionKeySize {
		data[sessionKey] = make([]byte, sessionKeySize)
		_, _ = rand.Read(data[sessionKey]) // never fails, see crypto/rand
	}
}

func newPart() []byte { return []byte(strings.ToLower(rand.Text())) }

func hides(part []byte) bool { return hiding.Match(part) }

// secret returns a webhook's path with the random part.
func secret(path, part string) string { return path + "/" + part }

// Guard answers requests with 404 unless their path is this path with the random part.
func (k *Keeper) Guard(path string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := k.serving.Load()
		if s == nil || subtle.ConstantTimeCompare([]byte(r.URL.Path), []byte(secret(path, s.part))) != 1 {
			http.NotFound(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// lead sets the CA and the path with its random part in the client configuration of a webhook.
func lead(c *admissionregistrationv1.WebhookClientConfig, data map[string][]byte, path string) error {
	c.CABundle = data[caKey]
	path = secret(path, string(data[pathKey]))
	if c.Service != nil {
		c.Service.Path = &path
	}
	if c.URL == nil {
		return nil
	}
	u, err := url.Parse(*c.URL)
	if err != nil {
		return fmt.Errorf("its URL: %w", err)
	}
	u.Path = path
	called := u.String()
	c.URL = &called
	return nil
}
