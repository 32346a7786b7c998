package faultproxy

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	all := Options{Percent: 100}
	tests := map[string]struct {
		words string
		opts  Options
		want  Fault
		err   string
	}{
		"none":                            {words: "none", opts: all, want: Fault{Mode: None}},
		"a delay":                         {words: "delay 5s", opts: all, want: Fault{Mode: Delay, Wait: 5 * time.Second}},
		"a share of drops":                {words: "drop 10%", opts: all, want: Fault{Mode: Drop, Percent: 10}},
		"a reset now and of all to come":  {words: "reset", opts: all, want: Fault{Mode: Reset}},
		"a reset at an interval":          {words: "reset 2s", opts: all, want: Fault{Mode: Reset, Wait: 2 * time.Second}},
		"a reset at every Nth request":    {words: "reset 7", opts: all, want: Fault{Mode: Reset, Requests: 7}},
		"a status for all":                {words: "status 500", opts: all, want: Fault{Mode: Status, Code: 500, Percent: 100}},
		"a status for some with a header": {words: "status 429", opts: Options{Percent: 50, RetryAfter: 5 * time.Second}, want: Fault{Mode: Status, Code: 429, Percent: 50, RetryAfter: 5 * time.Second}},
		"lists of one resource":           {words: "hang-list pods", opts: all, want: Fault{Mode: HangList, Resource: "pods"}},
		"an unknown mode is refused":      {words: "explode", opts: all, err: "unknown"},
		"a delay needs a duration":        {words: "delay", opts: all, err: "arguments"},
		"a delay is not negative":         {words: "delay -1s", opts: all, err: "positive"},
		"a share is at most 100":          {words: "drop 101", opts: all, err: "between 1 and 100"},
		"a good status is no fault":       {words: "status 200", opts: all, err: "between 400 and 599"},
		"a share belongs to status":       {words: "delay 1s", opts: Options{Percent: 5}, err: "--percent"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(strings.Fields(test.words), test.opts)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("error %v does not say %q", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if !strings.HasPrefix(got.String(), strings.TrimSuffix(test.words, "%")) {
				t.Errorf("it prints as %q", got)
			}
		})
	}
}

func TestClassify(t *testing.T) {
	tests := map[string]struct {
		target string
		want   request
	}{
		"a core list":             {"/api/v1/nodes", request{resource: "nodes", list: true}},
		"a list in a namespace":   {"/apis/apps/v1/namespaces/a/deployments?limit=5", request{resource: "deployments", group: "apps", list: true}},
		"the list of namespaces":  {"/api/v1/namespaces", request{resource: "namespaces", list: true}},
		"one object":              {"/api/v1/namespaces/a/pods/b", request{resource: "pods"}},
		"one namespace":           {"/api/v1/namespaces/a", request{resource: "namespaces"}},
		"a namespace's status":    {"/api/v1/namespaces/a/status", request{resource: "namespaces"}},
		"a watch":                 {"/api/v1/pods?watch=true", request{resource: "pods", watch: true}},
		"a watch that also lists": {"/api/v1/pods?watch=1&sendInitialEvents=true", request{resource: "pods", watch: true, initialEvents: true}},
		"discovery":               {"/apis/apps/v1", request{}},
		"version":                 {"/version", request{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := classify(httptest.NewRequest(http.MethodGet, test.target, nil))
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(request{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestHangListMatchesPluralAndGroup(t *testing.T) {
	list := request{resource: "deployments", group: "apps", list: true}
	for resource, want := range map[string]bool{"": true, "deployments": true, "deployments.apps": true, "pods": false, "deployments.x": false} {
		if got := (Fault{Mode: HangList, Resource: resource}).hangs(list); got != want {
			t.Errorf("hang-list %q: got %t", resource, got)
		}
	}
	if (Fault{Mode: HangList}).hangs(request{resource: "pods", watch: true}) {
		t.Error("a plain watch hangs with lists")
	}
	if !(Fault{Mode: HangList}).hangs(request{resource: "pods", watch: true, initialEvents: true}) {
		t.Error("a watch that lists does not hang with lists")
	}
}
