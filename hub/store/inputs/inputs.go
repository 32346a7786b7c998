// Package inputs reads the inputs of a decision about one object from the hub's API server, with the rights of a user.
// It computes objects of bundles from their manifests. hansectl and the console use these inputs to compute the hub's
// decision again. The hub itself reads the inputs from its cache.
package inputs

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/scopes"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/view"
)

// Reader reads the inputs of one decision.
type Reader struct {
	client.Client
	// Unless returns nil for an error about a missing right, after it has noted the consequence for the user. It returns
	// all other errors.
	Unless func(err error, consequence string) error
	// Count returns the number of hub objects on each cluster.
	Count func(context.Context) (map[string]int, error)
}

// Read returns the inputs of the decision about a hub object. If the policies or clusters cannot be read, it returns an
// error.
func (r Reader) Read(ctx context.Context, object *unstructured.Unstructured, binding hubv1.BindingObject, now time.Time) (decide.Input, error) {
	id := hubv1.ObjectOf(binding)
	in := decide.Input{Object: decide.Object{ID: id, Template: object, HubRuns: view.Refused(binding, object)}, Binding: binding, Now: now}
	var err error
	if in.Facts, err = scopes.Facts(ctx, r, id.Namespace); err != nil {
		return in, fmt.Errorf("reading the policies and clusters: %w", err)
	}
	if slices.ContainsFunc(in.Facts.Placements, view.NeedsCounts) {
		if in.Objects, err = r.Count(ctx); err != nil {
			if err := r.Unless(err, "the objects of each cluster are not counted"); err != nil {
				return in, err
			}
			in.Objects = nil
		}
	}
	if slices.ContainsFunc(in.Facts.Placements, func(p hubv1.PlacementObject) bool { return view.NeedsScalePath(p, id.GroupKind()) }) {
		d, err := Definition(ctx, r, id.GroupKind())
		if meta.IsNoMatchError(err) {
			err = nil // the object is in a bundle, so the hub may lack its kind
		}
		if err := r.Unless(err, "the definition of the kind is not considered"); err != nil {
			return in, err
		}
		in.Object.ScalePath = ScalePath(d)
	}
	in.Object.OtherVersions, err = OtherVersions(ctx, r, object, in.Facts.Clusters)
	if err := r.Unless(err, "other versions of the kind are not considered"); err != nil {
		return in, err
	}
	in.Referrers, err = r.referrers(ctx, binding)
	return in, err
}

// referrers returns the objects that need the object of the binding, if the decision depends on them. The result is nil
// if these objects cannot be read.
func (r Reader) referrers(ctx context.Context, binding hubv1.BindingObject) ([]decide.Referrer, error) {
	if !binding.BindingSpec().Referenced {
		return nil, nil
	}
	bindings, err := scopes.Bindings(ctx, r, binding.GetNamespace())
	if err != nil {
		return nil, r.Unless(err, "the objects that need this object are not known")
	}
	return decide.ReferrersIn(bindings, hubv1.ObjectOf(binding)), nil
}
