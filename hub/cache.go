package hub

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// cacheOptions returns the options of the manager's cache. The cache drops managed fields, because no reader of the
// cache needs them, and a write without managed fields does not change them. Users' hub objects are in another store,
// which keeps the managed fields of their status.
func cacheOptions(namespace string) cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			// The cache leaves out some types of Secrets. The hub reads the Secrets with the contents of revisions, also of
			// bundles as a whole, and those with generated values, directly from the API server. Package templates has its own
			// store for the Secrets with objects of bundles.
			&corev1.Secret{}: {
				Namespaces: map[string]cache.Config{namespace: {}},
				Field: fields.AndSelectors(
					fields.OneTermNotEqualSelector("type", hubv1.RevisionSecretType), fields.OneTermNotEqualSelector("type", hubv1.ManifestSecretType),
					fields.OneTermNotEqualSelector("type", hubv1.GeneratedValuesSecretType),
					fields.OneTermNotEqualSelector("type", hubv1.SetListSecretType), fields.OneTermNotEqualSelector("type", hubv1.SetPartSecretType),
				),
			},
			&corev1.ConfigMap{}: {
				Namespaces: map[string]cache.Config{namespace: {}}, Field: fields.OneTermEqualSelector("metadata.name", hubv1.EpochsConfigMap),
			},
			&hubv1.SetRollout{}:             {Namespaces: map[string]cache.Config{namespace: {}}},
			&hubv1.ResourceBinding{}:        {Transform: trimBinding},
			&hubv1.ClusterResourceBinding{}: {Transform: trimBinding},
		},
	}
}

// trimBinding drops the managed fields of a binding, and shrinks its slices to save memory.
func trimBinding(obj any) (any, error) {
	b, ok := obj.(hubv1.BindingObject)
	if !ok {
		return nil, fmt.Errorf("trimming %T: not a binding", obj)
	}
	b.SetManagedFields(nil)
	b.BindingSpec().Clusters = exact(b.BindingSpec().Clusters)
	rows := exact(b.BindingStatus().Clusters)
	for i := range rows {
		if o := rows[i].Observed; o != nil {
			o.Raw = exact(o.Raw)
		}
	}
	b.BindingStatus().Clusters = rows
	return b, nil
}

// exact returns a slice without spare capacity.
func exact[T any](s []T) []T {
	if len(s) == cap(s) {
		return s
	}
	return append(make([]T, 0, len(s)), s...)
}
