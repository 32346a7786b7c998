package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestAWrittenStatusIsRememberedOnlyAsLongAsItIsNeeded(t *testing.T) {
	status := map[string]any{"replicas": int64(3)}
	tests := map[string]struct {
		before merged
		cached string // resourceVersion of the hub object in the cache
		want   merged
	}{
		"until the cache has it": {
			merged{resourceVersion: "7", result: status}, "6", merged{resourceVersion: "7", result: status},
		},
		"not when the cache has it": {
			merged{resourceVersion: "7", result: status}, "7", merged{resourceVersion: "7"},
		},
		"not when the cache has a later one": {
			merged{resourceVersion: "7", result: status}, "8", merged{resourceVersion: "7"},
		},
		"as long as the server makes something else of what is sent": {
			merged{resourceVersion: "7", result: status, sent: map[string]any{}}, "8", merged{resourceVersion: "7", result: status, sent: map[string]any{}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.before.seen(tc.cached), cmp.AllowUnexported(merged{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsNotOnTheHubObject(t *testing.T) {
	custom := definition{known: true, subresource: true, resourceVersion: "1"}
	template := func(managers ...string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Thing"}}
		o.SetGeneration(2)
		var fields []metav1.ManagedFieldsEntry
		for _, m := range managers {
			fields = append(fields, metav1.ManagedFieldsEntry{Manager: m, Subresource: "status"})
		}
		o.SetManagedFields(append(fields, metav1.ManagedFieldsEntry{Manager: "kubectl"}))
		return o
	}
	apps := func(kind string, runs bool) run {
		o := template()
		o.SetAPIVersion("apps/v1")
		o.SetKind(kind)
		r := &Reporter{opts: Options{HubRunsWorkloads: func() bool { return runs }}}
		return run{
			reporter: r, id: hubv1.ObjectIdentity{Group: "apps", Kind: kind},
			object: objectWrite{definition: definition{known: true, subresource: true}}, in: gathered{template: o},
		}
	}
	binding := func(of *hubv1.BundleReference) hubv1.BindingObject {
		return &hubv1.ResourceBinding{Spec: hubv1.BindingSpec{ObjectRef: hubv1.ObjectReference{Bundle: of}}}
	}
	pod := template()
	pod.SetAPIVersion("v1")
	pod.SetKind("Pod")
	thing := hubv1.ObjectIdentity{Group: "example.com", Kind: "Thing"}
	tests := map[string]struct {
		run  run
		want string // the reason of the verdict; empty: the write is allowed
	}{
		"a custom resource that is nobody else's": {run: run{id: thing, object: objectWrite{definition: custom}, in: gathered{template: template(hubv1.StatusFieldManager)}}},
		"an object of a bundle": {
			run:  run{id: thing, binding: binding(&hubv1.BundleReference{Kind: "Bundle", Namespace: "shop", Name: "web"}), object: objectWrite{definition: custom}, in: gathered{template: template()}},
			want: hubv1.ReasonBindingOnly,
		},
		"the hub runs the object itself":             {run: run{id: thing, object: objectWrite{definition: custom}, in: gathered{template: template(), hubIsTarget: true}}, want: hubv1.ReasonStatusOwnedByOther},
		"a Deployment on a hub without controllers":  {run: apps("Deployment", false)},
		"a Deployment on a hub that runs its own":    {run: apps("Deployment", true), want: hubv1.ReasonCoreWorkload},
		"a StatefulSet on a hub without controllers": {run: apps("StatefulSet", false)},
		"a Pod": {run: run{id: hubv1.ObjectIdentity{Kind: "Pod"}, in: gathered{template: pod}}, want: hubv1.ReasonCoreWorkload},
		"the placement does not want it": {
			run:  run{id: thing, object: objectWrite{definition: custom}, in: gathered{template: template(), aggregation: hubv1.StatusAggregation{Mode: hubv1.StatusBindingOnly}}},
			want: hubv1.ReasonBindingOnly,
		},
		"a kind without a definition":       {run: run{id: thing, in: gathered{template: template()}}, want: hubv1.ReasonBindingOnly},
		"no status subresource":             {run: run{id: thing, object: objectWrite{definition: definition{known: true}}, in: gathered{template: template()}}, want: hubv1.ReasonNoStatusSubresource},
		"another manager writes the status": {run: run{id: thing, object: objectWrite{definition: custom}, in: gathered{template: template(hubv1.StatusFieldManager, "operator")}}, want: hubv1.ReasonStatusOwnedByOther},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.run.binding == nil {
				tc.run.binding = binding(nil)
			}
			got := ""
			for _, against := range reservations {
				if v := against(&tc.run); v != nil {
					got = v.reason
					break
				}
			}
			if got != tc.want {
				t.Errorf("reason %q, want %q", got, tc.want)
			}
		})
	}
}
