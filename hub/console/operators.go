package console

import (
	"context"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view"
)

// operatorsBody has the data for the template of the page of operators: a row for each cluster, and a column for each
// operator.
type operatorsBody struct {
	view.Operators
	Rows []operatorRow
	Part part
	// Only is "notready" if the page shows only clusters with an operator that is not ready. For any other value, the page
	// shows all clusters.
	Only string
	Now  metav1.Time
}

type operatorRow struct {
	Cluster string
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
		return state{"off", "−", "not placed"}
	case c.On.Away:
		return state{"unknown", "?", "unknown"}
	case c.On.Ready:
		return state{"good", "✓", "ready"}
	}
	return state{"wait", "…", "not ready"}
}

func operatorsPage(ctx context.Context, v *visit) (*page, error) {
	var operators hubv1.FederatedOperatorList
	if err := v.user.List(ctx, &operators); err != nil {
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
	rows := map[string]*operatorRow{}
	for i, o := range body.Operators.Operators {
		for j := range o.OnClusters {
			on := &o.OnClusters[j]
			row := rows[on.Cluster]
			if row == nil {
				row = &operatorRow{Cluster: on.Cluster, Cells: make([]operatorCell, len(body.Operators.Operators))}
				rows[on.Cluster] = row
			}
			row.Cells[i].On = on
		}
	}
	for i := range members {
		if row := rows[members[i].Name]; row != nil && !members[i].IsObserved(v.now) {
			row.Away, row.Observed = true, members[i].Status.LastObservedTime
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		if body.Only != "notready" || rows[name].lacks() {
			body.Rows = append(body.Rows, *rows[name])
		}
	}
	body.Part = partOf(v, len(body.Rows))
	body.Rows = body.Rows[body.Part.From:body.Part.To]
	return &page{Title: "Operators", Nav: "operators", template: "operators", Scope: everywhere, Body: body}, nil
}

// lacks reports whether at least one operator of the row's cluster is not ready, or not known to be ready.
func (r *operatorRow) lacks() bool {
	return slices.ContainsFunc(r.Cells, func(c operatorCell) bool { return c.On != nil && (c.On.Away || !c.On.Ready) })
}
