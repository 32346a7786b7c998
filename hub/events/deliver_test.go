package events

import (
	"bytes"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// serve serves by TLS until the test ends. It reads each request before it calls f, because a request's context ends
// with its connection only after the body is read.
func serve(t *testing.T, f http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		f(w, r)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func caOf(s *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

func targetOf(t *testing.T, s *httptest.Server) target {
	t.Helper()
	keys, err := parseKeys([]byte(ofStandard))
	if err != nil {
		t.Fatal(err)
	}
	return target{format: hubv1.FormatCloudEvents, url: s.URL + "/hooks/token", ca: caOf(s), keys: keys}
}

func status(code int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if len(header) > 0 {
			w.Header().Set(header[0], header[1])
		}
		w.WriteHeader(code)
	}
}

func TestAReceiverGetsASignedRequest(t *testing.T) {
	t.Parallel()
	type request struct {
		header http.Header
		body   string
	}
	got := make(chan request, 1)
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- request{r.Header, r.Method + " " + r.URL.Path + " " + string(body)}
	})
	c := sinkClient{within: time.Minute}
	to := targetOf(t, s)
	if o := c.deliver(t.Context(), to, &message{format: hubv1.FormatCloudEvents, id: "msg-1", body: []byte(`{"a":1}`)}); o.failure != nil {
		t.Fatal(o.failure)
	}
	r := <-got
	if want := `POST /hooks/token {"a":1}`; r.body != want {
		t.Errorf("got %s, want %s", r.body, want)
	}
	var seconds int64
	for _, digit := range r.header.Get("Webhook-Timestamp") {
		seconds = 10*seconds + int64(digit-'0')
	}
	at := time.Unix(seconds, 0)
	if age := time.Since(at); age < 0 || age > time.Minute {
		t.Errorf("the timestamp is %s", at)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/cloudevents+json; charset=UTF-8", "Webhook-Id": "msg-1",
		"Webhook-Signature": signature(to.keys, "msg-1", at, []byte(`{"a":1}`)),
	} {
		if got := r.header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	var leaked atomic.Bool
	elsewhere := serve(t, func(http.ResponseWriter, *http.Request) { leaked.Store(true) })
	hangs := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	endless := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(bytes.Repeat([]byte("#"), 1<<16)); err != nil {
				return
			}
		}
	}
	tests := map[string]struct {
		handler http.HandlerFunc
		change  func(*target)
		says    string // part of the error; empty: delivered
		refused bool
		after   time.Duration
	}{
		"200":                          {handler: status(200)},
		"202":                          {handler: status(202)},
		"an answer without an end":     {handler: endless},
		"400":                          {handler: status(400), says: "the receiver answers 400 Bad Request", refused: true},
		"413":                          {handler: status(413), says: "the receiver answers 413 Request Entity Too Large", refused: true},
		"401, which an admin can end":  {handler: status(401), says: "the receiver answers 401 Unauthorized"},
		"500":                          {handler: status(500), says: "the receiver answers 500 Internal Server Error"},
		"429 with a pause":             {handler: status(429, "Retry-After", "7"), says: "the receiver answers 429 Too Many Requests", after: 7 * time.Second},
		"503 with a pause of a day":    {handler: status(503, "Retry-After", "86400"), says: "the receiver answers 503 Service Unavailable", after: maxRequestedPause},
		"503 with a pause of nonsense": {handler: status(503, "Retry-After", "-1"), says: "the receiver answers 503 Service Unavailable"},
		"an unknown status":            {handler: status(599), says: "the receiver answers 599 "},
		"a redirect": {
			handler: status(307, "Location", elsewhere.URL), says: "the receiver answers 307 Temporary Redirect, and the hub follows no redirect",
		},
		"a receiver that hangs":       {handler: hangs, says: "the receiver did not answer within 200ms"},
		"headers without an end":      {handler: status(200, "X-Large", strings.Repeat("#", 2*maxHeaderBytes)), says: "net/http: HTTP/1.x transport connection broken: net/http: server response headers exceeded 65536 bytes; aborted"},
		"a certificate of another CA": {handler: status(200), change: func(to *target) { to.ca = "" }, says: "tls: failed to verify certificate: x509: certificate signed by unknown authority"},
		"no certificate as CA":        {handler: status(200), change: func(to *target) { to.ca = "none" }, says: errCA.Error()},
		"a URL without TLS":           {handler: status(200), change: func(to *target) { to.url = strings.Replace(to.url, "https", "http", 1) }, says: errURL.Error()},
		"no server":                   {handler: status(200), change: func(to *target) { to.url = "https://127.0.0.1:1/token" }, says: "dial: connect: connection refused"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, tc.handler)
			to := targetOf(t, s)
			if tc.change != nil {
				tc.change(&to)
			}
			c := sinkClient{within: time.Minute}
			if strings.Contains(tc.says, "200ms") {
				c.within = 200 * time.Millisecond
			}
			defer c.close()
			o := c.deliver(t.Context(), to, &message{format: hubv1.FormatCloudEvents, id: "1", body: []byte("{}")})
			says := ""
			if o.failure != nil {
				says = o.failure.Error()
			}
			if says != tc.says || o.refused != tc.refused || o.after != tc.after {
				t.Errorf("got %q, refused %v, pause %s", says, o.refused, o.after)
			}
			if strings.Contains(says, "token") {
				t.Errorf("the error has the path: %s", says)
			}
		})
	}
	t.Cleanup(func() {
		if leaked.Load() {
			t.Error("a redirect was followed")
		}
	})
}

func TestRetryAfterAsATime(t *testing.T) {
	now := time.Date(2026, 11, 27, 3, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"Fri, 27 Nov 2026 03:01:00 GMT": time.Minute,
		"Fri, 27 Nov 2026 02:01:00 GMT": 0,
		"Fri, 27 Nov 2099 02:01:00 GMT": maxRequestedPause,
		"":                              0,
		"99999999999999999999":          0,
	} {
		if got := pauseOf(text, now); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

func TestAChangedCAIsUsed(t *testing.T) {
	t.Parallel()
	s := serve(t, status(200))
	to := targetOf(t, s)
	good := to.ca
	c := sinkClient{within: time.Minute}
	defer c.close()
	for i, ca := range []string{good, "", good, good} {
		to.ca = ca
		if o := c.deliver(t.Context(), to, &message{format: hubv1.FormatCloudEvents, id: "1"}); (o.failure == nil) != (ca == good) {
			t.Errorf("try %d: got %v", i, o.failure)
		}
	}
}
