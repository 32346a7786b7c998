package view

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/rollup"
)

// CopyCounts has the numbers of copies, by state.
type CopyCounts [rollup.CopyHealthy + 1]int

// Total returns the number of all copies.
func (c CopyCounts) Total() int {
	n := 0
	for _, of := range c {
		n += of
	}
	return n
}

// Of returns the number of copies in a state.
func (c CopyCounts) Of(s rollup.CopyState) int { return c[s] }

// Healthy returns the number of healthy copies.
func (c CopyCounts) Healthy() int { return c[rollup.CopyHealthy] }

// MatrixQuery selects the displayed part of a matrix. An empty field selects everything.
type MatrixQuery struct {
	// Placement selects objects that follow this placement, such as "Placement shop/web" or "ClusterPlacement fleet".
	Placement string
	// Kind selects objects of this kind, with its group, such as "Deployment.apps".
	Kind string
	// Text selects objects whose names contain this text.
	Text string
	// Region and Cluster select the columns of the matrix. They also select the objects that have a copy in these columns.
	Region, Cluster string
	// State selects objects whose worst copy is in this state, such as Degraded.
	State rollup.CopyState
	// WorstFirst sorts the objects by the worst state of their copies, and the clusters by region, the worst first.
	// Otherwise both are sorted by name.
	WorstFirst bool
	// Fold makes one row of all objects of a bundle, except of the bundle Open, such as "Bundle shop/web".
	Fold bool
	Open string
	// Page is the number of the page of objects, and Columns is the number of the page of clusters. Both start at 1.
	Page, Columns int
}

const (
	// MatrixObjects is the number of objects (rows) on one page of the matrix.
	MatrixObjects = 50
	// MatrixClusters is the number of clusters (columns) on one page of the matrix.
	MatrixClusters = 12
	// maxMatrixCells and maxMatrixRows are the maximum numbers of cells and rows in memory. A cell takes 16 bytes.
	maxMatrixCells = 1 << 20
	maxMatrixRows  = 50_000
	// maxMatrixChoices is the maximum number of placements from which the user can choose. The same limit applies to
	// kinds and to regions.
	maxMatrixChoices = 200
)

// Matrix is a table with objects as rows and clusters as columns.
type Matrix struct {
	// Clusters and Objects are the columns and rows of the page of the matrix that is shown.
	Clusters []MatrixColumn
	Objects  []MatrixRow
	// AllObjects and AllClusters are the numbers of objects and clusters on all pages. Copies has the numbers of copies of
	// all these objects, by state.
	AllObjects, AllClusters int
	Copies                  CopyCounts
	// Worst has the numbers of the objects by the state of their worst copy, as if the query had no State.
	Worst CopyCounts
	// Bundles is the number of rows that stand for a whole bundle.
	Bundles int
	// Page is the shown page of objects, from 1 to Pages. Columns is the shown page of clusters, from 1 to ColumnPages.
	Page, Pages, Columns, ColumnPages int
	MatrixChoices
	// More is the number of selected objects that are left out because the matrix has a maximum size.
	More int
}

// MatrixChoices are the values that the user can choose for a query.
type MatrixChoices struct{ Placements, Kinds, Regions []string }

// MatrixColumn is a column of the matrix: one cluster.
type MatrixColumn struct {
	Cluster, Region string
	Copies          CopyCounts
	// First is true for the first shown cluster of its region.
	First bool
}

// MatrixRow is an object, or a whole bundle, with one cell for each shown column.
type MatrixRow struct {
	ObjectSummary
	// Folded is the number of objects for which the row stands. It is 0 for the row of one object. The summary then has
	// only the bundle, and a cell has the worst state of all objects on the cluster.
	Folded int
	// Why is the sentence of the worst copy, or of the first condition that is not True.
	Why    string
	Copies CopyCounts
	Cells  []MatrixCell
}

// MatrixCell is a cell of the matrix: the copy of one object on one cluster. Its State is zero if the object is not
// placed on the cluster.
type MatrixCell struct {
	State rollup.CopyState
	// AsOf is the time at which the hub last observed the copy. It is set only in state Unknown, and is nil if the time is
	// not known.
	AsOf   *metav1.Time
	Reason string
}

// MatrixGatherer collects the rows of a matrix from bindings. It needs a few bytes of memory for each copy.
type MatrixGatherer struct {
	query   MatrixQuery
	now     time.Time
	members map[string]*hubv1.MemberCluster
	// names has the names of clusters, and reasons has the reasons of copies. A matrixCell has indexes into both, so that
	// each text is stored only once.
	names, reasons names
	objects        []matrixObject
	worst          CopyCounts
	cells, more    int
	choices        [3]map[string]bool // placements, kinds, regions
}

// names assigns an index to each text, so that a text that occurs several times is stored only once.
type names struct {
	all   []string
	index map[string]int
}

func (n *names) of(text string) int {
	if i, known := n.index[text]; known {
		return i
	}
	if n.index == nil {
		n.index = map[string]int{}
	}
	i := len(n.all)
	n.index[text], n.all = i, append(n.all, text)
	return i
}

type matrixObject struct {
	summary ObjectSummary
	folded  int
	why     string
	copies  CopyCounts
	cells   []matrixCell
}

// matrixCell is a copy in compact form. asOf is the Unix time of MatrixCell.AsOf. It is zero if the time is not known.
type matrixCell struct {
	asOf    int64
	cluster int32
	reason  uint16
	state   rollup.CopyState
}

// NewMatrixGatherer returns a gatherer that has no bindings yet.
func NewMatrixGatherer(members []hubv1.MemberCluster, q MatrixQuery, now time.Time) *MatrixGatherer {
	g := &MatrixGatherer{query: q, now: now, members: map[string]*hubv1.MemberCluster{}}
	for i := range members {
		g.members[members[i].Name] = &members[i]
	}
	for i := range g.choices {
		g.choices[i] = map[string]bool{}
	}
	return g
}

// PlacementOf returns the placement that an object follows, in the form of MatrixQuery.Placement. It returns an empty
// text if the object follows no placement.
func PlacementOf(b hubv1.BindingObject) string {
	ref := b.BindingSpec().PlacementRef
	switch {
	case ref == nil:
		return ""
	case ref.Kind == "Placement":
		return ref.Kind + " " + qualified(b.GetNamespace(), ref.Name)
	}
	return ref.Kind + " " + ref.Name
}

// Add adds the object of a binding if the query selects it.
func (g *MatrixGatherer) Add(b hubv1.BindingObject) {
	id, q := hubv1.ObjectOf(b), g.query
	kind, by := id.GroupKind().String(), PlacementOf(b)
	g.offer(0, by)
	g.offer(1, kind)
	if q.Kind != "" && q.Kind != kind || q.Placement != "" && q.Placement != by ||
		!strings.Contains(strings.ToLower(id.Name), strings.ToLower(q.Text)) {
		return
	}
	o := g.objectOf(b)
	if (q.Cluster != "" || q.Region != "") && len(o.cells) == 0 {
		return
	}
	g.worst[o.copies.Worst()]++
	if q.State != 0 && o.copies.Worst() != q.State {
		return
	}
	if len(g.objects) >= maxMatrixRows || g.cells+len(o.cells) > maxMatrixCells {
		g.more++
		return
	}
	g.cells += len(o.cells)
	g.objects = append(g.objects, o)
}

// objectOf returns the row of a binding's object, with the cells that the query selects.
func (g *MatrixGatherer) objectOf(b hubv1.BindingObject) matrixObject {
	o, q := matrixObject{summary: SummaryOf(b)}, g.query
	status := b.BindingStatus()
	rows := make(map[string]*hubv1.ClusterRow, len(status.Clusters))
	for i := range status.Clusters {
		rows[status.Clusters[i].Name] = &status.Clusters[i]
	}
	for _, t := range b.BindingSpec().Clusters {
		m := g.members[t.Name]
		in := ""
		if m != nil {
			in = region(m)
		}
		g.offer(2, in)
		if q.Cluster != "" && q.Cluster != t.Name || q.Region != "" && q.Region != in {
			continue
		}
		row := rowOf(t, rows[t.Name], m, g.now)
		cell := g.cellOf(row)
		if worst := o.copies.Worst(); worst == 0 || cell.state < worst {
			o.why = row.sentence()
		}
		o.copies[cell.state]++
		o.cells = append(o.cells, cell)
	}
	if o.copies.Worst() == rollup.CopyHealthy || len(o.cells) == 0 {
		o.why = o.summary.Message
	}
	return o
}

// sentence returns what the copy says: its message, or its reason.
func (r Row) sentence() string { return cmp.Or(r.Message, r.Reason) }

func (g *MatrixGatherer) offer(which int, choice string) {
	if of := g.choices[which]; choice != "" && len(of) < maxMatrixChoices && !of[choice] {
		of[choice] = true
	}
}

func (g *MatrixGatherer) cellOf(r Row) matrixCell {
	cell := matrixCell{cluster: int32(g.names.of(r.Cluster)), state: r.Copy()}
	if cell.state == rollup.CopyUnknown && r.LastObservedTime != nil {
		cell.asOf = r.LastObservedTime.Unix()
	}
	if reason := r.Reason; cell.state != rollup.CopyHealthy && len(g.reasons.all) < 1<<16-1 {
		cell.reason = uint16(g.reasons.of(reason))
	} else {
		cell.reason = uint16(g.reasons.of(""))
	}
	return cell
}

// Matrix returns the page that the query selects.
func (g *MatrixGatherer) Matrix() Matrix {
	m := Matrix{AllObjects: len(g.objects), Worst: g.worst, More: g.more, MatrixChoices: MatrixChoices{
		Placements: slices.Sorted(maps.Keys(g.choices[0])), Kinds: slices.Sorted(maps.Keys(g.choices[1])), Regions: slices.Sorted(maps.Keys(g.choices[2])),
	}}
	columns := g.columns()
	m.AllClusters = len(columns)
	for _, c := range columns {
		for s, n := range c.Copies {
			m.Copies[s] += n
		}
	}
	rows := g.folded()
	slices.SortFunc(rows, g.compare)
	for _, o := range rows {
		m.Bundles += min(o.folded, 1)
	}
	var objects []matrixObject
	objects, m.Page, m.Pages = pageOf(rows, g.query.Page, MatrixObjects)
	m.Clusters, m.Columns, m.ColumnPages = pageOf(columns, g.query.Columns, MatrixClusters)
	at := map[int]int{} // column index by cluster name
	for i, c := range m.Clusters {
		at[g.names.of(c.Cluster)] = i
		m.Clusters[i].First = i == 0 || m.Clusters[i-1].Region != c.Region
	}
	for _, o := range objects {
		row := MatrixRow{ObjectSummary: o.summary, Folded: o.folded, Why: o.why, Copies: o.copies, Cells: make([]MatrixCell, len(m.Clusters))}
		for _, c := range o.cells {
			i, shown := at[int(c.cluster)]
			if !shown {
				continue
			}
			row.Cells[i] = MatrixCell{State: c.state, Reason: g.reasons.all[c.reason]}
			if c.asOf != 0 {
				t := metav1.Unix(c.asOf, 0)
				row.Cells[i].AsOf = &t
			}
		}
		m.Objects = append(m.Objects, row)
	}
	return m
}

// columns returns the clusters that have a copy of a selected object, sorted by name.
func (g *MatrixGatherer) columns() []MatrixColumn {
	counts := make([]CopyCounts, len(g.names.all))
	for _, o := range g.objects {
		for _, c := range o.cells {
			counts[c.cluster][c.state]++
		}
	}
	var out []MatrixColumn
	for i, name := range g.names.all {
		if counts[i].Total() == 0 {
			continue // only objects that the query does not select have copies on this cluster
		}
		c := MatrixColumn{Cluster: name, Copies: counts[i]}
		if m := g.members[name]; m != nil {
			c.Region = region(m)
		}
		out = append(out, c)
	}
	worst := map[string]rollup.CopyState{} // by region
	for _, c := range out {
		if of := worst[c.Region]; of == 0 || c.Copies.Worst() < of {
			worst[c.Region] = c.Copies.Worst()
		}
	}
	slices.SortFunc(out, func(a, b MatrixColumn) int {
		by := 0
		if g.query.WorstFirst {
			by = cmp.Or(cmp.Compare(worst[a.Region], worst[b.Region]), cmp.Compare(a.Region, b.Region), cmp.Compare(a.Copies.Worst(), b.Copies.Worst()))
		}
		return cmp.Or(by, cmp.Compare(a.Cluster, b.Cluster))
	})
	return out
}

// folded returns the rows: the objects, and one row for each folded bundle with more than one object.
func (g *MatrixGatherer) folded() []matrixObject {
	if !g.query.Fold {
		return g.objects
	}
	bundles := map[string][]matrixObject{}
	var out []matrixObject
	for _, o := range g.objects {
		if of := o.summary.Bundle; of != "" && of != g.query.Open {
			bundles[of] = append(bundles[of], o)
		} else {
			out = append(out, o)
		}
	}
	for bundle, objects := range bundles {
		if len(objects) == 1 {
			out = append(out, objects[0])
		} else {
			out = append(out, folded(bundle, objects))
		}
	}
	return out
}

// folded returns the row that stands for all objects of a bundle.
func folded(bundle string, objects []matrixObject) matrixObject {
	kind, name, _ := strings.Cut(bundle, " ")
	row := matrixObject{summary: ObjectSummary{Kind: kind, Name: name, Bundle: bundle}, folded: len(objects)}
	at := map[int32]int{}
	slices.SortFunc(objects, func(a, b matrixObject) int { return cmp.Compare(a.worst(), b.worst()) })
	row.why, row.summary.Reason = objects[0].why, objects[0].summary.Reason
	for _, o := range objects {
		for _, c := range o.cells {
			i, known := at[c.cluster]
			if !known {
				at[c.cluster] = len(row.cells)
				row.cells = append(row.cells, c)
			} else if c.state < row.cells[i].state {
				row.cells[i] = c
			}
		}
	}
	for _, c := range row.cells {
		row.copies[c.state]++
	}
	return row
}

// compare orders objects by name. If the query has WorstFirst, it first orders them by the states of their copies.
func (g *MatrixGatherer) compare(a, b matrixObject) int {
	by := 0
	if g.query.WorstFirst {
		worst := a.worst()
		by = cmp.Or(cmp.Compare(worst, b.worst()), cmp.Compare(b.copies[worst], a.copies[worst]))
	}
	return cmp.Or(
		by, cmp.Compare(a.summary.Kind, b.summary.Kind), cmp.Compare(a.summary.Namespace, b.summary.Namespace),
		cmp.Compare(a.summary.Name, b.summary.Name), cmp.Compare(a.summary.Group, b.summary.Group))
}

// worst returns the worst state of the copies of an object. For an object without copies, it returns 0 if the object
// has a reason for this, and otherwise CopyHealthy. Objects with 0 are sorted first.
func (o matrixObject) worst() rollup.CopyState {
	if len(o.cells) == 0 && o.summary.Reason == "" {
		return rollup.CopyHealthy
	}
	return o.copies.Worst()
}

// pageOf returns one page of a list, with its number. If the page does not exist, it returns the nearest page.
func pageOf[T any](all []T, page, size int) (shown []T, number, pages int) {
	pages = max((len(all)+size-1)/size, 1)
	number = min(max(page, 1), pages)
	return all[(number-1)*size : min(number*size, len(all))], number, pages
}
