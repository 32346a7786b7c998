package agent

import (
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
)

const (
	maxBody   = 3 << 20  // bytes of a request's body, as an API server accepts
	maxHeader = 64 << 10 // bytes of a request's headers
	maxPath   = 4 << 10
	maxQuery  = 16 << 10
)

// methods are the HTTP methods that the hub uses.
var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// passed are the headers of the hub's requests that reach the API server. All others are dropped.
var passed = []string{"Accept", "Accept-Encoding", "Content-Type", "If-None-Match", "User-Agent"}

// forbidden are headers by which a request would act as another user or change the protocol. They are refused, and not
// only dropped, so that the log of the agent shows the attempt.
var forbidden = []string{"Authorization", "Cookie", "Upgrade", "Sec-Websocket-Protocol"}

// forbiddenPrefixes are prefixes of such headers. API servers trust X-Remote- headers of their front proxies.
var forbiddenPrefixes = []string{"Impersonate-", "X-Remote-"}

// refusal returns why the agent does not pass a request on to its API server, or "". The rules come before the rights
// of the agent's account: they hold even if the account has more rights.
func refusal(r *http.Request) string {
	switch {
	case !slices.Contains(methods, r.Method):
		return "the agent does not pass on the method"
	case r.ContentLength > maxBody:
		return "the body is too large"
	case len(r.URL.RawQuery) > maxQuery:
		return "the query is too long"
	}
	for name := range r.Header {
		if slices.Contains(forbidden, name) || slices.ContainsFunc(forbiddenPrefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			return "the agent does not pass on the header " + name
		}
	}
	return refusedPath(r.Method, r.URL)
}

// refusedPath returns why the agent does not pass on a request to a path, or "".
func refusedPath(method string, u *url.URL) string {
	const notServed = "the agent does not pass on this path"
	p := u.Path
	if len(p) > maxPath || u.RawPath != "" || u.Opaque != "" || path.Clean(p) != p || strings.ContainsFunc(p, isOdd) {
		return notServed
	}
	segments := strings.Split(strings.TrimPrefix(p, "/"), "/")
	switch segments[0] {
	case "version":
		if method == http.MethodGet && len(segments) == 1 {
			return ""
		}
	case "openapi":
		if method == http.MethodGet && len(segments) >= 2 && segments[1] == "v3" {
			return ""
		}
	case "api":
		return refusedObject(method, after(segments, 2))
	case "apis":
		return refusedObject(method, after(segments, 3))
	}
	return notServed
}

// isOdd reports whether a character is in no path of an API server. Servers and proxies may read such a path in
// different ways.
func isOdd(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`\;%?#"<>{}|^`, r) }

// after returns the segments behind the first n ones, which name the group and version.
func after(segments []string, n int) []string { return segments[min(n, len(segments)):] }

// refusedObject returns why the agent does not pass on a request about an object, or "". segments are the part of the
// path behind the group and version: [namespaces NAMESPACE] RESOURCE [NAME [SUBRESOURCE ...]].
func refusedObject(method string, segments []string) string {
	if len(segments) == 0 {
		if method == http.MethodGet {
			return "" // discovery
		}
		return "the agent passes on only reads of discovery"
	}
	if segments[0] == "watch" || segments[0] == "proxy" {
		return "the agent does not pass on this path"
	}
	if segments[0] == "namespaces" && len(segments) == 3 && (segments[2] == "status" || segments[2] == "finalize") {
		return "the agent does not pass on the subresource " + segments[2]
	}
	if segments[0] == "namespaces" && len(segments) >= 3 {
		segments = segments[2:]
	}
	logs := len(segments) == 3 && segments[0] == "pods" && segments[2] == "log" && method == http.MethodGet
	if len(segments) > 2 && !logs {
		return "the agent does not pass on the subresource " + segments[2]
	}
	return ""
}
