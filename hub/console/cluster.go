package console

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/rollup"
	"github.com/hanse-dev/hanse/view"
)

// clusterBody has the data for the template of a cluster's page.
type clusterBody struct {
	Cluster    view.Cluster
	Facts      []view.Line
	Capacity   []view.CapacityRow
	Operators  []hubv1.OperatorFact
	Conditions []metav1.Condition
	// Drained is a text with the progress of a drain. It is empty if the cluster is not drained, or if the user may not
	// see the drain.
	Drained string
	// Objects has, for each state, the number of the cluster's copies. It counts only copies that the user may see.
	Objects   view.CopyCounts
	Namespace string
	Now       time.Time
}

// States returns the states that at least one of the counted copies has, the worst first.
func (b clusterBody) States() []rollup.CopyState {
	var out []rollup.CopyState
	for _, s := range rollup.CopyStates() {
		if b.Objects.Of(s) > 0 {
			out = append(out, s)
		}
	}
	return out
}

func clusterPage(ctx context.Context, v *visit) (*page, error) {
	m, err := v.user.member(ctx, v.PathValue("name"))
	if err != nil {
		return nil, err
	}
	members := []hubv1.MemberCluster{*m}
	copies := view.NewMatrixGatherer(members, view.MatrixQuery{Cluster: m.Name}, v.now)
	err = v.user.eachBinding(ctx, v.namespace, copies.Add)
	if err := v.user.unlessForbidden(err, "You do not see the objects of all namespaces"); err != nil {
		return nil, err
	}
	body := clusterBody{
		Cluster: view.Clusters(members, nil, nil, v.now).Clusters[0], Facts: view.ClusterFacts(m, v.now), Capacity: view.CapacityOf(m),
		Operators: m.Status.Operators, Conditions: m.Status.Conditions, Objects: copies.Matrix().Copies, Namespace: v.namespace, Now: v.now,
	}
	if body.Cluster.Drain != nil {
		body.Drained, _ = view.DrainProgress(m)
	}
	return &page{Title: m.Name, Nav: "fleet", template: "cluster", Scope: v.scope(), Crumbs: clusterCrumbs(body.Cluster, v.namespace), Body: &body}, nil
}

// clusterCrumbs returns the pages above the page of a cluster.
func clusterCrumbs(c view.Cluster, namespace string) []crumb {
	out := []crumb{{pathOf("/", "namespace", namespace), "Fleet"}}
	if c.Region != "" {
		out = append(out, crumb{pathOf("/", "namespace", namespace, "view", "table", "region", c.Region), c.Region})
	}
	return append(out, crumb{"", "MemberCluster"})
}
