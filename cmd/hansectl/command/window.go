package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/memberview"
)

// window is the access of a command to members through the hub. The hub checks the user's rights, see hub/memberview.
type window struct{ endpoint, tokenFile string }

const (
	// endpointVariable is the environment variable for --hub-endpoint.
	endpointVariable = "HANSE_HUB_ENDPOINT"
	// viewService names the hub's Service for the proxy of its API server: scheme, name and port.
	viewService = "https:hanse-hub-view:8444"
	askTimeout  = 40 * time.Second
	// dispensableWithin is how long a command waits for an answer of the hub's API server that it can do without.
	dispensableWithin = 5 * time.Second
)

func (w *window) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&w.endpoint, "hub-endpoint", os.Getenv(endpointVariable),
		"Where the hub itself is reached, https://HOST:PORT, if that is not by its API server. From "+endpointVariable+" if it is not given.")
	flags.StringVar(&w.tokenFile, "token-file", "", "File with a token that says who you are, if your kubeconfig has none.")
}

// views sends requests about members to the hub.
type views struct {
	base  *url.URL
	http  *http.Client
	token string
}

// open finds the address of the hub. It sends no request yet.
func (w *window) open(ctx context.Context, h *hub, c client.Client) (*views, error) {
	config, err := h.flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the hub: %w", err)
	}
	v := &views{}
	if v.token, err = w.token(config); errors.Is(err, errNoToken) || errors.Is(err, errImpersonating) {
		v.token, err = h.prove(ctx, c, err)
	}
	if err != nil {
		return nil, err
	}
	if w.endpoint != "" {
		if v.base, err = url.Parse(w.endpoint); err != nil || v.base.Scheme != "https" || v.base.Host == "" {
			return nil, &ExitError{Code: 2, Err: fmt.Errorf("--hub-endpoint %q: want https://HOST:PORT", w.endpoint)}
		}
		certificates, err := replicaCertificates(ctx, c)
		if err != nil {
			return nil, err
		}
		v.http = &http.Client{Transport: memberview.Transport(certificates...), Timeout: askTimeout}
		return v, nil
	}
	if v.base, _, err = rest.DefaultServerUrlFor(config); err != nil {
		return nil, fmt.Errorf("reading the address of the hub's API server: %w", err)
	}
	v.base = v.base.JoinPath("api", "v1", "namespaces", hubv1.SystemNamespace, "services", viewService, "proxy")
	if v.http, err = rest.HTTPClientFor(config); err != nil {
		return nil, fmt.Errorf("connecting to the hub's API server: %w", err)
	}
	v.http.Timeout = askTimeout
	return v, nil
}

// replicaCertificates returns the certificates that the hub's replicas publish in their Leases.
func replicaCertificates(ctx context.Context, c client.Client) ([]string, error) {
	var leases coordinationv1.LeaseList
	if err := c.List(ctx, &leases, client.InNamespace(hubv1.SystemNamespace)); err != nil {
		return nil, fmt.Errorf("reading the Leases of the hub, which name its certificates: %w", err)
	}
	var out []string
	for i := range leases.Items {
		if found := leases.Items[i].Annotations[memberview.CertificateAnnotation]; found != "" {
			out = append(out, found)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("no replica of the hub serves views of members: the hub runs without --view-bind-address")
	}
	return out, nil
}

var (
	errNoToken = errors.New("your kubeconfig has no bearer token, by which the hub knows who you are: " +
		"make one, such as with 'kubectl create token SERVICEACCOUNT --audience " + memberview.Audience + "', " +
		"and pass it by --token-file")
	errImpersonating = errors.New("your token does not say whom you impersonate: " +
		"leave out --as, --as-group and --as-uid, or pass a token of that user by --token-file")
)

// token returns the token from the file, or the token that the user's requests to the hub's API server carry.
func (w *window) token(config *rest.Config) (string, error) {
	if w.tokenFile != "" {
		raw, err := os.ReadFile(w.tokenFile)
		if err != nil {
			return "", fmt.Errorf("reading --token-file: %w", err)
		}
		return strings.TrimSpace(string(raw)), nil
	}
	probe := &headers{}
	wrapped, err := rest.HTTPWrappersForConfig(config, probe)
	if err != nil {
		return "", fmt.Errorf("reading your credentials: %w", err)
	}
	request, err := http.NewRequest(http.MethodGet, "https://hub.invalid", nil)
	if err != nil {
		return "", fmt.Errorf("reading your credentials: %w", err)
	}
	response, err := wrapped.RoundTrip(request)
	if err != nil {
		return "", fmt.Errorf("reading your credentials: %w", err)
	}
	_ = response.Body.Close()
	if probe.sent.Get(transport.ImpersonateUserHeader) != "" {
		return "", errImpersonating
	}
	token, ok := strings.CutPrefix(probe.sent.Get("Authorization"), "Bearer ")
	if !ok || token == "" {
		return "", errNoToken
	}
	return token, nil
}

// prove creates a proof for a user without a token; why is the reason. The proof is deleted at the end of the command.
func (h *hub) prove(ctx context.Context, c client.Client, why error) (string, error) {
	if h.proof != nil {
		return h.proof.Token()
	}
	proof, err := memberview.NewProof()
	if err != nil {
		return "", err
	}
	if err := c.Create(ctx, proof.Request); apierrors.IsForbidden(err) {
		return "", fmt.Errorf("%w; or ask for the right to create certificatesigningrequests.certificates.k8s.io, by which hansectl authenticates you", why)
	} else if err != nil {
		return "", fmt.Errorf("authenticating to the hub: creating a CertificateSigningRequest: %w", err)
	}
	h.proof, h.proofOn = proof, c
	return proof.Token()
}

// forget deletes the CertificateSigningRequest of a proof. If the user may not delete the request, the hub's API server
// removes it later.
func (h *hub) forget(ctx context.Context) {
	if h.proof != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dispensableWithin)
		defer cancel()
		_ = h.proofOn.Delete(ctx, h.proof.Request)
		h.proof = nil
	}
}

// headers replaces a connection and records the headers of a request, some of which come from plugins.
type headers struct{ sent http.Header }

// RoundTrip implements http.RoundTripper.
func (h *headers) RoundTrip(r *http.Request) (*http.Response, error) {
	h.sent = r.Header
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
}

// largestView is the maximum size of one response.
const largestView = 32 << 20

const (
	// mostTries is how often a request is sent that the hub puts off.
	mostTries = 5
	// longestPause is the longest pause between two tries.
	longestPause = 30 * time.Second
)

// ask sends a request about one member, or about none. It sends it again if too many ask at the same time, because then
// the hub has done nothing yet. namespace is the namespace of all requested objects; empty for cluster-scoped objects
// or several namespaces.
func (v *views) ask(ctx context.Context, cluster, what, namespace string, in, out any) error {
	for tries := 1; ; tries++ {
		err := v.askOnce(ctx, cluster, what, namespace, in, out)
		if !apierrors.IsTooManyRequests(err) || tries == mostTries {
			return err
		}
		seconds, _ := apierrors.SuggestsClientDelay(err)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(min(time.Duration(max(seconds, 1))*time.Second, longestPause)):
		}
	}
}

// askOnce sends the request of ask.
func (v *views) askOnce(ctx context.Context, cluster, what, namespace string, in, out any) error {
	about := cmp.Or(cluster, "namespace "+namespace)
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("asking about %s: %w", about, err)
	}
	path, err := url.Parse(memberview.PathIn(cluster, what, namespace))
	if err != nil {
		return fmt.Errorf("asking about %s: %w", about, err)
	}
	to := v.base.JoinPath(path.Path)
	to.RawQuery = path.RawQuery
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("asking about %s: %w", about, err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(memberview.TokenHeader, v.token)
	response, err := v.http.Do(request)
	if err != nil {
		return fmt.Errorf("asking the hub about %s: %w", about, err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, largestView))
	if err != nil {
		return fmt.Errorf("asking the hub about %s: %w", about, err)
	}
	if response.StatusCode != http.StatusOK {
		return refusal(response, answer)
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("reading the hub's answer about %s: %w", about, err)
	}
	return nil
}

// refusal returns the error of a response from the hub, or from its API server as a proxy.
func refusal(response *http.Response, answer []byte) error {
	status := metav1.Status{}
	if json.Unmarshal(answer, &status) != nil || status.Kind != "Status" {
		return fmt.Errorf("the hub answered %s: %.200q", response.Status, answer)
	}
	err := &apierrors.StatusError{ErrStatus: status}
	if d := status.Details; d != nil && d.Kind == "services" {
		switch {
		case apierrors.IsForbidden(err):
			return fmt.Errorf("you may not reach the hub by its API server, which the Role hanse-view in namespace "+hubv1.SystemNamespace+" allows; or pass --hub-endpoint: %w", err)
		case apierrors.IsNotFound(err):
			return fmt.Errorf("the hub has no Service hanse-hub-view: set view.enabled of its chart, or pass --hub-endpoint: %w", err)
		}
	}
	return err
}
