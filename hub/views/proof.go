package views

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

	"github.com/hanse-dev/hanse/view/wire"
)

// A user without a bearer token uses a CertificateSigningRequest (CSR) to prove the identity. The API server writes the
// author's name and groups into the CSR, and no user can change them. The CSR has a public key, and the author signs
// each request with the private key: the path and query, the digest of the body, and the time. A proof that another
// party reads is therefore worth only the same request, for proofWindow. No signer handles CSRs with this signerName,
// so that no certificate is ever issued.
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
	// proofWindow is the maximum difference between the time at which a user signed a request, and the hub's clock.
	proofWindow = 2 * time.Minute
)

// claim is what a user signs. It names the CertificateSigningRequest that has the public key for the signature, and the
// request for which the signature is valid.
type claim struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
	// Path is the path and query of the request, as PathIn returns them. It is empty in a proof of an older hansectl.
	Path string    `json:"path"`
	Body string    `json:"body"` // digest of the body
	Time time.Time `json:"time"`
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
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: wire.Audience}}, key)
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

// Token returns the header value to send instead of a bearer token, with a request that has this path, as PathIn
// returns it, and this body. now is the time at which the request is sent. Before this call, the caller must have
// created the CertificateSigningRequest on the hub.
func (p *Proof) Token(path string, body []byte, now time.Time) (string, error) {
	payload, err := json.Marshal(claim{Name: p.Request.Name, UID: p.Request.UID, Path: path, Body: digest(body), Time: now.UTC()})
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
// the header value is valid for a request with this path. The caller must compare who.signed with the body.
func (v *View) identifyByProof(ctx context.Context, token, path string) (who, error) {
	refused := func(why error) (who, error) {
		return who{}, apierrors.NewUnauthorized("the hub could not verify your identity: " + why.Error())
	}
	c, payload, signature, err := readProof(token)
	if err == nil {
		err = c.checkRequest(path, time.Now())
	}
	if err != nil {
		return refused(err)
	}
	request := &certificatesv1.CertificateSigningRequest{}
	err = v.opts.APIReader.Get(ctx, client.ObjectKey{Name: c.Name}, request)
	switch {
	case apierrors.IsNotFound(err):
		return refused(fmt.Errorf("CertificateSigningRequest %q does not exist", c.Name))
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
	return who{name: info.Username, info: info, signed: c.Body}, nil
}

var errNoProof = errors.New("the header " + wire.TokenHeader + " has a proof that cannot be read")

func readProof(token string) (c claim, payload, signature []byte, err error) {
	text, sealed, _ := strings.Cut(strings.TrimPrefix(token, proofPrefix), ".")
	if payload, err = base64.RawURLEncoding.DecodeString(text); err != nil {
		return c, nil, nil, errNoProof
	}
	if signature, err = base64.RawURLEncoding.DecodeString(sealed); err != nil {
		return c, nil, nil, errNoProof
	}
	if err := json.Unmarshal(payload, &c); err != nil || c.Name == "" || c.UID == "" || len(c.Name) > maxNameLength {
		return c, nil, nil, errNoProof
	}
	return c, payload, signature, nil
}

// checkRequest returns an error if the user has not signed a request with this path just now.
func (c claim) checkRequest(path string, now time.Time) error {
	off := now.Sub(c.Time)
	switch {
	case c.Path == "" || c.Body == "":
		return errors.New("the proof signs no request: this hansectl is older than the hub, so install the hansectl of the hub's version")
	case c.Path != path:
		return errors.New("the proof is for another request")
	case off > proofWindow || off < -proofWindow:
		return fmt.Errorf("the request was signed at %s, and the clock of the hub says %s: set the clock of your machine, or try again",
			c.Time.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	return nil
}

// check returns an error if the CertificateSigningRequest and the signature do not prove the user's identity.
func (c claim) check(request *certificatesv1.CertificateSigningRequest, payload, signature []byte, now time.Time) error {
	age := now.Sub(request.CreationTimestamp.Time)
	switch {
	case request.UID != c.UID || request.Spec.SignerName != ProofSigner:
		return errors.New("the CertificateSigningRequest does not have the UID of the proof, or the signerName " + ProofSigner)
	case request.Spec.Username == "":
		return errors.New("the CertificateSigningRequest has no username")
	case age > proofAge || age < -proofAge:
		return fmt.Errorf("the creation time of the CertificateSigningRequest is more than %s from the hub's clock: run the command again", proofAge)
	}
	for _, condition := range request.Status.Conditions {
		if condition.Type == certificatesv1.CertificateDenied || condition.Type == certificatesv1.CertificateFailed {
			return errors.New("the CertificateSigningRequest is Denied or Failed")
		}
	}
	block, _ := pem.Decode(request.Spec.Request)
	if block == nil {
		return errors.New("spec.request of the CertificateSigningRequest is not valid")
	}
	read, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return errors.New("spec.request of the CertificateSigningRequest is not valid")
	}
	key, ok := read.PublicKey.(ed25519.PublicKey)
	if !ok || !ed25519.Verify(key, signed(payload), signature) {
		return errors.New("the signature does not match the key of the CertificateSigningRequest")
	}
	return nil
}
