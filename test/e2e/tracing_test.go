package e2e

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/collector"
)

// The trace and span that a user's pipeline sets on its write.
const (
	usersTrace  = "4bf92f3577b34da6a3ce929d0e0e4736"
	usersSpan   = "00f067aa0ba902b7"
	usersParent = "00-" + usersTrace + "-" + usersSpan + "-01"
)

// TestOneTraceFollowsAChangeToThreeMembersAndBack runs three replicas. Each one works on one member and sends its own
// spans.
func TestOneTraceFollowsAChangeToThreeMembersAndBack(t *testing.T) {
	ctx := t.Context()
	ns := namespace(t)
	placeWidgets(t, ns)
	otlp := collector.Start(t)
	c := newCrew(t, "--otlp-endpoint="+otlp.URL, "--otlp-sampling=0") // with sampling 0, only the user's trace is sampled

	w := widget(ns, "lamp")
	w.SetAnnotations(map[string]string{hubv1.TraceParentAnnotation: usersParent})
	began := time.Now()
	must(t, suite.Hub.Create(ctx, w))
	must(t, suite.Hub.Create(ctx, widget(ns, "untraced")))
	for _, m := range members {
		eventually(t, normal, func() error { return rowIs(ctx, w, m, metav1.ConditionTrue, "") })
		eventually(t, normal, func() error { return rowIs(ctx, widget(ns, "untraced"), m, metav1.ConditionTrue, "") })
		copied, err := on(ctx, m, w)
		must(t, err)
		if len(copied.GetAnnotations()[hubv1.TraceParentAnnotation]) > 0 {
			t.Errorf("the annotation is on %s", m)
		}
	}

	var root, decide collector.Span
	var dispatches, parts, reports map[string]collector.Span
	eventually(t, normal, func() error {
		root, decide = collector.Span{}, collector.Span{}
		dispatches, parts, reports = map[string]collector.Span{}, map[string]collector.Span{}, map[string]collector.Span{}
		for _, s := range otlp.Spans("") {
			switch cluster, _ := s.Attributes["k8s.cluster.name"].(string); s.Name {
			case "change":
				root = s
			case "decide":
				decide = s
			case "dispatch":
				dispatches[cluster] = s
			case "render", "write":
				parts[s.Name+" "+cluster] = s
			case "report":
				reports[s.Attributes["service.instance.id"].(string)] = s
			}
		}
		if root.ID == "" || decide.ID == "" || len(dispatches) < 3 || len(parts) < 6 || len(reports) < 3 {
			return fmt.Errorf("spans so far: %v", otlp.Spans(""))
		}
		return nil
	})

	all := otlp.Spans("")
	for _, s := range all {
		if s.Trace != usersTrace {
			t.Errorf("%s is in the trace %s", s.Name, s.Trace)
		}
		if s.Attributes["hanse.object.name"] != "lamp" || s.Attributes["hanse.object.kind"] != "Widget.test.hanse.dev" || s.Attributes["k8s.namespace.name"] != ns ||
			s.Attributes["hanse.object.generation"] != int64(1) || s.Attributes["service.name"] != "hanse-hub" || s.Failed {
			t.Errorf("%s has the attributes %v", s.Name, s.Attributes)
		}
		if s.Ended.Before(s.Began) || s.Began.Before(began.Add(-time.Second)) {
			t.Errorf("%s lasts from %s to %s", s.Name, s.Began, s.Ended)
		}
	}
	if root.Parent != usersSpan {
		t.Errorf("the change is below %q, want the user's span", root.Parent)
	}
	leader := c.identities[c.leader(t)]
	if decide.Parent != root.ID || root.Attributes["service.instance.id"] != leader || decide.Attributes["service.instance.id"] != leader ||
		decide.Attributes["hanse.targets"] != int64(3) || decide.Attributes["hanse.binding.written"] != true {
		t.Errorf("the decision is %+v, want it below %s", decide, root.ID)
	}
	if got := slices.Sorted(maps.Keys(dispatches)); !slices.Equal(got, members) {
		t.Errorf("spans of the clusters %q, want %q", got, members)
	}
	for i, m := range members {
		d := dispatches[m]
		if d.Parent != root.ID || d.Attributes["hanse.reason"] != hubv1.ReasonApplied || d.Attributes["service.instance.id"] != c.identities[i] {
			t.Errorf("the dispatch to %s is %+v, want it below %s", m, d, root.ID)
		}
		for _, part := range []string{"render", "write"} {
			if p := parts[part+" "+m]; p.Parent != d.ID || p.Began.Before(d.Began) || p.Ended.After(d.Ended) {
				t.Errorf("%s for %s is %+v, want it within %+v", part, m, p, d)
			}
		}
	}
	for instance, r := range reports {
		if r.Parent != root.ID {
			t.Errorf("the report of %s is below %s, want %s", instance, r.Parent, root.ID)
		}
	}
	if names := count(all); names["change"] != 1 || names["decide"] != 1 || names["dispatch"] != 3 || names["render"] != 3 || names["write"] != 3 {
		t.Errorf("the spans are %v", names)
	}

	t.Run("a generation that changes the copies goes on in the user's next trace", func(t *testing.T) {
		const next = "0af7651916cd43dd8448eb211c80319c"
		must(t, suite.Hub.Patch(ctx, w, client.RawPatch(types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"`+hubv1.TraceParentAnnotation+`":"00-`+next+`-b7ad6b7169203331-01"}},"spec":{"replicas":4}}`))))
		eventually(t, normal, func() error {
			spans := otlp.Spans(next)
			if names := count(spans); names["change"] != 1 || names["decide"] != 1 || names["dispatch"] != 3 || names["report"] < 3 {
				return fmt.Errorf("the spans are %v", names)
			}
			for _, s := range spans {
				if s.Attributes["hanse.object.generation"] != int64(2) {
					return fmt.Errorf("%s is of generation %v", s.Name, s.Attributes["hanse.object.generation"])
				}
			}
			return nil
		})
	})

	t.Run("each written copy is one line of the log, with the trace", func(t *testing.T) {
		lines := 0
		for _, h := range c.processes {
			log, err := os.ReadFile(h.LogFile)
			must(t, err)
			for line := range strings.SplitSeq(string(log), "\n") {
				if strings.Contains(line, usersTrace) && strings.Contains(line, "Wrote a copy") {
					lines++
				}
			}
		}
		if lines != len(members) {
			t.Errorf("%d lines, want %d", lines, len(members))
		}
	})
}

// count returns the number of spans for each name.
func count(spans []collector.Span) map[string]int {
	names := map[string]int{}
	for _, s := range spans {
		names[s.Name]++
	}
	return names
}
