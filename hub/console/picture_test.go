package console

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	members "github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/view"
)

var (
	isWell, isBad, isAway = state{"ok", "healthy"}, state{"bad", "degraded"}, state{"unknown", "unknown"}
)

// outline returns the boxes of a picture by column, each with its sign.
func outline(p picture) (out []string) {
	for _, b := range p.Boxes {
		line := fmt.Sprintf("%s%s %s", strings.Repeat(" ", slices.Index(columnsAt, b.X)), b.Class, b.Text)
		if b.Says != "" {
			line += " | " + b.Says
		}
		out = append(out, line)
	}
	return out
}

func TestThePictureLeadsToTheWorst(t *testing.T) {
	t.Parallel()
	many := func(n int) (out []pictured) {
		for i := range n {
			out = append(out, pictured{Region: "eu", Cluster: fmt.Sprintf("c-%03d", i), State: isWell})
		}
		return out
	}
	pod := members.Child{Kind: "Pod", Name: "web-1-a", Health: hubv1.HealthDegraded, State: "CrashLoopBackOff 0/1"}
	for name, tc := range map[string]struct {
		clusters []pictured
		want     []string
		paths    []string
	}{
		"one cluster that is well": {
			clusters: []pictured{{Region: "eu", Cluster: "fra", State: isWell}}, want: []string{"bad web", " ok eu", "  ok fra"},
		},
		"the worst region and cluster come first": {
			clusters: []pictured{
				{Region: "asia", Cluster: "sin", State: isWell}, {Region: "us", Cluster: "a", State: isWell}, {Region: "us", Cluster: "b", State: isBad}, {Cluster: "lab", State: isAway, Says: "as of 12:00"},
			},
			want:  []string{"bad web", " bad us", "  bad b", "  ok a", " unknown without a regi…", "  unknown lab | as of 12:00", " ok asia", "  ok sin"},
			paths: []string{"bad us / b: degraded", "unknown without a region / lab: unknown: as of 12:00"},
		},
		"objects of an asked cluster": {
			clusters: []pictured{{Region: "us", Cluster: "b", State: isBad, Asked: true, Owned: []members.Child{
				{Kind: "Service", Name: "web", Health: hubv1.HealthHealthy}, {Kind: "ReplicaSet", Name: "web-1", Health: hubv1.HealthProgressing, Children: []members.Child{pod}},
			}}},
			want:  []string{"bad web", " bad us", "  bad b", "   bad Pod web-1-a | CrashLoopBackOff 0/1", "   run ReplicaSet web-1", "   ok 1 more object"},
			paths: []string{"bad us / b / Pod web-1-a: CrashLoopBackOff 0/1", "run us / b / ReplicaSet web-1: "},
		},
		"a cluster that is not asked, and one that refuses": {
			clusters: []pictured{{Region: "us", Cluster: "a", State: isBad, Refused: "no right"}, {Region: "us", Cluster: "b", State: isBad, AskPath: "/ask"}},
			want:     []string{"bad web", " bad us", "  bad a", "   off not shown | no right", "  bad b", "   todo ask for the objects"},
			paths:    []string{"bad us / a: degraded", "bad us / b: degraded"},
		},
		"many clusters that are well": {clusters: many(200), want: []string{"bad web", " ok eu", "  ok 200 clusters"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := pictureOf("web", isBad, "", tc.clusters)
			if diff := cmp.Diff(tc.want, outline(p)); diff != "" {
				t.Errorf("boxes (-want +got):\n%s", diff)
			}
			var paths []string
			for _, path := range p.Paths {
				line := path.Class + " " + path.At
				if path.Name != "" {
					line += " / " + path.Name
				}
				paths = append(paths, line+": "+path.Says)
			}
			if diff := cmp.Diff(tc.paths, paths); diff != "" {
				t.Errorf("paths (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAPictureIsBoundedAndItsBoxesAreApart(t *testing.T) {
	t.Parallel()
	var clusters []pictured
	for i := range 2000 {
		clusters = append(clusters, pictured{
			Region: fmt.Sprintf("%s-%d", strings.Repeat("r", 60), i%70), Cluster: fmt.Sprintf("%s-%d", strings.Repeat("c", 58), i), State: isBad, Ready: "100/100", Says: strings.Repeat("says ", 900),
			Asked: true, Owned: make([]members.Child, 50),
		})
	}
	p := pictureOf(strings.Repeat("n", 253), isBad, "0/2000", clusters)
	seen := map[[2]int]bool{}
	for _, b := range p.Boxes {
		at := [2]int{b.X, b.Y}
		if seen[at] || b.Y < 0 || b.Y+26 > p.Height || b.X+b.W > p.Width {
			t.Errorf("the box %+v is not in its place, in a picture of %d x %d", b, p.Width, p.Height)
		}
		seen[at] = true
		if room := float64(b.W-30) / letterWidth; float64(len([]rune(b.Text))) > room {
			t.Errorf("the text %q is longer than its box", b.Text)
		}
	}
	if p.Height > (maxLeaves+8)*leafHeight+firstLeaf || len(p.Boxes) > 200 {
		t.Errorf("the picture has %d boxes, and is %d pixels high", len(p.Boxes), p.Height)
	}
	if last := p.Boxes[len(p.Boxes)-1]; !strings.Contains(last.Title, "more clusters") {
		t.Errorf("the last box is %+v, want the number of the other clusters", last)
	}
}

func TestTheWorstEdgeIsDrawnLast(t *testing.T) {
	t.Parallel()
	p := pictureOf("web", isBad, "", []pictured{{Region: "us", Cluster: "b", State: isBad}, {Region: "eu", Cluster: "a", State: isWell}})
	var classes []string
	for _, e := range p.Edges {
		classes = append(classes, e.Class)
	}
	if want := []string{"ok", "ok", "bad", "bad"}; !slices.Equal(classes, want) {
		t.Errorf("the edges are %v, want %v", classes, want)
	}
}

func TestEachLineOfACopySaysWhoSetIt(t *testing.T) {
	t.Parallel()
	manifest := map[string]any{
		"kind": "Deployment", "apiVersion": "apps/v1", "metadata": map[string]any{"name": "web", "annotations": map[string]any{"a/b~c": "x\ny"}},
		"spec": map[string]any{"replicas": int64(5), "empty": map[string]any{}, "args": []any{"--a", map[string]any{"image": "web:2", "name": "web"}}, "none": []any{}, "quoted": "yes"},
		"data": map[string]any{},
	}
	lines := yamlOf(manifest, []view.FieldRow{
		{Field: "/spec/replicas", SetBy: "OverridePolicy/us (rule)", Shadowed: []string{"template: 3"}}, {Field: "/metadata/annotations/a~1b~0c", SetBy: "Hanse"}, {Field: "/spec/args/1", SetBy: "OverridePolicy/args (one)"},
	})
	var got []string
	for _, l := range lines {
		text := l.Text
		if l.By != "" {
			text += " <- " + l.By
		}
		if l.Was != "" {
			text += " (" + l.Was + ")"
		}
		got = append(got, text)
	}
	want := []string{
		"apiVersion: apps/v1", "kind: Deployment", "metadata:", "  annotations:", `    a/b~c: "x\ny" <- Hanse`, "  name: web", "spec:", "  args:", "  - --a",
		"  - image: web:2 <- OverridePolicy/args (one)", "    name: web", "  empty: {}", "  none: []", `  quoted: "yes"`, "  replicas: 5 <- OverridePolicy/us (rule) (3)", "data: {}",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	var wide []any
	for range 3 * maxLines {
		wide = append(wide, strings.Repeat("x", 10000))
	}
	if lines := yamlOf(map[string]any{"a": wide}, nil); len(lines) != maxLines || len([]rune(lines[1].Text)) > maxLineLength+10 {
		t.Errorf("a large object has %d lines, and a line of %d characters", len(lines), len(lines[1].Text))
	}
}
