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
	for name, tc := range map[string]struct {
		bundle *hubv1.BundleReference
		held   *hubv1.HeldRemoval
		want   bool
	}{
		"while its removal is held":            {bundle, held, true},
		"but not before the removal is judged": {bundle, nil, false},
		"and not if a hub object is deleted":   {nil, held, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, takes("eu"))
			b := w.add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "settings")
			b.Spec.ObjectRef.Bundle = tc.bundle
			b.Spec.Clusters[0].Removal = tc.held
			w.deleted = map[string]bool{"settings": true}
			r := &run{
				queue: &queue{opts: Options{Templates: templatesOf{w}}}, binding: b, target: &b.Spec.Clusters[0], gathered: gathered{mcl: clusterWithFacts()},
			}
			r.object.ObjectIdentity = hubv1.ObjectOf(b)
			if _, ok := r.template(); ok != tc.want {
				t.Errorf("the copy is written: %t", ok)
			}
		})
	}
}
