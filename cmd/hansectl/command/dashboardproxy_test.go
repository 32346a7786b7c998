package command

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// playedConsole accepts every form of its own pages as a sign-in. Its stream has one event, and stays open until the
// test ends.
func playedConsole(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /signin", func(w http.ResponseWriter, _ *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "__Host-hanse-0", Value: "sealed", Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode})
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "host %s, cookies %q", r.Host, r.Header.Get("Cookie"))
	})
	mux.HandleFunc("GET /live", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprint(w, "event: open\ndata:\n\n")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
		case <-t.Context().Done():
		}
	})
	server := httptest.NewTLSServer(http.NewCrossOriginProtection().Handler(mux))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server
}

// proxied serves a console at a port of this machine, as the command dashboard does.
func proxied(t *testing.T, console *httptest.Server) (base string, port int) {
	t.Helper()
	to := &tunnel{out: io.Discard}
	if console != nil {
		address := console.Listener.Addr().String()
		to.local.Store(&address)
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	port = listener.Addr().(*net.TCPAddr).Port
	server := httptest.NewUnstartedServer(consoleProxy(port, to.transport()))
	must(t, server.Listener.Close())
	server.Listener = listener
	server.Start()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL, port
}

// reply is the answer to a request.
type reply struct {
	status int
	header http.Header
	text   string
}

// send sends a request with these headers to the console.
func send(t *testing.T, c *http.Client, method, to string, headers map[string]string) reply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, to, nil)
	must(t, err)
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	r.Host = headers["Host"]
	answer, err := c.Do(r)
	must(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(t, err)
	return reply{answer.StatusCode, answer.Header, string(text)}
}

func TestTheDashboardIsForThisMachineAlone(t *testing.T) {
	base, port := proxied(t, playedConsole(t))
	tests := map[string]struct {
		method string
		host   string
		origin string
		want   int
	}{
		"by the address":                        {http.MethodGet, fmt.Sprintf("127.0.0.1:%d", port), "", http.StatusOK},
		"by the name":                           {http.MethodGet, fmt.Sprintf("localhost:%d", port), "", http.StatusOK},
		"another name for this machine":         {http.MethodGet, fmt.Sprintf("rebound.example.com:%d", port), "", http.StatusForbidden},
		"a name that begins with the address":   {http.MethodGet, fmt.Sprintf("127.0.0.1.example.com:%d", port), "", http.StatusForbidden},
		"another port":                          {http.MethodGet, "127.0.0.1:1", "", http.StatusForbidden},
		"no port":                               {http.MethodGet, "127.0.0.1", "", http.StatusForbidden},
		"a form of the console":                 {http.MethodPost, "", base, http.StatusNoContent},
		"a form of another origin":              {http.MethodPost, "", "http://rebound.example.com", http.StatusForbidden},
		"a form of another port of the machine": {http.MethodPost, "", "http://127.0.0.1:1", http.StatusForbidden},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			headers := map[string]string{"Host": tc.host}
			path := "/"
			if tc.method == http.MethodPost {
				headers["Origin"], path = tc.origin, "/signin"
			}
			if got := send(t, http.DefaultClient, tc.method, base+path, headers); got.status != tc.want {
				t.Errorf("got %d: %s", got.status, got.text)
			}
		})
	}
}

func TestCookiesOfTheConsoleHaveThePortOfTheDashboard(t *testing.T) {
	console := playedConsole(t)
	base, port := proxied(t, console)
	another, _ := proxied(t, console)
	jar, err := cookiejar.New(nil)
	must(t, err)
	browser := &http.Client{Jar: jar}
	answer := send(t, browser, http.MethodPost, base+"/signin", map[string]string{"Origin": base})
	want := fmt.Sprintf("port-%d-hanse-0=sealed; Path=/; HttpOnly; SameSite=Strict", port)
	if got := answer.header.Values("Set-Cookie"); len(got) != 1 || got[0] != want {
		t.Errorf("got the cookies %q, want %q", got, want)
	}
	at, err := url.Parse(base)
	must(t, err)
	jar.SetCookies(at, []*http.Cookie{{Name: "of-another-server", Value: "x"}})
	if text := send(t, browser, http.MethodGet, base, nil).text; text != fmt.Sprintf(`host 127.0.0.1:%d, cookies "__Host-hanse-0=sealed"`, port) {
		t.Errorf("the console got: %s", text)
	}
	if text := send(t, browser, http.MethodGet, another, nil).text; !strings.Contains(text, `cookies ""`) {
		t.Errorf("the console of another dashboard got: %s", text)
	}
}

func TestChangesPassTheDashboardAtOnce(t *testing.T) {
	base, _ := proxied(t, playedConsole(t))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/live", nil)
	must(t, err)
	answer, err := http.DefaultClient.Do(r)
	must(t, err)
	defer answer.Body.Close()
	line, err := bufio.NewReader(answer.Body).ReadString('\n') // read one line only, because the stream does not end
	must(t, err)
	if line != "event: open\n" {
		t.Errorf("got %q", line)
	}
}

func TestTheDashboardSaysThatNoPodIsConnected(t *testing.T) {
	base, _ := proxied(t, nil)
	got := send(t, http.DefaultClient, http.MethodGet, base, nil)
	if got.status != http.StatusBadGateway {
		t.Errorf("got %d", got.status)
	}
	wants(t, got.text, "no pod of the hub is connected", "Reload the page")
}
