package view

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/rollup"
)

func TestACopyHasOneState(t *testing.T) {
	t.Parallel()
	at := metav1.NewTime(now.Add(-5 * time.Minute))
	healthy := hubv1.ClusterRow{Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy, Reason: hubv1.ReasonApplied}
	with := func(change func(*hubv1.ClusterRow)) *hubv1.ClusterRow {
		row := healthy
		change(&row)
		return &row
	}
	away := &hubv1.MemberCluster{}
	away.Status.Conditions = []metav1.Condition{{Type: hubv1.ConditionReady, Status: metav1.ConditionFalse, Reason: hubv1.ReasonUnreachable}}
	overdue := &hubv1.MemberCluster{}
	overdue.Status.LastObservedTime = &at
	overdue.Status.Conditions = []metav1.Condition{{Type: hubv1.ConditionReady, Status: metav1.ConditionTrue}}
	for name, tc := range map[string]struct {
		state  hubv1.TargetState
		row    *hubv1.ClusterRow
		member *hubv1.MemberCluster
		want   rollup.CopyState
	}{
		"applied and healthy":                   {row: &healthy, want: rollup.CopyHealthy},
		"degraded":                              {row: with(func(r *hubv1.ClusterRow) { r.Health = hubv1.HealthDegraded }), want: rollup.CopyDegraded},
		"not yet ready":                         {row: with(func(r *hubv1.ClusterRow) { r.Health = hubv1.HealthProgressing }), want: rollup.CopyProgressing},
		"without a known health":                {row: with(func(r *hubv1.ClusterRow) { r.Health = "" }), want: rollup.CopyUnknown},
		"refused":                               {row: with(func(r *hubv1.ClusterRow) { r.Applied, r.Reason = metav1.ConditionFalse, hubv1.ReasonFieldConflict }), want: rollup.CopyNotApplied},
		"not yet written":                       {row: with(func(r *hubv1.ClusterRow) { r.Applied, r.Reason = metav1.ConditionUnknown, hubv1.ReasonPending }), want: rollup.CopyProgressing},
		"with an unknown content":               {row: with(func(r *hubv1.ClusterRow) { r.Applied, r.Reason = metav1.ConditionUnknown, hubv1.ReasonServerError }), want: rollup.CopyUnknown},
		"not yet reported":                      {want: rollup.CopyProgressing},
		"not yet reported, on an away cluster":  {member: away, want: rollup.CopyUnknown},
		"healthy, but its cluster is away":      {row: &healthy, member: away, want: rollup.CopyUnknown},
		"healthy, but its cluster is new":       {row: &healthy, member: &hubv1.MemberCluster{}, want: rollup.CopyUnknown},
		"healthy, but nobody observes it":       {row: &healthy, member: overdue, want: rollup.CopyUnknown},
		"healthy when it was last heard":        {row: with(func(r *hubv1.ClusterRow) { r.LastObservedTime = &at }), want: rollup.CopyUnknown},
		"degraded, and its cluster is away":     {row: with(func(r *hubv1.ClusterRow) { r.Health = hubv1.HealthDegraded }), member: away, want: rollup.CopyUnknown},
		"withdrawn":                             {state: hubv1.TargetAbsent, row: &healthy, want: rollup.CopyLeaving},
		"replaced by another cluster":           {state: hubv1.TargetEvicting, row: &healthy, want: rollup.CopyLeaving},
		"withdrawn from a cluster that is away": {state: hubv1.TargetAbsent, row: &healthy, member: away, want: rollup.CopyUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state := tc.state
			if state == "" {
				state = hubv1.TargetPresent
			}
			row := rowOf(hubv1.BindingTarget{Name: "eu-fra-1", State: state}, tc.row, tc.member, now)
			if got := row.Copy(); got != tc.want {
				t.Errorf("the state is %s, want %s", got, tc.want)
			}
		})
	}
}

func TestEveryCopyStateHasAWord(t *testing.T) {
	t.Parallel()
	for _, s := range rollup.CopyStates() {
		if s.String() == "" || rollup.ParseCopyState(s.String()) != s {
			t.Errorf("the state %d has the word %q", s, s)
		}
	}
	if got := rollup.ParseCopyState("<b>"); got != 0 {
		t.Errorf("another text is the state %s", got)
	}
}

// matrixFleet returns the clusters a-1 and a-2 of region a, and b-1 of region b. Cluster b-1 is unreachable.
func matrixFleet() []hubv1.MemberCluster {
	var out []hubv1.MemberCluster
	for _, name := range []string{"a-1", "a-2", "b-1"} {
		m := hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{hubv1.RegionLabel: name[:1]}}}
		at := metav1.NewTime(now)
		m.Status.Conditions = []metav1.Condition{{Type: hubv1.ConditionReady, Status: metav1.ConditionTrue}}
		if name == "b-1" {
			at = metav1.NewTime(now.Add(-time.Hour))
			m.Status.Conditions = []metav1.Condition{{Type: hubv1.ConditionReady, Status: metav1.ConditionFalse, Reason: hubv1.ReasonUnreachable}}
		}
		m.Status.LastObservedTime = &at
		out = append(out, m)
	}
	return out
}

// placedOn returns the binding of an object with these rows.
func placedOn(kind, name, placement string, rows ...hubv1.ClusterRow) hubv1.BindingObject {
	b := &hubv1.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}}
	b.Spec.ObjectRef = hubv1.ObjectReference{APIVersion: "apps/v1", Kind: kind, Name: name}
	b.Spec.PlacementRef = &hubv1.PlacementReference{Kind: "Placement", Name: placement}
	for _, r := range rows {
		b.Spec.Clusters = append(b.Spec.Clusters, hubv1.BindingTarget{Name: r.Name, State: hubv1.TargetPresent})
	}
	b.Status.Clusters = rows
	return b
}

func healthyOn(cluster string) hubv1.ClusterRow {
	return hubv1.ClusterRow{Name: cluster, UID: "1", Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy}
}

func refusedOn(cluster string) hubv1.ClusterRow {
	return hubv1.ClusterRow{Name: cluster, UID: "1", Applied: metav1.ConditionFalse, Health: hubv1.HealthHealthy, Reason: hubv1.ReasonFieldConflict}
}

func TestAMatrixHasTheObjectsAndClustersThatAQuerySelects(t *testing.T) {
	t.Parallel()
	bindings := []hubv1.BindingObject{
		placedOn("Deployment", "web", "all", healthyOn("a-1"), healthyOn("a-2"), healthyOn("b-1")),
		placedOn("Deployment", "api", "all", healthyOn("a-1"), refusedOn("a-2")),
		placedOn("DaemonSet", "agent", "infra", healthyOn("b-1")),
		placedOn("Deployment", "nowhere", "none"),
	}
	for name, tc := range map[string]struct {
		query    MatrixQuery
		objects  []string
		clusters []string
	}{
		"all by name":           {MatrixQuery{}, []string{"agent ..?", "api ✓✕.", "nowhere ...", "web ✓✓?"}, []string{"a-1 2/2", "a-2 1/2", "b-1 0/2"}},
		"worst first":           {MatrixQuery{WorstFirst: true}, []string{"nowhere ...", "api ✕✓.", "agent ..?", "web ✓✓?"}, []string{"a-2 1/2", "a-1 2/2", "b-1 0/2"}},
		"of a placement":        {MatrixQuery{Placement: "Placement shop/infra"}, []string{"agent ?"}, []string{"b-1 0/1"}},
		"of a kind":             {MatrixQuery{Kind: "DaemonSet.apps"}, []string{"agent ?"}, []string{"b-1 0/1"}},
		"with a text":           {MatrixQuery{Text: "WE"}, []string{"web ✓✓?"}, []string{"a-1 1/1", "a-2 1/1", "b-1 0/1"}},
		"in a region":           {MatrixQuery{Region: "a"}, []string{"api ✓✕", "web ✓✓"}, []string{"a-1 2/2", "a-2 1/2"}},
		"on a cluster":          {MatrixQuery{Cluster: "b-1"}, []string{"agent ?", "web ?"}, []string{"b-1 0/2"}},
		"in a state":            {MatrixQuery{State: rollup.CopyNotApplied}, []string{"api ✓✕"}, []string{"a-1 1/1", "a-2 0/1"}},
		"in a state, elsewhere": {MatrixQuery{State: rollup.CopyNotApplied, Cluster: "a-1"}, nil, nil},
		"of a page behind all":  {MatrixQuery{Page: 7, Columns: -1, Kind: "DaemonSet.apps"}, []string{"agent ?"}, []string{"b-1 0/1"}},
		"of another namespace":  {MatrixQuery{Placement: "Placement bank/infra"}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewMatrixGatherer(matrixFleet(), tc.query, now)
			for _, b := range bindings {
				g.Add(b)
			}
			m := g.Matrix()
			var objects, clusters []string
			for _, o := range m.Objects {
				text := o.Name + " "
				for _, c := range o.Cells {
					text += map[rollup.CopyState]string{0: ".", rollup.CopyHealthy: "✓", rollup.CopyNotApplied: "✕", rollup.CopyUnknown: "?"}[c.State]
				}
				objects = append(objects, text)
			}
			for _, c := range m.Clusters {
				clusters = append(clusters, fmt.Sprintf("%s %d/%d", c.Cluster, c.Copies.Healthy(), c.Copies.Total()))
			}
			if diff := cmp.Diff(tc.objects, objects); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.clusters, clusters); diff != "" {
				t.Errorf("clusters (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"Placement shop/all", "Placement shop/infra", "Placement shop/none"}, m.Placements); diff != "" {
				t.Errorf("choices of placements (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnUnknownCellHasTheTimeOfTheLastObservation(t *testing.T) {
	t.Parallel()
	g := NewMatrixGatherer(matrixFleet(), MatrixQuery{}, now)
	g.Add(placedOn("Deployment", "web", "all", healthyOn("a-1"), healthyOn("b-1")))
	cells := g.Matrix().Objects[0].Cells
	if cells[0].AsOf != nil {
		t.Errorf("a live cell is as of %s", cells[0].AsOf)
	}
	if at := cells[1].AsOf; at == nil || now.Sub(at.Time) != time.Hour {
		t.Errorf("the cell of a cluster that is away is as of %s", at)
	}
}

func TestAMatrixHasPagesOfObjectsAndClusters(t *testing.T) {
	t.Parallel()
	g := NewMatrixGatherer(nil, MatrixQuery{Page: 2, Columns: 2}, now)
	for i := range MatrixObjects + 1 {
		var rows []hubv1.ClusterRow
		for c := range MatrixClusters + 2 {
			rows = append(rows, healthyOn(fmt.Sprintf("c-%03d", c)))
		}
		g.Add(placedOn("Deployment", fmt.Sprintf("web-%03d", i), "all", rows...))
	}
	m := g.Matrix()
	if m.Page != 2 || m.Pages != 2 || len(m.Objects) != 1 || m.Objects[0].Name != "web-050" || m.AllObjects != MatrixObjects+1 {
		t.Errorf("page %d of %d with %d of %d objects", m.Page, m.Pages, len(m.Objects), m.AllObjects)
	}
	if m.Columns != 2 || m.ColumnPages != 2 || len(m.Clusters) != 2 || m.Clusters[0].Cluster != fmt.Sprintf("c-%03d", MatrixClusters) || len(m.Objects[0].Cells) != 2 {
		t.Errorf("columns %d of %d with %d of %d clusters", m.Columns, m.ColumnPages, len(m.Clusters), m.AllClusters)
	}
	if got := m.Objects[0].Copies.Total(); got != MatrixClusters+2 {
		t.Errorf("the row counts %d copies", got)
	}
}

func TestAMatrixSaysHowManyObjectsAreTooMany(t *testing.T) {
	t.Parallel()
	g := NewMatrixGatherer(nil, MatrixQuery{}, now)
	g.cells = maxMatrixCells - 1
	g.Add(placedOn("Deployment", "web", "all", healthyOn("a-1"), healthyOn("a-2")))
	g.Add(placedOn("Deployment", "api", "all", healthyOn("a-1")))
	if m := g.Matrix(); m.More != 1 || m.AllObjects != 1 || len(m.Clusters) != 1 {
		t.Errorf("%d more than %d objects on %d clusters", m.More, m.AllObjects, len(m.Clusters))
	}
}

func TestAMatrixFoldsTheObjectsOfABundle(t *testing.T) {
	t.Parallel()
	bundled := func(name string, rows ...hubv1.ClusterRow) hubv1.BindingObject {
		b := placedOn("Widget", name, "all", rows...)
		b.BindingSpec().ObjectRef.Bundle = &hubv1.BundleReference{Kind: hubv1.BundleKind, Namespace: "shop", Name: "web"}
		return b
	}
	for name, tc := range map[string]struct {
		query MatrixQuery
		want  []string
	}{
		"folded":             {MatrixQuery{Fold: true, WorstFirst: true}, []string{"Bundle shop/web x2 1/2 refused", "Widget alone x0 1/1 "}},
		"not folded":         {MatrixQuery{WorstFirst: true}, []string{"Widget two x0 0/1 refused", "Widget one x0 2/2 ", "Widget alone x0 1/1 "}},
		"open":               {MatrixQuery{Fold: true, WorstFirst: true, Open: "Bundle shop/web"}, []string{"Widget two x0 0/1 refused", "Widget one x0 2/2 ", "Widget alone x0 1/1 "}},
		"only one object":    {MatrixQuery{Fold: true, Text: "two"}, []string{"Widget two x0 0/1 refused"}},
		"in the worst state": {MatrixQuery{Fold: true, State: rollup.CopyHealthy}, []string{"Widget alone x0 1/1 ", "Widget one x0 2/2 "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewMatrixGatherer(matrixFleet(), tc.query, now)
			g.Add(bundled("one", healthyOn("a-1"), healthyOn("a-2")))
			refused := refusedOn("a-1")
			refused.Message = "refused"
			g.Add(bundled("two", refused))
			b := placedOn("Widget", "alone", "all", healthyOn("a-2"))
			g.Add(b)
			var got []string
			m := g.Matrix()
			for _, o := range m.Objects {
				why := o.Why
				if o.Copies.Worst() == rollup.CopyHealthy {
					why = ""
				}
				got = append(got, fmt.Sprintf("%s %s x%d %d/%d %s", o.Kind, o.Name, o.Folded, o.Copies.Healthy(), o.Copies.Total(), why))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
			if tc.query.Text == "" && (m.Worst.Of(rollup.CopyNotApplied) != 1 || m.Worst.Healthy() != 2) {
				t.Errorf("the objects by their worst copy are %v", m.Worst)
			}
		})
	}
}

func TestTheFleetCountsEachObjectByItsWorstCopy(t *testing.T) {
	t.Parallel()
	g := NewFleetGatherer(matrixFleet(), now)
	for _, b := range []hubv1.BindingObject{
		placedOn("Deployment", "web", "all", healthyOn("a-1"), healthyOn("a-2")), placedOn("Deployment", "api", "all", refusedOn("a-1"), healthyOn("b-1")),
		placedOn("Deployment", "agent", "all", healthyOn("b-1")), placedOn("Deployment", "nowhere", "none"),
	} {
		g.Add(b)
	}
	if o := g.Objects; o.Total() != 3 || o.Healthy() != 1 || o.Of(rollup.CopyNotApplied) != 1 || o.Of(rollup.CopyUnknown) != 1 {
		t.Errorf("the objects are %v", o)
	}
	if c := g.Clusters["b-1"]; c.Total() != 2 || c.Worst() != rollup.CopyUnknown {
		t.Errorf("the copies on b-1 are %v", c)
	}
}
