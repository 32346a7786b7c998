package dispatch

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/changes"
)

// suspending returns a placement that suspends writes to the clusters with these labels.
func suspending(uid string, selector map[string]string) hubv1.Placement {
	p := hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: uid, UID: types.UID(uid)}}
	p.Spec.Suspend.ClusterSelector = &metav1.LabelSelector{MatchLabels: selector}
	return p
}

func TestASuspendedClusterGetsNoWriteAndNoWithdrawal(t *testing.T) {
	cluster := clusterWithFacts()
	tests := map[string]struct {
		suspend hubv1.SuspendPolicy
		mcl     *hubv1.MemberCluster
		want    bool
	}{
		"by its name":             {hubv1.SuspendPolicy{Clusters: []string{"eu"}}, cluster, true},
		"by its labels":           {suspending("p", map[string]string{"team": "sre"}).Spec.Suspend, cluster, true},
		"by its derived region":   {suspending("p", map[string]string{hubv1.RegionLabel: "eu-central-1"}).Spec.Suspend, cluster, true},
		"while it is not known":   {suspending("p", map[string]string{"team": "shop"}).Spec.Suspend, nil, true},
		"not by labels of others": {suspending("p", map[string]string{"team": "shop"}).Spec.Suspend, cluster, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := &run{
				cluster: takes("eu"), target: &hubv1.BindingTarget{Name: "eu"}, in: gathered{mcl: tc.mcl},
			}
			r.in.placement = &hubv1.Placement{Spec: hubv1.PlacementSpec{Suspend: tc.suspend}}
			if got := r.suspended(); got != tc.want {
				t.Fatalf("suspended is %t", got)
			}
			if !tc.want {
				return
			}
			if o := r.write(t.Context(), nil, false); o.Reason != hubv1.ReasonSuspended {
				t.Errorf("the write is %+v", o)
			}
			if o, done := r.withdraw(t.Context()); !done || o.Reason != hubv1.ReasonSuspended {
				t.Errorf("the withdrawal is %+v", o)
			}
		})
	}
}

// withPlacements is a client that lists these placements, too.
type withPlacements struct {
	listed
	placements []hubv1.Placement
}

func (l withPlacements) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if all, ok := list.(*hubv1.PlacementList); ok {
		all.Items = l.placements
		return nil
	}
	return l.listed.List(ctx, list, opts...)
}

func TestALabelOfAClusterWakesTheBindingsThatItSuspendsOrResumes(t *testing.T) {
	tests := map[string]struct {
		change func(*hubv1.MemberCluster)
		want   []string
	}{
		"a label that no longer suspends":   {func(c *hubv1.MemberCluster) { c.Labels["team"] = "shop" }, []string{"follows-sre", "leaves-sre"}},
		"a label that suspends":             {func(c *hubv1.MemberCluster) { c.Labels["tier"] = "1" }, []string{"follows-tier"}},
		"the region":                        {func(c *hubv1.MemberCluster) { c.Status.Topology.Region = "eu-west-1" }, []string{"follows-region"}},
		"a label that no selector reads":    {func(c *hubv1.MemberCluster) { c.Labels["other"] = "1" }, nil},
		"a version, which no selector sees": {func(c *hubv1.MemberCluster) { c.Status.Version.Kubernetes = "v1.36.1" }, nil},
	}
	elsewhere := bindingFor("elsewhere-sre", "sre", hubv1.TargetPresent)
	elsewhere.Spec.Clusters[0].Name = "us"
	bindings := []hubv1.ResourceBinding{
		bindingFor("follows-sre", "sre", hubv1.TargetPresent), bindingFor("leaves-sre", "sre", hubv1.TargetAbsent), elsewhere,
		bindingFor("follows-tier", "tier", hubv1.TargetPresent), bindingFor("follows-region", "region", hubv1.TargetPresent),
		bindingFor("follows-none", "none", hubv1.TargetPresent),
	}
	placements := []hubv1.Placement{
		suspending("sre", map[string]string{"team": "sre"}), suspending("tier", map[string]string{"tier": "1"}),
		suspending("region", map[string]string{hubv1.RegionLabel: "eu-central-1"}), {ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "none", UID: "none"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			after := clusterWithFacts()
			tc.change(after)
			got := woken(nil, bindings, func(d *Dispatcher) {
				d.opts.Client = withPlacements{listed{bindings: bindings}, placements}
				feed := changes.NewFeed()
				feed.Clusters.On(changes.Facts|changes.Served|changes.AllowedNamespaces, d.ClusterChanged)
				feed.Clusters.Handler(t.Context()).OnUpdate(clusterWithFacts(), after)
			})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("woken (-want +got):\n%s", diff)
			}
		})
	}
}
