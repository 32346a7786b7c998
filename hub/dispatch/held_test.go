package dispatch

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestAHeldCopyOfAnObjectThatItsBundleNoLongerContainsIsStillWritten(t *testing.T) {
	bundle := &hubv1.BundleReference{Kind: hubv1.BundleKind, Namespace: "ns", Name: "all"}
	held := &hubv1.HeldRemoval{Reason: hubv1.ReasonObjectDeleted, Since: metav1.Now(), Policy: hubv1.RemovalDelete}
	content := map[string]any{"data": map[string]any{"a": "b"}}
	for name, tc := range map[string]struct {
		bundle *hubv1.BundleReference
		held   *hubv1.HeldRemoval
		fields map[string]any
		want   bool
	}{
		"while its removal is held":            {bundle, held, content, true},
		"but not before the removal is judged": {bundle, nil, content, false},
		"and not if a hub object is deleted":   {nil, held, content, false},
		"and not if its content is lost":       {bundle, held, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, takes("eu"))
			b := w.add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "settings")
			b.Spec.ObjectRef.Bundle = tc.bundle
			b.Spec.Clusters[0].Removal = tc.held
			w.deleted, w.fields = map[string]bool{"settings": true}, map[string]map[string]any{"settings": tc.fields}
			r := &run{
				queue: &queue{opts: Options{Templates: templatesOf{w}}}, binding: b, target: &b.Spec.Clusters[0], in: gathered{mcl: clusterWithFacts()},
			}
			r.in.object.ObjectIdentity = hubv1.ObjectOf(b)
			if _, ok := r.template(); ok != tc.want {
				t.Errorf("the copy is written: %t", ok)
			}
		})
	}
}
