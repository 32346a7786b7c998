package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/hanse-dev/hanse/member/agent"
	"github.com/hanse-dev/hanse/member/handshake"
)

// join returns how the agent asks for its approval, or nil without a token.
func (s settings) join(server *url.URL, transport http.RoundTripper) (*agent.Join, error) {
	if s.joinToken == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(s.joinToken)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading --join-token-file: %w", err)
	}
	token := strings.TrimSpace(string(raw))
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, fmt.Errorf("--join-token-file %s is %w: it has no token", s.joinToken, errFlag)
	}
	return &agent.Join{Token: token, Facts: func(ctx context.Context) handshake.Facts { return factsOf(ctx, server, transport) }}, nil
}

// factsOf returns what the agent reports of its cluster. What it cannot read is empty.
func factsOf(ctx context.Context, server *url.URL, transport http.RoundTripper) handshake.Facts {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var namespace struct{ Metadata struct{ UID string } }
	var kubernetes struct{ GitVersion string }
	_ = read(ctx, transport, server.JoinPath("api/v1/namespaces/kube-system"), &namespace)
	_ = read(ctx, transport, server.JoinPath("version"), &kubernetes)
	return handshake.Facts{ClusterID: namespace.Metadata.UID, Kubernetes: kubernetes.GitVersion, Version: version}
}

// read decodes the answer to a GET request.
func read(ctx context.Context, transport http.RoundTripper, from *url.URL, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from.String(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	return json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(into)
}
