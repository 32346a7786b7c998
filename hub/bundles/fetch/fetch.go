package fetch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"go.yaml.in/yaml/v3"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/errcode"
)

const (
	// MaxArchiveBytes is the maximum size of an archive: 8 MiB, as in package chart, which renders the archive. The
	// archive of each owner stays in memory.
	MaxArchiveBytes = 8 << 20
	// MaxIndexBytes is the maximum size of the index.yaml of a repository: 8 MiB. Parsing such an index takes about 110
	// MiB of memory, so only one index is parsed at a time.
	MaxIndexBytes = 8 << 20
	// MaxTime is the timeout of fetching a chart or a list of versions: 30 s. For a chart, it includes the wait for other
	// fetches from the same host.
	MaxTime = 30 * time.Second

	maxManifestBytes = 1 << 20
	maxHeaderBytes   = 64 << 10
	maxRedirects     = 5

	schemeOCI   = "oci"
	schemeHTTPS = "https"

	// layerType is the media type of the archive in a registry, as helm push sets it.
	layerType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

var (
	// ErrNotAllowed is the error for a chart that no prefix in Repositories allows. It is also the error for a host that
	// is not in Repositories, such as the host of a redirect.
	ErrNotAllowed = errors.New("the value operators.repositories of the hub's chart does not allow it")
	// ErrDigest is the error for an archive whose digest differs from the expected one.
	ErrDigest = errors.New("the digest of the archive differs")

	errTime  = fmt.Errorf("the repository did not answer completely within %s", MaxTime)
	errLogin = errors.New("the repository asks for a password, and the Secret of chart.repository.secret has none for this host")
	errBusy  = fmt.Errorf("other charts were fetched from this host for %s", MaxTime)
)

// fetching is one attempt to fetch a chart, or the list of its versions.
type fetching struct {
	chart  Chart
	url    *url.URL
	client *http.Client
	logins credentials.Store
	// reading is locked while an index is parsed, so that only one index is in memory.
	reading *sync.Mutex
}

// with calls do with a connection to the repository of a chart. Its error has no secrets, see cause.
func (f *Fetcher) with(ctx context.Context, ch Chart, u *url.URL, do func(*fetching) error) error {
	transport := &http.Transport{
		Proxy:                  f.Proxy,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		DisableCompression:     true, // the limits count the bytes that are sent
		MaxResponseHeaderBytes: maxHeaderBytes,
		ForceAttemptHTTP2:      true,
	}
	defer transport.CloseIdleConnections()
	if ch.CA != "" {
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM([]byte(ch.CA)) {
			return errors.New("chart.repository.caBundle has no certificate in PEM")
		}
	}
	logins, err := credentials.NewMemoryStoreFromDockerConfig([]byte(cmp.Or(ch.Credentials, "{}")))
	if err != nil {
		// The error of the parser is not wrapped, because it may contain a part of a password.
		return errors.New("the key .dockerconfigjson of the Secret in chart.repository.secret is not a Docker configuration")
	}
	t := &fetching{chart: ch, url: u, logins: logins, reading: &f.reading, client: &http.Client{
		Transport: guarded{f.Repositories, transport},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if hostOf(req.URL) != hostOf(via[0].URL) { // a different port is a different host
				req.Header.Del("Authorization")
			}
			if len(via) > maxRedirects {
				return fmt.Errorf("the repository redirects more than %d times", maxRedirects)
			}
			return nil
		},
	}}
	if err := do(t); err != nil {
		return cause(ctx, err)
	}
	return nil
}

// archive fetches the archive of the chart.
func (t *fetching) archive(ctx context.Context) ([]byte, error) {
	if t.url.Scheme == schemeOCI {
		return t.ofRegistry(ctx)
	}
	return t.ofRepository(ctx)
}

// guarded sends requests only over TLS, and only to hosts of allowed repositories. A redirect, a token server or a URL
// in an index therefore cannot lead to another host.
type guarded struct {
	Repositories

	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (g guarded) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != schemeHTTPS {
		return nil, fmt.Errorf("the repository leads to %s://%s, which is not https", req.URL.Scheme, req.URL.Host)
	}
	if !g.allowHost(req.URL) {
		return nil, fmt.Errorf("the repository leads to the host %s: %w", hostOf(req.URL), ErrNotAllowed)
	}
	return g.next.RoundTrip(req)
}

// registry returns the chart's repository in an OCI registry.
func (t *fetching) registry() (*remote.Repository, error) {
	repository, err := remote.NewRepository(t.url.Host + t.url.Path + "/" + t.chart.Name)
	if err != nil {
		return nil, err
	}
	repository.MaxMetadataBytes = maxManifestBytes
	repository.Client = &auth.Client{
		Client: t.client, Cache: auth.NewCache(),
		Credential: credentials.Credential(t.logins),
	}
	return repository, nil
}

// ofRegistry fetches the archive from an OCI registry. An archive that was fetched before is fetched by its digest,
// because the tag may now point to another archive.
func (t *fetching) ofRegistry(ctx context.Context) ([]byte, error) {
	repository, err := t.registry()
	if err != nil {
		return nil, err
	}
	var layer ocispec.Descriptor
	if t.chart.Known != "" {
		layer, err = repository.Blobs().Resolve(ctx, t.chart.Known)
	}
	if t.chart.Known == "" || errors.Is(err, errdef.ErrNotFound) {
		layer, err = t.layer(ctx, repository)
	}
	if err != nil {
		return nil, err
	}
	if err := t.check(layer.Digest.String()); err != nil {
		return nil, err
	}
	if layer.Size > MaxArchiveBytes {
		return nil, fmt.Errorf("the archive has %d bytes, and at most %d are allowed: remove files from the chart", layer.Size, MaxArchiveBytes)
	}
	return content.FetchAll(ctx, repository.Blobs(), layer)
}

// layer reads the manifest of the version's tag, and returns the descriptor of the archive.
func (t *fetching) layer(ctx context.Context, repository *remote.Repository) (ocispec.Descriptor, error) {
	tag := strings.ReplaceAll(t.chart.Version, "+", "_") // a tag cannot have a +: helm push also writes _
	described, body, err := repository.FetchReference(ctx, tag)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	defer body.Close()
	if described.Size > maxManifestBytes {
		return ocispec.Descriptor{}, fmt.Errorf("the manifest of tag %s has %d bytes, and at most %d are allowed: choose a tag that is a chart", tag, described.Size, maxManifestBytes)
	}
	text, err := content.ReadAll(body, described)
	if err != nil {
		return ocispec.Descriptor{}, fmt.Errorf("reading the manifest of tag %s: %w", tag, err)
	}
	var manifest ocispec.Manifest
	if err := json.Unmarshal(text, &manifest); err != nil {
		return ocispec.Descriptor{}, fmt.Errorf("reading the manifest of tag %s: %w", tag, err)
	}
	for _, layer := range manifest.Layers {
		if layer.MediaType == layerType {
			return layer, nil
		}
	}
	return ocispec.Descriptor{}, fmt.Errorf("tag %s is not a chart: its manifest has no layer of the type %s", tag, layerType)
}

// ofRepository fetches the archive that the index of an HTTPS repository names.
func (t *fetching) ofRepository(ctx context.Context) ([]byte, error) {
	from, err := t.place(ctx)
	if err != nil {
		return nil, err
	}
	text, err := t.get(ctx, from, MaxArchiveBytes)
	if err != nil {
		return nil, err
	}
	return text, t.check(fmt.Sprintf("sha256:%x", sha256.Sum256(text)))
}

// place returns the URL of the archive in the index of the repository.
func (t *fetching) place(ctx context.Context) (*url.URL, error) {
	entries, err := t.entries(ctx)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Version != t.chart.Version || len(e.URLs) == 0 {
			continue
		}
		from, err := t.url.JoinPath("/").Parse(e.URLs[0])
		if err != nil {
			return nil, fmt.Errorf("reading the URL of the archive in index.yaml: %w", err)
		}
		return from, nil
	}
	return nil, fmt.Errorf("reading index.yaml: no entry of chart %s in version %s has a URL", t.chart.Name, t.chart.Version)
}

// entry is one version of a chart in the index of an HTTPS repository.
type entry struct {
	Version string   `yaml:"version"`
	URLs    []string `yaml:"urls"`
}

// entries returns the versions of the chart in the index of the repository.
func (t *fetching) entries(ctx context.Context) ([]entry, error) {
	text, err := t.get(ctx, t.url.JoinPath("/").JoinPath("index.yaml"), MaxIndexBytes)
	if err != nil {
		return nil, err
	}
	var index struct {
		Entries map[string][]entry `yaml:"entries"`
	}
	t.reading.Lock()
	defer t.reading.Unlock()
	if err := yaml.Unmarshal(text, &index); err != nil {
		return nil, fmt.Errorf("reading index.yaml: %w", err)
	}
	return index.Entries[t.chart.Name], nil
}

// get requests a URL and returns the body of the answer. It returns an error if the body has more than maxBytes bytes.
func (t *fetching) get(ctx context.Context, from *url.URL, maxBytes int64) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from.String(), nil)
	if err != nil {
		return nil, err
	}
	if login, err := t.logins.Get(ctx, hostOf(from)); err == nil && login.Username != "" {
		req.SetBasicAuth(login.Username, login.Password)
	}
	resp, err := t.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusUnauthorized && req.Header.Get("Authorization") == "" {
		return nil, errLogin
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", placeOf(resp.Request.URL), resp.Status)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", placeOf(from), err)
	}
	if int64(len(text)) > maxBytes {
		return nil, fmt.Errorf("%s has more than %d bytes", placeOf(from), maxBytes)
	}
	return text, nil
}

// check returns an error if the archive does not have the expected digest.
func (t *fetching) check(digest string) error {
	switch {
	case t.chart.Digest != "" && t.chart.Digest != digest:
		return fmt.Errorf("%w: the archive has %s, and chart.digest is %s", ErrDigest, digest, t.chart.Digest)
	case t.chart.Known != "" && t.chart.Known != digest:
		return fmt.Errorf("%w: version %s was published again and has %s, but the stored objects are from %s: set chart.digest to accept it",
			ErrDigest, t.chart.Version, digest, t.chart.Known)
	}
	return nil
}

// placeOf returns a URL for an error message, without its query, which may contain a signature.
func placeOf(u *url.URL) string { return u.Scheme + "://" + u.Host + u.EscapedPath() }

// cause returns an error without secrets, and without details that differ at each attempt, such as the port of a
// connection. Such details would change the condition at each attempt.
func cause(ctx context.Context, err error) error {
	var op *net.OpError
	var answer *errcode.ErrorResponse
	var asked *url.Error
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return errLogin
	case errors.As(err, &op):
		return fmt.Errorf("%s: %w", op.Op, op.Err)
	case errors.As(err, &answer):
		text := fmt.Sprintf("%s answers %d %s", placeOf(answer.URL), answer.StatusCode, http.StatusText(answer.StatusCode))
		if len(answer.Errors) > 0 {
			text += " (" + answer.Errors[0].Code + ")"
		}
		return errors.New(text)
	case errors.As(err, &asked):
		return asked.Err
	}
	return err
}
