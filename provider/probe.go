package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/credential"
)

const (
	probeTimeout = 5 * time.Second
	maxAnswer    = 1 << 20
	renewPause   = time.Minute // after a renewal that failed
)

// statusError is an answer that is not 200 or 201.
type statusError int

func (e statusError) Error() string {
	return fmt.Sprintf("the server answered %d %s", int(e), http.StatusText(int(e)))
}

// AccountOf returns the name of a consumer's ServiceAccount on members, in the namespace hanse-system.
func AccountOf(consumer string) string { return "hanse-consumer-" + consumer }

// probe checks that the member answers, takes the token, and is the cluster with this ID.
func (s *session) probe(ctx context.Context, clusterID string) *faultError {
	var namespace metav1.PartialObjectMetadata
	err := s.call(ctx, http.MethodGet, "/api/v1/namespaces/kube-system", nil, &namespace)
	var status statusError
	switch {
	case errors.As(err, &status) && (status == http.StatusUnauthorized || status == http.StatusForbidden):
		return faultf(ReasonCredentialsRefused,
			"the cluster refuses the token (%d): make a new one for the ServiceAccount of the consumer, which the chart hanse-member creates", int(status))
	case err != nil:
		return faultf(ReasonUnreachable, "the cluster does not answer: %s", err)
	case string(namespace.UID) != clusterID:
		return faultf(ReasonWrongCluster, "the cluster at this address has the ID %.64q, but the MemberCluster has %q: correct the Secret", namespace.UID, clusterID)
	}
	return nil
}

// call sends one request and decodes the answer.
func (s *session) call(ctx context.Context, method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var content io.Reader
	if in != nil {
		encoded, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("encoding a request: %w", err)
		}
		content = bytes.NewReader(encoded)
	}
	req, err := http.NewRequestWithContext(ctx, method, "https://"+host+path, content)
	if err != nil {
		return fmt.Errorf("making a request: %w", err)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.send(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusCreated {
		return statusError(resp.StatusCode)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(out); err != nil {
		return fmt.Errorf("decoding the answer of %s: %w", path, err)
	}
	return nil
}

// renewal remembers the last failure to renew a token.
type renewal struct {
	token string // the token that was not renewed
	again time.Time
	fault *faultError
}

// renew replaces the token after two thirds of its life, by the consumer's own right on the member. The new token is
// used when it is in the Secret. renew returns why it failed, or nil.
func (m *member) renew(w want) *faultError {
	p, now := m.provider, m.provider.now()
	known := credential.Of(w.to.token, "")
	if at := known.RenewAt(m.name); at.IsZero() || now.Before(at) {
		return nil
	}
	if m.renewal.token == w.to.token && now.Before(m.renewal.again) {
		return m.renewal.fault
	}
	m.renewal = renewal{token: w.to.token, again: now.Add(renewPause)}
	err := m.request(w, known.Life())
	if err == nil {
		return nil
	}
	m.renewal.fault = faultf(ReasonRenewalFailed, "the token expires at %s and was not renewed: %s", known.Expires.Format(time.RFC3339), err)
	p.log.Info("Failed to renew a token", "cluster", m.name, "message", m.renewal.fault.message)
	return m.renewal.fault
}

// request gets a token of the consumer's ServiceAccount, tries it, and stores it in the Secret.
func (m *member) request(w want, life time.Duration) error {
	path := "/api/v1/namespaces/" + hubv1.SystemNamespace + "/serviceaccounts/" + AccountOf(m.provider.options.Consumer) + "/token"
	in := authenticationv1.TokenRequest{
		TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenRequest"},
		Spec:     authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(life.Seconds()))},
	}
	var out authenticationv1.TokenRequest
	before := m.transport.session.Load()
	if before == nil {
		return errLeft
	}
	if err := before.call(m.ctx, http.MethodPost, path, in, &out); err != nil {
		return fmt.Errorf("requesting a token of ServiceAccount %s: %w", AccountOf(m.provider.options.Consumer), err)
	}
	next := w.to
	next.token = out.Status.Token
	if err := next.check(); err != nil {
		return fmt.Errorf("reading the new token: %w", err)
	}
	tried, err := newSession(next, before)
	if err != nil {
		return err
	}
	if f := tried.probe(m.ctx, w.clusterID); f != nil {
		return f
	}
	return m.provider.hub.storeToken(m.ctx, m.name, w.to.token, next.token)
}
