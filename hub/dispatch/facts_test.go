package dispatch

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/changes"
)

// withPolicies is a client that lists these override policies, too.
type withPolicies struct {
	listed
	policies []hubv1.OverridePolicy
}

func (l withPolicies) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if all, ok := list.(*hubv1.OverridePolicyList); ok {
		all.Items = l.policies
		return nil
	}
	return l.listed.List(ctx, list, opts...)
}

// policyOn returns an override policy for one kind, with one rule.
func policyOn(kind string, rule hubv1.OverrideRule) hubv1.OverridePolicy {
	p := hubv1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "on-" + strings.ToLower(kind)}}
	p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{APIGroup: gizmos, Kind: kind}}
	p.Spec.Rules = []hubv1.OverrideRule{rule}
	return p
}

const gizmos = "shop.example.com"

// readingPolicies returns override policies that each set a value from one fact of the cluster. Each policy selects the
// kind with its own name.
func readingPolicies() []hubv1.OverridePolicy {
	value := func(expression string) hubv1.OverrideRule {
		return hubv1.OverrideRule{Name: "r", Patches: []hubv1.PatchOperation{{Op: hubv1.PatchAdd, Path: "/spec/of", Expression: expression}}}
	}
	large := value("'large'")
	large.Clusters = &hubv1.RuleClusters{Expression: "capacity['cpu'].isGreaterThan(quantity('32'))"}
	selected := hubv1.OverrideRule{Name: "r", MergePatch: &apiextensionsv1.JSON{Raw: []byte(`{"spec":{"of":"tier"}}`)}}
	selected.Clusters = &hubv1.RuleClusters{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "1"}}}
	return []hubv1.OverridePolicy{
		policyOn("Label", value("cluster.labels.?team.orValue('none')")), policyOn("Selected", selected), policyOn("Region", value("cluster.region")),
		policyOn("Version", value("cluster.version")), policyOn("Operator", value("cluster.operators[?'rotors'].version.orValue('')")), policyOn("Capacity", value("cluster.capacity['cpu']")), policyOn("Large", large),
	}
}

var readingKinds = []string{"Capacity", "Label", "Large", "Operator", "Plain", "Region", "Selected", "Version"}

func clusterWithFacts() *hubv1.MemberCluster {
	c := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "eu", Labels: map[string]string{"team": "sre"}}}
	c.Spec.AllowedNamespaces.From = hubv1.NamespacesFromAll
	c.Status.Version.Kubernetes, c.Status.Topology.Region = "v1.36.0", "eu-central-1"
	c.Status.Capacity = corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("16Gi")}
	return c
}

func TestAFactOfAClusterWakesWhatReadsIt(t *testing.T) {
	tests := map[string]struct {
		change func(*hubv1.MemberCluster)
		want   []string
	}{
		"a label that is read":              {func(c *hubv1.MemberCluster) { c.Labels["team"] = "shop" }, []string{"Label"}},
		"a label that selects":              {func(c *hubv1.MemberCluster) { c.Labels["tier"] = "1" }, []string{"Selected"}},
		"a label that nothing reads":        {func(c *hubv1.MemberCluster) { c.Labels["other"] = "1" }, nil},
		"the region":                        {func(c *hubv1.MemberCluster) { c.Status.Topology.Region = "eu-west-1" }, []string{"Region"}},
		"the version":                       {func(c *hubv1.MemberCluster) { c.Status.Version.Kubernetes = "v1.36.1" }, []string{"Version"}},
		"an operator that is read":          {func(c *hubv1.MemberCluster) { c.Status.Operators = []hubv1.OperatorFact{{Name: "rotors"}} }, []string{"Operator"}},
		"an operator that nothing reads":    {func(c *hubv1.MemberCluster) { c.Status.Operators = []hubv1.OperatorFact{{Name: "certs"}} }, nil},
		"a capacity that is read":           {func(c *hubv1.MemberCluster) { c.Status.Capacity["cpu"] = resource.MustParse("16") }, []string{"Capacity"}},
		"one that reaches what is asked":    {func(c *hubv1.MemberCluster) { c.Status.Capacity["cpu"] = resource.MustParse("64") }, []string{"Capacity", "Large"}},
		"a capacity that nothing reads":     {func(c *hubv1.MemberCluster) { c.Status.Capacity["memory"] = resource.MustParse("1Gi") }, nil},
		"what expressions do not see":       {func(c *hubv1.MemberCluster) { c.Status.Nodes.Ready, c.Annotations = 7, map[string]string{"a": "b"} }, nil},
		"the namespaces that it allows":     {func(c *hubv1.MemberCluster) { c.Spec.AllowedNamespaces.From = hubv1.NamespacesFromNone }, readingKinds},
		"the same number, written in units": {func(c *hubv1.MemberCluster) { c.Status.Capacity["cpu"] = resource.MustParse("8000m") }, nil},
	}
	var bindings []hubv1.ResourceBinding
	for _, kind := range readingKinds {
		b := bindingFor(kind, "p", hubv1.TargetPresent)
		b.Spec.ObjectRef = hubv1.ObjectReference{APIVersion: gizmos + "/v1", Kind: kind, Name: kind}
		bindings = append(bindings, b)
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			after := clusterWithFacts()
			tc.change(after)
			got := woken(nil, bindings, func(d *Dispatcher) {
				d.opts.Client = withPolicies{listed{bindings: bindings}, readingPolicies()}
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
