package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/inputs"
	"github.com/hanse-dev/hanse/hub/views"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/view"
)

// fleetReader reads from the hub the inputs of scheduling decisions.
type fleetReader struct {
	ctx      context.Context
	hub      *hub
	progress *progressPrinter
	inputs.Fleet
	// home is the namespace that objects in files get if they have none.
	home string
	gaps

	// bundles are the bundles of the hub whose objects are inputs of the scheduling decisions.
	bundles []hubv1.BundleObject
}

// gaps describes the inputs that could not be read.
type gaps struct {
	notes []string
	// unread are the kinds whose objects the user may not list.
	unread map[schema.GroupKind]bool
}

func newFleetReader(ctx context.Context, h *hub, w *window, progress *progressPrinter) (*fleetReader, error) {
	c, err := h.reader(w)
	if err != nil {
		return nil, err
	}
	r := &fleetReader{ctx: ctx, hub: h, progress: progress, gaps: gaps{unread: map[schema.GroupKind]bool{}}}
	r.Fleet = inputs.Fleet{Client: c, Namespace: *h.flags.Namespace, Unless: r.unlessForbidden, Whole: true, PageSize: pageSize}
	if r.home, _, err = h.flags.ToRawKubeConfigLoader().Namespace(); err != nil {
		return nil, fmt.Errorf("finding the namespace: %w", err)
	}
	return r, nil
}

// narrowed reports whether only a part of the clusters was read. The hub returns a part to a user who may not list
// MemberClusters: the clusters that concern the user's namespace.
func (r *fleetReader) narrowed() bool {
	c, ok := r.Client.(*views.Narrowed)
	return ok && c.Partial()
}

// read reads the fleet: the clusters, the policies, and the objects of all kinds that placements select. The placements
// may be on the hub or in the files.
func (r *fleetReader) read(files *fleetFiles, now time.Time) (decide.Fleet, error) {
	fleet := decide.Fleet{Now: now}
	if err := r.readAround(&fleet); err != nil {
		return fleet, err
	}
	r.Clusters = slices.Concat(fleet.Clusters, files.clusters)
	files.defaultNamespaces(r.home)
	r.Placements = slices.Concat(fleet.Placements, files.placements)
	bindings := map[hubv1.ObjectIdentity]hubv1.BindingObject{}
	if err := r.readBindings(&fleet, bindings); err != nil {
		return fleet, err
	}
	if err := r.readBundles(&fleet, bindings); err != nil {
		return fleet, err
	}
	kinds, err := r.kinds(bindings)
	if err != nil {
		return fleet, err
	}
	for _, kind := range kinds {
		if err := r.readObjects(&fleet, kind, bindings); err != nil {
			return fleet, err
		}
	}
	return fleet, nil
}

// readAround reads the clusters, the policies and the labels of namespaces.
func (r *fleetReader) readAround(fleet *decide.Fleet) error {
	err := r.Around(r.ctx, fleet)
	if meta.IsNoMatchError(err) {
		return errNoHub
	}
	return err
}

// readBindings reads the bindings of the objects in the fleet. If a placement prefers clusters with few objects, it
// also counts the objects of other namespaces on each cluster.
func (r *fleetReader) readBindings(fleet *decide.Fleet, bindings map[hubv1.ObjectIdentity]hubv1.BindingObject) error {
	if r.Namespace == "" {
		return eachBinding(r.ctx, r.Client, func(b hubv1.BindingObject) { bindings[hubv1.ObjectOf(b)] = b })
	}
	if err := eachBindingIn(r.ctx, r.Client, r.Namespace, func(b hubv1.BindingObject) { bindings[hubv1.ObjectOf(b)] = b }); err != nil {
		return err
	}
	if !slices.ContainsFunc(r.Placements, view.NeedsCounts) {
		return nil
	}
	counts, err := countSent(r.ctx, r.Client)
	if err := r.unlessForbidden(err, "objects of other namespaces are not counted"); err != nil {
		return err
	}
	for _, b := range bindings {
		for _, t := range b.BindingSpec().Clusters {
			if t.State == hubv1.TargetPresent && counts != nil {
				counts[t.Name]--
			}
		}
	}
	fleet.Elsewhere = counts
	return nil
}

// unlessForbidden adds a note and returns nil if err is a Forbidden error. It returns any other error. The argument
// "so" is a text for the note: what the result lacks without the data.
func (r *fleetReader) unlessForbidden(err error, so string) error {
	other := r.hub.unlessForbidden(err, so)
	if err != nil && other == nil {
		r.notes = append(r.notes, so+": you may not read what is needed")
	}
	return other
}

// kinds returns the kinds whose objects are to be read. Placements select these kinds, or bindings exist for their
// objects.
func (r *fleetReader) kinds(bindings map[hubv1.ObjectIdentity]hubv1.BindingObject) ([]schema.GroupKind, error) {
	found, groups := inputs.SelectedKinds(r.Placements)
	for id, b := range bindings {
		if b.BindingSpec().ObjectRef.Bundle == nil {
			found[id.GroupKind()] = true
		}
	}
	if len(groups) > 0 {
		if err := r.kindsOf(groups, found); err != nil {
			return nil, err
		}
	}
	var out []schema.GroupKind
	for gk := range found {
		if gk.Group != hubv1.GroupVersion.Group {
			out = append(out, gk)
		}
	}
	slices.SortFunc(out, func(a, b schema.GroupKind) int { return cmp.Compare(a.String(), b.String()) })
	return out, nil
}

// kindsOf adds to found all kinds of the given groups whose objects can be listed.
func (r *fleetReader) kindsOf(groups map[string]bool, found map[schema.GroupKind]bool) error {
	disco, err := r.hub.flags.ToDiscoveryClient()
	if err != nil {
		return fmt.Errorf("connecting to the hub: %w", err)
	}
	lists, err := disco.ServerPreferredResources()
	if len(lists) == 0 && err != nil {
		return fmt.Errorf("reading the kinds of the hub: %w", err)
	}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil || !groups[gv.Group] {
			continue
		}
		for _, res := range list.APIResources {
			if slices.Contains(res.Verbs, "list") {
				found[schema.GroupKind{Group: gv.Group, Kind: res.Kind}] = true
			}
		}
	}
	return nil
}

// readObjects adds the objects of a kind to the fleet.
func (r *fleetReader) readObjects(fleet *decide.Fleet, kind schema.GroupKind, bindings map[hubv1.ObjectIdentity]hubv1.BindingObject) error {
	r.Page = func([]*unstructured.Unstructured) error {
		r.progress.printf("read %d objects", len(fleet.Objects))
		return nil
	}
	read, err := r.Kind(r.ctx, fleet, kind, bindings)
	if errors.Is(err, inputs.ErrNotServed) {
		r.notes = append(r.notes, fmt.Sprintf("the hub does not serve %s: objects of this kind are not considered", kind))
		return nil
	}
	r.unread[kind] = !read
	return err
}

// locate implements hubKinds.
func (r *fleetReader) locate(u *unstructured.Unstructured, known map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition) error {
	if u.GetNamespace() != "" {
		return nil
	}
	gvk := u.GroupVersionKind()
	mapping, err := r.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil && !meta.IsNoMatchError(err) {
		return fmt.Errorf("finding the kind %s on the hub: %w", gvk.GroupKind(), err)
	}
	d := known[gvk.GroupKind()]
	if err == nil && mapping.Scope.Name() == meta.RESTScopeNameNamespace || err != nil && d != nil && d.Spec.Scope == apiextensionsv1.NamespaceScoped {
		u.SetNamespace(r.home)
	}
	return nil
}

// complete implements hubKinds.
func (r *fleetReader) complete(o *decide.FleetObject, known map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition) error {
	return r.Complete(r.ctx, o, known)
}
