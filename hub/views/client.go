package views

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view/wire"
)

// Client sends requests about members to a hub, with the credentials of one user.
type Client struct {
	// Base is the base URL of the requests: the hub itself, or the hub's Service through the proxy of the API server.
	Base *url.URL
	HTTP *http.Client
	// Token is the user's bearer token. Proof signs the requests of a user without a token, see proof.go. One of the two
	// is set.
	Token string
	Proof *Proof
}

// maxViewBytes is the maximum size of one response in bytes.
const maxViewBytes = 32 << 20

const (
	// maxTries is the maximum number of times that Ask sends a request if the hub answers with 429 Too Many Requests.
	maxTries = 5
	// maxPause is the maximum pause before Ask sends a request again that the hub has answered with 429.
	maxPause = 30 * time.Second
)

// Ask sends a request about one member, or about no member if cluster is empty. If the hub answers with 429, Ask sends
// the request again after a pause. namespace is the namespace of all requested objects. It is empty if the objects are
// cluster-scoped or in several namespaces.
func (c *Client) Ask(ctx context.Context, cluster, what, namespace string, in, out any) error {
	for tries := 1; ; tries++ {
		err := c.askOnce(ctx, cluster, what, namespace, in, out)
		if !apierrors.IsTooManyRequests(err) || tries == maxTries {
			return err
		}
		seconds, _ := apierrors.SuggestsClientDelay(err)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(min(time.Duration(max(seconds, 1))*time.Second, maxPause)):
		}
	}
}

// askOnce sends the request of Ask once, and decodes the response into out.
func (c *Client) askOnce(ctx context.Context, cluster, what, namespace string, in, out any) error {
	about := cmp.Or(cluster, "namespace "+namespace)
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("asking about %s: %w", about, err)
	}
	of := wire.PathIn(cluster, what, namespace)
	path, err := url.Parse(of)
	if err != nil {
		return fmt.Errorf("asking about %s: %w", about, err)
	}
	token := c.Token
	if c.Proof != nil {
		if token, err = c.Proof.Token(of, body, time.Now()); err != nil {
			return err
		}
	}
	to := c.Base.JoinPath(path.Path)
	to.RawQuery = path.RawQuery
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("asking about %s: %w", about, err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(wire.TokenHeader, token)
	response, err := c.HTTP.Do(request)
	if err != nil {
		return fmt.Errorf("asking the hub about %s: %w", about, err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxViewBytes))
	if err != nil {
		return fmt.Errorf("asking the hub about %s: %w", about, err)
	}
	if response.StatusCode != http.StatusOK {
		return refusal(response, answer)
	}
	// This decoder keeps JSON integers that a float64 cannot hold exactly.
	if err := utiljson.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("reading the hub's answer about %s: %w", about, err)
	}
	return nil
}

// refusal returns the error of a response. The response comes from the hub, or from an API server that passes requests
// on to the hub.
func refusal(response *http.Response, answer []byte) error {
	status := metav1.Status{}
	if json.Unmarshal(answer, &status) != nil || status.Kind != "Status" {
		return fmt.Errorf("the hub answered %s: %.200q", response.Status, answer)
	}
	err := &apierrors.StatusError{ErrStatus: status}
	if d := status.Details; d != nil && d.Kind == "services" {
		switch {
		case apierrors.IsForbidden(err):
			return fmt.Errorf("you have no right to reach the hub through its API server: ask for the Role hanse-view in namespace "+hubv1.SystemNamespace+", or pass --hub-endpoint: %w", err)
		case apierrors.IsNotFound(err):
			return fmt.Errorf("the hub has no Service hanse-hub-view: set view.enabled of its chart, or pass --hub-endpoint: %w", err)
		}
	}
	return err
}
