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
	// Account is the name of the ServiceAccount in a member's namespace hanse-system that the hub uses.
	Account = "hanse"
	// Lifetime is the default lifetime of the tokens that hansectl requests.
	Lifetime = 30 * 24 * time.Hour
	// LastingSecret is the name of the Secret with a token that does not expire. Earlier versions of hansectl created it,
	// and the chart hanse-member creates it on request.
	LastingSecret = "hanse-token"

	// SecretType is the type of the Secrets to which tokens are bound. These Secrets contain no data.
	SecretType = "hanse.dev/token"

	maxTokenLength = 16 << 10
	maxUIDLength   = 64
)

// TokenSecrets are the names of the Secrets in a member's namespace hanse-system to which tokens are bound. A token is
// valid only while its Secret exists. One hub needs two of them, because it uses a new token before it revokes the old
// one. With four, two hubs can use one member.
var TokenSecrets = []string{"hanse-token-a", "hanse-token-b", "hanse-token-c", "hanse-token-d"}

// ErrNoRoom means that all Secrets in TokenSecrets already exist on the member, so that a new token cannot be bound to
// any of them.
var ErrNoRoom = errors.New("no Secret is free for a new token")

// Credential describes a token or a client certificate. The zero value means that no credential is known.
type Credential struct {
	// ID is a hash of the credential. It differs between credentials, and reveals nothing of them.
	ID string
	// Issued and Expires are the times from which and until which the credential is valid. They are zero if they are
	// unknown. Expires is also zero if the credential does not expire.
	Issued, Expires time.Time
	// Secret is the name of the Secret to which the token is bound: one of TokenSecrets, or LastingSecret. It is empty if
	// the token is not bound to such a Secret. UID is the UID of this Secret. UID is empty for LastingSecret.
	Secret, UID string
	// Own is true for a token of the ServiceAccount Account. With such a token, the hub may request another token.
	Own bool
}

// Of returns the description of a token. If token is empty, it describes the client certificate, which is in PEM.
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

// claims are the claims of a token of a ServiceAccount. The fields in the second half exist only in tokens that do not
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
	if len(parts) != 3 || len(token) > maxTokenLength {
		return c
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return c
	}
	var parsed claims
	if json.Unmarshal(payload, &parsed) != nil {
		return c
	}
	c.Issued, c.Expires = moment(parsed.IssuedAt), moment(parsed.ExpiresAt)
	switch {
	case parsed.Bound.Namespace == hubv1.SystemNamespace && parsed.Bound.Account.Name == Account:
		c.Own = true
		if slices.Contains(TokenSecrets, parsed.Bound.Secret.Name) && isUID(parsed.Bound.Secret.UID) {
			c.Secret, c.UID = parsed.Bound.Secret.Name, parsed.Bound.Secret.UID
		}
	case parsed.Namespace == hubv1.SystemNamespace && parsed.Account == Account:
		c.Own = true
		if parsed.Secret == LastingSecret {
			c.Secret = LastingSecret
		}
	}
	return c
}

// moment converts a number of seconds since 1970 to a time. It returns zero for a time that the status of a
// MemberCluster cannot represent.
func moment(seconds float64) time.Time {
	const year9999 = 253402300799
	if math.IsNaN(seconds) || seconds <= 0 || seconds > year9999 {
		return time.Time{}
	}
	return time.Unix(int64(seconds), 0).UTC()
}

func isUID(text string) bool {
	return text != "" && len(text) <= maxUIDLength && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
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

// Usable reports whether the hub can use a token that it has just got from a member: a valid token of the
// ServiceAccount Account that is bound to a Secret with a UID.
func (c Credential) Usable(now time.Time) bool {
	return c.Own && c.UID != "" && c.Expires.After(now)
}

// Life returns the lifetime of the credential. A token that replaces the credential gets the same lifetime. If the
// lifetime of the credential is not known, Life returns the default, the constant Lifetime.
func (c Credential) Life() time.Duration {
	if c.Issued.IsZero() || !c.Issued.Before(c.Expires) {
		return Lifetime
	}
	return c.Expires.Sub(c.Issued)
}

// RenewAt returns the time at which the hub must renew the credential. This is after two thirds of its lifetime, or
// earlier by up to a twentieth of the lifetime. The name of the cluster determines how much earlier, so that
// credentials of clusters that joined together are renewed at different times. RenewAt returns zero if the credential
// does not expire.
func (c Credential) RenewAt(cluster string) time.Time {
	if c.Expires.IsZero() {
		return time.Time{}
	}
	sum := sha256.Sum256([]byte(cluster))
	share := float64(binary.BigEndian.Uint32(sum[:4])) / math.MaxUint32
	return c.SoonAt().Add(-time.Duration(share * float64(c.Life()) / 20))
}

// SoonAt returns the time from which less than a third of the credential's lifetime is left. It returns zero if the
// credential does not expire.
func (c Credential) SoonAt() time.Time {
	if c.Expires.IsZero() {
		return time.Time{}
	}
	return c.Expires.Add(-c.Life() / 3)
}
