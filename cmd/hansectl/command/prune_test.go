package command

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view"
	"github.com/hanse-dev/hanse/view/wire"
)

// viewedHub acts as a hub's API server that passes requests on to the hub.
type viewedHub struct {
	*testing.T
	args      []string // the flags that name the hub
	unclaimed map[string]wire.UnclaimedAnswer
	outcomes  map[string]wire.PruneOutcome // by object name

	mu     sync.Mutex
	pruned []wire.ShownCopy
}

func newViewedHub(t *testing.T) *viewedHub {
	t.Helper()
	h := &viewedHub{T: t, unclaimed: map[string]wire.UnclaimedAnswer{}}
	server := httptest.NewTLSServer(h)
	t.Cleanup(server.Close)
	none := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, os.WriteFile(none, nil, 0o600))
	h.args = []string{"--server", server.URL, "--token", "mine", "--kubeconfig", none, "--insecure-skip-tls-verify"}
	return h
}

// ServeHTTP implements http.Handler.
func (h *viewedHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	steps := strings.Split(strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/hanse-system/services/https:hanse-hub-view:8444/proxy/members/"), "/")
	var answer any
	switch found, known := h.unclaimed[steps[0]]; {
	case len(steps) != 2 || !known:
		w.WriteHeader(http.StatusServiceUnavailable)
		answer = metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status"}, Code: http.StatusServiceUnavailable, Message: "the cluster is not connected"}
	case steps[1] == wire.Unclaimed:
		answer = found
	case steps[1] == wire.Prune:
		var in wire.PruneRequest
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			h.Error(err)
		}
		var out wire.PruneAnswer
		for _, c := range in.Copies {
			out.Copies = append(out.Copies, wire.PrunedCopy{Object: c.Object, Outcome: h.outcomes[c.Object.Name], Message: "so says the hub"})
		}
		h.pruned = append(h.pruned, in.Copies...)
		answer = out
	}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		h.Error(err)
	}
}

func (h *viewedHub) run(args ...string) (string, error) {
	h.Helper()
	return run(h.T, append(args, h.args...)...)
}

func lostWidget(name string, removal hubv1.RemovalPolicy, newer bool) wire.UnclaimedCopy {
	return wire.UnclaimedCopy{
		ShownCopy: wire.ShownCopy{
			Object: wire.Object{Group: "shop", Kind: "Widget", Namespace: "a", Name: name}, Version: "v1", UID: types.UID("uid-" + name), ResourceVersion: "7",
		},
		Removal: removal, Newer: newer,
	}
}

func TestUnclaimedCopiesAreShown(t *testing.T) {
	h := newViewedHub(t)
	h.unclaimed["eu"] = wire.UnclaimedAnswer{
		Copies: []wire.UnclaimedCopy{lostWidget("one", hubv1.RemovalDelete, false), lostWidget("two", hubv1.RemovalOrphan, true)}, Notes: []string{"jobs were not listed"},
	}
	h.unclaimed["us"] = wire.UnclaimedAnswer{}
	out, err := h.run("prune", "--dry-run", "us", "eu")
	must(t, err)
	wants(t, out, "CLUSTER   OBJECT              AGE   REMOVAL   NOTE", "eu        Widget.shop a/one   -     Delete    -", "a/two   -     Orphan    newer than the hub", "warning: eu: jobs were not listed")

	out, err = h.run("prune", "--dry-run", "us")
	must(t, err)
	wants(t, out, "No copy is unclaimed")

	out, err = h.run("prune", "--dry-run", "us", "away")
	refused(t, err, "1 cluster could not be asked")
	wants(t, out, "error: away: the cluster is not connected")

	out, err = h.run("prune", "--dry-run", "us", "-o", "json")
	must(t, err)
	var shown view.Unclaimed
	must(t, json.Unmarshal([]byte(out), &shown))
	if shown.Copies == nil || len(shown.Copies) != 0 {
		t.Errorf("no copies are %s", out)
	}
	if len(h.pruned) > 0 {
		t.Errorf("a dry run pruned %+v", h.pruned)
	}
	_, err = h.run("prune", "us", "-o", "json")
	refused(t, err, "--output needs --dry-run")
	exits(t, err, 2)
}

func TestPruneShowsBeforeItRemoves(t *testing.T) {
	h := newViewedHub(t)
	copies := []wire.UnclaimedCopy{lostWidget("one", hubv1.RemovalDelete, false), lostWidget("two", hubv1.RemovalDelete, false)}
	h.unclaimed["eu"] = wire.UnclaimedAnswer{Copies: copies}
	h.outcomes = map[string]wire.PruneOutcome{"one": wire.PruneRemoved, "two": wire.PruneOrphaned}

	out, err := h.run("prune", "eu")
	refused(t, err, "pass --yes to confirm")
	wants(t, out, "Widget.shop a/one", "Widget.shop a/two")
	if len(h.pruned) > 0 {
		t.Errorf("pruned %+v without a word of the user", h.pruned)
	}

	out, err = h.run("prune", "eu", "--yes")
	must(t, err)
	wants(t, out, "Widget.shop a/one   Removed", "Widget.shop a/two   Orphaned   so says the hub")
	if diff := cmp.Diff([]wire.ShownCopy{copies[0].ShownCopy, copies[1].ShownCopy}, h.pruned); diff != "" {
		t.Errorf("not pruned as shown: %s", diff)
	}
}

func TestPruneFailsIfACopyIsLeft(t *testing.T) {
	for name, test := range map[string]struct {
		outcome wire.PruneOutcome
		says    string // part of the error; empty if there is no error
	}{
		"a copy that is held":                        {wire.PruneHeld, "1 copy left, of which 1 newer than the hub: see hansectl accept-restore"},
		"a copy that could not be removed":           {wire.PruneFailed, "1 copy left"},
		"a copy that a binding claims by now":        {wire.PruneClaimed, ""},
		"an object that is not this hub's copy":      {wire.PruneNotOurs, ""},
		"a copy that waits for its finalizers to go": {wire.PruneDeleting, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newViewedHub(t)
			h.unclaimed["eu"] = wire.UnclaimedAnswer{Copies: []wire.UnclaimedCopy{lostWidget("one", hubv1.RemovalDelete, false)}}
			h.outcomes = map[string]wire.PruneOutcome{"one": test.outcome}
			_, err := h.run("prune", "eu", "--yes")
			if test.says == "" {
				must(t, err)
				return
			}
			refused(t, err, test.says)
		})
	}
}

func TestPruneAsksForFewCopiesAtATime(t *testing.T) {
	h := newViewedHub(t)
	for _, cluster := range []string{"eu", "us"} {
		var copies []wire.UnclaimedCopy
		for i := range askedTogether + 5 {
			copies = append(copies, lostWidget(cluster+string(rune('a'+i)), hubv1.RemovalDelete, false))
		}
		h.unclaimed[cluster] = wire.UnclaimedAnswer{Copies: copies}
	}
	out, err := h.run("prune", "eu", "us", "--yes")
	must(t, err)
	if len(h.pruned) != 2*(askedTogether+5) {
		t.Errorf("pruned %d copies:\n%s", len(h.pruned), out)
	}
}

func TestPruneCountsTheObjectsBeforeItAsks(t *testing.T) {
	on := func(c wire.UnclaimedCopy) view.UnclaimedCopy {
		return view.UnclaimedCopy{Cluster: "eu", UnclaimedCopy: c}
	}
	got := aboutToPrune([]view.UnclaimedCopy{
		on(lostWidget("a", hubv1.RemovalDelete, false)), on(lostWidget("b", hubv1.RemovalDelete, false)), on(lostWidget("c", hubv1.RemovalOrphan, false)),
		on(lostWidget("d", hubv1.RemovalDelete, true)),
	})
	if want := "This deletes 2 copies on the members, takes the hub's marks off 1, leaves 1 that are newer than the hub."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
