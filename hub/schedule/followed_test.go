package schedule

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
)

func TestAnEventIsRelatedToThePlacementThatTheDecisionFollows(t *testing.T) {
	bindingOf := func(placement string) *hubv1.ResourceBinding {
		b := &hubv1.ResourceBinding{}
		b.Spec.PlacementRef = &hubv1.PlacementReference{Kind: "Placement", Namespace: "shop", Name: placement, UID: "u"}
		return b
	}
	reference := func(name string) runtime.Object {
		return &corev1.ObjectReference{APIVersion: "hanse.dev/v1alpha1", Kind: "Placement", Namespace: "shop", Name: name, UID: "u"}
	}
	tests := map[string]struct {
		in   decide.Input
		plan decide.Plan
		want runtime.Object
	}{
		"a new decision":                      {decide.Input{Binding: bindingOf("old")}, decide.Plan{Spec: &bindingOf("new").Spec}, reference("new")},
		"the decision stays":                  {decide.Input{Binding: bindingOf("old")}, decide.Plan{}, reference("old")},
		"an object that follows no placement": {decide.Input{Binding: &hubv1.ResourceBinding{}}, decide.Plan{}, nil},
		"an object without a binding":         {decide.Input{}, decide.Plan{}, nil},
	}
	for name, tc := range tests {
		if diff := cmp.Diff(tc.want, followed(tc.in, tc.plan)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}
