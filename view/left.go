package view

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// LeftObject is an object that a drained cluster still has.
type LeftObject struct{ Object, Placement string }

// NewLeftObject returns the object of a binding, with the placement that it follows.
func NewLeftObject(b hubv1.BindingObject) LeftObject {
	return LeftObject{Object: hubv1.ObjectOf(b).String(), Placement: followedBy(b.BindingSpec())}
}

// WriteLeft writes a table of the objects that a drained cluster still has. limit is the maximum number of lines.
func WriteLeft(w io.Writer, objects []LeftObject, limit int) {
	slices.SortFunc(objects, func(a, b LeftObject) int { return cmp.Compare(a.Object, b.Object) })
	var rows [][]string
	for _, o := range objects[:min(limit, len(objects))] {
		rows = append(rows, []string{o.Object, o.Placement})
	}
	table(w, []string{"LEFT", "PLACEMENT"}, rows)
	if n := len(objects) - limit; n > 0 {
		fmt.Fprintf(w, "and %d more\n", n)
	}
}
