package command

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/views"
	"github.com/hanse-dev/hanse/view/wire"
)

// window has the flags that say how a command reaches the hub. The command asks the hub about copies on members. The
// hub checks the user's rights, see hub/views.
type window struct{ endpoint, tokenFile string }

const (
	// endpointVariable is the environment variable for --hub-endpoint.
	endpointVariable = "HANSE_HUB_ENDPOINT"
	// viewService names the hub's Service in requests through the API server's service proxy. It consists of scheme, name
	// and port.
	viewService = "https:hanse-hub-view:8444"
	askTimeout  = 40 * time.Second
	// dispensableWithin is the maximum time for which a command waits for an answer of the hub's API server, if it can
	// continue without the answer.
	dispensableWithin = 5 * time.Second
)

func (w *window) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&w.endpoint, "hub-endpoint", os.Getenv(endpointVariable),
		"Address of the hub itself, https://HOST:PORT, if requests are not to go through its API server. Default: environment variable "+endpointVariable+".")
	flags.StringVar(&w.tokenFile, "token-file", "", "File with a bearer token that authenticates you, if your kubeconfig has no token.")
}

// open returns a client that asks the hub about copies on members. It sends no request to the hub itself. For a user
// without a token, it creates a proof of identity on the hub's API server. With --hub-endpoint, it also reads from the
// hub's API server the certificates of the hub's replicas.
func (w *window) open(ctx context.Context, h *hub, c client.Client) (*views.Client, error) {
	config, err := h.flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the hub: %w", err)
	}
	v := &views.Client{}
	if v.Token, err = w.token(config); errors.Is(err, errNoToken) || errors.Is(err, errImpersonating) {
		v.Proof, err = h.prove(ctx, c, err)
	}
	if err != nil {
		return nil, err
	}
	if w.endpoint != "" {
		if v.Base, err = url.Parse(w.endpoint); err != nil || v.Base.Scheme != "https" || v.Base.Host == "" {
			return nil, &ExitError{Code: 2, Err: fmt.Errorf("--hub-endpoint %q: want https://HOST:PORT", w.endpoint)}
		}
		certificates, err := replicaCertificates(ctx, c)
		if err != nil {
			return nil, err
		}
		v.HTTP = &http.Client{Transport: views.Transport(certificates...), Timeout: askTimeout}
		return v, nil
	}
	if v.Base, _, err = rest.DefaultServerUrlFor(config); err != nil {
		return nil, fmt.Errorf("reading the address of the hub's API server: %w", err)
	}
	v.Base = v.Base.JoinPath("api", "v1", "namespaces", hubv1.SystemNamespace, "services", viewService, "proxy")
	if v.HTTP, err = rest.HTTPClientFor(config); err != nil {
		return nil, fmt.Errorf("connecting to the hub's API server: %w", err)
	}
	v.HTTP.Timeout = askTimeout
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
		if found := leases.Items[i].Annotations[views.CertificateAnnotation]; found != "" {
			out = append(out, found)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("no replica of the hub serves views of members: start the hub with --view-bind-address")
	}
	return out, nil
}

var (
	errNoToken = errors.New("your kubeconfig has no bearer token, which the hub needs to authenticate you: " +
		"create one, such as with 'kubectl create token SERVICEACCOUNT --audience " + wire.Audience + "', " +
		"and pass its file with --token-file")
	errImpersonating = errors.New("your token does not identify the user whom you impersonate: " +
		"leave out --as, --as-group and --as-uid, or pass a token of that user by --token-file")
)

// token returns the token in --token-file. Without this flag, it returns the token with which the user's kubeconfig
// authenticates to the hub's API server.
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

// prove returns a proof, with which a user without a usable token signs requests to the hub. At its first call, prove
// creates the CertificateSigningRequest of the proof on the hub. The method forget deletes the
// CertificateSigningRequest when the command ends. why is the reason why no token can be used. The error contains why
// if the user may not create a CertificateSigningRequest.
func (h *hub) prove(ctx context.Context, c client.Client, why error) (*views.Proof, error) {
	if h.proof != nil {
		return h.proof, nil
	}
	proof, err := views.NewProof()
	if err != nil {
		return nil, err
	}
	if err := c.Create(ctx, proof.Request); apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("%w; or ask for the right to create certificatesigningrequests.certificates.k8s.io, with which hansectl authenticates you", why)
	} else if err != nil {
		return nil, fmt.Errorf("authenticating to the hub: creating a CertificateSigningRequest: %w", err)
	}
	h.proof, h.proofOn = proof, c
	return proof, nil
}

// forget deletes the CertificateSigningRequest that hansectl created to identify the user. If the user may not delete
// it, the hub's cluster deletes it after some time.
func (h *hub) forget(ctx context.Context) {
	if h.proof != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dispensableWithin)
		defer cancel()
		_ = h.proofOn.Delete(ctx, h.proof.Request)
		h.proof = nil
	}
}

// headers is an http.RoundTripper that sends nothing. It records the headers of the request, to which auth plugins may
// have added a token.
type headers struct{ sent http.Header }

// RoundTrip implements http.RoundTripper.
func (h *headers) RoundTrip(r *http.Request) (*http.Response, error) {
	h.sent = r.Header
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
}
