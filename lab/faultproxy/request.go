package faultproxy

import (
	"net/http"
	"strings"
)

// request has the properties of an API request on which faults depend.
type request struct {
	resource, group string
	list            bool
	watch           bool
	initialEvents   bool // true for a watch that begins with all objects of a list
}

// classify reads the verb and the resource from an API path. For other paths, both are empty.
func classify(r *http.Request) request {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	var out request
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		out.group, parts = parts[1], parts[3:]
	default:
		return request{}
	}
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
		parts = parts[2:]
	}
	out.resource = parts[0]
	query := r.URL.Query()
	get := r.Method == http.MethodGet && len(parts) == 1
	out.watch = get && truth(query.Get("watch"))
	out.list = get && !out.watch
	out.initialEvents = out.watch && truth(query.Get("sendInitialEvents"))
	return out
}

func truth(value string) bool { return value == "true" || value == "1" }

// hangs reports whether the proxy must not answer this request, because the fault makes lists of the resource hang. A
// watch with initial events is treated as a list, because clients use it instead of a list.
func (f Fault) hangs(r request) bool {
	if f.Mode != HangList || !(r.list || r.initialEvents) {
		return false
	}
	return f.Resource == "" || f.Resource == r.resource || f.Resource == r.resource+"."+r.group
}
