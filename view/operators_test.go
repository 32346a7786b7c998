package view

import (
	"bytes"
	"strings"
	"testing"

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
