package memberview

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A user without a bearer token uses a CertificateSigningRequest (CSR) to prove the identity. The API server writes the
// author's name and groups into the CSR, and no user can change them. The CSR has a public key, and the author signs a
// text for the hub with the private key. No signer handles CSRs with this signerName, so that no certificate is ever
// issued.
const (
	// ProofSigner is the signerName of the CertificateSigningRequest with which a user without a token proves the
	// identity.
	ProofSigner = "hanse.dev/view"
	// proofPrefix is the prefix of a header value that has a signature instead of a bearer token. The signature proves
	// that the user has created a CertificateSigningRequest.
	proofPrefix = "csr."
	// proofAge is the maximum age of the CertificateSigningRequest with which a user proves the identity. A creation time
	// that is up to proofAge in the future is accepted, too, because clocks may differ.
	proofAge = 15 * time.Minute
)

// claim names the CertificateSigningRequest of the user who signed a request. This CertificateSigningRequest has the
// public key that verifies the signature.
type claim struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
}

// Proof makes the header value that a user without a bearer token sends instead. This value is signed with the key of a
// CertificateSigningRequest, which the user must have created on the hub.
type Proof struct {
	Request *certificatesv1.CertificateSigningRequest
	key     ed25519.PrivateKey
}

// NewProof generates a key pair and a CertificateSigningRequest with the public key. The caller must create this
// CertificateSigningRequest on the hub.
func NewProof() (*Proof, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: Audience}}, key)
	if err != nil {
		return nil, fmt.Errorf("making a certificate signing request: %w", err)
	}
	return &Proof{key: key, Request: &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "hansectl-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: ProofSigner, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
		},
	}}, nil
}

// Token returns the header value to send instead of a bearer token. Before this call, the caller must have created the
// CertificateSigningRequest on the hub.
func (p *Proof) Token() (string, error) {
	payload, err := json.Marshal(claim{Name: p.Request.Name, UID: p.Request.UID})
	if err != nil {
		return "", fmt.Errorf("signing for the hub: %w", err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	return proofPrefix + encode(payload) + "." + encode(ed25519.Sign(p.key, signed(payload))), nil
}

// signed returns the text to sign. The text begins with a prefix, so that the signature is not valid for any other
// purpose.
func signed(payload []byte) []byte { return append([]byte(ProofSigner+"\n"), payload...) }

// identifyByProof returns the author of the CertificateSigningRequest that the header value names, if the signature in
// the header value is valid.
func (v *View) identifyByProof(ctx context.Context, token string) (who, error) {
	refused := func(why error) (who, error) {
		return who{}, apierrors.NewUnauthorized("the hub does not know who you are: " + why.Error())
	}
	c, payload, signature, err := readProof(token)
	if err != nil {
		return refused(err)
	}
	request := &certificatesv1.CertificateSigningRequest{}
	err = v.opts.APIReader.Get(ctx, client.ObjectKey{Name: c.Name}, request)
	switch {
	case apierrors.IsNotFound(err):
		return refused(errors.New("the certificate signing request is gone"))
	case err != nil:
		return who{}, v.internal("reading a certificate signing request", err)
	}
	if err := c.check(request, payload, signature, time.Now()); err != nil {
		return refused(err)
	}
	info := authenticationv1.UserInfo{Username: request.Spec.Username, UID: request.Spec.UID, Groups: request.Spec.Groups}
	for k, values := range request.Spec.Extra {
		if info.Extra == nil {
			info.Extra = map[string]authenticationv1.ExtraValue{}
		}
		info.Extra[k] = authenticationv1.ExtraValue(values)
	}
	return who{name: info.Username, info: info}, nil
}

var errNoProof = errors.New("the header " + TokenHeader + " has a proof that cannot be read")

func readProof(token string) (c claim, payload, signature []byte, err error) {
	text, sealed, _ := strings.Cut(strings.TrimPrefix(token, proofPrefix), ".")
	if payload, err = base64.RawURLEncoding.DecodeString(text); err != nil {
		return c, nil, nil, errNoProof
	}
	if signature, err = base64.RawURLEncoding.DecodeString(sealed); err != nil {
		return c, nil, nil, errNoProof
	}
	if err := json.Unmarshal(payload, &c); err != nil || c.Name == "" || c.UID == "" || len(c.Name) > longestName {
		return c, nil, nil, errNoProof
	}
	return c, payload, signature, nil
}

// check returns an error if the CertificateSigningRequest and the signature do not prove the user's identity.
func (c claim) check(request *certificatesv1.CertificateSigningRequest, payload, signature []byte, now time.Time) error {
	age := now.Sub(request.CreationTimestamp.Time)
	switch {
	case request.UID != c.UID || request.Spec.SignerName != ProofSigner:
		return errors.New("the certificate signing request is another one")
	case request.Spec.Username == "":
		return errors.New("the certificate signing request has no author")
	case age > proofAge || age < -proofAge:
		return fmt.Errorf("the certificate signing request was not made within %s, by the clocks of the hub and of its API server", proofAge)
	}
	for _, condition := range request.Status.Conditions {
		if condition.Type == certificatesv1.CertificateDenied || condition.Type == certificatesv1.CertificateFailed {
			return errors.New("the certificate signing request is denied")
		}
	}
	block, _ := pem.Decode(request.Spec.Request)
	if block == nil {
		return errors.New("the certificate signing request cannot be read")
	}
	read, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return errors.New("the certificate signing request cannot be read")
	}
	key, ok := read.PublicKey.(ed25519.PublicKey)
	if !ok || !ed25519.Verify(key, signed(payload), signature) {
		return errors.New("the key is not that of the certificate signing request")
	}
	return nil
}
