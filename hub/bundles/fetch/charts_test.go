package fetch

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	testclock "k8s.io/utils/clock/testing"
	"oras.land/oras-go/v2/content"

	"github.com/hanse-dev/hanse/bundles/chart"
	"github.com/hanse-dev/hanse/test/registry"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// otherCA returns a CA that has signed none of the tests' certificates.
func otherCA(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// ofRegistry returns version 1.0.0+a of the chart rotors in a registry.
func ofRegistry(s *httptest.Server) Chart {
	return Chart{URL: "oci://" + registry.Host(s) + "/charts", Name: "rotors", Version: "1.0.0+a", CA: registry.CA(s)}
}

func ofRepository(s *httptest.Server) Chart {
	return Chart{URL: s.URL + "/charts/", Name: "rotors", Version: "1.0.0+a", CA: registry.CA(s)}
}

// push stores version 1.0.0+a of the chart rotors in a registry.
func push(t *testing.T, s *httptest.Server, archive string) {
	t.Helper()
	registry.Push(t, s, "rotors", "1.0.0_a", []byte(archive))
}

func pushOther(t *testing.T, s *httptest.Server) {
	t.Helper()
	push(t, s, "other")
}

func digestOf(archive string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(archive))) }

// repository is the handler of an HTTPS repository with one chart.
func repository(archiveURL, archive string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/charts/index.yaml", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "apiVersion: v1\nentries:\n  rotors:\n  - {version: 2.0.0, urls: [none.tgz]}\n  - {version: 1.0.0+a, urls: [%q]}\n", archiveURL)
	})
	mux.HandleFunc("/charts/files/rotors.tgz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, archive) })
	return mux
}

// fetcher returns a Fetcher that may contact the given servers.
func fetcher(t *testing.T, clock *testclock.FakePassiveClock, servers ...*httptest.Server) *Fetcher {
	t.Helper()
	var prefixes []string
	for _, s := range servers {
		prefixes = append(prefixes, s.URL, "oci://"+registry.Host(s)+"/charts")
	}
	allowed, err := ParseRepositories(prefixes)
	must(t, err)
	o := Options{Repositories: allowed}
	if clock != nil {
		o.Clock = clock
	}
	return New(o)
}

// get fetches a chart once, and waits for the result.
func get(t *testing.T, f *Fetcher, ch Chart) ([]byte, error) {
	t.Helper()
	done := make(chan struct{}, 1)
	_, err := f.Get(t.Context(), "rotors", ch, func() { done <- struct{}{} })
	if !errors.Is(err, ErrFetching) {
		return nil, err
	}
	<-done
	return f.Get(t.Context(), "rotors", ch, func() {})
}

func TestAChartIsFetched(t *testing.T) {
	t.Parallel()
	tests := map[string]func(t *testing.T) (s *httptest.Server, ch Chart){
		"from a registry": func(t *testing.T) (*httptest.Server, Chart) {
			t.Helper()
			s := registry.Serve(t, registry.Handler())
			push(t, s, "archive")
			return s, ofRegistry(s)
		},
		"from a registry by the digest of the spec": func(t *testing.T) (*httptest.Server, Chart) {
			t.Helper()
			s := registry.Serve(t, registry.Handler())
			push(t, s, "archive")
			ch := ofRegistry(s)
			ch.Digest = digestOf("archive")
			return s, ch
		},
		"from a registry whose tag has moved, if it is known": func(t *testing.T) (*httptest.Server, Chart) {
			t.Helper()
			s := registry.Serve(t, registry.Handler())
			push(t, s, "archive")
			push(t, s, "another one")
			ch := ofRegistry(s)
			ch.Known = digestOf("archive")
			return s, ch
		},
		"from a repository with a URL that begins in its folder": func(t *testing.T) (*httptest.Server, Chart) {
			t.Helper()
			s := registry.Serve(t, repository("files/rotors.tgz", "archive"))
			return s, ofRepository(s)
		},
		"from a repository without a last slash, whose URL begins at its host": func(t *testing.T) (*httptest.Server, Chart) {
			t.Helper()
			s := registry.Serve(t, repository("/charts/files/rotors.tgz", "archive"))
			ch := ofRepository(s)
			ch.URL = strings.TrimSuffix(ch.URL, "/")
			ch.Digest = digestOf("archive")
			return s, ch
		},
	}
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, ch := prepare(t)
			got, err := get(t, fetcher(t, nil, s), ch)
			if err != nil || string(got) != "archive" {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// answering returns a handler that answers each request in the same way.
func answering(f func(http.ResponseWriter, *http.Request)) http.Handler { return http.HandlerFunc(f) }

func endless(w http.ResponseWriter, r *http.Request) {
	for r.Context().Err() == nil {
		if _, err := w.Write(bytes.Repeat([]byte("#"), 1<<16)); err != nil {
			return
		}
	}
}

func TestAChartIsNotFetched(t *testing.T) {
	t.Parallel()
	elsewhere := registry.Serve(t, answering(func(http.ResponseWriter, *http.Request) { t.Error("a server was asked that is not listed") }))
	tests := map[string]struct {
		of      func(*httptest.Server) Chart
		handler http.Handler
		prepare func(*testing.T, *httptest.Server)
		change  func(*Chart)
		is      error
		says    string
	}{
		"the registry has a fault": {
			of: ofRegistry, handler: answering(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }),
			says: "/v2/charts/rotors/manifests/1.0.0_a answers 500 Internal Server Error",
		},
		"the registry limits requests": {
			of: ofRegistry, handler: answering(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }),
			says: "/v2/charts/rotors/manifests/1.0.0_a answers 429 Too Many Requests",
		},
		"the registry does not have the chart": {of: ofRegistry, handler: registry.Handler(), says: "/charts/rotors:1.0.0_a: not found"},
		"the repository has a fault": {
			of: ofRepository, handler: answering(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }),
			says: "/charts/index.yaml answers 502 Bad Gateway",
		},
		"a certificate of another CA": {of: ofRegistry, handler: registry.Handler(), change: func(ch *Chart) { ch.CA = otherCA(t) }, says: "certificate signed by unknown authority"},
		"the CAs of the system":       {of: ofRepository, handler: repository("a", ""), change: func(ch *Chart) { ch.CA = "" }, says: "certificate"},
		"no certificate as CA":        {of: ofRegistry, handler: registry.Handler(), change: func(ch *Chart) { ch.CA = "none" }, says: "chart.repository.caBundle has no certificate in PEM"},
		"credentials that are no JSON": {
			of: ofRegistry, handler: registry.Handler(), change: func(ch *Chart) { ch.Credentials = "secret" },
			says: "the key .dockerconfigjson of the Secret in chart.repository.secret is not a Docker configuration",
		},
		"another digest in the registry": {
			of: ofRegistry, handler: registry.Handler(), prepare: pushOther,
			change: func(ch *Chart) { ch.Digest = digestOf("archive") },
			is:     ErrDigest, says: "the archive has " + digestOf("other") + ", and chart.digest is " + digestOf("archive"),
		},
		"another digest in the repository": {
			of: ofRepository, handler: repository("files/rotors.tgz", "other"), change: func(ch *Chart) { ch.Digest = digestOf("archive") },
			is: ErrDigest, says: "the archive has " + digestOf("other") + ", and chart.digest is " + digestOf("archive"),
		},
		"a version that was published again in the registry, which has dropped the old archive": {
			of: ofRegistry, handler: registry.Handler(), prepare: pushOther,
			change: func(ch *Chart) { ch.Known = digestOf("archive") },
			is:     ErrDigest, says: "version 1.0.0+a was published again and has " + digestOf("other") + ", but the stored objects are from " + digestOf("archive"),
		},
		"a version that was published again in the repository": {
			of: ofRepository, handler: repository("files/rotors.tgz", "other"), change: func(ch *Chart) { ch.Known = digestOf("archive") },
			is: ErrDigest, says: "set chart.digest to accept it",
		},
		"a manifest that names 1 GiB": {
			of: ofRegistry, handler: registry.Handler(), prepare: func(t *testing.T, s *httptest.Server) {
				t.Helper()
				layer := content.NewDescriptorFromBytes(layerType, []byte("archive"))
				layer.Size = 1 << 30
				registry.PushManifest(t, s, "rotors", "1.0.0_a", layer)
			},
			says: "the archive has 1073741824 bytes, and at most 8388608 are allowed: remove files from the chart",
		},
		"an image that is no chart": {
			of: ofRegistry, handler: registry.Handler(), prepare: func(t *testing.T, s *httptest.Server) {
				t.Helper()
				registry.PushManifest(t, s, "rotors", "1.0.0_a", content.NewDescriptorFromBytes(ocispec.MediaTypeImageLayerGzip, []byte("archive")))
			},
			says: "tag 1.0.0_a is not a chart: its manifest has no layer of the type " + layerType,
		},
		"an index without an end":    {of: ofRepository, handler: answering(endless), says: "/charts/index.yaml has more than 8388608 bytes"},
		"a manifest without an end":  {of: ofRegistry, handler: endlessManifest(), says: "reading the manifest of tag 1.0.0_a: "},
		"an archive without an end":  {of: ofRepository, handler: endlessArchive(), says: "/charts/files/rotors.tgz has more than 8388608 bytes"},
		"an index that is no YAML":   {of: ofRepository, handler: answering(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{") }), says: "reading index.yaml: yaml:"},
		"an index without the chart": {of: ofRepository, handler: repository("a", ""), change: func(ch *Chart) { ch.Name = "gears" }, says: "reading index.yaml: no entry of chart gears in version 1.0.0+a has a URL"},
		"an index that leads to a host that is not listed": {
			of: ofRepository, handler: repository(elsewhere.URL+"/rotors.tgz", ""), is: ErrNotAllowed, says: "the repository leads to the host " + registry.Host(elsewhere),
		},
		"an index that leads to a server without TLS": {
			of: ofRepository, handler: repository("http://127.0.0.1/rotors.tgz", ""), says: "the repository leads to http://127.0.0.1, which is not https",
		},
		"an index that leads to a file": {of: ofRepository, handler: repository("file:///etc/passwd", ""), says: "the repository leads to file://, which is not https"},
		"a redirect to a host that is not listed": {
			of: ofRegistry, handler: http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect), is: ErrNotAllowed, says: "the repository leads to the host " + registry.Host(elsewhere),
		},
		"a redirect to a server without TLS": {
			of: ofRepository, handler: http.RedirectHandler("http://127.0.0.1/", http.StatusFound), says: "which is not https",
		},
		"redirects without an end": {
			of: ofRepository, handler: answering(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }),
			says: "the repository redirects more than 5 times",
		},
		"a token server that is not listed": {
			of: ofRegistry, handler: answering(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("WWW-Authenticate", `Bearer realm="https://localhost:1/token",service="charts"`)
				w.WriteHeader(http.StatusUnauthorized)
			}),
			is: ErrNotAllowed, says: "the repository leads to the host localhost:1",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := registry.Serve(t, tc.handler)
			if tc.prepare != nil {
				tc.prepare(t, s)
			}
			ch := tc.of(s)
			if tc.change != nil {
				tc.change(&ch)
			}
			got, err := get(t, fetcher(t, nil, s), ch)
			failure := (*TryError)(nil)
			if !errors.As(err, &failure) || got != nil {
				t.Fatalf("got %q, %v", got, err)
			}
			if tc.is != nil && !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), registry.Host(s)) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// endlessManifest is a handler that announces a manifest of 100 bytes and sends more.
func endlessManifest() http.Handler {
	return answering(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
		w.Header().Set("Docker-Content-Digest", digestOf("archive"))
		if r.Method == http.MethodHead {
			w.Header().Set("Content-Length", "100")
			return
		}
		endless(w, r)
	})
}

func endlessArchive() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/charts/index.yaml", repository("files/rotors.tgz", ""))
	mux.HandleFunc("/charts/files/rotors.tgz", endless)
	return mux
}

func TestOnlyListedRepositoriesAreAsked(t *testing.T) {
	t.Parallel()
	allowed, err := ParseRepositories([]string{"oci://Registry.example.com:443/charts/", "https://charts.example.com"})
	must(t, err)
	tests := map[string]struct {
		url, name string
		want      bool
	}{
		"the repository itself":                      {url: "oci://registry.example.com/charts", name: "rotors", want: true},
		"a folder of it, with upper case and port":   {url: "oci://REGISTRY.example.com:443/charts/more/", name: "rotors", want: true},
		"a chart by the name of the listed folder":   {url: "oci://registry.example.com", name: "charts", want: true},
		"a folder whose name begins in the same way": {url: "oci://registry.example.com/charts-of-others", name: "rotors"},
		"another port":                       {url: "oci://registry.example.com:5000/charts", name: "rotors"},
		"another scheme":                     {url: "https://registry.example.com/charts", name: "rotors"},
		"a folder of an HTTPS repository":    {url: "https://charts.example.com/a/b", name: "rotors", want: true},
		"a host that begins in the same way": {url: "https://charts.example.com.evil.example.com", name: "rotors"},
	}
	for name, tc := range tests {
		u, err := parse(tc.url)
		must(t, err)
		if got := allowed.allow(u, tc.name); got != tc.want {
			t.Errorf("%s: allowed is %v", name, got)
		}
	}
	for _, text := range []string{"registry.example.com", "http://a", "https://", "https://a:b@c", "https://a?b=c", "https://a#b", "oci://a/../b", "oci://a/%2e%2e/b", "oci://a//b"} {
		if _, err := ParseRepositories([]string{text}); !errors.Is(err, errForm) {
			t.Errorf("%s: the error is %v", text, err)
		}
	}
	if _, err := get(t, New(Options{Repositories: allowed}), Chart{URL: "oci://other.example.com", Name: "rotors", Version: "1.0.0"}); !errors.Is(err, ErrNotAllowed) {
		t.Errorf("the error is %v", err)
	}
	if MaxArchiveBytes != chart.MaxArchiveBytes {
		t.Errorf("up to %d bytes are fetched, and %d are rendered", MaxArchiveBytes, chart.MaxArchiveBytes)
	}
}

func TestCredentialsGoOnlyToTheHostThatTheyName(t *testing.T) {
	t.Parallel()
	var leaked atomic.Bool
	storage := registry.Serve(t, answering(func(w http.ResponseWriter, r *http.Request) {
		leaked.Store(leaked.Load() || r.Header.Get("Authorization") != "")
		_, _ = io.WriteString(w, "archive")
	}))
	behind := http.NewServeMux()
	behind.Handle("/charts/index.yaml", repository("files/rotors.tgz", ""))
	behind.Handle("/charts/files/rotors.tgz", http.RedirectHandler(storage.URL+"/rotors.tgz", http.StatusFound))
	behind.Handle("/v2/", registry.Handler())
	var open atomic.Bool // true while the test pushes a chart
	s := registry.Serve(t, answering(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if !open.Load() && (user != "hanse" || password != "secret") {
			w.Header().Set("WWW-Authenticate", `Basic realm="charts"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		behind.ServeHTTP(w, r)
	}))
	open.Store(true)
	push(t, s, "archive")
	open.Store(false)
	login := func(host string) string {
		return fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, host, base64.StdEncoding.EncodeToString([]byte("hanse:secret")))
	}
	for _, ch := range []Chart{ofRegistry(s), ofRepository(s)} {
		ch.CA += registry.CA(storage)
		f := fetcher(t, nil, s, storage)
		if got, err := get(t, f, ch); err == nil || !errors.Is(err, errLogin) {
			t.Errorf("without credentials: got %q, %v", got, err)
		}
		ch.Credentials = login("charts.example.com")
		if got, err := get(t, f, ch); err == nil || !errors.Is(err, errLogin) {
			t.Errorf("with those of another host: got %q, %v", got, err)
		}
		ch.Credentials = login(registry.Host(s))
		if got, err := get(t, f, ch); err != nil || string(got) != "archive" {
			t.Errorf("with credentials: got %q, %v", got, err)
		}
	}
	if leaked.Load() {
		t.Error("another server got the credentials")
	}
}

func TestThePauseBetweenFailedTriesGrows(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	var works atomic.Bool
	has := repository("files/rotors.tgz", "archive")
	s := registry.Serve(t, answering(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if !works.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		has.ServeHTTP(w, r)
	}))
	start := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	clock := testclock.NewFakePassiveClock(start)
	f := fetcher(t, clock, s)
	ch := ofRepository(s)
	done := make(chan struct{}, 1)
	fails := func(ch Chart) {
		t.Helper()
		_, err := f.Get(t.Context(), "rotors", ch, func() { done <- struct{}{} })
		if failure := (*TryError)(nil); !errors.As(err, &failure) || !failure.Since.Equal(start) || !strings.Contains(err.Error(), "fails since 2001-02-03T04:05:06Z") {
			t.Errorf("the error is %v", err)
		}
	}
	if _, err := get(t, f, ch); err == nil {
		t.Fatal("it is fetched")
	}
	for i, pause := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute, 5 * time.Minute} {
		clock.SetTime(clock.Now().Add(pause - time.Second))
		fails(ch)
		if got := int(asked.Load()); got != i+1 {
			t.Fatalf("before pause %d has ended, it was asked %d times", i+1, got)
		}
		clock.SetTime(clock.Now().Add(time.Second))
		fails(ch)
		<-done
		if got := int(asked.Load()); got != i+2 {
			t.Fatalf("after pause %d, it was asked %d times", i+1, got)
		}
	}
	works.Store(true)
	ch.Credentials = "{}" // a changed Secret is tried at once
	if got, err := get(t, f, ch); err != nil || string(got) != "archive" {
		t.Errorf("got %q, %v", got, err)
	}
	works.Store(false)
	ch.Known, ch.Credentials = digestOf("archive"), ""
	if got, ok := f.Kept("rotors", ch); !ok || string(got) != "archive" {
		t.Errorf("kept is %q, %v", got, ok)
	}
	ch.Version = "2.0.0"
	if _, ok := f.Kept("rotors", ch); ok {
		t.Error("the archive of another version is kept")
	}
	f.Forget("rotors")
	if _, ok := f.Kept("rotors", ofRepository(s)); ok {
		t.Error("a forgotten archive is kept")
	}
}

func TestAHostThatHangsHoldsUpNoOtherHost(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 2)
	hangs := registry.Serve(t, answering(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	answers := registry.Serve(t, repository("files/rotors.tgz", "archive"))
	f := fetcher(t, nil, hangs, answers)
	done := make(chan struct{}, 1)
	begin := func(owner string) (end context.CancelCauseFunc) {
		t.Helper()
		ctx, cancel := context.WithCancelCause(t.Context())
		if _, err := f.Get(ctx, owner, ofRegistry(hangs), func() { done <- struct{}{} }); !errors.Is(err, ErrFetching) {
			t.Fatalf("the error of the %s owner is %v", owner, err)
		}
		return cancel
	}
	fails := func(owner, why string) {
		t.Helper()
		<-done
		_, err := f.Get(t.Context(), owner, ofRegistry(hangs), func() {})
		if failure := (*TryError)(nil); !errors.As(err, &failure) || failure.Cause.Error() != why {
			t.Errorf("the error of the %s owner is %v", owner, err)
		}
	}
	endFirst := begin("first")
	<-asked
	endSecond := begin("second")
	if got, err := get(t, f, ofRepository(answers)); err != nil || string(got) != "archive" {
		t.Errorf("from the other host: got %q, %v", got, err)
	}
	endSecond(errTime) // as if MaxTime had passed
	fails("second", "other charts were fetched from this host for 30s")
	if len(asked) > 0 {
		t.Error("the host was asked for two charts at a time")
	}
	endFirst(errTime)
	fails("first", "the repository did not answer completely within 30s")
}

func TestForgettingAnArchiveEndsItsDownload(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 1)
	s := registry.Serve(t, answering(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	f := fetcher(t, nil, s)
	done := make(chan struct{})
	_, err := f.Get(t.Context(), "rotors", ofRepository(s), func() { close(done) })
	if !errors.Is(err, ErrFetching) {
		t.Fatal(err)
	}
	<-asked
	f.Forget("rotors")
	<-done
}

func TestConnectionsGoThroughTheProxyThatIsGiven(t *testing.T) {
	t.Parallel()
	s := registry.Serve(t, repository("files/rotors.tgz", "archive"))
	f := fetcher(t, nil, s)
	f.Proxy = func(r *http.Request) (*url.URL, error) { return nil, errors.New("the proxy of " + r.URL.Host) }
	if _, err := get(t, f, ofRepository(s)); err == nil || !strings.Contains(err.Error(), "the proxy of "+registry.Host(s)) {
		t.Errorf("the error is %v", err)
	}
}
