package console

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/rollup"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/view"
)

// worst returns the worst state of the copies that the page shows, with the number of copies in this state and the row
// of one of them.
func (b objectBody) worst() (rollup.CopyState, int, view.Row) {
	var worst rollup.CopyState
	var row view.Row
	n := 0
	for _, r := range b.Status.Clusters {
		switch of := r.Copy(); {
		case b.Cluster != "" && b.Cluster != r.Cluster:
		case worst == 0 || of < worst:
			worst, row, n = of, r, 1
		case of == worst:
			n++
		}
	}
	return worst, n, row
}

// Worst returns the display of the worst state of the copies.
func (b objectBody) Worst() state {
	of, _, _ := b.worst()
	if of == 0 {
		return state{"off", "on no cluster"}
	}
	return copyState(of)
}

// Where says on how many clusters the copies are in the worst state.
func (b objectBody) Where() string {
	of, n, _ := b.worst()
	all := len(b.Status.Clusters)
	switch {
	case of == 0:
		return ""
	case b.Cluster != "":
		return "on " + b.Cluster
	}
	if n == all {
		return fmt.Sprintf("on %s", plural(all, "its cluster", fmt.Sprintf("all %d clusters", all)))
	}
	return fmt.Sprintf("on %d of %d clusters", n, all)
}

// Says returns the sentence of the worst copy.
func (b objectBody) Says() string {
	of, _, row := b.worst()
	if of == rollup.CopyHealthy || of == 0 {
		return ""
	}
	return cmp.Or(row.Message, row.Reason)
}

// render renders the worst copy, for its YAML beside the picture. It asks no member.
func (b *objectBody) render(in *decide.Input) {
	rows := b.Rows().Rows
	if in == nil || len(rows) == 0 {
		return
	}
	i := slices.IndexFunc(in.Facts.Clusters, func(m *hubv1.MemberCluster) bool { return m.Name == rows[0].Cluster })
	if i < 0 {
		return
	}
	b.Fields, b.FieldsOf = view.FieldsOf(*in, in.Facts.Overrides, in.Facts.Clusters[i], nil), rows[0].Cluster
}

// Lines returns the lines about the object that neither the facts nor the picture show.
func (b objectBody) Lines() []view.Line {
	return slices.DeleteFunc(b.Status.Lines(), func(l view.Line) bool {
		return l.Name == "Regions" || l.Name == "Rollout" || l.Name == "On object" && b.Status.OnObject != nil
	})
}

// Chosen says how many clusters get the object, and by which placement.
func (b objectBody) Chosen() string {
	e := b.Explanation
	text := fmt.Sprintf("%d of %d clusters", e.Selected, len(e.Clusters))
	if p := e.Placement; p != nil {
		text += " by " + p.Kind + " " + strings.TrimPrefix(p.Namespace+"/"+p.Name, "/")
	}
	if !e.Same {
		text += "; the console computes another decision than the hub"
	}
	return text
}

// maxDifferences is the maximum number of clusters with another decision of the hub that the page names.
const maxDifferences = 10

// Decision returns the lines about the decision.
func (b objectBody) Decision() []view.Line {
	e := *b.Explanation
	if more := len(e.Differences) - maxDifferences; more > 0 {
		e.Differences = append(slices.Clone(e.Differences[:maxDifferences]), fmt.Sprintf("and %d more: see hansectl explain", more))
	}
	return e.Lines()
}

// Columns says which columns of the table of clusters have something to say.
func (b objectBody) Columns() objectColumns {
	var out objectColumns
	generations := map[string]bool{}
	for _, r := range b.Rows().Rows {
		out.Ready = out.Ready || r.Text.Ready != ""
		out.AsOf = out.AsOf || !r.LastObservedTime.IsZero()
		generations[r.Text.Generation] = true
	}
	out.Generation = len(generations) > 1
	return out
}

type objectColumns struct{ Ready, Generation, AsOf bool }

// YAML returns the lines of the copy on the page's only cluster, with the rule that set each of them.
func (b objectBody) YAML() []yamlLine {
	if b.Fields == nil || b.Fields.Manifest == nil {
		return nil
	}
	return yamlOf(b.Fields.Manifest.Object, b.Fields.Fields)
}

// PlacementPath returns the path of the objects of the placement, or that of its rollout if it has one.
func (b objectBody) PlacementPath() string {
	p := b.Status.Placement
	if b.Status.Rollout != nil {
		return rolloutPath(p.Namespace, p.Name)
	}
	return pathOf("/objects", "placement", b.PlacementName(), "namespace", b.ID.Namespace)
}

// PlacementName returns the kind and the name of the placement.
func (b objectBody) PlacementName() string {
	p := b.Status.Placement
	return p.Kind + " " + strings.TrimPrefix(p.Namespace+"/"+p.Name, "/")
}

// RolloutPath returns the path of the page with the revisions of the object.
func (b objectBody) RolloutPath() string {
	return rolloutObjectPath(b.ID.Namespace, b.ID.BindingName())
}

const (
	// maxDrawn is the maximum number of members that are asked for the picture, and drawnWithin is their timeout.
	maxDrawn    = 3
	drawnWithin = 2 * time.Second
)

// unwell returns the clusters that are asked for the picture: those that answer, and whose copies are not well.
func (b objectBody) unwell() []string {
	var out []string
	for _, r := range b.Rows().Rows {
		switch r.Copy() {
		case rollup.CopyNotApplied, rollup.CopyDegraded, rollup.CopyProgressing:
			if r.UID != "" && len(out) < maxDrawn {
				out = append(out, r.Cluster)
			}
		}
	}
	return out
}

// draw makes the picture.
func (b *objectBody) draw() {
	var clusters []pictured
	for _, r := range b.Status.Clusters {
		of := copyState(r.Copy())
		c := pictured{Region: r.Region, Cluster: r.Cluster, State: of, Path: b.With("cluster", r.Cluster, "page", "", "elsewhere", "") + "#rows"}
		if r.Ready != nil && r.Replicas != nil {
			c.Ready = fmt.Sprintf("%d/%d", *r.Ready, *r.Replicas)
		}
		switch answer, asked := b.owned[r.Cluster]; {
		case asked && answer.Refused != nil:
			c.Refused = answer.Refused.Message
		case asked:
			c.Asked, c.Owned = true, answer.Children
		case of.Class == "unknown" && r.LastObservedTime != nil:
			c.Says = "as of " + r.LastObservedTime.UTC().Format("15:04 UTC") + ": the cluster does not answer"
		case of.Class != "ok" && of.Class != "unknown" && of.Class != "off":
			c.AskPath = b.With("tree", r.Cluster) + "#tree"
		}
		clusters = append(clusters, c)
	}
	name := strings.TrimPrefix(b.ID.Namespace+"/"+b.ID.Name, "/")
	right := ""
	if s := b.Status.Federated.Summary; s != nil {
		right = fmt.Sprintf("%d/%d", s.Healthy, s.Desired)
	}
	p := pictureOf(name, b.Worst(), right, clusters)
	b.Picture = &p
}

// titleOf returns the kind and the name of an object, without the API group.
func titleOf(id hubv1.ObjectIdentity) string {
	return id.Kind + " " + strings.TrimPrefix(id.Namespace+"/"+id.Name, "/")
}

// objectCrumbs returns the pages above the page of an object.
func objectCrumbs(id hubv1.ObjectIdentity) []crumb {
	out := []crumb{{"/objects", "Objects"}}
	if id.Namespace != "" {
		out = append(out, crumb{pathOf("/objects", "namespace", id.Namespace), id.Namespace})
	}
	return append(out, crumb{pathOf("/objects", "kind", id.GroupKind().String(), "namespace", id.Namespace), id.Kind})
}
