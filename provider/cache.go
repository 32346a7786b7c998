package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// readWait is how long a read waits for the first list of its kind.
const readWait = 2 * time.Second

// ErrNotSynced means that the first list of a kind has not arrived from a cluster. The caller tries again later.
var ErrNotSynced = errors.New("the first list has not arrived")

// memberCache is the cache of one member. Controllers call GetInformer and WaitForCacheSync while they hold a lock for
// all clusters, so these methods do not wait for the member: an informer begins in the background. A read waits for a
// moment, and then returns ErrNotSynced.
type memberCache struct {
	cache.Cache
	ctx       context.Context // ends when the member leaves
	cluster   string
	scheme    *runtime.Scheme
	mapper    meta.RESTMapper
	transport *transport
	wait      time.Duration

	mu    sync.Mutex
	kinds map[kindKey]*lateInformer
}

// kindKey names an informer. Typed objects, unstructured ones and metadata have informers of their own.
type kindKey struct {
	gvk  schema.GroupVersionKind
	form string
}

// GetInformer implements cache.Informers. It returns at once.
func (c *memberCache) GetInformer(_ context.Context, obj client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	return c.informer(obj)
}

// GetInformerForKind implements cache.Informers. It returns at once.
func (c *memberCache) GetInformerForKind(_ context.Context, gvk schema.GroupVersionKind, _ ...cache.InformerGetOption) (cache.Informer, error) {
	obj, err := c.newObject(gvk)
	if err != nil {
		return nil, err
	}
	return c.informer(obj)
}

func (c *memberCache) newObject(gvk schema.GroupVersionKind) (client.Object, error) {
	made, err := c.scheme.New(gvk)
	if err != nil {
		return nil, fmt.Errorf("making an object of %s: %w", gvk, err)
	}
	obj, ok := made.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%s is no kind of objects", gvk)
	}
	return obj, nil
}

// informer returns the informer of an object's kind, and begins it if it is new.
func (c *memberCache) informer(obj client.Object) (*lateInformer, error) {
	key, err := c.keyOf(obj)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.kinds[key]; known != nil {
		return known, nil
	}
	ctx, stop := context.WithCancel(c.ctx)
	late := &lateInformer{key: key, stop: stop}
	c.kinds[key] = late
	go late.begin(ctx, c.Cache, obj)
	return late, nil
}

func (c *memberCache) keyOf(obj client.Object) (kindKey, error) {
	gvk, err := apiutil.GVKForObject(obj, c.scheme)
	if err != nil {
		return kindKey{}, fmt.Errorf("finding the kind of %T: %w", obj, err)
	}
	switch obj.(type) {
	case runtime.Unstructured:
		return kindKey{gvk: gvk, form: "unstructured"}, nil
	case *metav1.PartialObjectMetadata:
		return kindKey{gvk: gvk, form: "metadata"}, nil
	}
	return kindKey{gvk: gvk, form: "typed"}, nil
}

// RemoveInformer implements cache.Informers.
func (c *memberCache) RemoveInformer(ctx context.Context, obj client.Object) error {
	key, err := c.keyOf(obj)
	if err != nil {
		return err
	}
	c.mu.Lock()
	known := c.kinds[key]
	delete(c.kinds, key)
	c.mu.Unlock()
	if known != nil {
		known.stop()
	}
	return c.Cache.RemoveInformer(ctx, obj)
}

// WaitForCacheSync implements cache.Informers. It is true at once, because controllers call it while they hold their
// lock. A read of a kind that is not synced returns ErrNotSynced.
func (c *memberCache) WaitForCacheSync(context.Context) bool { return c.ctx.Err() == nil }

// IndexField implements client.FieldIndexer. The index is made when the informer begins.
func (c *memberCache) IndexField(_ context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	late, err := c.informer(obj)
	if err != nil {
		return err
	}
	return late.index(c.ctx, c.Cache, obj, field, extract)
}

// Get implements client.Reader.
func (c *memberCache) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if err := c.await(ctx, obj); err != nil {
		return err
	}
	return c.Cache.Get(ctx, key, obj, opts...)
}

// List implements client.Reader.
func (c *memberCache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	item, err := c.itemOf(list)
	if err != nil {
		return err
	}
	if err := c.await(ctx, item); err != nil {
		return err
	}
	return c.Cache.List(ctx, list, opts...)
}

func (c *memberCache) itemOf(list client.ObjectList) (client.Object, error) {
	gvk, err := apiutil.GVKForObject(list, c.scheme)
	if err != nil {
		return nil, fmt.Errorf("finding the kind of %T: %w", list, err)
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	switch list.(type) {
	case runtime.Unstructured:
		item := &unstructured.Unstructured{}
		item.SetGroupVersionKind(gvk)
		return item, nil
	case *metav1.PartialObjectMetadataList:
		item := &metav1.PartialObjectMetadata{}
		item.SetGroupVersionKind(gvk)
		return item, nil
	}
	return c.newObject(gvk)
}

// await waits for the first list of an object's kind, but not longer than c.wait.
func (c *memberCache) await(ctx context.Context, obj client.Object) error {
	late, err := c.informer(obj)
	if err != nil {
		return err
	}
	synced := late.HasSyncedChecker().Done()
	select {
	case <-synced:
		return nil
	default:
	}
	timer := time.NewTimer(c.wait)
	defer timer.Stop()
	select {
	case <-synced:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.ctx.Done():
		return fmt.Errorf("cluster %s: %w", c.cluster, errLeft)
	case <-timer.C:
		return fmt.Errorf("cluster %s: %s: %w%s", c.cluster, late.key.gvk.Kind, ErrNotSynced, c.why(late))
	}
}

// why returns what is known of the reason that the first list of a kind has not arrived.
func (c *memberCache) why(late *lateInformer) string {
	if err := late.lastError(); err != nil {
		return ": " + err.Error()
	}
	if !late.begun() {
		return ""
	}
	mapping, err := c.mapper.RESTMapping(late.key.gvk.GroupKind(), late.key.gvk.Version) // known, since the informer began
	if err != nil {
		return ""
	}
	if resource := mapping.Resource.GroupResource().String(); c.transport.lacks(resource) {
		return ": the cluster grants no list and watch of " + resource + "; add a rule to consumers of the chart hanse-member"
	}
	return ""
}
