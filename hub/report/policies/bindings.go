package policies

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/scopes"
)

const (
	// placementIndex is the name of an index. It finds the bindings whose object follows a given placement, which means
	// that this placement decides about the object.
	placementIndex = "spec.placementRef"
	// otherIndex is the name of an index. It finds the bindings whose object a given placement selects, although the
	// object follows another placement.
	otherIndex = "status.otherPlacements"
)

func index(indexer client.FieldIndexer) error {
	err := scopes.IndexBindings(indexer, placementIndex, func(b hubv1.BindingObject) []string {
		if key, ok := followed(b); ok {
			return []string{key.String()}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return scopes.IndexBindings(indexer, otherIndex, func(b hubv1.BindingObject) []string {
		var keys []string
		for _, key := range notFollowed(b) {
			keys = append(keys, key.String())
		}
		return keys
	})
}

// followed returns the key of the placement that a binding's object follows. It returns false if the object follows
// none.
func followed(b hubv1.BindingObject) (types.NamespacedName, bool) {
	ref := b.BindingSpec().PlacementRef
	if ref == nil {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, true
}

// notFollowed returns the keys of the placements that select a binding's object, but that the object does not follow.
// An object follows only one placement.
func notFollowed(b hubv1.BindingObject) []types.NamespacedName {
	var keys []types.NamespacedName
	for _, other := range b.BindingStatus().OtherPlacements {
		switch kind, name, _ := strings.Cut(other, "/"); kind {
		case "Placement":
			keys = append(keys, types.NamespacedName{Namespace: b.GetNamespace(), Name: name})
		case "ClusterPlacement":
			keys = append(keys, types.NamespacedName{Name: name})
		}
	}
	return keys
}

// bindings lists bindings from the cache, sorted by namespace and name. The cache shares the bindings, so that the
// caller must not change them. An empty namespace selects all bindings, including the cluster-scoped ones.
func bindings(ctx context.Context, c client.Reader, namespace string, options ...client.ListOption) ([]hubv1.BindingObject, error) {
	out, err := scopes.Bindings(ctx, c, namespace, append(options, client.UnsafeDisableDeepCopy)...)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(out, func(a, b hubv1.BindingObject) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return out, nil
}
