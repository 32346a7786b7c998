// Package catalog caches the hub's CustomResourceDefinitions of requested kinds. Of each definition, it keeps the parts
// that determine how objects of the kind are read.
//
//   - A definition is read without a cache at the first request for its kind. An informer would keep all definitions
//     completely in memory, and one definition may have 1 MB.
//   - One watch of the metadata of all definitions shows changes. A changed definition is read again at once; a cached
//     definition never expires.
//   - While the API server does not answer, the last definition is used.
//
// member/health and member/rollup use the definitions to read and merge statuses.
package catalog

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hanse-dev/hanse/hub/store/scopes"
	"github.com/hanse-dev/hanse/internal/answer"
	"github.com/hanse-dev/hanse/member/health"
)

var errNoVersion = errors.New("the definition has no such version")

// Catalog caches definitions by kind. Every replica has one.
type Catalog struct {
	reader   client.Reader
	mapper   meta.RESTMapper
	onChange func(kind schema.GroupKind, before, after *Definition)

	mu    sync.Mutex
	kinds map[schema.GroupKind]*entry
}

// entry has the cached CustomResourceDefinition of one kind. Catalog.mu guards all its fields except reading.
type entry struct {
	reading sync.Mutex // held by the caller that reads the definition

	name        string      // name of the definition; empty before the first answer
	known       *Definition // nil before the first answer, and if the kind has no definition
	current     bool        // false if the definition has changed since the last read
	changes     int         // number of events that made known outdated
	invalidated string      // the resourceVersion that a caller considers outdated
}

// New returns an empty Catalog. reader must read without a cache.
func New(reader client.Reader, mapper meta.RESTMapper) *Catalog {
	return &Catalog{reader: reader, mapper: mapper, kinds: map[schema.GroupKind]*entry{}}
}

// OnChange sets the function that is called after a change of a cached definition. before is nil for a new definition,
// and after is nil for a deleted one. The function runs in a separate goroutine. Call OnChange before Watch.
func (c *Catalog) OnChange(f func(kind schema.GroupKind, before, after *Definition)) { c.onChange = f }

// Watch reads and watches the metadata of all definitions.
func (c *Catalog) Watch(ctx context.Context, informers cache.Cache) error {
	definition := &metav1.PartialObjectMetadata{}
	definition.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	informer, err := informers.GetInformer(ctx, definition)
	if err != nil {
		return fmt.Errorf("watching CustomResourceDefinitions: %w", err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { c.see(ctx, o, false) },
		UpdateFunc: func(_, o any) { c.see(ctx, o, false) },
		DeleteFunc: func(o any) { c.see(ctx, scopes.Last(o), true) },
	})
	if err != nil {
		return fmt.Errorf("watching CustomResourceDefinitions: %w", err)
	}
	return nil
}

// see handles an event of the watch, which has only the metadata of a CustomResourceDefinition. If the cached
// definition is older, see reads the definition again. gone is true if the definition was deleted.
func (c *Catalog) see(ctx context.Context, o any, gone bool) {
	seen, ok := o.(*metav1.PartialObjectMetadata)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for kind, e := range c.kinds {
		if e.name != seen.Name || (!gone && e.known.covers(seen)) {
			continue
		}
		e.current = false
		e.changes++
		go func() { _, _ = c.Get(ctx, kind) }() // after an error, the next caller reads again
	}
}

// Known returns the cached CustomResourceDefinition of a kind. The result is nil if the kind has none, or if no caller
// has requested it with Get yet.
func (c *Catalog) Known(kind schema.GroupKind) *Definition {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.kinds[kind]; e != nil {
		return e.known
	}
	return nil
}

// Get returns the definition of a kind. The result is nil for a built-in kind, and for a kind of an aggregated API
// server. Get reads the definition from the API server at the first request, and again after it has changed. It returns
// an error if this read fails.
func (c *Catalog) Get(ctx context.Context, kind schema.GroupKind) (*Definition, error) {
	e := c.entry(kind)
	e.reading.Lock()
	defer e.reading.Unlock()
	c.mu.Lock()
	known, current, changes := e.known, e.current, e.changes
	c.mu.Unlock()
	if current {
		return known, nil
	}
	name, fresh, err := c.read(ctx, kind, known)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil && e.name == "":
		return nil, err
	case err != nil:
		return e.known, nil
	}
	if c.onChange != nil && e.name != "" && fresh != e.known {
		go c.onChange(kind, e.known, fresh)
	}
	e.name, e.known, e.current = name, fresh, e.changes == changes
	return fresh, nil
}

// Conventions returns the cached conventions for reading the status of a kind's objects. They are empty until a caller
// has requested the definition.
func (c *Catalog) Conventions(gvk schema.GroupVersionKind) health.Conventions {
	v, err := c.Known(gvk.GroupKind()).Version(gvk.Version)
	if err != nil {
		return health.Conventions{}
	}
	return v.Conventions
}

// Learn returns the same as Conventions. If the definition is not cached, it reads the definition first. If this read
// fails, the conventions are empty.
func (c *Catalog) Learn(ctx context.Context, gvk schema.GroupVersionKind) health.Conventions {
	if _, err := c.Get(ctx, gvk.GroupKind()); err != nil {
		return health.Conventions{}
	}
	return c.Conventions(gvk)
}

// ScalePath returns the path of the replicas in the scale subresource of a kind. The result is empty if the kind has no
// scale subresource, or if the definition cannot be read.
func (c *Catalog) ScalePath(ctx context.Context, kind schema.GroupKind) string {
	d, err := c.Get(ctx, kind)
	if err != nil {
		return ""
	}
	return d.ScalePath()
}

// Invalidate is called if the API server does not behave as the CustomResourceDefinition with this resourceVersion
// says. If the cached definition has this resourceVersion, the next Get reads the definition again. Invalidate returns
// false if it was already called for the cached definition.
func (c *Catalog) Invalidate(kind schema.GroupKind, resourceVersion string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.kinds[kind]
	switch {
	case e == nil || e.known == nil || e.known.ResourceVersion != resourceVersion:
		return true
	case e.invalidated == resourceVersion:
		return false
	}
	e.invalidated, e.current = resourceVersion, false
	return true
}

func (c *Catalog) entry(kind schema.GroupKind) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.kinds[kind]
	if e == nil {
		e = &entry{}
		c.kinds[kind] = e
	}
	return e
}

// read reads the definition of a kind from the API server. d is nil if the kind has no definition. If the definition
// has not changed since known was read, d is known.
func (c *Catalog) read(ctx context.Context, kind schema.GroupKind, known *Definition) (name string, d *Definition, err error) {
	mapping, err := c.mapper.RESTMapping(kind)
	if err != nil {
		return "", nil, fmt.Errorf("finding the resource of %s: %w", kind, err)
	}
	name = mapping.Resource.GroupResource().String()
	ctx, cancel := context.WithTimeout(ctx, answer.Timeout)
	defer cancel()
	var crd apiextensionsv1.CustomResourceDefinition
	switch err := c.reader.Get(ctx, types.NamespacedName{Name: name}, &crd); {
	case apierrors.IsNotFound(err):
		return name, nil, nil
	case err != nil:
		return "", nil, fmt.Errorf("reading CustomResourceDefinition %s: %w", name, err)
	}
	if known != nil && known.ResourceVersion == crd.ResourceVersion {
		return name, known, nil
	}
	d, err = newDefinition(&crd)
	return name, d, err
}
