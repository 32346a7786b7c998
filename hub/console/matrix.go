package console

import (
	"context"
	"net/url"
	"strconv"
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
}

func matrixPage(ctx context.Context, v *visit) (*page, error) {
	values := v.URL.Query()
	number := func(name string) int {
		n, _ := strconv.Atoi(values.Get(name)) // any other text gives the first page
		return n
	}
	q := view.MatrixQuery{
		Placement: values.Get("placement"), Kind: values.Get("kind"), Text: values.Get("text"), Region: values.Get("region"),
		Cluster: values.Get("cluster"), State: rollup.ParseCopyState(values.Get("state")), WorstFirst: values.Get("sort") == "worst",
		Page: number("page"), Columns: number("columns"),
	}
	members, err := v.user.members(ctx)
	if err != nil {
		return nil, err
	}
	gathered := view.NewMatrixGatherer(members, q, v.now)
	if err := v.user.eachBinding(ctx, v.namespace, gathered.Add); err != nil {
		return nil, err
	}
	body := matrixBody{Matrix: gathered.Matrix(), Query: q, Namespace: v.namespace, Now: v.now, values: values}
	return &page{Title: "Objects", Nav: "objects", template: "matrix", Scope: v.scope(), Body: body}, nil
}

// With returns the path of this page, with the query parameters changed as the pairs of names and values say. An empty
// value removes the parameter.
func (b matrixBody) With(pairs ...string) string { return with("/objects", b.values, pairs...) }

// States returns all states of copies.
func (matrixBody) States() []rollup.CopyState { return rollup.CopyStates() }

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

// ID returns the identity of a row's object, for links to other pages.
func (matrixBody) ID(s view.ObjectSummary) hubv1.ObjectIdentity {
	return hubv1.ObjectIdentity{Group: s.Group, Kind: s.Kind, Namespace: s.Namespace, Name: s.Name}
}
