package agent

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"strings"
	"testing"
)

func TestOnlyRequestsThatTheHubNeedsPass(t *testing.T) {
	pass := [][2]string{
		{"GET", "/version"}, {"GET", "/api"}, {"GET", "/apis"}, {"GET", "/api/v1"}, {"GET", "/apis/apps/v1"}, {"GET", "/openapi/v3"},
		{"GET", "/openapi/v3/apis/apps/v1?hash=AB12"}, {"GET", "/api/v1/namespaces"}, {"GET", "/api/v1/namespaces/kube-system"},
		{"GET", "/api/v1/namespaces?watch=true&fieldSelector=metadata.name%3Dkube-system"}, {"POST", "/api/v1/namespaces"}, {"PATCH", "/api/v1/namespaces/x"},
		{"PATCH", "/api/v1/namespaces/x/configmaps/a?fieldManager=hanse&force=true"}, {"DELETE", "/apis/apps/v1/namespaces/x/deployments/d"},
		{"GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node"}, {"GET", "/api/v1/namespaces/x/pods/p/log?follow=true"}, {"GET", "/api/v1/nodes"},
		{"GET", "/apis/apps/v1/namespaces/status/deployments/log"}, {"GET", "/api/v1/namespaces/x/secrets"},
	}
	for _, tc := range pass {
		if why := refusal(httptest.NewRequest(tc[0], "http://eu"+tc[1], nil)); why != "" {
			t.Errorf("%v is refused: %s", tc, why)
		}
	}
	refuse := [][2]string{
		{"GET", "/"}, {"GET", "/metrics"}, {"GET", "/healthz"}, {"GET", "/logs/kube-apiserver.log"}, {"GET", "/debug/pprof/heap"}, {"GET", "/openapi/v2"}, {"GET", "/openapi"},
		{"POST", "/version"}, {"GET", "/version/"}, {"GET", "/version/x"}, {"POST", "/openapi/v3"}, {"POST", "/api/v1"}, {"DELETE", "/apis"}, {"GET", "/apix"}, {"GET", "/.well-known/openid-configuration"},
		{"POST", "/api/v1/namespaces/x/pods/p/exec"}, {"GET", "/api/v1/namespaces/x/pods/p/exec?command=sh"}, {"POST", "/api/v1/namespaces/x/pods/p/attach"}, {"POST", "/api/v1/namespaces/x/pods/p/portforward"},
		{"GET", "/api/v1/namespaces/x/pods/p/proxy"}, {"GET", "/api/v1/namespaces/x/services/s/proxy/admin"}, {"GET", "/api/v1/nodes/n/proxy/metrics"}, {"GET", "/api/v1/proxy/nodes/n"}, {"GET", "/api/v1/watch/pods"},
		{"POST", "/api/v1/namespaces/x/pods/p/log"}, {"GET", "/api/v1/namespaces/x/pods/p/log/x"}, {"GET", "/api/v1/namespaces/x/services/s/log"},
		{"POST", "/api/v1/namespaces/x/serviceaccounts/a/token"}, {"POST", "/api/v1/namespaces/x/pods/p/eviction"}, {"POST", "/api/v1/namespaces/x/pods/p/binding"}, {"PUT", "/api/v1/namespaces/x/finalize"},
		{"PATCH", "/apis/apps/v1/namespaces/x/deployments/d/scale"}, {"PATCH", "/apis/apps/v1/namespaces/x/deployments/d/status"}, {"PATCH", "/api/v1/namespaces/x/status"},
		{"PUT", "/apis/certificates.k8s.io/v1/certificatesigningrequests/c/approval"},
		{"GET", "/api/v1//namespaces"}, {"GET", "/api/v1/namespaces/"}, {"GET", "/api/v1/namespaces/../../../metrics"}, {"GET", "/api/v1/./nodes"}, {"GET", "/api/v1/namespaces/x%2Fpods"}, {"GET", "/%61pi/v1/%2e%2e/%2e%2e/metrics"},
		{"GET", "/api/v1/namespaces/x;y"}, {"GET", "/api/v1/namespaces/x%00"}, {"GET", `/api/v1/namespaces/x%5Cy`}, {"GET", "/api/v1/nodes/" + strings.Repeat("a", maxPath)}, {"GET", "/api/v1/nodes?labelSelector=" + strings.Repeat("a", maxQuery)},
		{"CONNECT", "/version"}, {"OPTIONS", "/version"}, {"HEAD", "/version"}, {"TRACE", "/version"},
	}
	for _, tc := range refuse {
		if why := refusal(httptest.NewRequest(tc[0], "http://eu"+tc[1], nil)); why == "" {
			t.Errorf("%v passes", tc)
		}
	}
	for _, header := range []string{
		"Impersonate-User", "impersonate-group", "Impersonate-Uid", "Impersonate-Extra-Scopes", "Authorization", "Upgrade", "Cookie", "Sec-WebSocket-Protocol", "X-Remote-User", "X-Remote-Group",
	} {
		r := httptest.NewRequest(http.MethodGet, "http://eu/version", nil)
		r.Header.Set(header, "x")
		if refusal(r) == "" {
			t.Errorf("the header %s passes", header)
		}
	}
}

// FuzzRefusedPath checks that every path that passes is clean, and names no subresource but the logs of a pod.
func FuzzRefusedPath(f *testing.F) {
	for _, seed := range []string{"/api/v1/namespaces/x/pods/p/log", "/api/v1/namespaces/x/pods/p/exec", "/apis/a/b/c/d/e", "//api", "/api/v1/%2e%2e", "/api/v1/namespaces/x/finalize"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := url.ParseRequestURI(text)
		if err != nil || refusedPath(http.MethodPost, u) != "" {
			return
		}
		segments := strings.Split(u.Path, "/")
		if path.Clean(u.Path) != u.Path || u.EscapedPath() != u.Path || (segments[1] != "api" && segments[1] != "apis") || len(segments) > 8 {
			t.Errorf("%q passes", text)
		}
		for _, word := range []string{"/exec", "/proxy", "/attach", "/portforward", "/token"} {
			if strings.HasPrefix(u.Path, "/api/v1/namespaces/x/pods/p"+word) || strings.HasPrefix(u.Path, "/api/v1/nodes/n"+word) {
				t.Errorf("%q passes", text)
			}
		}
	})
}
