// Package kube is a minimal Kubernetes client for the lab.
//
// Package kube uses only the standard library. The usual client library would be larger than the lab itself, and would
// have to match the lab's version of Kubernetes.
package kube

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/hanse-dev/hanse/lab/pki"
	"github.com/hanse-dev/hanse/lab/topology"
)

const requestTimeout = 10 * time.Second

// Client sends requests to one server with a client certificate.
type Client struct {
	server string
	http   *http.Client
}

// New returns a client for a server whose certificate is signed by ca.
func New(server string, ca *pki.CA, cert pki.Cert) (*Client, error) {
	pair, err := cert.TLS()
	if err != nil {
		return nil, fmt.Errorf("reading the client certificate for %s: %w", server, err)
	}
	transport := &http.Transport{
		ForceAttemptHTTP2: true,
		TLSClientConfig:   &tls.Config{RootCAs: ca.Pool(), Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
	}
	return &Client{server: server, http: &http.Client{Transport: transport, Timeout: requestTimeout}}, nil
}

var errNotFound = errors.New("not found")

// do sends in as JSON unless it is nil, and decodes the response into out unless out is nil.
func (c *Client) do(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.server+path, body)
	if err != nil {
		return err
	}
	contentType := "application/json"
	if method == http.MethodPatch {
		contentType = "application/strategic-merge-patch+json"
	}
	req.Header.Set("Content-Type", contentType)
	res, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return err
	case res.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%s %s: %w", method, path, errNotFound)
	case res.StatusCode >= 300:
		return fmt.Errorf("%s %s: %s: %s", method, path, res.Status, bytes.TrimSpace(answer))
	case out == nil:
		return nil
	}
	return json.Unmarshal(answer, out)
}

// Ready returns nil if the API server reports that it is ready.
func (c *Client) Ready(ctx context.Context) error {
	return c.do(ctx, http.MethodGet, "/readyz", nil, nil)
}

// Healthy returns nil if an etcd reports that it is healthy.
func (c *Client) Healthy(ctx context.Context) error {
	return c.do(ctx, http.MethodGet, "/health", nil, nil)
}

type object = map[string]any

// CreateNode creates a Node object. If ready is true, it sets the condition Ready to True. Otherwise kwok sets this
// condition. CreateNode does not change an existing Node.
func (c *Client) CreateNode(ctx context.Context, node topology.Node, ready bool) error {
	capacity := object{"cpu": "32", "memory": "256Gi", "pods": "110"}
	status := object{"capacity": capacity, "allocatable": capacity}
	if ready {
		now := time.Now().UTC().Format(time.RFC3339)
		status["conditions"] = []object{{
			"type": "Ready", "status": "True", "reason": "LabNode", "message": "a plain object, never changed",
			"lastHeartbeatTime": now, "lastTransitionTime": now,
		}}
	}
	path := "/api/v1/nodes/" + node.Name
	if err := c.do(ctx, http.MethodGet, path, nil, nil); !errors.Is(err, errNotFound) {
		return err
	}
	body := object{"apiVersion": "v1", "kind": "Node", "metadata": object{"name": node.Name, "labels": node.Labels}, "status": status}
	return c.do(ctx, http.MethodPost, "/api/v1/nodes", body, nil)
}

// WorkloadsReady returns nil if pods can run: this number of nodes is Ready, and the default ServiceAccount exists.
func (c *Client) WorkloadsReady(ctx context.Context, nodes int) error {
	var list struct {
		Items []struct {
			Status struct {
				Conditions []struct{ Type, Status string }
			}
		}
	}
	if err := c.do(ctx, http.MethodGet, "/api/v1/nodes", nil, &list); err != nil {
		return err
	}
	ready := 0
	for _, node := range list.Items {
		for _, condition := range node.Status.Conditions {
			if condition.Type == "Ready" && condition.Status == "True" {
				ready++
			}
		}
	}
	if ready < nodes {
		return fmt.Errorf("%d of %d nodes are ready", ready, nodes)
	}
	return c.do(ctx, http.MethodGet, "/api/v1/namespaces/default/serviceaccounts/default", nil, nil)
}

// Served returns the resources of a group version that the API server serves. The result is empty if this version is
// not served.
func (c *Client) Served(ctx context.Context, group, version string) ([]string, error) {
	var list struct {
		Resources []struct{ Name string }
	}
	err := c.do(ctx, http.MethodGet, "/apis/"+group+"/"+version, nil, &list)
	if errors.Is(err, errNotFound) {
		return nil, nil
	}
	var names []string
	for _, r := range list.Resources {
		names = append(names, r.Name)
	}
	return names, err
}

// DeletePrefix deletes every key with this prefix from an etcd, through its JSON gateway.
func (c *Client) DeletePrefix(ctx context.Context, prefix string) error {
	key := []byte(prefix + "/")
	end := []byte(prefix + "0") // "0" is the byte after "/", so this is the end of the prefix's range
	return c.do(ctx, http.MethodPost, "/v3/kv/deleterange", map[string][]byte{"key": key, "range_end": end}, nil)
}
