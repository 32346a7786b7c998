package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hanse-dev/hanse/view/preview"
)

// plannedFiles are the objects before the first edit. NS stands for the namespace.
const plannedFiles = `
apiVersion: hanse.dev/v1alpha1
kind: Placement
metadata: {namespace: NS, name: widgets}
spec:
  resourceSelectors: [{apiGroup: test.hanse.dev, kind: Widget, labelSelector: {matchLabels: {whole: "yes"}}}]
  clusters: {labelSelector: {}}
  removalLimit: {copies: 1000}
---
apiVersion: hanse.dev/v1alpha1
kind: Placement
metadata: {namespace: NS, name: divided}
spec:
  resourceSelectors: [{apiGroup: test.hanse.dev, kind: Widget, name: divided}]
  clusters: {labelSelector: {}}
  replicas: {type: Divide, path: /spec/replicas, divide: {by: Weight}}
---
apiVersion: test.hanse.dev/v1
kind: Widget
metadata: {namespace: NS, name: one, labels: {whole: "yes"}}
spec: {replicas: 3, note: first}
---
apiVersion: test.hanse.dev/v1
kind: Widget
metadata: {namespace: NS, name: two, labels: {whole: "yes"}}
spec: {replicas: 3, note: first}
---
apiVersion: test.hanse.dev/v1
kind: Widget
metadata: {namespace: NS, name: divided}
spec: {replicas: 6}
`

// plannedEdits are the edits, which the test applies in this order.
var plannedEdits = []struct{ what, files string }{
	{"an object changes", `
apiVersion: test.hanse.dev/v1
kind: Widget
metadata: {namespace: NS, name: one, labels: {whole: "yes"}}
spec: {replicas: 4, note: second}
`},
	{"an override of one region comes", `
apiVersion: hanse.dev/v1alpha1
kind: OverridePolicy
metadata: {namespace: NS, name: shanghai}
spec:
  resourceSelectors: [{apiGroup: test.hanse.dev, kind: Widget}]
  rules:
  - {name: note, clusters: {labelSelector: {matchLabels: {topology.kubernetes.io/region: cn-shanghai}}}, patches: [{op: add, path: /spec/note, value: shanghai}]}
`},
	{"the override does not change an object", `
apiVersion: test.hanse.dev/v1
kind: Widget
metadata: {namespace: NS, name: one, labels: {whole: "yes"}}
spec: {replicas: 4, note: third}
`},
	{"a rule excludes a cluster for one object", `
apiVersion: hanse.dev/v1alpha1
kind: OverridePolicy
metadata: {namespace: NS, name: not-here}
spec:
  resourceSelectors: [{apiGroup: test.hanse.dev, kind: Widget, name: two}]
  rules: [{name: not-in-frankfurt, clusters: {names: [eu-fra-1]}, exclude: true}]
`},
	{"a placement loses a cluster", `
apiVersion: hanse.dev/v1alpha1
kind: Placement
metadata: {namespace: NS, name: widgets}
spec:
  resourceSelectors: [{apiGroup: test.hanse.dev, kind: Widget, labelSelector: {matchLabels: {whole: "yes"}}}]
  clusters: {names: [cn-sha-1, eu-fra-1]}
  removalLimit: {copies: 1000}
`},
	{"an object comes, and another one changes", `
apiVersion: test.hanse.dev/v1
kind: Widget
metadata: {namespace: NS, name: three, labels: {whole: "yes"}}
spec: {replicas: 1}
---
apiVersion: test.hanse.dev/v1
kind: Widget
metadata: {namespace: NS, name: two, labels: {whole: "yes", tier: "1"}}
spec: {replicas: 3, note: first}
`},
	{"replicas move", `
apiVersion: hanse.dev/v1alpha1
kind: Placement
metadata: {namespace: NS, name: divided}
spec:
  resourceSelectors: [{apiGroup: test.hanse.dev, kind: Widget, name: divided}]
  clusters: {labelSelector: {}}
  replicas: {type: Divide, path: /spec/replicas, divide: {by: Weight, weights: [{clusters: {names: [cn-sha-1]}, weight: 2}, {weight: 1}]}}
`},
	{"the placement has its cluster again, with another note", `
apiVersion: hanse.dev/v1alpha1
kind: Placement
metadata: {namespace: NS, name: widgets}
spec:
  resourceSelectors: [{apiGroup: test.hanse.dev, kind: Widget, labelSelector: {matchLabels: {whole: "yes"}}}]
  clusters: {labelSelector: {}}
  removalLimit: {copies: 1000}
---
apiVersion: hanse.dev/v1alpha1
kind: OverridePolicy
metadata: {namespace: NS, name: shanghai}
spec:
  resourceSelectors: [{apiGroup: test.hanse.dev, kind: Widget}]
  rules:
  - {name: note, clusters: {labelSelector: {matchLabels: {topology.kubernetes.io/region: cn-shanghai}}}, patches: [{op: add, path: /spec/note, value: asia}]}
`},
}

// TestAPlanIsWhatMembersSee compares the plan of each edit with the hub's writes in the audit logs of the members.
func TestAPlanIsWhatMembersSee(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(strings.ReplaceAll(text, "NS", ns)), 0o600))
		return path
	}
	begin := time.Now()
	kubectlApply(t, file("before.yaml", plannedFiles))
	all := timesThree("create", "one", "two", "divided")
	eventually(t, normal, func() error { return wrote(t, ns, begin, all) })
	for i, edit := range plannedEdits {
		path := file(fmt.Sprintf("%d.yaml", i), edit.files)
		out, err := suite.Hansectl(ctx, "plan", "-n", ns, "-f", path, "-o", "json")
		must(t, err)
		var p preview.Plan
		must(t, json.Unmarshal([]byte(out), &p))
		want := foretold(p)
		if len(want) == 0 {
			t.Errorf("%s: the plan is empty", edit.what)
		}
		begin := time.Now()
		kubectlApply(t, path)
		eventually(t, normal, func() error {
			if err := wrote(t, ns, begin, want); err != nil {
				return fmt.Errorf("%s: %w", edit.what, err)
			}
			return nil
		})
		all = append(all, want...)
	}
	eventually(t, time.Minute, func() error { return settled(ctx) })
	must(t, wrote(t, ns, begin, slices.Sorted(slices.Values(all)))) // the hub made no later writes
}

func kubectlApply(t *testing.T, path string) {
	t.Helper()
	out, err := suite.Kubectl(t.Context(), suite.Hub, "apply", "-f", path)
	if err != nil {
		t.Fatalf("kubectl apply: %v: %s", err, out)
	}
}

func timesThree(verb string, names ...string) (out []string) {
	for _, name := range names {
		for _, cluster := range members {
			out = append(out, cluster+" "+verb+" "+name)
		}
	}
	return slices.Sorted(slices.Values(out))
}

// foretold returns the writes that a plan announces, such as "eu-fra-1 delete two".
func foretold(p preview.Plan) []string {
	all := map[string]bool{}
	add := func(verb, object string, clusters ...string) {
		for _, cluster := range clusters {
			all[cluster+" "+verb+" "+object] = true
		}
	}
	shares := func(object string, shares []preview.Share) {
		for _, s := range shares {
			add("change", object, s.Cluster)
		}
	}
	for _, r := range p.Removals {
		add("delete", r.Object.Name, r.Clusters...)
	}
	for _, c := range p.Creations {
		add("create", c.Object.Name, c.Clusters...)
	}
	for _, m := range p.Moves {
		shares(m.Object.Name, m.Shares)
	}
	for _, c := range p.Changes {
		shares(c.Object.Name, c.Shares)
		for _, g := range c.Groups {
			add("change", c.Object.Name, g.Clusters...)
		}
	}
	var out []string
	for write := range all {
		out = append(out, write)
	}
	return slices.Sorted(slices.Values(out))
}

// wrote returns nil if want lists exactly the writes that the hub made to the Widgets of a namespace on the members
// since `from`.
func wrote(t *testing.T, ns string, from time.Time, want []string) error {
	t.Helper()
	var got []string
	for _, name := range members {
		for _, write := range widgetWrites(t, suite.Members[name].AuditLog, ns, from) {
			got = append(got, name+" "+write)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("the writes on members are not those of the plan (-plan +members):\n%s", diff)
	}
	return nil
}

// widgetWrites returns the hub's writes to the Widgets of a namespace in an audit log, such as "change one".
func widgetWrites(t *testing.T, path, ns string, from time.Time) []string {
	t.Helper()
	var out []string
	for _, e := range auditedWrites(t, path, func(e auditEvent) bool {
		return e.ObjectRef.Resource == "widgets" && e.ObjectRef.Namespace == ns && e.ResponseStatus.Code < 300 && e.StageTimestamp.After(from)
	}) {
		verb := "change"
		switch {
		case e.Verb == "delete":
			verb = "delete"
		case e.ResponseStatus.Code == http.StatusCreated:
			verb = "create"
		}
		out = append(out, verb+" "+e.ObjectRef.Name)
	}
	return out
}
