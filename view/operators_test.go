package view

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestKindsWithoutAnOperator(t *testing.T) {
	t.Parallel()
	provider := hubv1.FederatedOperator{Status: hubv1.FederatedOperatorStatus{Provides: []string{"Widget.example.com"}}}
	gadgets := schema.GroupKind{Group: "gateway.networking.k8s.io", Kind: "Gadget"}
	withdrawn := on(widgets, "v1", "a")
	withdrawn.Spec.Clusters[0].State = hubv1.TargetAbsent
	for name, tc := range map[string]struct {
		operators []hubv1.FederatedOperator
		bindings  []*hubv1.ResourceBinding
		want      []KindWithoutOperator
	}{
		"a custom kind is counted by object":                            {bindings: []*hubv1.ResourceBinding{on(widgets, "v1", "a", "b"), on(widgets, "v1", "a")}, want: []KindWithoutOperator{{"Widget.example.com", 2}}},
		"a custom kind of a group of Kubernetes' projects counts":       {bindings: []*hubv1.ResourceBinding{on(gadgets, "v1", "a")}, want: []KindWithoutOperator{{"Gadget.gateway.networking.k8s.io", 1}}},
		"a kind that an operator provides is left out":                  {operators: []hubv1.FederatedOperator{provider}, bindings: []*hubv1.ResourceBinding{on(widgets, "v1", "a")}},
		"an object on no cluster is left out":                           {bindings: []*hubv1.ResourceBinding{on(widgets, "v1")}},
		"an object that is being withdrawn counts, since it needs care": {bindings: []*hubv1.ResourceBinding{withdrawn}, want: []KindWithoutOperator{{"Widget.example.com", 1}}},
		"kinds of Kubernetes and Hanse are left out": {bindings: []*hubv1.ResourceBinding{
			on(schema.GroupKind{Kind: "ConfigMap"}, "v1", "a"), on(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "v1", "a"),
			on(schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}, "v1", "a"),
			on(schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}, "v1", "a"), on(schema.GroupKind{Group: "hanse.dev", Kind: "Placement"}, "v1", "a"),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewOperatorGatherer(tc.operators, Observed(nil, nil, now))
			for _, b := range tc.bindings {
				g.AddBinding(b)
			}
			if diff := cmp.Diff(append([]KindWithoutOperator{}, tc.want...), g.Operators().WithoutOperator); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestKindsOnClustersWithoutTheirOperator(t *testing.T) {
	t.Parallel()
	provider := hubv1.FederatedOperator{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Status: hubv1.FederatedOperatorStatus{Provides: []string{"Widget.example.com"}}}
	workload := on(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "v1", "a", "b")
	of := hubv1.ReferenceTo(&provider)
	workload.Spec.ObjectRef.Bundle = &of
	for name, tc := range map[string]struct {
		clusters []string
		want     string
	}{
		"a cluster without the operator is named":   {[]string{"a", "c"}, "Note:      kinds in use on clusters that their operator is not placed on: Widget.example.com on c\n"},
		"clusters with the operator are left out":   {[]string{"a", "b"}, ""},
		"the note names no more than five clusters": {[]string{"d", "e", "f", "g", "h", "i", "j"}, "Widget.example.com on d, e, f, g, h and 2 more\n"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewOperatorGatherer([]hubv1.FederatedOperator{provider}, Observed(nil, nil, now))
			g.AddBinding(on(widgets, "v1", tc.clusters...))
			g.AddBinding(workload)
			var out bytes.Buffer
			g.Operators().writeNotes(&out)
			if got := out.String(); !strings.HasSuffix(got, tc.want) || (tc.want == "" && got != "") {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

func TestTheVersionOfAnOperatorOnACluster(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		on   OperatorOnCluster
		want string
	}{
		"a ready operator has its version":                          {OperatorOnCluster{Version: "v1", Ready: true}, "v1"},
		"an operator that is not ready has it, too":                 {OperatorOnCluster{Version: "v1,v2"}, "v1,v2 not ready"},
		"a ready operator without a version is ready":               {OperatorOnCluster{Ready: true}, "ready"},
		"without a version, it may not be ready":                    {OperatorOnCluster{}, "not ready"},
		"a version of a cluster that is away is the last known one": {OperatorOnCluster{Version: "v1", Ready: true, Away: true}, "v1?"},
		"so is that the operator is not ready":                      {OperatorOnCluster{Version: "v1", Away: true}, "v1 not ready?"},
		"a cluster that is behind says so":                          {OperatorOnCluster{Version: "v1", Ready: true, Behind: true}, "v1 (behind)"},
		"it says so before it is not ready":                         {OperatorOnCluster{Version: "v1", Behind: true}, "v1 (behind) not ready"},
		"without a version, it is behind":                           {OperatorOnCluster{Ready: true, Behind: true}, "(behind)"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.on.cell(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestTheTemplatesThatCallLookupAreNamed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		lookups []string
		want    string
	}{
		"a chart without lookup has no note": {nil, ""},
		"a chart with lookup has a note":     {[]string{"x/templates/a.yaml", "x/templates/b.yaml"}, "Note:      templates that call lookup, which finds no object on the hub: x/templates/a.yaml, x/templates/b.yaml\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := hubv1.FederatedOperator{Status: hubv1.FederatedOperatorStatus{Chart: &hubv1.RenderedChart{Name: "x", Lookups: tc.lookups}}}
			var out bytes.Buffer
			NewOperatorObjects(&o, Observed(nil, nil, now)).OnClusters().Write(&out, now)
			if got := out.String(); tc.want == "" && strings.Contains(got, "lookup") || !strings.Contains(got, tc.want) {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

func TestTheRowOfAnOperator(t *testing.T) {
	t.Parallel()
	chart := &hubv1.RenderedChart{Name: "rotors", Version: "1.0.0"}
	stored := func(generation int64, status metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{{Type: hubv1.ConditionStored, Status: status, ObservedGeneration: generation}}
	}
	for name, tc := range map[string]struct {
		change func(*hubv1.FederatedOperator)
		want   string
	}{
		"an operator with manifests that the hub has not looked at": {func(*hubv1.FederatedOperator) {}, "x      manifests   -         0/0        Unknown   0       4m19s"},
		"a chart that was never stored":                             {func(o *hubv1.FederatedOperator) { o.Spec.Chart = &hubv1.OperatorChart{} }, "x      -       -         0/0        Unknown   0       4m19s"},
		"a stored chart without a version of its operator": {func(o *hubv1.FederatedOperator) {
			o.Spec.Chart, o.Status.Chart, o.Status.Conditions = &hubv1.OperatorChart{}, chart, stored(2, metav1.ConditionTrue)
			o.Status.Total, o.Status.Ready, o.Status.Provides = 12, 11, []string{"A.example.com", "B.example.com"}
		}, "x      rotors-1.0.0   -         11/12      True     2       4m19s"},
		"a chart with a newer version in its repository": {func(o *hubv1.FederatedOperator) {
			o.Spec.Chart, o.Status.Chart, o.Status.Newest = &hubv1.OperatorChart{}, chart, &hubv1.NewestChart{Version: "1.10.0"}
		}, "x      rotors-1.0.0 (1.10.0 is available)   -         0/0        Unknown   0       4m19s"},
		"a chart that is the newest in its repository": {func(o *hubv1.FederatedOperator) {
			o.Spec.Chart, o.Status.Chart, o.Status.Newest = &hubv1.OperatorChart{}, chart, &hubv1.NewestChart{Version: "1.0.0"}
		}, "x      rotors-1.0.0   -         0/0        Unknown   0       4m19s"},
		"manifests of an earlier generation are stored":       {func(o *hubv1.FederatedOperator) { o.Status.Conditions = stored(1, metav1.ConditionTrue) }, "x      manifests   -         0/0        Unknown   0       4m19s"},
		"manifests instead of a chart, which is still stored": {func(o *hubv1.FederatedOperator) { o.Status.Chart = chart }, "x      rotors-1.0.0   -         0/0        Unknown   0       4m19s"},
		"manifests that the hub refuses":                      {func(o *hubv1.FederatedOperator) { o.Status.Conditions = stored(2, metav1.ConditionFalse) }, "x      manifests   -         0/0        False    0       4m19s"},
	} {
		t.Run(name, func(t *testing.T) {
			o := hubv1.FederatedOperator{ObjectMeta: metav1.ObjectMeta{Name: "x", Generation: 2, CreationTimestamp: metav1.NewTime(now.Add(-259e9))}}
			tc.change(&o)
			var out bytes.Buffer
			NewOperatorGatherer([]hubv1.FederatedOperator{o}, Observed(nil, nil, now)).Operators().Write(&out, now)
			if got := bytes.Split(out.Bytes(), []byte("\n"))[1]; string(got) != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

func TestClustersAreBehind(t *testing.T) {
	t.Parallel()
	rollout := &hubv1.BindingRollout{Revision: 1, Newest: 2}
	for name, tc := range map[string]struct {
		row     hubv1.ClusterRow
		rollout *hubv1.BindingRollout
		newest  int64
		want    bool
	}{
		"the newest generation is not behind":                      {hubv1.ClusterRow{Generation: 3}, nil, 3, false},
		"an older generation is":                                   {hubv1.ClusterRow{Generation: 2}, nil, 3, true},
		"a cluster without a copy is not":                          {hubv1.ClusterRow{}, nil, 3, false},
		"a cluster that a wave has not reached is":                 {hubv1.ClusterRow{Generation: 3, Revision: 1}, rollout, 3, true},
		"the newest revision is not":                               {hubv1.ClusterRow{Generation: 3, Revision: 2}, rollout, 3, false},
		"the generation counts for a copy from before the rollout": {hubv1.ClusterRow{Generation: 3}, rollout, 3, false},
		"without a copy, a revision does not count":                {hubv1.ClusterRow{Revision: 1}, rollout, 3, false},
	} {
		if got := isBehind(tc.row, tc.rollout, tc.newest); got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// ofOperator returns the binding of a Deployment of the operator x. The copy on each cluster has the given generation.
func ofOperator(generations map[string]int64) *hubv1.ResourceBinding {
	b := on(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "v1", slices.Sorted(maps.Keys(generations))...)
	b.Spec.ObjectRef.Bundle = &hubv1.BundleReference{Kind: hubv1.FederatedOperatorKind, Name: "x"}
	for _, t := range b.Spec.Clusters {
		b.Status.Clusters = append(b.Status.Clusters, hubv1.ClusterRow{Name: t.Name, Generation: generations[t.Name], Version: fmt.Sprintf("v%d", generations[t.Name]), Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy})
	}
	return b
}

func TestNotesOfOperatorsThatAreBehindOrCannotBeChecked(t *testing.T) {
	t.Parallel()
	failing := &hubv1.NewestChart{Version: "1.0.0", Error: "charts.example.com answers 503", Since: metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))}
	many := map[string]int64{"z": 2}
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		many[name] = 1
	}
	for name, tc := range map[string]struct {
		newest      *hubv1.NewestChart
		generations map[string]int64
		want        string
	}{
		"nothing is said of an operator whose clusters have the newest state": {generations: map[string]int64{"a": 2, "b": 2}},
		"a cluster with an older copy is named":                               {generations: map[string]int64{"a": 1, "b": 2}, want: "Note:      x is behind on 1 cluster: a\n"},
		"of many clusters, five are named":                                    {generations: many, want: "Note:      x is behind on 6 clusters: a, b, c, d, e and 1 more\n"},
		"a failing check is said with its time":                               {newest: failing, want: "Note:      x: checks for newer versions fail since 2026-01-02T03:04:05Z: charts.example.com answers 503\n"},
	} {
		t.Run(name, func(t *testing.T) {
			o := hubv1.FederatedOperator{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Status: hubv1.FederatedOperatorStatus{Newest: tc.newest}}
			g := NewOperatorGatherer([]hubv1.FederatedOperator{o}, Observed(nil, nil, now))
			g.AddBinding(ofOperator(tc.generations))
			var out bytes.Buffer
			g.Operators().writeNotes(&out)
			if got := out.String(); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

func TestOneOperatorMarksItsClustersThatAreBehind(t *testing.T) {
	t.Parallel()
	o := hubv1.FederatedOperator{ObjectMeta: metav1.ObjectMeta{Name: "x", CreationTimestamp: metav1.NewTime(now.Add(-259e9))}}
	o.Status.Chart = &hubv1.RenderedChart{Name: "rotors", Version: "1.0.0"}
	o.Status.Newest = &hubv1.NewestChart{Version: "1.2.0", Error: "no answer"}
	s := NewOperatorObjects(&o, Observed(nil, nil, now))
	s.AddBinding(ofOperator(map[string]int64{"a": 1, "b": 2}))
	var out bytes.Buffer
	s.OnClusters().Write(&out, now)
	for _, want := range []string{
		"x   chart rotors-1.0.0 (1.2.0 is available)   version -", "Note:      checks for newer versions fail since ", "a         v1 (behind)", "b         v2    ",
	} {
		if got := out.String(); !strings.Contains(got, want) {
			t.Errorf("it lacks %q:\n%s", want, got)
		}
	}
}

func TestTheNamesOfManyKindsFitOneLine(t *testing.T) {
	t.Parallel()
	for want, kinds := range map[string][]string{
		"":                                 nil,
		"Rotor (example.com)":              {"Rotor.example.com"},
		"A, B and 2 more (x.io), C (y.io)": {"A.x.io", "C.y.io", "B.x.io", "D.x.io", "E.x.io"},
		"A (a.io), B (b.io), and kinds of 1 group more": {"A.a.io", "B.b.io", "C.c.io"},
	} {
		if got := kindNames(kinds); got != want {
			t.Errorf("%v are %q, want %q", kinds, got, want)
		}
	}
}
