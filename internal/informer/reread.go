package informer

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hanse-dev/hanse/internal/answer"
)

var errNotFollowed = errors.New("the hub does not watch the kind at the moment")

// Reread reads one stored object again and passes it to Transform, for example after a change of Transform's settings.
// The handler is called with the result. If the object has changed since it was stored, Reread ignores the new version,
// because the watch will deliver the change.
func (s *Set) Reread(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) error {
	k := s.part(gvk, namespace)
	if k == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, k.set.options.ListTimeout)
	defer cancel()
	kept, done := answer.Keep(ctx)
	defer done()
	u, err := k.get(kept, namespace, name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		err = k.hand(ctx, u)
	}
	if err != nil {
		return fmt.Errorf("reading %s %s once more: %w", gvk.Kind, Key(namespace, name), err)
	}
	return nil
}

func (k *kind) get(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error) {
	k.mu.RLock()
	resource := k.place.resource
	k.mu.RUnlock()
	switch {
	case resource.Empty():
		return nil, errNotFollowed
	case namespace == "":
		return k.set.options.Client.Resource(resource).Get(ctx, name, metav1.GetOptions{})
	}
	return k.set.options.Client.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
}

// hand passes the object to the goroutine of the kind. This goroutine processes it between two events of the watch.
func (k *kind) hand(ctx context.Context, u *unstructured.Unstructured) error {
	select {
	case k.orders.reread <- u:
		return nil
	case <-ctx.Done():
		return errNotFollowed
	case <-k.ctx.Done():
		return nil
	}
}

// takeReread transforms an object that was read again, stores the result and calls the handler. It ignores the object
// if another version is stored by now.
func (k *kind) takeReread(u *unstructured.Unstructured) {
	key := Key(u.GetNamespace(), u.GetName())
	k.mu.RLock()
	old := k.objects[key]
	k.mu.RUnlock()
	if !same(old, u) {
		return
	}
	object := k.transform(u)
	if object == nil {
		return
	}
	if err := k.kept.Add(k.growth(key, object)); err != nil {
		k.refuse(u.GetNamespace(), u.GetName(), err)
		return
	}
	k.mu.Lock()
	k.objects[key] = object
	k.regroup(key, old, object)
	k.mu.Unlock()
	k.notify(change{old, object})
}
