package schedule

import (
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// reports writes a part of a cluster's status, as the hub does after the cluster has answered.
func (s *scene) reports(cluster, status string) {
	s.t.Helper()
	c := &hubv1.MemberCluster{}
	c.Name = s.cluster(cluster)
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":%s}`, status))
	if err := hubClient.Status().Patch(s.t.Context(), c, patch); err != nil {
		s.t.Fatal(err)
	}
}

func TestWhatAClusterReportsWakesWhoReadsIt(t *testing.T) {
	t.Parallel()
	s := newScene(t, "facts", "eu", "sg")
	p := s.place("web", "eu", "sg")
	p.Spec.Clusters.Expression = "nodes.ready > 2"
	s.create(p)
	s.object()
	s.decides(hubv1.ReasonNoClusterSelected)
	s.reports("eu", `{"nodes":{"total":3,"ready":3}}`)
	s.becomes("eu")
	s.eventually("the object is counted", func() error {
		if n := scheduler.inputs.counts.objectsOn(s.cluster("eu")); n != 1 {
			return fmt.Errorf("%d objects are", n)
		}
		return nil
	})
	s.reports("eu", `{"nodes":{"total":3,"ready":0}}`)
	s.reports("sg", `{"nodes":{"total":4,"ready":4}}`)
	s.becomes("eu", "sg")
}

func TestAnInstalledOperatorWakesWhoReadsIt(t *testing.T) {
	t.Parallel()
	s := newScene(t, "operators", "eu", "sg")
	p := s.place("web", "eu", "sg")
	p.Spec.Clusters.Expression = "operators[?'rotors'].installed.orValue(false)"
	s.create(p)
	s.object()
	s.reports("eu", `{"operators":[{"name":"rotors","installed":false}]}`)
	s.decides(hubv1.ReasonNoClusterSelected)
	s.reports("eu", `{"operators":[{"name":"rotors","installed":true}]}`)
	s.becomes("eu")
	s.reports("eu", `{"operators":null}`)
	s.reports("sg", `{"operators":[{"name":"rotors","installed":true}]}`)
	s.becomes("eu", "sg")
}

func TestAnObjectFollowsItsKind(t *testing.T) {
	t.Parallel()
	s := newScene(t, "served", "eu", "sg")
	s.reports("eu", `{"apiResources":[{"group":"example.com","kind":"Widget"}]}`)
	s.reports("sg", `{"apiResources":[{"group":"example.com","kind":"Widget","versions":["v1"]}]}`)
	s.eventually("the scheduler knows what the clusters serve", func() error {
		for _, name := range []string{"eu", "sg"} {
			var c hubv1.MemberCluster
			if err := scheduler.opts.Client.Get(s.t.Context(), client.ObjectKey{Name: s.cluster(name)}, &c); err != nil || c.Status.APIResources == nil {
				return fmt.Errorf("%s: %v, %w", name, c.Status.APIResources, err)
			}
		}
		return nil
	})
	s.create(s.place("web", "eu", "sg"))
	s.object()
	s.becomes("sg")
	s.reports("sg", `{"apiResources":[{"group":"example.com","kind":"Widget"}]}`)
	s.reports("eu", `{"apiResources":[{"group":"example.com","kind":"Widget","versions":["v1beta1","v1"]}]}`)
	s.becomes("eu", "sg")
}

func TestASpreadIsWrittenOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t, "spread", "eu", "sg", "us")
	p := s.place("web", "eu", "sg", "us")
	two := int32(2)
	p.Spec.Spread = &hubv1.SpreadPolicy{NumberOfClusters: &two, Preferences: []hubv1.ClusterPreference{
		{Weight: 5, Expression: "name.endsWith('-us')"}, {Weight: 1, Expression: "name.endsWith('-eu')"},
	}}
	s.create(p)
	s.object()
	s.becomes("eu", "us")
	s.eventually("the decision names scores", func() error {
		_, d, _, _ := scheduler.Decision(s.id.BindingKey())
		if d == nil || len(d.Reasons) != 2 || d.Reasons[1].Score != 5 || len(d.Rejected) == 0 {
			return fmt.Errorf("it is %+v", d)
		}
		return nil
	})
	generation := s.binding().Generation
	s.edit(p, func() { p.Spec.Spread.Preferences[0].Expression = "name.endsWith('-sg')" })
	s.eventually("the new scores are told of", func() error {
		_, d, _, _ := scheduler.Decision(s.id.BindingKey())
		if d == nil || len(d.Reasons) != 2 || d.Reasons[1].Score != 0 {
			return fmt.Errorf("the decision is %+v", d)
		}
		return nil
	})
	if now := s.binding().Generation; now != generation {
		t.Errorf("the binding was written again: generation %d, then %d", generation, now)
	}
	one := int32(1)
	s.edit(p, func() { p.Spec.Spread.NumberOfClusters = &one })
	s.becomes("eu", "-us NotChosen Delete")
}
