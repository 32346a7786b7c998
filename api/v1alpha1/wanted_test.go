package v1alpha1

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestAClusterGetsAnObjectAtAVersionThatItServes(t *testing.T) {
	kind := schema.GroupKind{Group: "example.com", Kind: "Widget"}
	present, absent := BindingTarget{Name: "c", State: TargetPresent}, BindingTarget{Name: "c", State: TargetAbsent}
	serving := func(versions ...string) *MemberCluster {
		c := &MemberCluster{}
		c.Status.APIResources = []ServedKind{
			{Group: "other.example.com", Kind: kind.Kind, Versions: []string{"v9"}}, {Group: kind.Group, Kind: kind.Kind, Versions: versions},
		}
		return c
	}
	for name, tc := range map[string]struct {
		target  BindingTarget
		others  []string
		cluster *MemberCluster
		want    string
	}{
		"the hub's version, which it serves and does not prefer":       {present, []string{"v1", "v1beta1"}, serving("v3", "v1", "v2"), "v2"},
		"the first other version, whatever the cluster prefers":        {present, []string{"v1", "v1beta1"}, serving("v1beta1", "v1"), "v1"},
		"the hub's version if it serves none of them":                  {present, []string{"v1"}, serving("v3"), "v2"},
		"the hub's version if there is no other":                       {present, nil, serving("v1"), "v2"},
		"the hub's version before the cluster was asked":               {present, []string{"v1"}, &MemberCluster{}, "v2"},
		"the hub's version while there is no such cluster":             {present, []string{"v1"}, nil, "v2"},
		"the hub's version of a kind that it does not serve":           {absent, []string{"v1"}, serving(), "v2"},
		"a copy that is to go, at the version at which it was sent":    {absent, []string{"v1"}, serving("v3", "v1"), "v1"},
		"a copy that is to go, at any version if there is no other":    {absent, nil, serving("v3", "v1"), "v3"},
		"a copy that other clusters replace, as one that is to stay":   {BindingTarget{State: TargetEvicting}, nil, serving("v3"), "v2"},
		"a copy that is to go, at the hub's version, which it serves,": {absent, nil, serving("v3", "v2"), "v2"},
	} {
		o := HubObject{GVK: kind.WithVersion("v2"), OtherVersions: tc.others, Generation: 7}
		want := Wanted(tc.target, o)
		if got := want.At(tc.cluster); got != kind.WithVersion(tc.want) {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
		if want.Generation != 7 {
			t.Errorf("%s: generation %d, want 7", name, want.Generation)
		}
	}
}
