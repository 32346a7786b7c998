package preview

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/placement/decide/decidetest"
)

// unreadable are the rights of a hub that may not read these kinds.
func unreadable(kinds ...string) Rights {
	return Rights{
		Unreadable: func(kind schema.GroupKind, _ string) bool { return slices.Contains(kinds, kind.Kind) },
		Resource:   func(kind schema.GroupKind) string { return strings.ToLower(kind.Kind) + "s" },
	}
}

func TestAPlanNamesAllKindsThatAreNotFederatedAndPromisesNoCopiesOfThem(t *testing.T) {
	t.Parallel()
	also := func(p *hubv1.Placement) {
		p.Spec.ResourceSelectors = append(p.Spec.ResourceSelectors, hubv1.ResourceSelector{Kind: "ConfigMap"}, hubv1.ResourceSelector{APIGroup: "apps", Kind: "Deployment"})
		p.Spec.References = []hubv1.ReferenceRule{{Kind: "Secret", Path: "spec.secret"}}
	}
	const message = "the hub may not list and watch Widget.example.com (resourceSelectors[0]), Deployment.apps (resourceSelectors[2]), Secret (references[0]): " +
		`run hansectl federate widgets.example.com deployments.apps secrets, or add to the value federatedKinds of the chart hanse-hub: ` +
		`{apiGroups: [""], resources: [secrets]}, {apiGroups: [apps], resources: [deployments]}, {apiGroups: [example.com], resources: [widgets]}; ` +
		"with status: true, the hub also writes their status"
	placed := Object{Group: "hanse.dev", Kind: "Placement", Namespace: "shop", Name: "web"}
	tests := map[string]struct {
		before, after decide.Fleet
		want          []Problem
		created       int
	}{
		"a new placement": {
			fleet(2), fleet(2, decidetest.Policy("web", also)),
			[]Problem{{Object: placed, Reason: hubv1.ReasonNotFederated, Message: message}}, 0,
		},
		"a new placement of a kind that is federated": {
			fleet(2), fleet(2, decidetest.Policy("web", func(p *hubv1.Placement) { p.Spec.ResourceSelectors[0].Kind = "Gadget" })), nil, 0,
		},
	}
	unchanged := decidetest.Policy("web", also)
	tests["a new object for a placement that exists"] = struct {
		before, after decide.Fleet
		want          []Problem
		created       int
	}{fleet(0, unchanged), fleet(1, unchanged), []Problem{{Object: placed, Reason: hubv1.ReasonNotFederated, Message: message}}, 0}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := planned(t, tc.before, tc.after, Options{Rights: unreadable("Widget", "Deployment", "Secret")})
			if diff := cmp.Diff(tc.want, p.Problems); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if p.Summary.Created != tc.created || p.Summary.Problems != len(tc.want) {
				t.Errorf("the summary is %+v", p.Summary)
			}
		})
	}
	t.Run("another change does not name them", func(t *testing.T) {
		t.Parallel()
		before := fleet(1, unchanged)
		after := before
		after.Placements = append(decidetest.Only(unchanged), decidetest.Policy("other", func(p *hubv1.Placement) { p.Spec.ResourceSelectors[0].Kind = "Gadget" }))
		if p := planned(t, before, after, Options{Rights: unreadable("Widget")}); len(p.Problems) > 0 {
			t.Errorf("the problems are %+v", p.Problems)
		}
	})
	t.Run("a plan without a change names them", func(t *testing.T) {
		t.Parallel()
		p, err := Next(t.Context(), fleet(1, unchanged), Options{Rights: unreadable("Widget")})
		if err != nil || len(p.Problems) != 1 || p.Summary.Created > 0 {
			t.Errorf("the plan is %+v, %v", p, err)
		}
	})
}

func TestAPlanNamesTheClustersThatDoNotGrantAKind(t *testing.T) {
	t.Parallel()
	const message = "the hub may not create widgets.example.com on this cluster: run hansectl join with --grant widgets.example.com, or add the kind to grantedKinds of its chart hanse-member"
	refused := func(message string) decide.Fleet {
		f := fleet(1, decidetest.Policy("web", decidetest.Named("eu", "sg")))
		b := decidetest.Bound(hubv1.BindingTarget{Name: "eu", State: hubv1.TargetPresent}, hubv1.BindingTarget{Name: "sg", State: hubv1.TargetPresent})
		b.Spec.ObjectRef.Name, b.Spec.ObjectRef.UID = "web-0", f.Objects[0].Object.GetUID()
		f.Objects[0].Binding = decidetest.WithFailedRow(b, "eu", hubv1.ReasonForbidden, message)
		return f
	}
	for name, tc := range map[string]struct {
		message string
		want    []Problem
	}{
		"the kind": {message, []Problem{{
			Object: Object{Group: "example.com", Kind: "Widget", Namespace: "shop", Name: "web-1"}, Clusters: []string{"eu"}, Reason: hubv1.ReasonForbidden, Message: message,
		}}},
		"the rules of another object": {"Role shop/a grants rights that the hub does not have on this cluster", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := refused(tc.message)
			after := before
			after.Objects = append(slices.Clone(before.Objects), object("web-1"))
			p := planned(t, before, after, Options{})
			if diff := cmp.Diff(tc.want, p.Problems); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
