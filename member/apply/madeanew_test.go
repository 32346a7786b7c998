package apply_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

// The hub object was deleted and created again, and its copy stays: it was orphaned by policy, or has a rollout. The
// objects are those of the case: an immutable ConfigMap, a Job, and an object that can be changed.
func TestACopyOfAnEarlierObjectThatStays(t *testing.T) {
	job := schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}
	migrate := func(ns, image string) *unstructured.Unstructured {
		return object(job, ns, "migrate", spec(map[string]any{"template": map[string]any{"spec": map[string]any{
			"restartPolicy": "Never", "containers": []any{map[string]any{"name": "migrate", "image": "registry.example.com/migrate:" + image}},
		}}}))
	}
	settings := func(ns, level string) *unstructured.Unstructured {
		return object(configMap, ns, "settings", map[string]any{"immutable": true, "data": map[string]any{"level": level}})
	}
	for name, tc := range map[string]struct {
		of            func(ns, content string) *unstructured.Unstructured
		first, second string
		want          result
		says          string
	}{
		"an immutable ConfigMap keeps its content": {
			settings, "info", "debug", failed(hubv1.ReasonMadeAnew, member.RetrySlowly), "run kubectl delete configmaps settings -n ",
		},
		"a changed Job does not run again": {
			migrate, "1", "2", failed(hubv1.ReasonMadeAnew, member.RetrySlowly), "run kubectl delete jobs.batch migrate -n ",
		},
		"an unchanged Job does not run again, either": {
			migrate, "1", "1", failed(hubv1.ReasonMadeAnew, member.RetrySlowly), "run kubectl delete jobs.batch migrate -n ",
		},
		"an object that can be changed gets the present content": {
			func(ns, size string) *unstructured.Unstructured {
				return object(widget, ns, "web", spec(map[string]any{"note": size}))
			},
			"a", "b", result{metav1.ConditionTrue, hubv1.ReasonMadeAnew, true, member.RetryNever}, "run kubectl delete widgets.shop.example.com web -n ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.apply(w.intentOf(tc.of(w.ns, tc.first), "d1"), written)
			again := w.intentOf(tc.of(w.ns, tc.second), "d2")
			again.OwnerUID = "template-2"
			out := w.apply(again, tc.want)
			if !strings.Contains(out.Message, tc.says+w.ns) {
				t.Errorf("the message has no command that helps: %s", out.Message)
			}
			if out.Applied == metav1.ConditionTrue {
				again.Confirmed = out.Hash
				w.apply(again, unchanged)
				return
			}
			gvk := again.Manifest.GroupVersionKind()
			if err := w.objects(gvk, w.ns).Delete(t.Context(), again.Manifest.GetName(), metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}); err != nil {
				t.Fatal(err)
			}
			w.apply(again, written)
		})
	}
}
