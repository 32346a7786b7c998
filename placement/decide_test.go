package placement

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// open returns a cluster that takes everything.
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

func expression(key string, op metav1.LabelSelectorOperator, values ...string) hubv1.ClusterSelection {
	return hubv1.ClusterSelection{LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: key, Operator: op, Values: values},
	}}}
}

func TestDecide(t *testing.T) {
	eastern := expression(hubv1.RegionLabel, metav1.LabelSelectorOpIn, "cn-shanghai", "ap-southeast-1")
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
				Rejected: []Rejection{{"fra", hubv1.ReasonNotSelected, "region eu-central-1 is not in [cn-shanghai ap-southeast-1]"}},
			},
		},
		"a cluster that holds the object loses it when its label leaves the selector": {
			selection: eastern, clusters: []Cluster{open("sha", region("eu-central-1"))}, held: []string{"sha"},
			want: Decision{Withdraw: []Rejection{{"sha", hubv1.ReasonNotSelected, "region eu-central-1 is not in [cn-shanghai ap-southeast-1]"}}},
		},
		"a missing label is said to be missing": {
			selection: eastern, clusters: []Cluster{open("x")},
			want: Decision{Rejected: []Rejection{{"x", hubv1.ReasonNotSelected, "region is not set, wanted one of [cn-shanghai ap-southeast-1]"}}},
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
				{"a", hubv1.ReasonNotSelected, "label env dev is not in [prod]"},
				{"b", hubv1.ReasonNotSelected, "label tier 2 is not in [1]"},
				{"c", hubv1.ReasonNotSelected, `label gpu is set to "yes"`},
			}},
		},
		"NotIn takes a cluster without the label": {
			selection: expression("env", metav1.LabelSelectorOpNotIn, "dev"), clusters: []Cluster{open("a", label("env", "dev")), open("b")},
			want: Decision{Targets: []Target{chosen("b")}, Rejected: []Rejection{{"a", hubv1.ReasonNotSelected, "label env dev is in [dev]"}}},
		},
		"Exists needs the label": {
			selection: expression(hubv1.ZoneLabel, metav1.LabelSelectorOpExists), clusters: []Cluster{open("a")},
			want: Decision{Rejected: []Rejection{{"a", hubv1.ReasonNotSelected, "zone is not set"}}},
		},
		"names and label selector must both hold, and excludedNames subtracts": {
			selection: hubv1.ClusterSelection{Names: []string{"a", "b", "c"}, ExcludedNames: []string{"b"}, LabelSelector: eastern.LabelSelector},
			clusters: []Cluster{
				open("a", region("cn-shanghai")), open("b", region("cn-shanghai")), open("c"), open("d", region("cn-shanghai")),
			},
			want: Decision{
				Targets: []Target{chosen("a")},
				Rejected: []Rejection{
					{"b", hubv1.ReasonExcluded, "b is in excludedNames"},
					{"c", hubv1.ReasonNotSelected, "region is not set, wanted one of [cn-shanghai ap-southeast-1]"},
					{"d", hubv1.ReasonNotSelected, "name d is not in [a b c]"},
				},
			},
		},
		"names are compared exactly, never by prefix": {
			selection: hubv1.ClusterSelection{Names: []string{"eu-1"}}, clusters: []Cluster{open("eu-10")},
			want: Decision{Rejected: []Rejection{{"eu-10", hubv1.ReasonNotSelected, "name eu-10 is not in [eu-1]"}}},
		},
		"a long list of names is cut in the message": {
			selection: hubv1.ClusterSelection{Names: []string{"a", "b", "c", "d", "e", "f", "g"}}, clusters: []Cluster{open("x")},
			want: Decision{Rejected: []Rejection{{"x", hubv1.ReasonNotSelected, "name x is not in [a b c d e and 2 more]"}}},
		},
		"a cluster that holds the object loses it when it is excluded": {
			selection: every(func(s *hubv1.ClusterSelection) { s.ExcludedNames = []string{"a"} }), clusters: []Cluster{open("a")}, held: []string{"a"},
			want: Decision{Withdraw: []Rejection{{"a", hubv1.ReasonExcluded, "a is in excludedNames"}}},
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
					{"b", hubv1.ReasonTaintNotTolerated, "taint maintenance=disk:NoSchedule is not tolerated"},
					chosen("e"),
				},
				Withdraw: []Rejection{{"a", hubv1.ReasonTaintNotTolerated, "taint maintenance=disk:NoExecute is not tolerated"}},
				Rejected: []Rejection{
					{"c", hubv1.ReasonTaintNotTolerated, "taint maintenance=disk:NoExecute is not tolerated"},
					{"d", hubv1.ReasonTaintNotTolerated, "taint maintenance=disk:NoSchedule is not tolerated"},
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
			want:     Decision{Rejected: []Rejection{{"a", hubv1.ReasonTaintNotTolerated, "taint maintenance=disk:NoSchedule is not tolerated"}}},
		},
		"trouble of a cluster keeps new objects away": {
			selection: every(), clusters: []Cluster{open("a", unschedulable), open("b", unready), open("c", foreign)},
			want: Decision{Rejected: []Rejection{
				{"a", hubv1.ReasonUnschedulable, "the cluster is marked unschedulable"},
				{"b", hubv1.ReasonClusterNotReady, "the cluster is not Ready"},
				{"c", hubv1.ReasonNamespaceNotAllowed, "the cluster's allowedNamespaces leave the object's namespace out"},
			}},
		},
		"trouble of a cluster never takes an object away": {
			selection: every(), clusters: []Cluster{open("a", unschedulable), open("b", unready), open("c", foreign)}, held: []string{"a", "b", "c"},
			want: Decision{Targets: []Target{
				{"a", hubv1.ReasonUnschedulable, "the cluster is marked unschedulable"},
				{"b", hubv1.ReasonClusterNotReady, "the cluster is not Ready"},
				{"c", hubv1.ReasonNamespaceNotAllowed, "the cluster's allowedNamespaces leave the object's namespace out"},
			}},
		},
		"a leaving cluster counts as leaving even if it is no longer selected": {
			selection: eastern, clusters: []Cluster{open("a", leaves), open("b", leaves)}, held: []string{"a"},
			want: Decision{
				Withdraw: []Rejection{{"a", hubv1.ReasonClusterLeaving, "the MemberCluster is being deleted"}},
				Rejected: []Rejection{{"b", hubv1.ReasonClusterLeaving, "the MemberCluster is being deleted"}},
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
			got, err := Decide(Input{Spec: &hubv1.PlacementSpec{Clusters: tc.selection}, Clusters: tc.clusters, Held: set(tc.held)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecideRefusesWhatItCannotRead(t *testing.T) {
	tests := map[string]struct {
		spec *hubv1.PlacementSpec
		want string
	}{
		"an operator that does not exist": {
			spec: &hubv1.PlacementSpec{Clusters: expression("env", "Near", "prod")},
			want: `reading spec.clusters.labelSelector.matchExpressions[0]: "Near" is not a valid label selector operator`,
		},
		"a label value that is none": {
			spec: &hubv1.PlacementSpec{Clusters: hubv1.ClusterSelection{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "a b"}}}},
			want: `reading spec.clusters.labelSelector.matchLabels[env]: values[0][env]: Invalid value: "a b": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`,
		},
		"a selection that says nothing, which would mean no cluster": {
			spec: &hubv1.PlacementSpec{},
			want: "reading spec.clusters: neither names nor labelSelector is set",
		},
		"no spec": {want: "deciding on clusters: there is no placement spec"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Decide(Input{Spec: tc.spec, Clusters: []Cluster{open("a")}, Held: set([]string{"a"})})
			if err == nil || err.Error() != tc.want {
				t.Errorf("error %v, want %s", err, tc.want)
			}
			if diff := cmp.Diff(Decision{}, got); diff != "" {
				t.Errorf("an error came with a decision:\n%s", diff)
			}
		})
	}
}

func set(names []string) map[string]bool {
	out := map[string]bool{}
	for _, n := range names {
		out[n] = true
	}
	return out
}

// genInput draws from few values, so that they meet often.
func genInput(t *rapid.T) Input {
	names := []string{"a", "b", "c", "d", "e", "f"}
	word := rapid.SampledFrom([]string{"", "x", "y", "not valid"})
	effect := rapid.SampledFrom([]corev1.TaintEffect{"", corev1.TaintEffectNoExecute, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule})
	op := rapid.SampledFrom([]metav1.LabelSelectorOperator{"In", "NotIn", "Exists", "DoesNotExist", "Odd"})
	in := Input{Spec: &hubv1.PlacementSpec{}, Held: map[string]bool{}}
	for _, n := range names {
		if rapid.Bool().Draw(t, "exists") {
			in.Clusters = append(in.Clusters, Cluster{
				Name: n, Labels: map[string]string{"k": word.Draw(t, "label")},
				Taints:        []corev1.Taint{{Key: word.Draw(t, "key"), Value: word.Draw(t, "value"), Effect: effect.Draw(t, "effect")}},
				Unschedulable: rapid.Bool().Draw(t, "unschedulable"), Ready: rapid.Bool().Draw(t, "ready"),
				Leaving: rapid.Bool().Draw(t, "leaving"), NamespaceAllowed: rapid.Bool().Draw(t, "allowed"),
			})
		}
		in.Held[n] = rapid.Bool().Draw(t, "held")
	}
	s := &in.Spec.Clusters
	s.Names = rapid.SliceOfN(rapid.SampledFrom(names), 0, 6).Draw(t, "names")
	s.ExcludedNames = rapid.SliceOfN(rapid.SampledFrom(names), 0, 2).Draw(t, "excluded")
	if rapid.Bool().Draw(t, "selects") {
		s.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "k", Operator: op.Draw(t, "op"), Values: rapid.SliceOfN(word, 0, 2).Draw(t, "values")},
		}}
	}
	s.Tolerations = []corev1.Toleration{{Key: word.Draw(t, "toleratedKey"), Value: word.Draw(t, "toleratedValue"), Effect: effect.Draw(t, "toleratedEffect")}}
	return in
}

func TestOrderOfClustersChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := genInput(t)
		want, wantErr := Decide(in)
		in.Clusters = rapid.Permutation(in.Clusters).Draw(t, "order")
		got, err := Decide(in)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("error %v, then %v", wantErr, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestEveryClusterIsInExactlyOneList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := genInput(t)
		d, err := Decide(in)
		if err != nil {
			t.Skip(err)
		}
		lists := map[string]int{}
		for _, x := range d.Targets {
			lists[x.Cluster]++
		}
		for _, x := range d.Rejected {
			lists[x.Cluster]++
			if in.Held[x.Cluster] {
				t.Errorf("%s holds the object and is rejected instead of withdrawn", x.Cluster)
			}
		}
		for _, x := range d.Withdraw {
			lists[x.Cluster]++
			if !in.Held[x.Cluster] {
				t.Errorf("%s holds nothing and is withdrawn", x.Cluster)
			}
			switch x.Reason {
			case hubv1.ReasonNotSelected, hubv1.ReasonExcluded, hubv1.ReasonTaintNotTolerated, hubv1.ReasonClusterLeaving:
			default:
				t.Errorf("%s is withdrawn by %s, which may only keep new objects away", x.Cluster, x.Reason)
			}
		}
		for _, x := range d.Missing {
			lists[x]++
		}
		for _, c := range in.Clusters {
			if lists[c.Name] != 1 {
				t.Errorf("%s is in %d lists", c.Name, lists[c.Name])
			}
		}
	})
}
