// Package credential reads the hub's credentials for a member. It returns when they expire, to which Secret a token is
// bound, and when the hub must renew them.
//
// It only parses the credentials and does not check signatures: the member checks them, and the claims of a token give
// the hub no rights.
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
	// Lifetime is the lifetime of a token that hansectl requests by default.
	Lifetime = 30 * 24 * time.Hour
	// LastingSecret is the Secret with a token that does not expire. Earlier versions of hansectl created it; the chart
	// hanse-member creates it on request.
	LastingSecret = "hanse-token"

	// SecretType is the type of the Secrets to which tokens are bound. These Secrets contain no data.
	SecretType = "hanse.dev/token"

	longestToken = 16 << 10
	longestUID   = 64
)

// TokenSecrets are the Secrets in a member's namespace hanse-system to which tokens are bound. A hub needs two, because
// it uses a new token before it revokes the old one. With four, two hubs can share a member.
var TokenSecrets = []string{"hanse-token-a", "hanse-token-b", "hanse-token-c", "hanse-token-d"}

// ErrNoRoom means that every one of TokenSecrets exists on the member. A new token therefore has no Secret to be bound
// to.
var ErrNoRoom = errors.New("all Secrets that tokens are bound to exist")

// Credential contains the data of a token or a client certificate. The zero value means that no credential is known.
type Credential struct {
	// ID is a hash that distinguishes credentials and reveals nothing of them.
	ID string
	// Issued and Expires limit the lifetime of the credential. They are zero if they are unknown. Expires is also zero
	// if the credential does not expire.
	Issued, Expires time.Time
	// Secret is the Secret to which the token is bound: one of TokenSecrets, or LastingSecret. It is empty if the token is
	// not bound. UID is the UID of the Secret; it is empty for LastingSecret.
	Secret, UID string
	// Own is true for a token of the hub's own ServiceAccount. That account may request another token.
	Own bool
}

// Of returns the data of a token. If token is empty, it returns the data of the client certificate in PEM.
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

// claims are the claims of a ServiceAccount's token. The fields of the second half exist only in tokens that do not
// expire.
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

// moment converts seconds since 1970 to a time. It returns zero for a time that a status cannot represent.
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

// Life returns the lifetime of the credentials, which is also the lifetime of a token that replaces them. If their
// lifetime is not known, it returns Lifetime.
func (c Credential) Life() time.Duration {
	if c.Issued.IsZero() || !c.Issued.Before(c.Expires) {
		return Lifetime
	}
	return c.Expires.Sub(c.Issued)
}

// RenewAt returns the time at which the hub must renew the credentials. This is after two thirds of their lifetime, or
// up to a twentieth of it earlier. The twentieth depends on the name of the cluster, so that clusters that joined
// together do not renew together. It is zero if the credentials do not expire.
func (c Credential) RenewAt(cluster string) time.Time {
	if c.Expires.IsZero() {
		return time.Time{}
	}
	sum := sha256.Sum256([]byte(cluster))
	share := float64(binary.BigEndian.Uint32(sum[:4])) / math.MaxUint32
	return c.SoonAt().Add(-time.Duration(share * float64(c.Life()) / 20))
}

// SoonAt returns the time from which less than a third of the credentials' lifetime is left. It returns zero if the
// credentials do not expire.
func (c Credential) SoonAt() time.Time {
	if c.Expires.IsZero() {
		return time.Time{}
	}
	return c.Expires.Add(-c.Life() / 3)
}
