package report

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/catalog"
	"github.com/hanse-dev/hanse/member/rollup"
)

// Definitions are the hub's CustomResourceDefinitions, see catalog.Catalog.
type Definitions interface {
	Get(context.Context, schema.GroupKind) (*catalog.Definition, error)
	Invalidate(kind schema.GroupKind, resourceVersion string) bool
	HubObject(context.Context, hubv1.ObjectReference, *unstructured.Unstructured) (hubv1.HubObject, error)
}

// definition has what the hub knows about the status of a kind at one version. This knowledge comes from the
// CustomResourceDefinition on the hub, or from the built-in schema of workloads.
type definition struct {
	resource schema.GroupVersionResource
	schema   rollup.Schema
	// known is false for a kind that has neither a CustomResourceDefinition nor a built-in schema. subresource is true if
	// the version has a status subresource.
	known, subresource bool
	resourceVersion    string // resourceVersion of the CRD
}

// define returns the definition of a kind at one version.
func (r *Reporter) define(ctx context.Context, gvk schema.GroupVersionKind) (definition, error) {
	mapping, err := r.opts.Client.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return definition{}, fmt.Errorf("finding the resource of %s: %w", gvk.GroupKind(), err)
	}
	out := definition{resource: mapping.Resource}
	if workload, ok := rollup.WorkloadSchema(gvk); ok {
		out.schema, out.known, out.subresource = workload, true, true
		return out, nil
	}
	if gvk.Group == "" {
		return out, nil // kinds of the core group have no CRD
	}
	d, err := r.opts.Sources.Definitions.Get(ctx, gvk.GroupKind())
	if err != nil || d == nil {
		return out, err
	}
	v, err := d.Version(gvk.Version)
	if err != nil {
		return out, err
	}
	out.schema, out.known, out.subresource, out.resourceVersion = v.Status, true, v.StatusSubresource, d.ResourceVersion
	return out, nil
}
