package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/decide"
	"github.com/hanse-dev/hanse/hub/inputs"
	"github.com/hanse-dev/hanse/hub/memberview"
	"github.com/hanse-dev/hanse/hub/scopes"
	"github.com/hanse-dev/hanse/placement"
	"github.com/hanse-dev/hanse/view"
)

// fleetReader reads the inputs of scheduling from the hub.
type fleetReader struct {
	ctx  context.Context
	hub  *hub
	said *progress
	client.Client
	// namespace limits the objects; empty for all. home is the namespace for objects without one.
	namespace, home string
	// whole is true if objects are read with their content, and not only where replicas are divided.
	whole bool
	gaps

	placements []hubv1.PlacementObject
	clusters   []*hubv1.MemberCluster
	// definitions has the definitions from the hub or the files; nil for a kind without one.
	definitions map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition
	runs        *bool // whether the hub runs workloads
	// bundles of the hub whose objects are in the fleet.
	bundles []hubv1.BundleObject
}

// gaps are what could not be read.
type gaps struct {
	notes []string
	// unread are the kinds whose objects the user may not list.
	unread map[schema.GroupKind]bool
}

func newFleetReader(ctx context.Context, h *hub, w *window, said *progress) (*fleetReader, error) {
	c, err := h.reader(w)
	if err != nil {
		return nil, err
	}
	r := &fleetReader{ctx: ctx, hub: h, said: said, Client: c, namespace: *h.flags.Namespace, definitions: map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition{}, gaps: gaps{unread: map[schema.GroupKind]bool{}}}
	if r.home, _, err = h.flags.ToRawKubeConfigLoader().Namespace(); err != nil {
		return nil, fmt.Errorf("finding the namespace: %w", err)
	}
	return r, nil
}

// narrowed reports whether the hub has answered for a user who may not list clusters. Then the answer has only the
// clusters that concern the namespace.
func (r *fleetReader) narrowed() bool {
	c, ok := r.Client.(*memberview.Narrowed)
	return ok && c.Partial()
}

// read reads the fleet, with the objects of all kinds that the placements of the hub or the files select.
func (r *fleetReader) read(files *fleetFiles, now time.Time) (decide.Fleet, error) {
	fleet := decide.Fleet{Now: now}
	if err := r.readAround(&fleet); err != nil {
		return fleet, err
	}
	r.clusters = slices.Concat(fleet.Clusters, files.clusters)
	files.defaultNamespaces(r.home)
	r.placements = slices.Concat(fleet.Placements, files.placements)
	if err := r.readNamespaces(&fleet); err != nil {
		return fleet, err
	}
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

// readAround reads the clusters and policies.
func (r *fleetReader) readAround(fleet *decide.Fleet) error {
	var members hubv1.MemberClusterList
	if err := r.List(r.ctx, &members); err != nil {
		if meta.IsNoMatchError(err) {
			return errNoHub
		}
		return fmt.Errorf("listing MemberClusters: %w", err)
	}
	for i := range members.Items {
		fleet.Clusters = append(fleet.Clusters, &members.Items[i])
	}
	if err := r.readPlacements(fleet); err != nil {
		return err
	}
	var err error
	fleet.Overrides, err = readOverrides(r.ctx, r.Client, true, r.namespace, r.unlessForbidden)
	return err
}

func (r *fleetReader) readPlacements(fleet *decide.Fleet) error {
	var everywhere hubv1.ClusterPlacementList
	if err := r.unlessForbidden(r.List(r.ctx, &everywhere), "ClusterPlacements are not considered"); err != nil {
		return fmt.Errorf("listing ClusterPlacements: %w", err)
	}
	for i := range everywhere.Items {
		fleet.Placements = append(fleet.Placements, &everywhere.Items[i])
	}
	var here hubv1.PlacementList
	if err := r.List(r.ctx, &here, client.InNamespace(r.namespace)); err != nil {
		return fmt.Errorf("listing Placements: %w", err)
	}
	for i := range here.Items {
		fleet.Placements = append(fleet.Placements, &here.Items[i])
	}
	return nil
}

func (r *fleetReader) readNamespaces(fleet *decide.Fleet) error {
	fleet.NamespaceLabels = map[string]map[string]string{}
	if r.namespace != "" {
		var ns corev1.Namespace
		if err := r.unlessForbidden(r.Get(r.ctx, client.ObjectKey{Name: r.namespace}, &ns), "labels of the namespace are not considered"); err != nil {
			return fmt.Errorf("reading namespace %s: %w", r.namespace, err)
		}
		fleet.NamespaceLabels[r.namespace] = ns.Labels
		return nil
	}
	var all corev1.NamespaceList
	if err := r.List(r.ctx, &all); err != nil {
		return fmt.Errorf("listing namespaces: %w", err)
	}
	for _, ns := range all.Items {
		fleet.NamespaceLabels[ns.Name] = ns.Labels
	}
	return nil
}

// readBindings reads the bindings of the simulated objects. If a placement scores clusters by their number of objects,
// it also counts all other bindings.
func (r *fleetReader) readBindings(fleet *decide.Fleet, bindings map[hubv1.ObjectIdentity]hubv1.BindingObject) error {
	if r.namespace == "" {
		return eachBinding(r.ctx, r.Client, func(b hubv1.BindingObject) { bindings[hubv1.ObjectOf(b)] = b })
	}
	here := &hubv1.ResourceBindingList{}
	for more := true; more; more = here.Continue != "" {
		if err := r.List(r.ctx, here, client.InNamespace(r.namespace), client.Limit(pageSize), client.Continue(here.Continue)); err != nil {
			return fmt.Errorf("listing ResourceBindings: %w", err)
		}
		for i := range here.Items {
			bindings[hubv1.ObjectOf(&here.Items[i])] = &here.Items[i]
		}
	}
	if !slices.ContainsFunc(r.placements, view.NeedsCounts) {
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

// unlessForbidden turns a Forbidden error into a note. It returns other errors.
func (r *fleetReader) unlessForbidden(err error, so string) error {
	said := r.hub.unlessForbidden(err, so)
	if err != nil && said == nil {
		r.notes = append(r.notes, so+": you may not read what is needed")
	}
	return said
}

// kinds returns the kinds that placements select and the kinds that have bindings.
func (r *fleetReader) kinds(bindings map[hubv1.ObjectIdentity]hubv1.BindingObject) ([]schema.GroupKind, error) {
	found := map[schema.GroupKind]bool{}
	groups := map[string]bool{}
	for id, b := range bindings {
		if b.BindingSpec().ObjectRef.Bundle == nil {
			found[id.GroupKind()] = true
		}
	}
	for _, p := range r.placements {
		for _, s := range p.PlacementSpec().ResourceSelectors {
			if s.Kind == everyKind {
				groups[s.APIGroup] = true
				continue
			}
			found[schema.GroupKind{Group: s.APIGroup, Kind: s.Kind}] = true
		}
		for _, gk := range decide.ReferencedKinds(p.PlacementSpec().References) {
			found[gk] = true
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

// everyKind stands in a selector for all kinds of a group.
const everyKind = "*"

// kindsOf adds the kinds of groups that can be listed.
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

// readObjects reads the objects of a kind. It reads only the metadata if replicas are not divided.
func (r *fleetReader) readObjects(fleet *decide.Fleet, kind schema.GroupKind, bindings map[hubv1.ObjectIdentity]hubv1.BindingObject) error {
	mapping, err := r.RESTMapper().RESTMapping(kind)
	if meta.IsNoMatchError(err) {
		r.notes = append(r.notes, fmt.Sprintf("the hub does not serve %s: objects of this kind are not considered", kind))
		return nil
	}
	if err != nil {
		return fmt.Errorf("finding the kind %s on the hub: %w", kind, err)
	}
	if r.namespace != "" && mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return nil
	}
	next := ""
	for more := true; more; more = next != "" {
		var page []*unstructured.Unstructured
		if page, next, err = r.page(mapping.GroupVersionKind, next); err != nil {
			if err := r.unlessForbidden(err, fmt.Sprintf("objects of kind %s are not considered", kind)); err != nil {
				return fmt.Errorf("listing the objects of kind %s: %w", kind, err)
			}
			r.unread[kind] = true
			return nil
		}
		for _, u := range page {
			o := decide.FleetObject{Object: u}
			if o.Binding = bindings[o.Identity()]; u.GetDeletionTimestamp() != nil || inBundle(o.Binding) != "" {
				continue
			}
			if err := r.complete(&o, nil); err != nil {
				return err
			}
			fleet.Objects = append(fleet.Objects, o)
		}
		r.said.tell("read %d objects", len(fleet.Objects))
	}
	return nil
}

func (r *fleetReader) page(gvk schema.GroupVersionKind, from string) (page []*unstructured.Unstructured, next string, err error) {
	options := []client.ListOption{client.InNamespace(r.namespace), client.Limit(pageSize), client.Continue(from)}
	listKind := gvk.GroupVersion().WithKind(gvk.Kind + "List")
	if r.whole || r.selected(gvk.GroupKind(), divides) {
		var list unstructured.UnstructuredList
		list.SetGroupVersionKind(listKind)
		err = r.List(r.ctx, &list, options...)
		for i := range list.Items {
			hubObject(&list.Items[i])
			page = append(page, &list.Items[i])
		}
		return page, list.GetContinue(), err
	}
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(listKind)
	err = r.List(r.ctx, &list, options...)
	for i := range list.Items {
		m := &list.Items[i]
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetGroupVersionKind(gvk)
		u.SetNamespace(m.Namespace)
		u.SetName(m.Name)
		u.SetUID(m.UID)
		u.SetLabels(m.Labels)
		u.SetGeneration(m.Generation)
		u.SetDeletionTimestamp(m.DeletionTimestamp)
		page = append(page, u)
	}
	return page, list.Continue, err
}

// selected reports whether a known placement that matches such may select objects of a kind.
func (r *fleetReader) selected(kind schema.GroupKind, such func(hubv1.PlacementObject) bool) bool {
	return slices.ContainsFunc(r.placements, func(p hubv1.PlacementObject) bool {
		return such(p) && slices.ContainsFunc(p.PlacementSpec().ResourceSelectors, func(s hubv1.ResourceSelector) bool {
			return s.APIGroup == kind.Group && (s.Kind == kind.Kind || s.Kind == everyKind)
		})
	})
}

func divides(p hubv1.PlacementObject) bool { return p.PlacementSpec().Replicas.Divides() }

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
	kind := o.Identity().GroupKind()
	bundled := hubv1.BundleOf(o.Object) != nil
	if bundled {
		o.HubRuns = false // the hub does not have the object
	} else if o.Binding != nil {
		o.HubRuns = view.Refused(o.Binding, o.Object)
	} else if placement.HubWouldRun(kind, true) {
		o.HubRuns = placement.HubWouldRun(kind, false) || r.hubRunsWorkloads()
	}
	if d, ok := known[kind]; ok {
		r.definitions[kind] = d
	}
	gvk := o.Object.GroupVersionKind()
	needed := inputs.NeedsVersions(gvk, r.clusters) || r.selected(kind, func(p hubv1.PlacementObject) bool { return view.NeedsScalePath(p, kind) })
	if _, ok := r.definitions[kind]; !ok && needed {
		d, err := inputs.Definition(r.ctx, r.Client, kind)
		if err != nil && !meta.IsNoMatchError(err) {
			if err := r.unlessForbidden(err, fmt.Sprintf("the definition of %s is not considered", kind)); err != nil {
				return err
			}
		}
		r.definitions[kind] = d
	}
	if o.ScalePath = inputs.ScalePath(r.definitions[kind]); !bundled {
		o.OtherVersions = inputs.OthersOf(r.definitions[kind], gvk.Version)
	}
	return nil
}

// hubRunsWorkloads checks, like the hub, for nodes or a working controller-manager. If it cannot read them, it assumes
// that the hub runs workloads.
func (r *fleetReader) hubRunsWorkloads() bool {
	if r.runs != nil {
		return *r.runs
	}
	runs, err := scopes.RunsWorkloads(r.ctx, r.Client)
	runs = runs || err != nil
	r.runs = &runs
	return runs
}
