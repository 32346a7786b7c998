package decide

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestOperatorsInExpressions(t *testing.T) {
	t.Parallel()
	placing := func(clusters hubv1.ClusterSelection) *hubv1.ClusterPlacement {
		p := &hubv1.ClusterPlacement{}
		p.Name, p.UID, p.Generation = "web", types.UID("web-uid"+clusters.Expression), 1
		p.Spec.NamespaceSelector = &metav1.LabelSelector{}
		p.Spec.Clusters = clusters
		p.Spec.ResourceSelectors = []hubv1.ResourceSelector{
			{APIGroup: object.Group, Kind: object.Kind},
			{APIGroup: hubv1.GroupVersion.Group, Kind: hubv1.ClusterBundleKind}, {APIGroup: hubv1.GroupVersion.Group, Kind: hubv1.FederatedOperatorKind},
		}
		return p
	}
	holding := func(cluster string) *hubv1.ResourceBinding {
		b := bound(present(cluster))
		b.Spec.PlacementRef.Kind, b.Spec.PlacementRef.Namespace = "ClusterPlacement", ""
		return b
	}
	whereInstalled := placing(hubv1.ClusterSelection{Expression: "operators[?'rotors'].installed.orValue(false)"})
	everywhere := placing(hubv1.ClusterSelection{Names: []string{"eu", "sg"}})
	beside := &hubv1.ClusterOverridePolicy{}
	beside.Spec.OverridePolicySpec = excluding(&hubv1.RuleClusters{Expression: "'rotors' in operators"}).Spec
	beside.Spec.NamespaceSelector = &metav1.LabelSelector{}
	notBeside := these(beside)
	clusters := []*hubv1.MemberCluster{cluster("eu", func(c *hubv1.MemberCluster) {
		c.Status.Operators = []hubv1.OperatorFact{{Name: "rotors", Version: "1.0.0", Installed: true}}
	}), cluster("sg")}
	for _, c := range clusters {
		c.UID, c.ResourceVersion = types.UID(c.Name), "1"
	}
	memo := &Memo{} // shared by all cases, so that the test notices results that leak
	for _, tc := range []struct {
		name      string
		placement *hubv1.ClusterPlacement
		overrides []hubv1.OverridePolicyObject
		binding   *hubv1.ResourceBinding
		bundle    string // kind of the bundle that has the object; empty: a hub object
		want      []string
	}{
		{name: "an object goes to the clusters with the operator", placement: whereInstalled, want: []string{"eu"}},
		{name: "an object of an operator sees no operators", placement: whereInstalled, bundle: hubv1.FederatedOperatorKind},
		{name: "an object of another bundle sees them", placement: whereInstalled, bundle: hubv1.ClusterBundleKind, want: []string{"eu"}},
		{name: "a cluster keeps its copy without the operator", placement: whereInstalled, binding: holding("sg"), want: []string{"eu", "sg"}},
		{name: "a rule keeps new objects out", placement: everywhere, overrides: notBeside, want: []string{"sg"}},
		{name: "a rule removes no copy", placement: everywhere, overrides: notBeside, binding: holding("eu"), want: []string{"eu", "sg"}},
		{name: "a rule keeps new objects of another bundle out", placement: everywhere, overrides: notBeside, bundle: hubv1.ClusterBundleKind, want: []string{"sg"}},
		{name: "a rule keeps no object of an operator out", placement: everywhere, overrides: notBeside, bundle: hubv1.FederatedOperatorKind, want: []string{"eu", "sg"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := given{uid: "a", binding: tc.binding, placements: []hubv1.PlacementObject{tc.placement}, clusters: clusters}.input()
			in.Facts.Overrides, in.Memo = tc.overrides, memo
			if tc.bundle != "" {
				of := hubv1.ObjectBundle{BundleReference: hubv1.BundleReference{Kind: tc.bundle, Name: "rotors"}}
				in.Object.Template.SetAnnotations(map[string]string{hubv1.BundleAnnotation: of.Annotation()})
			}
			p := Decide(in)
			if p.Spec == nil {
				t.Fatalf("there is no decision: %+v", p.Status.Scheduled)
			}
			if diff := cmp.Diff(tc.want, entriesOf(p.Spec)); diff != "" {
				t.Errorf("clusters (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWavesDoNotDependOnOperators(t *testing.T) {
	t.Parallel()
	policy := &hubv1.RolloutPolicy{Waves: []hubv1.RolloutWave{{Name: "first", Clusters: &hubv1.RuleClusters{Expression: "'rotors' in operators"}}, {Name: "rest"}}}
	c := cluster("eu", func(c *hubv1.MemberCluster) { c.Status.Operators = []hubv1.OperatorFact{{Name: "rotors"}} })
	if got := WaveOf(policy, c); got != 1 {
		t.Errorf("the wave is %d", got)
	}
}
