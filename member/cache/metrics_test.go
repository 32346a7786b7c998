package cache

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/hanse-dev/hanse/member"
)

func TestAKindIsWatchedOnceAndCountedWhileItIsInUse(t *testing.T) {
	t.Parallel()
	const cluster = "counted"
	begin := func() (*Observer, context.CancelFunc) {
		ctx, cancel := context.WithCancel(t.Context())
		ob := New(ctx, Options{
			Cluster: cluster,
			Resolve: func(schema.GroupVersionKind) (schema.GroupVersionResource, error) {
				return schema.GroupVersionResource{}, errors.New("no server")
			},
			Handler: func(string, member.Observation, bool, bool) {},
		})
		ob.linger = time.Millisecond
		return ob, cancel
	}
	counted := func(want int, when string) {
		t.Helper()
		var got int
		if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
			watches.mu.Lock()
			defer watches.mu.Unlock()
			n, any := watches.clusters[cluster]
			got = n
			return n == want && any == (want > 0), nil
		}); err != nil {
			t.Errorf("%d watches are counted %s, want %d", got, when, want)
		}
	}
	widget, gadget := schema.GroupVersionKind{Kind: "Widget"}, schema.GroupVersionKind{Kind: "Gadget"}
	a, b := types.NamespacedName{Name: "a"}, types.NamespacedName{Name: "b"}

	first, end := begin()
	first.Observe(widget, a)
	first.Observe(widget, b)
	first.Observe(gadget, a)
	counted(2, "with three holders of two kinds")
	first.Forget(gadget, a)
	counted(1, "after the last holder of one kind")
	if _, watched := first.State(gadget); watched {
		t.Error("a kind without holders is watched")
	}
	first.Forget(widget, a)
	first.Observe(gadget, b)
	counted(2, "when the kind is in use again")

	second, endSecond := begin()
	second.Observe(widget, a)
	counted(3, "while a second link is made")
	end()
	counted(1, "when the first link has ended")
	first.Forget(gadget, b)
	first.Observe(schema.GroupVersionKind{Kind: "Late"}, a)
	counted(1, "whatever is asked of the ended one")
	endSecond()
	counted(0, "when all links have ended")
}
