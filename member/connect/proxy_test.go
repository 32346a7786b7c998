package connect

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
)

func TestAProxyIsUsedOnlyIfItIsAskedFor(t *testing.T) {
	var asked atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusBadGateway)
	}))
	t.Cleanup(proxy.Close)
	at, err := url.Parse(proxy.URL)
	must(t, err)
	f := newFakeCluster(t)
	to, fault := parseKubeconfig(f.kubeconfig(t))
	if fault != nil {
		t.Fatal(fault)
	}
	for name, tc := range map[string]struct {
		proxy   proxyFunc
		through int32
	}{
		"none":            {nil, 0},
		"one that is set": {http.ProxyURL(at), 1},
	} {
		asked.Store(0)
		s, err := openSession(to, nil, tc.proxy)
		must(t, err)
		body, err := ask(t.Context(), requestClient(newLine(s)), to.Server+"/version")
		if err == nil {
			_ = body.Close()
		}
		if (err != nil) != (tc.through > 0) || asked.Load() != tc.through {
			t.Errorf("%s: %d requests through the proxy, %v", name, asked.Load(), err)
		}
		s.pool.close()
		// If no proxy is configured, the transport must ignore the proxy variables of the environment.
		if tc.proxy == nil && (s.pool.requests.(*http.Transport).Proxy != nil || s.pool.watches.(*http.Transport).Proxy != nil) {
			t.Errorf("%s: the transports ask somebody for a proxy", name)
		}
	}
}
