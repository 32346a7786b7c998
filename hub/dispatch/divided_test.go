package dispatch

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// onePolicy is a client of a hub with one override policy.
type onePolicy struct {
	client.Client
	policy *hubv1.OverridePolicy
}

func (o onePolicy) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if l, ok := list.(*hubv1.OverridePolicyList); ok {
		l.Items = []hubv1.OverridePolicy{*o.policy}
	}
	return nil
}

func TestAClusterGetsItsShare(t *testing.T) {
	policy := &hubv1.OverridePolicy{}
	policy.Namespace, policy.Name = object.Namespace, "tune"
	policy.Spec.ResourceSelectors = []hubv1.ResourceSelector{{APIGroup: object.Group, Kind: object.Kind}}
	merging := func(patch string) *hubv1.OverridePolicy {
		p := policy.DeepCopy()
		p.Spec.Rules = []hubv1.OverrideRule{{Name: "r", MergePatch: &apiextensionsv1.JSON{Raw: []byte(patch)}}}
		return p
	}
	tests := map[string]struct {
		division *hubv1.Division
		share    *int32
		policy   *hubv1.OverridePolicy
		want     map[string]any
		reason   string
	}{
		"all of it if nothing is divided":               {policy: merging(`{"spec":{"size":2}}`), want: map[string]any{"replicas": int64(12), "size": int64(2)}},
		"its share before the overrides":                {division: &hubv1.Division{Path: "/spec/replicas"}, share: ptr.To[int32](5), policy: merging(`{"spec":{"size":2}}`), want: map[string]any{"replicas": int64(5), "size": int64(2)}},
		"never the number of all clusters together":     {division: &hubv1.Division{Path: "/spec/replicas"}, policy: merging(`{"spec":{"size":2}}`), reason: hubv1.ReasonNotDivided},
		"nothing if an override would change its share": {division: &hubv1.Division{Path: "/spec/replicas"}, share: ptr.To[int32](5), policy: merging(`{"spec":{"replicas":7}}`), reason: hubv1.ReasonPathOwnedByDivision},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRun(&fakeCluster{}, 0)
			r.queue.opts.Client = onePolicy{policy: tc.policy}
			r.target.Replicas = tc.share
			r.binding.BindingSpec().Division = tc.division
			r.binding.BindingSpec().Clusters = []hubv1.BindingTarget{*r.target}
			template := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "test.hanse.dev/v1", "kind": "Widget", "metadata": map[string]any{"name": "web", "namespace": object.Namespace},
				"spec": map[string]any{"replicas": int64(12)},
			}}
			manifest, refusal, err := r.render(t.Context(), template, template.GroupVersionKind().Version)
			if err != nil {
				t.Fatal(err)
			}
			if refusal != nil {
				if refusal.Reason != tc.reason {
					t.Errorf("refused: %s: %s, want %q", refusal.Reason, refusal.Message, tc.reason)
				}
				return
			}
			if diff := cmp.Diff(tc.want, manifest.Object["spec"]); diff != "" || tc.reason != "" {
				t.Errorf("want the reason %q; -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAnObjectOfAnOperatorIsRenderedWithoutOperators(t *testing.T) {
	policy := &hubv1.OverridePolicy{}
	policy.Namespace, policy.Name = object.Namespace, "tune"
	policy.Spec.ResourceSelectors = []hubv1.ResourceSelector{{APIGroup: object.Group, Kind: object.Kind}}
	policy.Spec.Rules = []hubv1.OverrideRule{{Name: "r", Patches: []hubv1.PatchOperation{
		{Op: hubv1.PatchAdd, Path: "/spec/rotors", Expression: "cluster.operators[?'rotors'].version.orValue('none')"},
	}}}
	for bundle, want := range map[string]string{hubv1.BundleKind: "1.0.0", hubv1.FederatedOperatorKind: "none"} {
		r := newRun(&fakeCluster{}, 0)
		r.queue.opts.Client = onePolicy{policy: policy}
		r.in.mcl = &hubv1.MemberCluster{}
		r.in.mcl.Status.Operators = []hubv1.OperatorFact{{Name: "rotors", Version: "1.0.0", Installed: true}}
		r.binding.BindingSpec().ObjectRef.Bundle = &hubv1.BundleReference{Kind: bundle, Name: "rotors"}
		template := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "test.hanse.dev/v1", "kind": "Widget", "metadata": map[string]any{"name": "web", "namespace": object.Namespace}, "spec": map[string]any{},
		}}
		manifest, refusal, err := r.render(t.Context(), template, "v1")
		if err != nil || refusal != nil {
			t.Fatalf("refused: %v, %v", refusal, err)
		}
		if diff := cmp.Diff(map[string]any{"rotors": want}, manifest.Object["spec"]); diff != "" {
			t.Errorf("an object of a %s (-want +got):\n%s", bundle, diff)
		}
	}
}
