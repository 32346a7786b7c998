package command

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestNamesThatNoClusterHasAreNoted(t *testing.T) {
	var clusters []*hubv1.MemberCluster
	for _, name := range []string{"ap-se-1", "eu-fra-1", "eu-fra-2"} {
		clusters = append(clusters, &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	for name, tc := range map[string]struct {
		names []string
		some  bool
		want  []string
	}{
		"known names":               {names: []string{"eu-fra-1", "ap-se-1"}},
		"no names":                  {},
		"an unknown name":           {names: []string{"eu-fra-1", "eu-frankfurt"}, want: []string{"Placement shop/web: no cluster is named eu-frankfurt"}},
		"a name with a typo":        {names: []string{"eu-far-1"}, want: []string{"Placement shop/web: no cluster is named eu-far-1; did you mean eu-fra-1?"}},
		"many names":                {names: []string{"mars", "venus", "pluto", "moon", "sun"}, want: []string{"Placement shop/web: no cluster is named mars or venus or pluto or 2 more"}},
		"a user who sees some only": {names: []string{"mars"}, some: true, want: []string{"Placement shop/web: no cluster that you may see is named mars"}},
	} {
		p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: hubv1.PlacementSpec{Clusters: hubv1.ClusterSelection{Names: tc.names}}}
		if diff := cmp.Diff(tc.want, unknownNames([]hubv1.PlacementObject{p}, clusters, tc.some)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAPlanNotesNamesThatNoClusterHas(t *testing.T) {
	file := planFile(t, `{apiVersion: hanse.dev/v1alpha1, kind: Placement, metadata: {name: new, namespace: shop}, spec: {resourceSelectors: [{kind: Secret}], clusters: {names: [eu-fra-11]}}}`)
	out, _, err := plannedFrom(t, "-f", file)
	must(t, err)
	wants(t, out, "NOTES", "Placement shop/new: no cluster is named eu-fra-11; did you mean eu-fra-1 or ")
}

func TestANoteOnTheNamespaceSaysWhichRightsTheRestNeeds(t *testing.T) {
	for file, lacks := range map[string]string{
		`{apiVersion: hanse.dev/v1alpha1, kind: ClusterPlacement, metadata: {name: new}, spec: {resourceSelectors: [{kind: Secret}], clusters: {labelSelector: {}}}}`: "shop",
		operatorWith("size: {type: integer}", "[]"): "shop, and the definitions that an operator changes,",
	} {
		out, _, err := plannedFrom(t, "-f", planFile(t, file), "-n", "shop")
		must(t, err)
		if text := strings.Join(strings.Fields(out), " "); !strings.Contains(text, "objects of other namespaces than "+lacks+" are not considered: to consider them, leave out -n, which needs rights in all namespaces") {
			t.Errorf("the plan is\n%s", out)
		}
	}
}
