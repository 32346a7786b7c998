package report

import (
	"context"
	"fmt"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hanse-dev/hanse/hub/rollup"
)

// A definition is read again when it is this old, or when its server refused what it seemed to allow.
const definitionExpires = 5 * time.Minute

// definition is what is known of the status of one kind and version: by the hub's CRD, or by its workload schema.
type definition struct {
	resource schema.GroupVersionResource
	schema   rollup.Schema
	// known is false for a kind that has neither; subresource says whether the version has a status subresource.
	known, subresource bool
	resourceVersion    string // of the CRD
	read               time.Time
}

// definitions reads CRDs, uncached and rarely: a schema is large and an informer would keep all of them.
type definitions struct {
	reader client.Reader
	mapper meta.RESTMapper
	clock  clock.PassiveClock

	mu    sync.Mutex
	kinds map[schema.GroupVersionKind]*kindDefinition
}

// kindDefinition lets one caller read while the others wait for the same answer.
type kindDefinition struct {
	mu    sync.Mutex
	known *definition
}

func (d *definitions) kind(gvk schema.GroupVersionKind) *kindDefinition {
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.kinds[gvk]
	if k == nil {
		k = &kindDefinition{}
		d.kinds[gvk] = k
	}
	return k
}

// get returns the definition of a kind. While the server cannot be asked, the last answer holds.
func (d *definitions) get(ctx context.Context, gvk schema.GroupVersionKind) (definition, error) {
	k := d.kind(gvk)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known != nil && d.clock.Since(k.known.read) < definitionExpires {
		return *k.known, nil
	}
	fresh, err := d.read(ctx, gvk, k.known)
	switch {
	case err == nil:
		k.known = fresh
	case k.known == nil:
		return definition{}, err
	}
	return *k.known, nil
}

// expire makes the next get ask the server, unless it was asked just now. It says whether it will.
func (d *definitions) expire(gvk schema.GroupVersionKind) bool {
	k := d.kind(gvk)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil || d.clock.Since(k.known.read) < throttledWindow {
		return false
	}
	k.known.read = time.Time{}
	return true
}

func (d *definitions) read(ctx context.Context, gvk schema.GroupVersionKind, known *definition) (*definition, error) {
	mapping, err := d.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, fmt.Errorf("finding the resource of %s: %w", gvk.GroupKind(), err)
	}
	out := &definition{resource: mapping.Resource, read: d.clock.Now()}
	if workload, ok := rollup.WorkloadSchema(gvk); ok {
		out.schema, out.known, out.subresource = workload, true, true
		return out, nil
	}
	if mapping.Resource.Group == "" {
		return out, nil // the core group has no CRDs
	}
	var crd apiextensionsv1.CustomResourceDefinition
	name := mapping.Resource.GroupResource().String()
	if err := d.reader.Get(ctx, types.NamespacedName{Name: name}, &crd); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return out, nil
		}
		return nil, fmt.Errorf("reading CustomResourceDefinition %s: %w", name, err)
	}
	if known != nil && known.resourceVersion == crd.ResourceVersion {
		out.schema, out.subresource = known.schema, known.subresource
	} else if out.schema, out.subresource, err = rollup.NewSchema(&crd, gvk.Version); err != nil {
		return nil, fmt.Errorf("reading the schema of CustomResourceDefinition %s: %w", name, err)
	}
	out.known, out.resourceVersion = true, crd.ResourceVersion
	return out, nil
}
