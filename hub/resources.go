package hub

import (
	"fmt"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// resources answers from one member's discovery which resource serves a kind. What was found is kept: a kind that the
// member no longer serves shows when the resource is used.
type resources struct {
	discovery discovery.DiscoveryInterface

	mu    sync.RWMutex
	kinds map[schema.GroupVersionKind]resource
}

type resource struct {
	schema.GroupVersionResource
	namespaced bool
	hasStatus  bool // it is a custom resource with a status subresource
}

func newResources(d discovery.DiscoveryInterface) *resources {
	return &resources{discovery: d, kinds: map[schema.GroupVersionKind]resource{}}
}

// find asks the member if the kind is not known yet. A kind that the member does not serve is a meta.NoKindMatchError.
func (r *resources) find(gvk schema.GroupVersionKind) (resource, error) {
	r.mu.RLock()
	found, ok := r.kinds[gvk]
	r.mu.RUnlock()
	if ok {
		return found, nil
	}
	list, err := r.discovery.ServerResourcesForGroupVersion(gvk.GroupVersion().String())
	if err != nil {
		if apierrors.IsNotFound(err) {
			return resource{}, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
		}
		return resource{}, fmt.Errorf("discovering %s: %w", gvk.GroupVersion(), err)
	}
	subresources := map[string]bool{}
	for _, a := range list.APIResources {
		if strings.Contains(a.Name, "/") {
			subresources[a.Name] = true
		} else if a.Kind == gvk.Kind {
			found = resource{GroupVersionResource: gvk.GroupVersion().WithResource(a.Name), namespaced: a.Namespaced}
		}
	}
	if found.Resource == "" {
		return resource{}, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
	}
	// Kinds that Kubernetes has built in are judged by what is known of them, not by whether their status is empty.
	found.hasStatus = subresources[found.Resource+"/status"] && !clientgoscheme.Scheme.IsGroupRegistered(gvk.Group)
	r.mu.Lock()
	r.kinds[gvk] = found
	r.mu.Unlock()
	return found, nil
}

// forget makes the next find ask the member again.
func (r *resources) forget(gvk schema.GroupVersionKind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.kinds, gvk)
}

// hasStatus answers from memory.
func (r *resources) hasStatus(gvk schema.GroupVersionKind) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.kinds[gvk].hasStatus
}
