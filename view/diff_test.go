package view

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view/wire"
)

func prometheus(replicas int) map[string]any {
	return map[string]any{
		"apiVersion": "monitoring.coreos.com/v1", "kind": "Prometheus", "metadata": map[string]any{"name": "web", "namespace": "monitoring"},
		"spec": map[string]any{"replicas": replicas, "note": ""},
	}
}

func TestDiff(t *testing.T) {
	id := hubv1.ObjectIdentity{Group: "monitoring.coreos.com", Kind: "Prometheus", Namespace: "monitoring", Name: "web"}
	suspended := &wire.Reason{Reason: hubv1.ReasonSuspended, Message: "it is"}
	tests := map[string]struct {
		answer wire.DiffAnswer
		err    error
		want   ClusterDiff
	}{
		"nothing differs": {wire.DiffAnswer{Before: prometheus(3), After: prometheus(3)}, nil, ClusterDiff{Cluster: "cn-sha-1"}},
		"a value differs": {
			wire.DiffAnswer{Before: prometheus(3), After: prometheus(5), Refused: suspended}, nil,
			ClusterDiff{Cluster: "cn-sha-1", Differs: true, Refused: suspended, Diff: `--- cn-sha-1/Prometheus/monitoring/web	on the cluster
+++ cn-sha-1/Prometheus/monitoring/web	as the hub would write it
@@ -5,4 +5,4 @@
   namespace: monitoring
 spec:
   note: ""
-  replicas: 3
+  replicas: 5
`},
		},
		"there is no copy": {
			wire.DiffAnswer{After: map[string]any{"kind": "Prometheus"}}, nil,
			ClusterDiff{Cluster: "cn-sha-1", Differs: true, Diff: `--- cn-sha-1/Prometheus/monitoring/web	on the cluster
+++ cn-sha-1/Prometheus/monitoring/web	as the hub would write it
@@ -0,0 +1 @@
+kind: Prometheus
`},
		},
		"what is not Hanse's is headed so": {
			wire.DiffAnswer{Before: prometheus(1), After: prometheus(3), Unadopted: true}, nil,
			ClusterDiff{Cluster: "cn-sha-1", Unadopted: true, Differs: true, Diff: `--- cn-sha-1/Prometheus/monitoring/web	on the cluster, not Hanse's
+++ cn-sha-1/Prometheus/monitoring/web	as the hub would write it
@@ -5,4 +5,4 @@
   namespace: monitoring
 spec:
   note: ""
-  replicas: 1
+  replicas: 3
`},
		},
		"what cannot be said is an error": {
			wire.DiffAnswer{Before: prometheus(3), Refused: &wire.Reason{Reason: hubv1.ReasonOverrideInvalid, Message: "no such path"}}, nil,
			ClusterDiff{Cluster: "cn-sha-1", Error: "OverrideInvalid: no such path"},
		},
		"what the hub does not answer is one, too": {wire.DiffAnswer{}, errors.New("no replica"), ClusterDiff{Cluster: "cn-sha-1", Error: "no replica"}},
		"the hub's own cluster never differs": {
			wire.DiffAnswer{Refused: &wire.Reason{Reason: hubv1.ReasonIsTemplate}}, nil,
			ClusterDiff{Cluster: "cn-sha-1", Refused: &wire.Reason{Reason: hubv1.ReasonIsTemplate}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, DiffOf("cn-sha-1", id, tc.answer, tc.err)); diff != "" {
				t.Error(diff)
			}
		})
	}
	documented(t, tests["a value differs"].want.Diff)
}

// documented fails the test unless docs/hansectl.md has the text as an example.
func documented(t *testing.T, text string) {
	t.Helper()
	docs, err := os.ReadFile(filepath.Join("..", "docs", "hansectl.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(docs), text) {
		t.Errorf("docs/hansectl.md does not have the example:\n%s", text)
	}
}

func TestADiffHasColoursOnATerminalAndNoControlCharactersOfOthers(t *testing.T) {
	d := Diff{Clusters: []ClusterDiff{{Diff: "--- a\tx\n+++ a\ty\n@@ -1 +1 @@\n same\n-old\x1b[2J\n+new\n"}}}
	plainly, coloured := &strings.Builder{}, &strings.Builder{}
	d.Write(plainly, time.Time{})
	if want := "--- a\tx\n+++ a\ty\n@@ -1 +1 @@\n same\n-old[2J\n+new\n"; plainly.String() != want {
		t.Errorf("got %q, want %q", plainly, want)
	}
	d.Colours = true
	d.Write(coloured, time.Time{})
	if want := bold + "--- a\tx" + plain + "\n" + bold + "+++ a\ty" + plain + "\n" + cyan + "@@ -1 +1 @@" + plain + "\n same\n" + red + "-old[2J" + plain + "\n" + green + "+new" + plain + "\n"; coloured.String() != want {
		t.Errorf("got %q, want %q", coloured, want)
	}
}
