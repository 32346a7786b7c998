package templates

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Several readers request each object of a list with many pages as soon as its event arrives. At this time, the hub
// still has some objects unpacked, and has compressed others.
func TestObjectsOfALongListAreWhole(t *testing.T) {
	t.Parallel()
	const objects = 600
	c := newClient(t)
	define(t, c, "pages.example.com")
	var making sync.WaitGroup
	for worker := range 8 {
		making.Go(func() {
			for i := worker; i < objects; i += 8 {
				if err := c.Create(t.Context(), widget("pages.example.com", fmt.Sprint("w-", i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	making.Wait()

	s := newStore(t, c)
	var readers sync.WaitGroup
	var mu sync.Mutex
	whole := sets.New[string]()
	s.OnChange(func(id hubv1.ObjectIdentity) {
		readers.Go(func() {
			for range 3 {
				u, ok := s.Get(id)
				if !ok || u.GetUID() == "" || u.GetAPIVersion() == "" || u.GetName() != id.Name || u.Object["spec"] == nil {
					t.Errorf("%s is %v", id, u)
					return
				}
			}
			mu.Lock()
			defer mu.Unlock()
			whole.Insert(id.Name)
		})
	})
	s.Want(sets.New(schema.GroupKind{Group: "pages.example.com", Kind: "Widget"}))
	start(t, s)
	eventually(t, "every object was told of and is whole", func(context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		if len(whole) != objects {
			return fmt.Errorf("%d of %d are", len(whole), objects)
		}
		return nil
	})
	readers.Wait()
}
