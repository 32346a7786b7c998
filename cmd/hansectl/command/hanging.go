package command

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// placedKinds collects the kinds of objects that placements select, and those of objects with a binding.
type placedKinds map[schema.GroupKind]bool

func (k placedKinds) addSelectors(p hubv1.PlacementObject) {
	for _, s := range p.PlacementSpec().ResourceSelectors {
		if s.Kind != "*" && s.APIGroup != hubv1.GroupVersion.Group {
			k[schema.GroupKind{Group: s.APIGroup, Kind: s.Kind}] = true
		}
	}
}

func (k placedKinds) addBinding(b hubv1.BindingObject) {
	if inBundle(b) == "" {
		k[hubv1.ObjectOf(b).GroupKind()] = true
	}
}

// eachDeleting calls visit for each hub object that is being deleted. It reads the metadata of all objects of the
// kinds, page by page. If the namespace is empty, it reads all namespaces. It skips kinds that the hub does not serve.
// It prints one warning about the kinds that it cannot list.
func (h *hub) eachDeleting(ctx context.Context, c client.Client, kinds placedKinds, namespace string, visit func(*metav1.PartialObjectMetadata)) error {
	var first error
	failed := 0
	sorted := slices.SortedFunc(maps.Keys(kinds), func(a, b schema.GroupKind) int { return cmp.Compare(a.String(), b.String()) })
	for _, kind := range sorted {
		switch err := eachDeletingOf(ctx, c, kind, namespace, visit); {
		case ctx.Err() != nil:
			return fmt.Errorf("listing objects of kind %s: %w", kind, err)
		case err != nil && !meta.IsNoMatchError(err):
			if failed++; first == nil {
				first = fmt.Errorf("%s: %w", kind, err)
			}
		}
	}
	if first != nil {
		h.warn(fmt.Sprintf("warning: objects of %s are not checked for finalizers: %v\n", counted(failed, "kind"), first))
	}
	return nil
}

func eachDeletingOf(ctx context.Context, c client.Client, kind schema.GroupKind, namespace string, visit func(*metav1.PartialObjectMetadata)) error {
	mapping, err := c.RESTMapper().RESTMapping(kind)
	if err != nil {
		return err
	}
	if namespace != "" && mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return nil
	}
	list := &metav1.PartialObjectMetadataList{}
	for {
		token := list.Continue
		list = &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(mapping.GroupVersionKind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := c.List(ctx, list, client.InNamespace(namespace), client.Limit(pageSize), client.Continue(token)); err != nil {
			return err
		}
		for i := range list.Items {
			if o := &list.Items[i]; o.DeletionTimestamp != nil {
				o.SetGroupVersionKind(mapping.GroupVersionKind)
				visit(o)
			}
		}
		if list.Continue == "" {
			return nil
		}
	}
}
