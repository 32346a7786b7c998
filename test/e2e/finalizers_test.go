package e2e

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// deleteHeld deletes a hub object whose copy has a finalizer of the member. The hub waits for this finalizer, and
// deletes the binding after the finalizer is removed.
func deleteHeld(t *testing.T, member string, obj *unstructured.Unstructured) {
	t.Helper()
	ctx := t.Context()
	copied, err := on(ctx, member, obj)
	must(t, err)
	must(t, suite.Members[member].Patch(ctx, copied, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["test.hanse.dev/hold"]}}`))))
	must(t, suite.Hub.Delete(ctx, obj.DeepCopy()))
	eventually(t, normal, func() error { return rowIs(ctx, obj, member, metav1.ConditionFalse, hubv1.ReasonFinalizersRemain) })
	must(t, suite.Members[member].Patch(ctx, copied, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	eventually(t, normal, func() error { return noBinding(ctx, obj) })
}
