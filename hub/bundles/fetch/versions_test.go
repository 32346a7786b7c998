package fetch

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hanse-dev/hanse/test/registry"
)

// tagPages is the handler of a registry in which the chart rotors has pages of tags. Each page leads to the next one.
func tagPages(pages int, tags func(page int) []string) http.Handler {
	return answering(func(w http.ResponseWriter, r *http.Request) {
		page := 0
		_, _ = fmt.Sscan(r.URL.Query().Get("page"), &page)
		if page < pages-1 {
			w.Header().Set("Link", fmt.Sprintf(`</v2/charts/rotors/tags/list?page=%d>; rel="next"`, page+1))
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"name": "charts/rotors", "tags": tags(page)})
	})
}

func versionsOf(t *testing.T, f *Fetcher, ch Chart) ([]string, error) {
	t.Helper()
	var got []string
	err := f.Versions(t.Context(), ch, func(versions []string) { got = append(got, versions...) })
	slices.Sort(got)
	return got, err
}

func TestTheVersionsOfAChartAreListed(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		of      func(*httptest.Server) Chart
		handler http.Handler
		tags    []string // tags that the test pushes
		want    []string
	}{
		"the tags of a registry, with + for _": {of: ofRegistry, handler: registry.Handler(), tags: []string{"1.0.0_a", "latest"}, want: []string{"1.0.0+a", "latest"}},
		"the tags of all pages": {
			of: ofRegistry, handler: tagPages(3, func(page int) []string { return []string{fmt.Sprintf("1.%d.0", page)} }), want: []string{"1.0.0", "1.1.0", "1.2.0"},
		},
		"the entries of an index": {of: ofRepository, handler: repository("files/rotors.tgz", ""), want: []string{"1.0.0+a", "2.0.0"}},
		"only entries that have a URL": {
			of: ofRepository, want: []string{"1.0.0"}, handler: answering(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, "entries: {rotors: [{version: 1.0.0, urls: [a.tgz]}, {version: 2.0.0}], gears: [{version: 3.0.0, urls: [b.tgz]}]}")
			}),
		},
		"an index without the chart has none": {
			of: ofRepository, handler: answering(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "entries: {}") }),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := registry.Serve(t, tc.handler)
			for _, tag := range tc.tags {
				registry.Push(t, s, "rotors", tag, []byte(tag))
			}
			got, err := versionsOf(t, fetcher(t, nil, s), tc.of(s))
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestTheVersionsOfAChartAreNotListed(t *testing.T) {
	t.Parallel()
	elsewhere := registry.Serve(t, answering(func(http.ResponseWriter, *http.Request) { t.Error("a server was asked that is not listed") }))
	fault := answering(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	tests := map[string]struct {
		of      func(*httptest.Server) Chart
		handler http.Handler
		change  func(*Chart)
		is      error
		says    string
	}{
		"a repository that is not allowed": {
			of: ofRegistry, handler: elsewhere.Config.Handler, change: func(ch *Chart) { ch.URL = strings.Replace(ch.URL, "/charts", "/others", 1) }, is: ErrNotAllowed, says: "/others",
		},
		"a registry that has a fault":    {of: ofRegistry, handler: fault, says: "/v2/charts/rotors/tags/list answers 503 Service Unavailable"},
		"a repository that has a fault":  {of: ofRepository, handler: fault, says: "/charts/index.yaml answers 503 Service Unavailable"},
		"a registry without the chart":   {of: ofRegistry, handler: registry.Handler(), says: "answers 404 Not Found (NAME_UNKNOWN)"},
		"a certificate of another CA":    {of: ofRegistry, handler: registry.Handler(), change: func(ch *Chart) { ch.CA = otherCA(t) }, says: "certificate signed by unknown authority"},
		"an index without an end":        {of: ofRepository, handler: answering(endless), says: "/charts/index.yaml has more than 8388608 bytes"},
		"a list of tags without an end":  {of: ofRegistry, handler: answering(endlessTags), says: "failed to decode response"},
		"pages of tags without an end":   {of: ofRegistry, handler: tagPages(1<<30, func(int) []string { return []string{"1.0.0"} }), is: errTags, says: "more than 100 pages"},
		"more tags than a chart can use": {of: ofRegistry, handler: tagPages(100, func(int) []string { return slices.Repeat([]string{"1.0.0"}, 2000) }), is: errTags, says: "more than 100000 tags"},
		"a next page on another host": {
			of: ofRegistry, says: "not the same origin", handler: answering(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Link", "<"+elsewhere.URL+`/v2/charts/rotors/tags/list>; rel="next"`)
				_, _ = io.WriteString(w, `{"tags": []}`)
			}),
		},
		"a redirect to a host that is not listed": {
			of: ofRegistry, handler: http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect), is: ErrNotAllowed, says: "the repository leads to the host " + registry.Host(elsewhere),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := registry.Serve(t, tc.handler)
			ch := tc.of(s)
			if tc.change != nil {
				tc.change(&ch)
			}
			_, err := versionsOf(t, fetcher(t, nil, s), ch)
			if err == nil || tc.is != nil && !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// endlessTags sends the beginning of a list of tags, and then the same tag without an end.
func endlessTags(w http.ResponseWriter, r *http.Request) {
	_, _ = io.WriteString(w, `{"tags": ["0.0.0"`)
	for r.Context().Err() == nil {
		if _, err := w.Write(bytes.Repeat([]byte(`,"1.0.0"`), 1<<13)); err != nil {
			return
		}
	}
}

func TestVersionsAreListedWithThePasswordOfTheHost(t *testing.T) {
	t.Parallel()
	behind := http.NewServeMux()
	behind.Handle("/charts/index.yaml", repository("files/rotors.tgz", ""))
	behind.Handle("/v2/", tagPages(1, func(int) []string { return []string{"1.0.0_a", "2.0.0"} }))
	s := registry.Serve(t, answering(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "hanse" || password != "secret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="charts"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		behind.ServeHTTP(w, r)
	}))
	for _, ch := range []Chart{ofRegistry(s), ofRepository(s)} {
		f := fetcher(t, nil, s)
		if _, err := versionsOf(t, f, ch); !errors.Is(err, errLogin) {
			t.Errorf("without credentials, the error is %v", err)
		}
		ch.Credentials = fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, registry.Host(s), base64.StdEncoding.EncodeToString([]byte("hanse:secret")))
		got, err := versionsOf(t, f, ch)
		if diff := cmp.Diff([]string{"1.0.0+a", "2.0.0"}, got); diff != "" || err != nil {
			t.Errorf("with credentials: %v (-want +got):\n%s", err, diff)
		}
	}
}

func TestVersionsWaitUntilAChartOfTheSameHostIsFetched(t *testing.T) {
	t.Parallel()
	var atOnce, most atomic.Int32
	asked, release := make(chan string, 10), make(chan struct{})
	has := repository("files/rotors.tgz", "archive")
	s := registry.Serve(t, answering(func(w http.ResponseWriter, r *http.Request) {
		most.Store(max(most.Load(), atOnce.Add(1)))
		defer atOnce.Add(-1)
		asked <- r.URL.Path
		<-release
		has.ServeHTTP(w, r)
	}))
	f := fetcher(t, nil, s)
	done := make(chan struct{})
	if _, err := f.Get(t.Context(), "rotors", ofRepository(s), func() { close(done) }); !errors.Is(err, ErrFetching) {
		t.Fatal(err)
	}
	<-asked // the chart has its turn
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Versions(ended, ofRepository(s), func([]string) { t.Error("versions are listed out of turn") }); !errors.Is(err, context.Canceled) {
		t.Errorf("while a chart is fetched, the error is %v", err)
	}
	close(release)
	if got, err := versionsOf(t, f, ofRepository(s)); err != nil || len(got) != 2 {
		t.Errorf("got %q, %v", got, err)
	}
	<-done
	if most.Load() != 1 {
		t.Errorf("the host got %d requests at a time", most.Load())
	}
}
