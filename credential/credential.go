// Package credential reads the hub's credentials on a member. It returns their expiry, the Secret to which a token is
// bound, and the time to renew them.
//
// It decides by values alone. It does not check signatures: the member does, and a token's own claims give the hub no
// rights.
package credential

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

const (
	// Account is the name of the hub's ServiceAccount in hanse-system of a member.
	Account = "hanse"
	// Lifetime is the default lifetime of a token in hansectl.
	Lifetime = 30 * 24 * time.Hour
	// LastingSecret has a token that does not expire: earlier versions of hansectl created it, and the chart
	// hanse-member does on request.
	LastingSecret = "hanse-token"

	// SecretType is the type of the Secrets to which tokens are bound. They are empty.
	SecretType = "hanse.dev/token"

	longestToken = 16 << 10
	longestUID   = 64
)

// TokenSecrets are the Secrets in a member's namespace hanse-system to which tokens are bound. A hub needs two, so that
// a new token is in use before the old one is revoked. Four let two hubs share a member.
var TokenSecrets = []string{"hanse-token-a", "hanse-token-b", "hanse-token-c", "hanse-token-d"}

// ErrNoRoom means that all TokenSecrets exist on the member, so that no token can be bound to a new one.
var ErrNoRoom = errors.New("all Secrets that tokens are bound to exist")

// Credential contains the known facts of credentials. The zero value means none.
type Credential struct {
	// ID distinguishes credentials and reveals nothing of them.
	ID string
	// Issued and Expires limit their lifetime; zero if not known, or without a limit.
	Issued, Expires time.Time
	// Secret is one of TokenSecrets, or LastingSecret, to which the token is bound. It is empty if there is none. UID is
	// empty for LastingSecret.
	Secret, UID string
	// Own is true for a token of the hub's ServiceAccount, which may request another one.
	Own bool
}

// Of returns the facts in a token or, without one, in a client certificate in PEM.
func Of(token, certificate string) Credential {
	switch {
	case token != "":
		return ofToken(token)
	case certificate != "":
		return ofCertificate(certificate)
	}
	return Credential{}
}

func idOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// claims are the claims of a ServiceAccount's token; the second half is for tokens that do not expire.
type claims struct {
	IssuedAt  float64 `json:"iat"`
	ExpiresAt float64 `json:"exp"`
	Bound     struct {
		Namespace string `json:"namespace"`
		Account   named  `json:"serviceaccount"`
		Secret    named  `json:"secret"`
	} `json:"kubernetes.io"`

	Namespace string `json:"kubernetes.io/serviceaccount/namespace"`
	Account   string `json:"kubernetes.io/serviceaccount/service-account.name"`
	Secret    string `json:"kubernetes.io/serviceaccount/secret.name"`
}

type named struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}

func ofToken(token string) Credential {
	c := Credential{ID: idOf(token)}
	parts := strings.Split(token, ".")
	if len(parts) != 3 || len(token) > longestToken {
		return c
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return c
	}
	var said claims
	if json.Unmarshal(payload, &said) != nil {
		return c
	}
	c.Issued, c.Expires = moment(said.IssuedAt), moment(said.ExpiresAt)
	switch {
	case said.Bound.Namespace == hubv1.SystemNamespace && said.Bound.Account.Name == Account:
		c.Own = true
		if slices.Contains(TokenSecrets, said.Bound.Secret.Name) && isUID(said.Bound.Secret.UID) {
			c.Secret, c.UID = said.Bound.Secret.Name, said.Bound.Secret.UID
		}
	case said.Namespace == hubv1.SystemNamespace && said.Account == Account:
		c.Own = true
		if said.Secret == LastingSecret {
			c.Secret = LastingSecret
		}
	}
	return c
}

// moment returns a time that a status can represent, or zero.
func moment(seconds float64) time.Time {
	const year9999 = 253402300799
	if math.IsNaN(seconds) || seconds <= 0 || seconds > year9999 {
		return time.Time{}
	}
	return time.Unix(int64(seconds), 0).UTC()
}

func isUID(text string) bool {
	return text != "" && len(text) <= longestUID && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

func ofCertificate(text string) Credential {
	c := Credential{ID: idOf(text)}
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return c
	}
	if certificate, err := x509.ParseCertificate(block.Bytes); err == nil {
		c.Issued, c.Expires = moment(float64(certificate.NotBefore.Unix())), moment(float64(certificate.NotAfter.Unix()))
	}
	return c
}

// Usable reports whether the hub can use a token that a member has issued.
func (c Credential) Usable(now time.Time) bool {
	return c.Own && c.UID != "" && c.Expires.After(now)
}

// Life returns the lifetime of the credentials and of a token that replaces them. Without a lifetime it returns the
// default for a new token.
func (c Credential) Life() time.Duration {
	if c.Issued.IsZero() || !c.Issued.Before(c.Expires) {
		return Lifetime
	}
	return c.Expires.Sub(c.Issued)
}

// RenewAt returns when to renew the credentials: after two thirds of their lifetime, less up to a twentieth of it. The
// twentieth depends on the cluster's name, so that clusters that joined together do not renew together. It is zero if
// they do not expire.
func (c Credential) RenewAt(cluster string) time.Time {
	if c.Expires.IsZero() {
		return time.Time{}
	}
	sum := sha256.Sum256([]byte(cluster))
	share := float64(binary.BigEndian.Uint32(sum[:4])) / math.MaxUint32
	return c.SoonAt().Add(-time.Duration(share * float64(c.Life()) / 20))
}

// SoonAt returns the time from which less than a third of their lifetime is left. It is zero if they do not expire.
func (c Credential) SoonAt() time.Time {
	if c.Expires.IsZero() {
		return time.Time{}
	}
	return c.Expires.Add(-c.Life() / 3)
}
