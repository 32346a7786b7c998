package preview

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide/decidetest"
)

func TestAPlanCountsTheCopiesThatALossLeavesBehind(t *testing.T) {
	t.Parallel()
	before := fleet(1, decidetest.Policy("web", decidetest.Named("eu", "sg")))
	web := objectOf(before.Objects[0].Identity())
	after := before
	if _, err := LoseCluster(&after, "eu"); err != nil {
		t.Fatal(err)
	}
	p := planned(t, before, after, Options{})
	if diff := cmp.Diff([]Away{{Object: web, Clusters: []string{"eu"}, RunningBefore: 2, Running: 1}}, p.Away); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(p.Clusters) != 1 || p.Clusters[0].Cluster != "eu" || !p.Clusters[0].Away || p.Clusters[0].ObjectsBefore != 1 || p.Clusters[0].Objects != 1 {
		t.Errorf("clusters %+v", p.Clusters)
	}
	if p.Summary.Away != 1 || p.Summary.Nowhere != 0 {
		t.Errorf("summary %+v", p.Summary)
	}

	if _, err := LoseCluster(&after, "sg"); err != nil {
		t.Fatal(err)
	}
	p = planned(t, before, after, Options{})
	if p.Summary.Away != 2 || p.Summary.Nowhere != 1 || p.Away[0].Running != 0 {
		t.Errorf("summary %+v, away %+v", p.Summary, p.Away)
	}
}

func TestAPlanNamesAnObjectWithAnotherPlacement(t *testing.T) {
	t.Parallel()
	before, after := fleet(1, decidetest.Policy("web", decidetest.Named("eu"))), fleet(1, decidetest.Policy("other", decidetest.Named("eu")))
	p := planned(t, before, after, Options{})
	want := []PlacementChange{{objectOf(before.Objects[0].Identity()), "Placement shop/web", "Placement shop/other"}}
	if diff := cmp.Diff(want, p.Placements); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestThePlanWithoutAChangeHasTheDecisionsThatBindingsLack(t *testing.T) {
	t.Parallel()
	f := fleet(1, decidetest.Policy("web", decidetest.Named("eu", "sg")))
	p, err := Next(t.Context(), f, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Creations) != 1 || len(p.Creations[0].Clusters) != 2 || p.Creations[0].New || len(p.Refusals)+len(p.Problems) > 0 {
		t.Errorf("%+v", p)
	}
	settled, err := f.Settle(t.Context(), func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	if p, err = Next(t.Context(), f.From(settled), Options{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Summary{Objects: 1}, p.Summary); diff != "" || len(p.Clusters) > 0 {
		t.Errorf("clusters %+v, summary (-want +got):\n%s", p.Clusters, diff)
	}
}

func TestAPlanOfMetadataHasNoFieldsAndNoFaults(t *testing.T) {
	t.Parallel()
	before := fleet(1, decidetest.Policy("web", decidetest.Named("eu")))
	after := before
	policy := &hubv1.OverridePolicy{}
	policy.Namespace, policy.Name = "shop", "x"
	policy.Spec.ResourceSelectors = []hubv1.ResourceSelector{{APIGroup: "example.com", Kind: "Widget"}}
	policy.Spec.Rules = []hubv1.OverrideRule{{Name: "r", Patches: []hubv1.PatchOperation{{Op: hubv1.PatchRemove, Path: "/spec/none"}}}}
	after.Overrides = []hubv1.OverridePolicyObject{policy}
	if p := planned(t, before, after, Options{}); p.Summary.Problems != 1 {
		t.Errorf("with content: %+v", p)
	}
	if p := planned(t, before, after, Options{MetadataOnly: true}); len(p.Changes)+p.Summary.Problems > 0 {
		t.Errorf("without content: %+v", p)
	}
}
