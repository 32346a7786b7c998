package discovery_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hanse-dev/hanse/member/discovery"
)

func TestKindsThatCanBeListed(t *testing.T) {
	w := newWorld(t)
	groups, err := w.kinds.Groups(t.Context())
	must(t, err)
	for _, group := range []string{"", "apps", "apiextensions.k8s.io"} {
		if !slices.Contains(groups, group) {
			t.Errorf("group %q is missing of %v", group, groups)
		}
	}
	t.Run("without subresources and what cannot be listed", func(t *testing.T) {
		kinds, err := w.kinds.Listable(t.Context(), "")
		must(t, err)
		if pod := (discovery.Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Resource: "pods"}); !slices.Contains(kinds, pod) {
			t.Errorf("pods are missing of %v", kinds)
		}
		for _, k := range kinds {
			if k.Kind == "Binding" || k.Kind == "Eviction" || k.Kind == "Scale" {
				t.Errorf("%v cannot be listed", k)
			}
		}
	})
	t.Run("each at the first version of its group that has it", func(t *testing.T) {
		kinds, err := w.kinds.Listable(t.Context(), "autoscaling")
		must(t, err)
		if want := []discovery.Kind{{GroupVersionKind: schema.GroupVersionKind{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}, Resource: "horizontalpodautoscalers"}}; !slices.Equal(kinds, want) {
			t.Errorf("got %v, want %v", kinds, want)
		}
	})
	t.Run("none of a group that is not served", func(t *testing.T) {
		if kinds, err := w.kinds.Listable(t.Context(), "none.example.com"); err != nil || len(kinds) > 0 {
			t.Errorf("got %v, %v", kinds, err)
		}
	})
}
