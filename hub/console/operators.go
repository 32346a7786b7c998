package console

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view"
)

// operatorsBody has the data for the template of the page of operators: a row for each cluster, and a column for each
// operator.
type operatorsBody struct {
	// Hidden is true if the user may not list operators.
	Hidden bool
	view.Operators
	Rows []operatorRow
	Part part
	// Only is "notready" if the page shows only clusters with an operator that is not ready, and "all" if it shows each
	// cluster. For any other value, the clusters that are as wanted are folded by region.
	Only string
	Now  metav1.Time
}

// operatorRow is a cluster. If Folded is not 0, it stands for so many clusters of a region that are as wanted.
type operatorRow struct {
	Cluster, Region string
	Folded          int
	// Away is true if the cluster is unreachable. The row then shows the state of the operators at the time in the field
	// Observed.
	Away     bool
	Observed *metav1.Time
	Cells    []operatorCell
}

// operatorCell is the state of an operator on a cluster. On is nil if the operator is not placed on the cluster.
type operatorCell struct {
	On *view.OperatorOnCluster
}

// State returns how the page shows the state of the operator on the cluster.
func (c operatorCell) State() state {
	switch {
	case c.On == nil:
		return state{"off", "not placed"}
	case c.On.Away:
		return state{"unknown", "unknown"}
	case c.On.Ready:
		return state{"ok", "ready"}
	}
	return state{"run", "not ready"}
}

// operatorSummary is the row of an operator in the table above the matrix.
type operatorSummary struct {
	view.OperatorOnClusters
	State state
	Bar   bar
}

// Sorted returns the operators, the worst first.
func (b *operatorsBody) Sorted() []operatorSummary {
	var out []operatorSummary
	for _, o := range b.Operators.Operators {
		parts := []countPart{{Class: "ok"}, {Class: "run"}, {Class: "unknown"}}
		for i := range o.OnClusters {
			of := operatorCell{&o.OnClusters[i]}.State().Class
			parts[slices.IndexFunc(parts, func(p countPart) bool { return p.Class == of })].N++
		}
		row := operatorSummary{o, state{"ok", "ready"}, barOf(parts)}
		switch {
		case o.Stored == metav1.ConditionFalse:
			row.State = state{"down", "not stored"}
		case parts[1].N > 0:
			row.State = state{"run", fmt.Sprintf("not ready on %d", parts[1].N)}
		case parts[2].N > 0:
			row.State = state{"unknown", fmt.Sprintf("unknown on %d", parts[2].N)}
		case o.Clusters == 0:
			row.State = state{"off", "not placed"}
		case o.Ready < o.Clusters:
			row.State = state{"run", fmt.Sprintf("not ready on %d", o.Clusters-o.Ready)}
		}
		out = append(out, row)
	}
	slices.SortStableFunc(out, func(a, b operatorSummary) int {
		return cmp.Compare(slices.Index(signs, a.State.Class), slices.Index(signs, b.State.Class))
	})
	return out
}

// Verdict says what is wrong with the worst operator.
func (b *operatorsBody) Verdict() string {
	all := b.Sorted()
	switch {
	case len(all) == 0:
		return ""
	case all[0].State.Class == "ok":
		return fmt.Sprintf("All %d %s ready everywhere.", len(all), plural(len(all), "operator is", "operators are"))
	}
	return all[0].Name + " is " + all[0].State.Word + "."
}

func operatorsPage(ctx context.Context, v *visit) (*page, error) {
	var operators hubv1.FederatedOperatorList
	if err := v.user.List(ctx, &operators); apierrors.IsForbidden(err) {
		return &page{Title: "Operators", Nav: "operators", template: "operators", Body: &operatorsBody{Hidden: true}}, nil
	} else if err != nil {
		return nil, fmt.Errorf("listing FederatedOperators: %w", err)
	}
	members, err := v.user.members(ctx)
	if err != nil {
		return nil, err
	}
	found := view.NewOperatorGatherer(operators.Items, view.Observed(members, nil, v.now))
	err = v.user.unlessForbidden(v.user.eachBinding(ctx, "", found.AddBinding), "You do not see the objects of operators, and kinds without an operator")
	if err != nil {
		return nil, err
	}
	body := &operatorsBody{Operators: found.Operators(), Only: v.FormValue("only"), Now: metav1.NewTime(v.now)}
	body.Rows = body.rowsOf(members)
	body.Part = partOf(v, len(body.Rows))
	body.Rows = body.Rows[body.Part.From:body.Part.To]
	return &page{Title: "Operators", Nav: "operators", template: "operators", Scope: everywhere, Body: body}, nil
}

// rowsOf returns the rows that the page shows, on all its parts.
func (b *operatorsBody) rowsOf(members []hubv1.MemberCluster) []operatorRow {
	var out []operatorRow
	rows := map[string]*operatorRow{}
	for i, o := range b.Operators.Operators {
		for j := range o.OnClusters {
			on := &o.OnClusters[j]
			row := rows[on.Cluster]
			if row == nil {
				row = &operatorRow{Cluster: on.Cluster, Cells: make([]operatorCell, len(b.Operators.Operators))}
				rows[on.Cluster] = row
			}
			row.Cells[i].On = on
		}
	}
	for i := range members {
		row := rows[members[i].Name]
		if row == nil {
			continue
		}
		row.Region = members[i].SelectableLabels()[hubv1.RegionLabel]
		if !members[i].IsObserved(b.Now.Time) {
			row.Away, row.Observed = true, members[i].Status.LastObservedTime
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		if b.Only != "notready" || rows[name].lacks() {
			out = append(out, *rows[name])
		}
	}
	if b.Only != "all" {
		out = foldedRows(out)
	}
	return out
}

// lacks reports whether at least one operator of the row's cluster is not ready, or not known to be ready.
func (r *operatorRow) lacks() bool {
	return slices.ContainsFunc(r.Cells, func(c operatorCell) bool { return c.On != nil && (c.On.Away || !c.On.Ready) })
}

// asWanted returns a text that is the same for all clusters of a region with the same operators in the same versions.
// It is empty if an operator of the cluster is not ready, or behind.
func (r *operatorRow) asWanted() string {
	if r.Away || r.lacks() {
		return ""
	}
	key := r.Region
	for _, c := range r.Cells {
		key += "\x00"
		if c.On == nil {
			continue
		}
		if c.On.Behind {
			return ""
		}
		key += "+" + c.On.Version
	}
	return key
}

// foldedRows makes one row of all clusters of a region that are as wanted. The rows of other clusters come first.
func foldedRows(rows []operatorRow) []operatorRow {
	var out, folded []operatorRow
	at := map[string]int{}
	for _, r := range rows {
		key := r.asWanted()
		if key == "" {
			out = append(out, r)
			continue
		}
		i, known := at[key]
		if !known {
			i, at[key] = len(folded), len(folded)
			folded = append(folded, r)
		}
		folded[i].Folded++
	}
	slices.SortStableFunc(folded, func(a, b operatorRow) int { return cmp.Compare(a.Region, b.Region) })
	return append(out, folded...)
}
