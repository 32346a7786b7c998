// Package credential says of the credentials that a hub has on a member until when they are valid, with which Secret
// there they end, and when they are to be renewed.
//
// It decides by values alone. Signatures are not checked: that is for the member to do, and what a token says of itself
// gives the hub no rights.
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
	// Lifetime is that of a token, unless hansectl is told another one.
	Lifetime = 30 * 24 * time.Hour
	// LastingSecret holds a token that does not expire: earlier versions of hansectl made it, and the chart hanse-member
	// does if it is asked to.
	LastingSecret = "hanse-token"

	// SecretType is that of the Secrets that tokens are bound to. They are empty.
	SecretType = "hanse.dev/token"

	longestToken = 16 << 10
	longestUID   = 64
)

// TokenSecrets are the Secrets in hanse-system of a member that tokens are bound to. A hub needs two, so that a new
// token is in use before the other is revoked. Four let two hubs share a member.
var TokenSecrets = []string{"hanse-token-a", "hanse-token-b", "hanse-token-c", "hanse-token-d"}

// ErrNoRoom means that all TokenSecrets exist on the member, so that no token can be bound to a new one.
var ErrNoRoom = errors.New("all Secrets that tokens are bound to exist")

// Credential is what is known of credentials. The zero value means none.
type Credential struct {
	// ID tells credentials apart and reveals nothing of them.
	ID string
	// Issued and Expires bound their life. Zero: not known, or for ever.
	Issued, Expires time.Time
	// Secret is the Secret of TokenSecrets, or LastingSecret, with which the token ends; empty if there is none. UID is
	// empty of LastingSecret.
	Secret, UID string
	// Own is true for a token of the hub's account, which may ask for another one.
	Own bool
}

// Of returns what a token or, without one, a client certificate in PEM says of itself.
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

// claims are those of a token of a ServiceAccount; the second half is that of tokens that do not expire.
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

// moment is a time that a status can hold, or zero.
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

// Usable says whether the hub can work with a token that a member has made for it.
func (c Credential) Usable(now time.Time) bool {
	return c.Own && c.UID != "" && c.Expires.After(now)
}

// Life is for how long they are valid, and so is a token that takes their place. If they do not say so it is that of a
// new token.
func (c Credential) Life() time.Duration {
	if c.Issued.IsZero() || !c.Issued.Before(c.Expires) {
		return Lifetime
	}
	return c.Expires.Sub(c.Issued)
}

// RenewAt is when they are to be renewed: after two thirds of their life, less up to a twentieth of it by the name of
// the cluster, so that clusters that joined together do not come together. Zero if they do not expire.
func (c Credential) RenewAt(cluster string) time.Time {
	if c.Expires.IsZero() {
		return time.Time{}
	}
	sum := sha256.Sum256([]byte(cluster))
	share := float64(binary.BigEndian.Uint32(sum[:4])) / math.MaxUint32
	return c.SoonAt().Add(-time.Duration(share * float64(c.Life()) / 20))
}

// SoonAt is from when less than a third of their life is left. Zero if they do not expire.
func (c Credential) SoonAt() time.Time {
	if c.Expires.IsZero() {
		return time.Time{}
	}
	return c.Expires.Add(-c.Life() / 3)
}
