package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/inputs"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/view"
)

const (
	// maxSimulated limits the number of objects in one what-if simulation. Without this limit, a simulation would delay
	// the hub's other work. maxFleetBytes limits the size of these objects in bytes.
	maxSimulated  = 5000
	maxFleetBytes = 32 << 20
	// contentPage is the page size of a list request for whole objects.
	contentPage = 50
)

var errManyObjects = fmt.Errorf("the console simulates at most %d objects and %d MiB: choose a namespace, or use hansectl plan", maxSimulated, maxFleetBytes>>20)

// fleetReader reads, with the rights of a user, everything from which the hub decides which clusters get an object. If
// the user may not read something, fleetReader adds a note to the page.
type fleetReader struct {
	*user
	inputs   inputs.Fleet
	fleet    decide.Fleet
	bindings map[hubv1.ObjectIdentity]hubv1.BindingObject
	size     int // size of all objects read so far, in bytes of JSON
}

// readFleet reads the policies, clusters and objects of a namespace, or of the whole hub if namespace is empty. If
// whole is true, it also reads the content of all objects.
func (u *user) readFleet(ctx context.Context, namespace string, whole bool, now time.Time) (decide.Fleet, error) {
	r := &fleetReader{user: u, fleet: decide.Fleet{Now: now}, bindings: map[hubv1.ObjectIdentity]hubv1.BindingObject{}}
	r.inputs = inputs.Fleet{Client: u, Namespace: namespace, Unless: u.unlessForbidden, Whole: whole, PageSize: contentPage, Page: r.limit}
	if err := r.inputs.Around(ctx, &r.fleet); err != nil {
		return decide.Fleet{}, err
	}
	r.inputs.Clusters, r.inputs.Placements = r.fleet.Clusters, r.fleet.Placements
	for _, read := range []func(context.Context) error{r.readBindings, r.readObjects} {
		if err := read(ctx); err != nil {
			return decide.Fleet{}, err
		}
	}
	return r.fleet, nil
}

// readBindings reads the bindings. For an object of a bundle, it only counts the object's copies on each cluster,
// because the object does not exist on the hub.
func (r *fleetReader) readBindings(ctx context.Context) error {
	r.fleet.Elsewhere = map[string]int{}
	bundled := 0
	err := r.eachBinding(ctx, r.inputs.Namespace, func(b hubv1.BindingObject) {
		if b.BindingSpec().ObjectRef.Bundle == nil {
			if len(r.bindings) <= maxSimulated {
				r.bindings[hubv1.ObjectOf(b)] = b
			}
			return
		}
		bundled++
		for _, t := range b.BindingSpec().Clusters {
			if t.State == hubv1.TargetPresent {
				r.fleet.Elsewhere[t.Name]++
			}
		}
	})
	switch {
	case err != nil:
		return err
	case len(r.bindings) > maxSimulated:
		return fmt.Errorf("%w: %w", errRefused, errManyObjects)
	}
	if bundled > 0 {
		r.note(fmt.Sprintf("%d %s not considered: hansectl plan considers bundles", bundled, plural(bundled, "object of a bundle is", "objects of bundles are")))
	}
	if r.inputs.Namespace != "" && slices.ContainsFunc(r.fleet.Placements, view.NeedsCounts) {
		r.note("The score FewestObjects does not count objects of other namespaces")
	}
	return nil
}

// readObjects reads the objects of all kinds that have a binding or that a placement selects.
func (r *fleetReader) readObjects(ctx context.Context) error {
	found, groups := inputs.SelectedKinds(r.fleet.Placements)
	for id := range r.bindings {
		found[id.GroupKind()] = true
	}
	if len(groups) > 0 {
		r.note("If a placement selects all kinds of an API group, only kinds with objects on clusters are considered")
	}
	var kinds []schema.GroupKind
	for gk := range found {
		kinds = append(kinds, gk)
	}
	slices.SortFunc(kinds, func(a, b schema.GroupKind) int { return cmp.Compare(a.String(), b.String()) })
	for _, gk := range kinds {
		if _, err := r.inputs.Kind(ctx, &r.fleet, gk, r.bindings); err != nil && !errors.Is(err, inputs.ErrNotServed) {
			return err
		}
	}
	return nil
}

// limit returns an error if the simulation has too many objects, or too large ones. page are the objects read last.
func (r *fleetReader) limit(page []*unstructured.Unstructured) error {
	for _, u := range page {
		raw, err := u.MarshalJSON()
		if err != nil {
			return fmt.Errorf("reading %s: %w", hubv1.IdentityOf(u), err)
		}
		r.size += len(raw)
	}
	if len(r.fleet.Objects) > maxSimulated || r.size > maxFleetBytes {
		return fmt.Errorf("%w: %w", errRefused, errManyObjects)
	}
	return nil
}
