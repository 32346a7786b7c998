package hub

import (
	"context"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// definitions reads the hub's CRDs, uncached: one may have a megabyte, and an informer would keep all of them.
type definitions struct {
	reader client.Reader
	mapper meta.RESTMapper
}

// of asks for that of a kind, for five seconds at most. The error is a NotFound for a kind that is built in, or aggregated.
func (d definitions) of(ctx context.Context, kind schema.GroupKind, versions ...string) (*apiextensionsv1.CustomResourceDefinition, error) {
	mapping, err := d.mapper.RESTMapping(kind, versions...)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var out apiextensionsv1.CustomResourceDefinition
	return &out, d.reader.Get(ctx, types.NamespacedName{Name: mapping.Resource.GroupResource().String()}, &out)
}
