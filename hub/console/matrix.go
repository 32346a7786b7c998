package console

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/rollup"
	"github.com/hanse-dev/hanse/view"
)

// matrixBody has the data for the template of the page with a table of objects and clusters.
type matrixBody struct {
	view.Matrix
	Query     view.MatrixQuery
	Namespace string
	Now       time.Time

	values url.Values
	// clusters has the states of the clusters that the user may see.
	clusters map[string]state
}

func matrixPage(ctx context.Context, v *visit) (*page, error) {
	values := v.URL.Query()
	number := func(name string) int {
		n, _ := strconv.Atoi(values.Get(name)) // any other text gives the first page
		return n
	}
	q := view.MatrixQuery{
		Placement: values.Get("placement"), Kind: values.Get("kind"), Text: values.Get("text"), Region: values.Get("region"),
		Cluster: values.Get("cluster"), State: rollup.ParseCopyState(values.Get("state")), WorstFirst: values.Get("sort") != "name",
		Fold: true, Open: values.Get("open"), Page: number("page"), Columns: number("columns"),
	}
	members, err := v.user.members(ctx)
	if err != nil {
		return nil, err
	}
	gathered := view.NewMatrixGatherer(members, q, v.now)
	if err := v.user.eachBinding(ctx, v.namespace, gathered.Add); err != nil {
		return nil, err
	}
	body := matrixBody{Matrix: gathered.Matrix(), Query: q, Namespace: v.namespace, Now: v.now, values: values, clusters: map[string]state{}}
	for _, c := range view.Clusters(members, nil, nil, v.now).Clusters {
		body.clusters[c.Name] = clusterState(c)
	}
	return &page{Title: "Objects", Nav: "objects", template: "matrix", Scope: v.scope(), Body: body}, nil
}

// With returns the path of this page, with the query parameters changed as the pairs of names and values say. An empty
// value removes the parameter.
func (b matrixBody) With(pairs ...string) string { return with("/objects", b.values, pairs...) }

// Verdict says how many objects are not well.
func (b matrixBody) Verdict() string {
	for _, s := range []rollup.CopyState{rollup.CopyNotApplied, rollup.CopyDegraded, rollup.CopyUnknown, rollup.CopyProgressing} {
		if n := b.Worst.Of(s); n > 0 {
			return fmt.Sprintf("%d of %d %s %s.", n, b.Chosen(), plural(b.Chosen(), "object", "objects"), plural(n, "is", "are")+" "+copyState(s).Word)
		}
	}
	if b.Chosen() == 0 {
		return "No object."
	}
	return fmt.Sprintf("All %d %s well.", b.Chosen(), plural(b.Chosen(), "object is", "objects are"))
}

// Chosen returns the number of objects of the choice, in all states.
func (b matrixBody) Chosen() int { return b.Worst.Total() }

// matrixChip is a link that selects the objects in one state.
type matrixChip struct {
	state
	N       int
	Path    string
	Current bool
}

// Chips returns a chip for each state that at least one object has.
func (b matrixBody) Chips() []matrixChip {
	var out []matrixChip
	for _, s := range rollup.CopyStates() {
		if n := b.Worst.Of(s); n > 0 {
			out = append(out, matrixChip{copyState(s), n, b.With("state", s.String(), "page", "", "columns", ""), b.Query.State == s})
		}
	}
	return out
}

// Groups returns the regions of the shown clusters, each with the number of its columns.
func (b matrixBody) Groups() []matrixGroup {
	var out []matrixGroup
	for _, c := range b.Clusters {
		if c.First {
			out = append(out, matrixGroup{Region: c.Region})
		}
		out[len(out)-1].Columns++
	}
	return out
}

type matrixGroup struct {
	Region  string
	Columns int
}

// Of returns the state of a cluster if it is not well, and otherwise an empty state.
func (b matrixBody) Of(cluster string) state {
	if of := b.clusters[cluster]; of.Class == "down" || of.Class == "unknown" {
		return of
	}
	return state{}
}

// ClusterNames returns the names of clusters from which the user can choose. It is empty if there are too many.
func (b matrixBody) ClusterNames() []string {
	if len(b.clusters) > maxNamespaces {
		return nil
	}
	var out []string
	for name := range b.clusters {
		out = append(out, name)
	}
	slices.Sort(out)
	return withChosen(out, b.Query.Cluster)
}

// matrixCell is a copy in the matrix. Its Class is empty if the object is not placed on the cluster.
type matrixCell struct {
	cell
	First bool
}

// Cells returns the cells of a row.
func (b matrixBody) Cells(row view.MatrixRow) []matrixCell {
	var out []matrixCell
	for i, c := range row.Cells {
		column := b.Clusters[i]
		shown := matrixCell{First: column.First}
		if c.State != 0 {
			of := copyState(c.State)
			shown.Class, shown.Label, shown.Path = of.Class, column.Cluster+": "+of.Word, b.path(row, column.Cluster)
			shown.Quiet = b.Of(column.Cluster).Class != ""
			if c.Reason != "" {
				shown.Label += ", " + c.Reason
			}
			if c.AsOf != nil {
				shown.Label += ", as of " + c.AsOf.UTC().Format("2006-01-02 15:04 UTC")
			}
		}
		out = append(out, shown)
	}
	return out
}

// path returns the path of the page of a row: that of the object on a cluster, or that of the objects of a bundle.
func (b matrixBody) path(row view.MatrixRow, cluster string) string {
	if row.Folded > 0 {
		return b.With("open", row.Bundle, "page", "")
	}
	id := hubv1.ObjectIdentity{Group: row.Group, Kind: row.Kind, Namespace: row.Namespace, Name: row.Name}
	path := objectPath(id, b.Namespace)
	if cluster != "" && path != "" {
		path += "&cluster=" + url.QueryEscape(cluster)
	}
	return path
}

// Path returns the path of the page of a row.
func (b matrixBody) Path(row view.MatrixRow) string { return b.path(row, "") }

// Name returns the name of a row's object, with its namespace if the page shows several.
func (b matrixBody) Name(row view.MatrixRow) string {
	if row.Namespace != "" && row.Namespace != b.Namespace {
		return row.Namespace + "/" + row.Name
	}
	if row.Folded > 0 {
		return strings.TrimPrefix(row.Name, b.Namespace+"/")
	}
	return row.Name
}

// FirstColumn returns the number of the first shown cluster, counted from 1.
func (b matrixBody) FirstColumn() int { return (b.Columns-1)*view.MatrixClusters + 1 }

// LastColumn returns the number of the last shown cluster.
func (b matrixBody) LastColumn() int { return b.FirstColumn() + len(b.Clusters) - 1 }

// Previous returns the number of the page that precedes the given page, as text. The text is empty for the first page.
func (matrixBody) Previous(page int) string {
	if page <= 1 {
		return ""
	}
	return strconv.Itoa(page - 1)
}

// Next returns the number of the page that follows the given page, as text. The text is empty for the last page.
func (matrixBody) Next(page, pages int) string {
	if page >= pages {
		return ""
	}
	return strconv.Itoa(page + 1)
}
