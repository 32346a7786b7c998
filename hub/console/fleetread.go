package console

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/inputs"
	"github.com/hanse-dev/hanse/hub/store/scopes"
	"github.com/hanse-dev/hanse/placement"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/view"
)

const (
	// maxSimulated limits the number of objects in one what-if simulation. Without this limit, a simulation would delay
	// the hub's other work. maxFleetBytes limits the size of these objects in bytes.
	maxSimulated  = 5000
	maxFleetBytes = 32 << 20
	// contentPage is the page size of a list request for objects with their content.
	contentPage = 50
)

var errManyObjects = fmt.Errorf("the console simulates at most %d objects of %d MiB together: choose a namespace, or use hansectl simulate", maxSimulated, maxFleetBytes>>20)

// fleetReader reads, with the rights of a user, everything from which the hub decides which clusters get an object. If
// the user may not read something, fleetReader adds a note to the page.
type fleetReader struct {
	*user
	namespace   string // empty for all namespaces
	whole       bool   // whether the content of all objects is read
	fleet       decide.Fleet
	bindings    map[hubv1.ObjectIdentity]hubv1.BindingObject
	definitions map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition
	hubRuns     bool
	size        int // size of all objects read so far, in bytes of JSON
}

// readFleet reads the policies, clusters and objects of a namespace, or of the whole hub if namespace is empty. If
// whole is true, it also reads the content of all objects.
func (u *user) readFleet(ctx context.Context, namespace string, whole bool, now time.Time) (decide.Fleet, error) {
	r := &fleetReader{
		user: u, namespace: namespace, whole: whole, fleet: decide.Fleet{Now: now}, bindings: map[hubv1.ObjectIdentity]hubv1.BindingObject{},
		definitions: map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition{},
	}
	around := inputs.Fleet{Client: r, Namespace: namespace, Unless: u.unlessForbidden}
	if err := around.Around(ctx, &r.fleet); err != nil {
		return decide.Fleet{}, err
	}
	runs, err := scopes.RunsWorkloads(ctx, r)
	r.hubRuns = runs || err != nil // after an error, the hub is assumed to run workloads
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
	err := r.eachBinding(ctx, r.namespace, func(b hubv1.BindingObject) {
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
		r.note(fmt.Sprintf("%d objects of bundles are not considered: hansectl simulate considers them", bundled))
	}
	if r.namespace != "" && slices.ContainsFunc(r.fleet.Placements, view.NeedsCounts) {
		r.note("Objects of other namespaces are not counted")
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
		r.note("Of groups that a placement selects as a whole, only kinds with objects on clusters are considered")
	}
	var kinds []schema.GroupKind
	for gk := range found {
		kinds = append(kinds, gk)
	}
	slices.SortFunc(kinds, func(a, b schema.GroupKind) int { return cmp.Compare(a.String(), b.String()) })
	for _, gk := range kinds {
		if err := r.readKind(ctx, gk); err != nil {
			return err
		}
	}
	return nil
}

// readKind reads the objects of a kind. It reads only their metadata, unless the decision about their clusters needs
// their content.
func (r *fleetReader) readKind(ctx context.Context, gk schema.GroupKind) error {
	mapping, err := r.RESTMapper().RESTMapping(gk)
	switch {
	case meta.IsNoMatchError(err):
		return nil
	case err != nil:
		return fmt.Errorf("finding the kind %s on the hub: %w", gk, err)
	case r.namespace != "" && mapping.Scope.Name() != meta.RESTScopeNameNamespace:
		return nil
	}
	if err := r.readDefinition(ctx, mapping); err != nil {
		return err
	}
	part, whole := int64(pageSize), r.whole || inputs.Selects(r.fleet.Placements, gk, inputs.Divides)
	if whole {
		part = contentPage
	}
	kind := mapping.GroupVersionKind
	for from, more := "", true; more; more = from != "" {
		var objects []*unstructured.Unstructured
		objects, from, err = inputs.Fleet{Client: r, Namespace: r.namespace}.Objects(ctx, kind, whole, part, from)
		if err != nil {
			return r.unlessForbidden(err, fmt.Sprintf("Objects of kind %s are not considered", gk))
		}
		for _, u := range objects {
			r.add(u)
			raw, err := u.MarshalJSON()
			if err != nil {
				return fmt.Errorf("reading the objects of kind %s: %w", gk, err)
			}
			r.size += len(raw)
		}
		if len(r.fleet.Objects) > maxSimulated || r.size > maxFleetBytes {
			return fmt.Errorf("%w: %w", errRefused, errManyObjects)
		}
	}
	return nil
}

func (r *fleetReader) add(u *unstructured.Unstructured) {
	if u.GetDeletionTimestamp() != nil {
		return
	}
	o := decide.FleetObject{Object: u}
	kind := o.Identity().GroupKind()
	if o.Binding = r.bindings[o.Identity()]; o.Binding != nil {
		o.HubRuns = view.Refused(o.Binding, u)
	} else {
		o.HubRuns = placement.HubWouldRun(kind, r.hubRuns)
	}
	if d := r.definitions[kind]; d != nil {
		o.ScalePath, o.OtherVersions = inputs.ScalePath(d), inputs.OthersOf(d, u.GroupVersionKind().Version)
	}
	r.fleet.Objects = append(r.fleet.Objects, o)
}

// readDefinition reads the CRD of a kind, if the decision about the clusters of its objects needs the CRD.
func (r *fleetReader) readDefinition(ctx context.Context, mapping *meta.RESTMapping) error {
	gk := mapping.GroupVersionKind.GroupKind()
	if !inputs.NeedsVersions(mapping.GroupVersionKind, r.fleet.Clusters) && !inputs.Selects(r.fleet.Placements, gk, func(p hubv1.PlacementObject) bool { return view.NeedsScalePath(p, gk) }) {
		return nil
	}
	d, err := inputs.Definition(ctx, r, gk)
	if err := r.unlessForbidden(err, fmt.Sprintf("The definition of %s is not considered", gk)); err != nil {
		return fmt.Errorf("reading the definition of %s: %w", gk, err)
	}
	r.definitions[gk] = d
	return nil
}
