package placement

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// open returns a cluster that passes every filter. The edits then change it.
func open(name string, edits ...func(*Cluster)) Cluster {
	c := Cluster{Name: name, Ready: true, NamespaceAllowed: true, Labels: map[string]string{}}
	for _, e := range edits {
		e(&c)
	}
	return c
}

func region(r string) func(*Cluster) { return label(hubv1.RegionLabel, r) }

func label(k, v string) func(*Cluster) { return func(c *Cluster) { c.Labels[k] = v } }

func taint(effect corev1.TaintEffect) func(*Cluster) {
	return func(c *Cluster) {
		c.Taints = append(c.Taints, corev1.Taint{Key: "maintenance", Value: "disk", Effect: effect})
	}
}

func every(edits ...func(*hubv1.ClusterSelection)) hubv1.ClusterSelection {
	s := hubv1.ClusterSelection{LabelSelector: &metav1.LabelSelector{}}
	for _, e := range edits {
		e(&s)
	}
	return s
}

func matching(key string, op metav1.LabelSelectorOperator, values ...string) hubv1.ClusterSelection {
	return hubv1.ClusterSelection{LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: key, Operator: op, Values: values},
	}}}
}

func TestDecide(t *testing.T) {
	eastern := matching(hubv1.RegionLabel, metav1.LabelSelectorOpIn, "cn-shanghai", "ap-southeast-1")
	unschedulable := func(c *Cluster) { c.Unschedulable = true }
	unready := func(c *Cluster) { c.Ready = false }
	foreign := func(c *Cluster) { c.NamespaceAllowed = false }
	leaves := func(c *Cluster) { c.Leaving, c.LeavePolicy = true, hubv1.RemovalOrphan }
	tolerating := func(ts ...corev1.Toleration) func(*hubv1.ClusterSelection) {
		return func(s *hubv1.ClusterSelection) { s.Tolerations = ts }
	}
	chosen := func(name string) Target { return Target{Cluster: name, Reason: hubv1.ReasonScheduled} }

	tests := map[string]struct {
		selection hubv1.ClusterSelection
		clusters  []Cluster
		held      []string
		want      Decision
	}{
		"an empty label selector selects every cluster": {
			selection: every(), clusters: []Cluster{open("b"), open("a")},
			want: Decision{Targets: []Target{chosen("a"), chosen("b")}},
		},
		"a region outside the selector is rejected with its value": {
			selection: eastern, clusters: []Cluster{open("sha", region("cn-shanghai")), open("fra", region("eu-central-1"))},
			want: Decision{
				Targets:  []Target{chosen("sha")},
				Rejected: []Rejection{{Cluster: "fra", Reason: hubv1.ReasonNotSelected, Message: "region eu-central-1 is not in [cn-shanghai ap-southeast-1]"}},
			},
		},
		"a cluster that holds the object loses it when its label leaves the selector": {
			selection: eastern, clusters: []Cluster{open("sha", region("eu-central-1"))}, held: []string{"sha"},
			want: Decision{Withdraw: []Rejection{{Cluster: "sha", Reason: hubv1.ReasonNotSelected, Message: "region eu-central-1 is not in [cn-shanghai ap-southeast-1]"}}},
		},
		"a missing label is said to be missing": {
			selection: eastern, clusters: []Cluster{open("x")},
			want: Decision{Rejected: []Rejection{{Cluster: "x", Reason: hubv1.ReasonNotSelected, Message: "region is not set, wanted one of [cn-shanghai ap-southeast-1]"}}},
		},
		"the first failing requirement is named, matchLabels by key and then expressions in order": {
			selection: hubv1.ClusterSelection{LabelSelector: &metav1.LabelSelector{
				MatchLabels:      map[string]string{"env": "prod", "tier": "1"},
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "gpu", Operator: metav1.LabelSelectorOpDoesNotExist}},
			}},
			clusters: []Cluster{
				open("a", label("env", "dev"), label("tier", "2")),
				open("b", label("env", "prod"), label("tier", "2")),
				open("c", label("env", "prod"), label("tier", "1"), label("gpu", "yes")),
			},
			want: Decision{Rejected: []Rejection{
				{Cluster: "a", Reason: hubv1.ReasonNotSelected, Message: "label env dev is not in [prod]"},
				{Cluster: "b", Reason: hubv1.ReasonNotSelected, Message: "label tier 2 is not in [1]"},
				{Cluster: "c", Reason: hubv1.ReasonNotSelected, Message: `label gpu is set to "yes"`},
			}},
		},
		"NotIn takes a cluster without the label": {
			selection: matching("env", metav1.LabelSelectorOpNotIn, "dev"), clusters: []Cluster{open("a", label("env", "dev")), open("b")},
			want: Decision{Targets: []Target{chosen("b")}, Rejected: []Rejection{{Cluster: "a", Reason: hubv1.ReasonNotSelected, Message: "label env dev is in [dev]"}}},
		},
		"Exists needs the label": {
			selection: matching(hubv1.ZoneLabel, metav1.LabelSelectorOpExists), clusters: []Cluster{open("a")},
			want: Decision{Rejected: []Rejection{{Cluster: "a", Reason: hubv1.ReasonNotSelected, Message: "zone is not set"}}},
		},
		"names and label selector must both hold, and excludedNames subtracts": {
			selection: hubv1.ClusterSelection{Names: []string{"a", "b", "c"}, ExcludedNames: []string{"b"}, LabelSelector: eastern.LabelSelector},
			clusters: []Cluster{
				open("a", region("cn-shanghai")), open("b", region("cn-shanghai")), open("c"), open("d", region("cn-shanghai")),
			},
			want: Decision{
				Targets: []Target{chosen("a")},
				Rejected: []Rejection{
					{Cluster: "b", Reason: hubv1.ReasonExcluded, Message: "b is in excludedNames"},
					{Cluster: "c", Reason: hubv1.ReasonNotSelected, Message: "region is not set, wanted one of [cn-shanghai ap-southeast-1]"},
					{Cluster: "d", Reason: hubv1.ReasonNotSelected, Message: "name d is not in [a b c]"},
				},
			},
		},
		"names are compared exactly, never by prefix": {
			selection: hubv1.ClusterSelection{Names: []string{"eu-1"}}, clusters: []Cluster{open("eu-10")},
			want: Decision{Rejected: []Rejection{{Cluster: "eu-10", Reason: hubv1.ReasonNotSelected, Message: "name eu-10 is not in [eu-1]"}}},
		},
		"a long list of names is cut in the message": {
			selection: hubv1.ClusterSelection{Names: []string{"a", "b", "c", "d", "e", "f", "g"}}, clusters: []Cluster{open("x")},
			want: Decision{Rejected: []Rejection{{Cluster: "x", Reason: hubv1.ReasonNotSelected, Message: "name x is not in [a b c d e and 2 more]"}}},
		},
		"a cluster that holds the object loses it when it is excluded": {
			selection: every(func(s *hubv1.ClusterSelection) { s.ExcludedNames = []string{"a"} }), clusters: []Cluster{open("a")}, held: []string{"a"},
			want: Decision{Withdraw: []Rejection{{Cluster: "a", Reason: hubv1.ReasonExcluded, Message: "a is in excludedNames"}}},
		},
		"a NoExecute taint takes the object away, a NoSchedule taint only keeps new ones away": {
			selection: every(),
			clusters: []Cluster{
				open("a", taint(corev1.TaintEffectNoExecute)), open("b", taint(corev1.TaintEffectNoSchedule)),
				open("c", taint(corev1.TaintEffectNoExecute)), open("d", taint(corev1.TaintEffectNoSchedule)),
				open("e", taint(corev1.TaintEffectPreferNoSchedule)),
			},
			held: []string{"a", "b"},
			want: Decision{
				Targets: []Target{
					{Cluster: "b", Reason: hubv1.ReasonTaintNotTolerated, Message: "taint maintenance=disk:NoSchedule is not tolerated"},
					{Cluster: "e", Reason: hubv1.ReasonScheduled, Score: -100},
				},
				Withdraw: []Rejection{{Cluster: "a", Reason: hubv1.ReasonTaintNotTolerated, Message: "taint maintenance=disk:NoExecute is not tolerated"}},
				Rejected: []Rejection{
					{Cluster: "c", Reason: hubv1.ReasonTaintNotTolerated, Message: "taint maintenance=disk:NoExecute is not tolerated"},
					{Cluster: "d", Reason: hubv1.ReasonTaintNotTolerated, Message: "taint maintenance=disk:NoSchedule is not tolerated"},
				},
			},
		},
		"a toleration of the key tolerates every effect": {
			selection: every(tolerating(corev1.Toleration{Key: "maintenance", Operator: corev1.TolerationOpExists})),
			clusters:  []Cluster{open("a", taint(corev1.TaintEffectNoExecute)), open("b", taint(corev1.TaintEffectNoSchedule))},
			want:      Decision{Targets: []Target{chosen("a"), chosen("b")}},
		},
		"a toleration of another value or effect does not help": {
			selection: every(tolerating(
				corev1.Toleration{Key: "maintenance", Value: "network"},
				corev1.Toleration{Key: "maintenance", Value: "disk", Effect: corev1.TaintEffectNoExecute},
				corev1.Toleration{Key: "maintenance", Operator: corev1.TolerationOpGt, Value: "1"},
			)),
			clusters: []Cluster{open("a", taint(corev1.TaintEffectNoSchedule))},
			want:     Decision{Rejected: []Rejection{{Cluster: "a", Reason: hubv1.ReasonTaintNotTolerated, Message: "taint maintenance=disk:NoSchedule is not tolerated"}}},
		},
		"trouble of a cluster keeps new objects away": {
			selection: every(), clusters: []Cluster{open("a", unschedulable), open("b", unready), open("c", foreign)},
			want: Decision{Rejected: []Rejection{
				{Cluster: "a", Reason: hubv1.ReasonUnschedulable, Message: "the cluster is marked unschedulable"},
				{Cluster: "b", Reason: hubv1.ReasonClusterNotReady, Message: "the cluster is not Ready"},
				{Cluster: "c", Reason: hubv1.ReasonNamespaceNotAllowed, Message: "the cluster's allowedNamespaces do not include the object's namespace"},
			}},
		},
		"trouble of a cluster never takes an object away": {
			selection: every(), clusters: []Cluster{open("a", unschedulable), open("b", unready), open("c", foreign)}, held: []string{"a", "b", "c"},
			want: Decision{Targets: []Target{
				{Cluster: "a", Reason: hubv1.ReasonUnschedulable, Message: "the cluster is marked unschedulable"},
				{Cluster: "b", Reason: hubv1.ReasonClusterNotReady, Message: "the cluster is not Ready"},
				{Cluster: "c", Reason: hubv1.ReasonNamespaceNotAllowed, Message: "the cluster's allowedNamespaces do not include the object's namespace"},
			}},
		},
		"a leaving cluster counts as leaving even if it is no longer selected": {
			selection: eastern, clusters: []Cluster{open("a", leaves), open("b", leaves)}, held: []string{"a"},
			want: Decision{
				Withdraw: []Rejection{{Cluster: "a", Reason: hubv1.ReasonClusterLeaving, Message: "the MemberCluster is being deleted"}},
				Rejected: []Rejection{{Cluster: "b", Reason: hubv1.ReasonClusterLeaving, Message: "the MemberCluster is being deleted"}},
			},
		},
		"a held cluster whose MemberCluster is missing is neither kept nor withdrawn": {
			selection: every(), clusters: []Cluster{open("a")}, held: []string{"z", "y", "a"},
			want: Decision{Targets: []Target{chosen("a")}, Missing: []string{"y", "z"}},
		},
		"no cluster at all is a decision, too": {selection: every(), want: Decision{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := Decide(Input{Placement: compiled(t, tc.selection, nil), Clusters: tc.clusters, Held: set(tc.held)})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

// compiled compiles the selection and the spread that a test gives.
func compiled(tb testing.TB, clusters hubv1.ClusterSelection, spread *hubv1.SpreadPolicy) *Compiled {
	tb.Helper()
	c, err := Compile(&hubv1.PlacementSpec{Clusters: clusters, Spread: spread})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func TestCompileRefusesWhatItCannotRead(t *testing.T) {
	tests := map[string]struct {
		spec *hubv1.PlacementSpec
		want string
	}{
		"an operator that does not exist": {
			spec: &hubv1.PlacementSpec{Clusters: matching("env", "Near", "prod")},
			want: `reading spec.clusters.labelSelector.matchExpressions[0]: "Near" is not a valid label selector operator`,
		},
		"a label value that is none": {
			spec: &hubv1.PlacementSpec{Clusters: hubv1.ClusterSelection{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "a b"}}}},
			want: `reading spec.clusters.labelSelector.matchLabels[env]: values[0][env]: Invalid value: "a b": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`,
		},
		"a selection that says nothing, which would mean no cluster": {
			spec: &hubv1.PlacementSpec{},
			want: "reading spec.clusters: neither names, labelSelector nor expression is set",
		},
		"a key that nodes does not have": {
			spec: &hubv1.PlacementSpec{Clusters: hubv1.ClusterSelection{Expression: "nodes.reddy > 2"}},
			want: `reading spec.clusters.expression: nodes has no key "reddy": use nodes.ready or nodes.total`,
		},
		"such a key in a preference": {
			spec: &hubv1.PlacementSpec{Clusters: hubv1.ClusterSelection{Names: []string{"eu"}}, Spread: &hubv1.SpreadPolicy{
				Preferences: []hubv1.ClusterPreference{{Weight: 1, Expression: "nodes['Ready'] > 2"}},
			}},
			want: `reading spec.spread.preferences[0].expression: nodes has no key "Ready": use nodes.ready or nodes.total`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := Compile(tc.spec); err == nil || err.Error() != tc.want {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}

func TestExpressionsReadTheKeysOfNodes(t *testing.T) {
	c := &Cluster{Name: "eu", Labels: map[string]string{"tier": "1"}, Facts: Facts{Nodes: hubv1.NodeSummary{Total: 3, Ready: 2}}}
	for _, text := range []string{
		"nodes.total == 3 && nodes.ready == 2", "nodes['ready'] == 2", "has(nodes.total)", "'ready' in nodes", "nodes[?'ready'].orValue(0) == 2",
		"nodes.all(key, nodes[key] > 0)", "size(nodes) == 2", "nodes['rea' + 'dy'] == 2", "labels['tier'] == '1' && !has(labels.reddy)",
	} {
		e, err := compileExpression(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if holds, err := e.holds(c); err != nil || !holds {
			t.Errorf("%s gives %v, %v", text, holds, err)
		}
	}
}

func set(names []string) map[string]bool {
	out := map[string]bool{}
	for _, n := range names {
		out[n] = true
	}
	return out
}
