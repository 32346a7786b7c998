package view

import (
	"bytes"
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// stack returns the bindings of a bundle with three objects, and a further object of the bundle without a binding.
func stack(t *testing.T) ([]hubv1.BindingObject, hubv1.ObjectIdentity) {
	t.Helper()
	raw, err := os.ReadFile("testdata/tree/stack.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var f forest
	if err := yaml.UnmarshalStrict(raw, &f); err != nil {
		t.Fatal(err)
	}
	var bindings []hubv1.BindingObject
	for i := range f.Bindings {
		bindings = append(bindings, &f.Bindings[i])
	}
	return bindings, hubv1.ObjectIdentity{Kind: "Service", Namespace: "monitoring", Name: "web"}
}

func TestTheTreeOfABundleHasTheObjectsWithoutAPlacement(t *testing.T) {
	bindings, unplaced := stack(t)
	var text bytes.Buffer
	TreeOfBundle(PlacementName{Kind: "Bundle", Namespace: "monitoring", Name: "stack"}, bindings, []hubv1.ObjectIdentity{unplaced}, nil, 50).Write(&text, now)
	golden(t, "testdata/tree/stack.txt", text.String())
	documented(t, text.String())
}

func TestTheTreeOfAPlacementNamesTheBundleOfAnObject(t *testing.T) {
	bindings, _ := stack(t)
	var text bytes.Buffer
	TreeOf(PlacementName{Kind: "Placement", Namespace: "monitoring", Name: "metrics"}, bindings, nil, 50).Write(&text, now)
	golden(t, "testdata/tree/metrics-of-stack.txt", text.String())
}

func TestTheStatusOfABundleCountsTheClustersOfItsObjects(t *testing.T) {
	bindings, unplaced := stack(t)
	b := &hubv1.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "monitoring", Name: "stack", Generation: 3}, Status: hubv1.BundleStatus{ObservedGeneration: 3, Objects: 3, Placed: 2, Conditions: []metav1.Condition{
		{Type: hubv1.ConditionApplied, Status: metav1.ConditionFalse, Reason: hubv1.ReasonFailedOnSome, Message: "ConfigMap monitoring/rules: eu-fra-1: Forbidden"},
		{Type: hubv1.ConditionStored, Status: metav1.ConditionTrue, Reason: hubv1.ReasonStored},
	}}}
	o := Objects{Bundle: SummaryOfBundle(b), Objects: []ObjectSummary{UnplacedOf(unplaced)}}
	for _, binding := range bindings {
		o.Objects = append(o.Objects, SummaryOf(binding))
	}
	o.Sort()
	var text bytes.Buffer
	o.Write(&text, now)
	golden(t, "testdata/tree/stack.status.txt", text.String())
	documented(t, text.String())
}
