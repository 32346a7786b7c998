package console

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
	"github.com/hanse-dev/hanse/hub/scopes"
	"github.com/hanse-dev/hanse/placement"
	"github.com/hanse-dev/hanse/view"
)

const (
	// mostSimulated objects are decided on for one page, because the hub has other work. largestFleet limits their size.
	mostSimulated = 5000
	largestFleet  = 32 << 20
	// contentPage is the size of one part of a list of objects with their content.
	contentPage = 50
)

var errManyObjects = fmt.Errorf("the console simulates at most %d objects of %d MiB together: choose a namespace, or use hansectl simulate", mostSimulated, largestFleet>>20)

// fleetReader reads the inputs of decisions as a user. Parts that the user may not read are notes of the page.
type fleetReader struct {
	*user
	namespace   string // empty for all
	whole       bool   // whether the content of all objects is read
	fleet       decide.Fleet
	bindings    map[hubv1.ObjectIdentity]hubv1.BindingObject
	definitions map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition
	hubRuns     bool
	size        int // of all objects as JSON
}

// readFleet reads the fleet of a namespace, or the whole fleet. With whole, it reads the content of all objects.
func (u *user) readFleet(ctx context.Context, namespace string, whole bool, now time.Time) (decide.Fleet, error) {
	r := &fleetReader{
		user: u, namespace: namespace, whole: whole, fleet: decide.Fleet{Now: now}, bindings: map[hubv1.ObjectIdentity]hubv1.BindingObject{},
		definitions: map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition{},
	}
	for _, read := range []func(context.Context) error{r.readAround, r.readNamespaces, r.readBindings, r.readObjects} {
		if err := read(ctx); err != nil {
			return decide.Fleet{}, err
		}
	}
	return r.fleet, nil
}

// readAround reads the clusters and policies. Without the clusters, there is nothing to decide.
func (r *fleetReader) readAround(ctx context.Context) error {
	var members hubv1.MemberClusterList
	if err := r.List(ctx, &members); err != nil {
		return fmt.Errorf("listing MemberClusters: %w", err)
	}
	for i := range members.Items {
		r.fleet.Clusters = append(r.fleet.Clusters, &members.Items[i])
	}
	var everywhere hubv1.ClusterPlacementList
	if err := r.unlessForbidden(r.List(ctx, &everywhere), "ClusterPlacements are not considered"); err != nil {
		return fmt.Errorf("listing ClusterPlacements: %w", err)
	}
	for i := range everywhere.Items {
		r.fleet.Placements = append(r.fleet.Placements, &everywhere.Items[i])
	}
	var here hubv1.PlacementList
	if err := r.List(ctx, &here, client.InNamespace(r.namespace)); err != nil {
		return fmt.Errorf("listing Placements: %w", err)
	}
	for i := range here.Items {
		r.fleet.Placements = append(r.fleet.Placements, &here.Items[i])
	}
	overrides, err := scopes.OverridePolicies(ctx, r, client.InNamespace(r.namespace))
	if err := r.unlessForbidden(err, "Override policies are not considered"); err != nil {
		return fmt.Errorf("listing override policies: %w", err)
	}
	r.fleet.Overrides = overrides
	runs, err := scopes.RunsWorkloads(ctx, r)
	r.hubRuns = runs || err != nil // a hub that cannot be asked counts as one that runs workloads
	return nil
}

func (r *fleetReader) readNamespaces(ctx context.Context) error {
	r.fleet.NamespaceLabels = map[string]map[string]string{}
	if r.namespace != "" {
		var ns corev1.Namespace
		if err := r.unlessForbidden(r.Get(ctx, client.ObjectKey{Name: r.namespace}, &ns), "Labels of the namespace are not considered"); err != nil {
			return fmt.Errorf("reading namespace %s: %w", r.namespace, err)
		}
		r.fleet.NamespaceLabels[r.namespace] = ns.Labels
		return nil
	}
	var all corev1.NamespaceList
	if err := r.unlessForbidden(r.List(ctx, &all), "Labels of namespaces are not considered"); err != nil {
		return fmt.Errorf("listing namespaces: %w", err)
	}
	for _, ns := range all.Items {
		r.fleet.NamespaceLabels[ns.Name] = ns.Labels
	}
	return nil
}

// readBindings reads the bindings. The objects of bundles are not on the hub, so they are counted alone.
func (r *fleetReader) readBindings(ctx context.Context) error {
	r.fleet.Elsewhere = map[string]int{}
	bundled := 0
	err := r.eachBinding(ctx, r.namespace, func(b hubv1.BindingObject) {
		if b.BindingSpec().ObjectRef.Bundle == nil {
			if len(r.bindings) <= mostSimulated {
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
	case len(r.bindings) > mostSimulated:
		return fmt.Errorf("%w: %w", errRefused, errManyObjects)
	}
	if bundled > 0 {
		r.notes = append(r.notes, fmt.Sprintf("%d objects of bundles are not considered: hansectl simulate considers them", bundled))
	}
	if r.namespace != "" && slices.ContainsFunc(r.fleet.Placements, view.NeedsCounts) {
		r.notes = append(r.notes, "Objects of other namespaces are not counted")
	}
	return nil
}

// readObjects reads the objects of all kinds that have bindings, or that placements select.
func (r *fleetReader) readObjects(ctx context.Context) error {
	found := map[schema.GroupKind]bool{}
	for id := range r.bindings {
		found[id.GroupKind()] = true
	}
	for _, p := range r.fleet.Placements {
		for _, s := range p.PlacementSpec().ResourceSelectors {
			if s.Kind == everyKind {
				r.notes = append(r.notes, "Of groups that a placement selects as a whole, only kinds with objects on clusters are considered")
			} else if s.APIGroup != hubv1.GroupVersion.Group {
				found[schema.GroupKind{Group: s.APIGroup, Kind: s.Kind}] = true
			}
		}
		for _, gk := range decide.ReferencedKinds(p.PlacementSpec().References) {
			found[gk] = true
		}
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

// everyKind stands in a selector for all kinds of a group.
const everyKind = "*"

// readKind reads the objects of a kind, and their content only if it is needed.
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
	divides := r.selected(gk, func(p hubv1.PlacementObject) bool { return p.PlacementSpec().Replicas.Divides() })
	for from := ""; ; {
		var list client.ObjectList = &metav1.PartialObjectMetadataList{}
		limit := client.Limit(pageSize)
		if divides || r.whole {
			list, limit = &unstructured.UnstructuredList{}, client.Limit(contentPage)
		}
		list.GetObjectKind().SetGroupVersionKind(mapping.GroupVersionKind.GroupVersion().WithKind(gk.Kind + "List"))
		err := r.List(ctx, list, client.InNamespace(r.namespace), limit, client.Continue(from))
		if err != nil {
			return r.unlessForbidden(err, fmt.Sprintf("Objects of kind %s are not considered", gk))
		}
		for _, u := range contents(list, mapping.GroupVersionKind) {
			r.add(u)
			raw, err := u.MarshalJSON()
			if err != nil {
				return fmt.Errorf("reading the objects of kind %s: %w", gk, err)
			}
			r.size += len(raw)
		}
		if len(r.fleet.Objects) > mostSimulated || r.size > largestFleet {
			return fmt.Errorf("%w: %w", errRefused, errManyObjects)
		}
		if from = list.GetContinue(); from == "" {
			return nil
		}
	}
}

// contents returns the objects of a list. Those of a list of metadata have the metadata that decisions read.
func contents(list client.ObjectList, gvk schema.GroupVersionKind) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	switch list := list.(type) {
	case *unstructured.UnstructuredList:
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
	case *metav1.PartialObjectMetadataList:
		for i := range list.Items {
			m, u := &list.Items[i], &unstructured.Unstructured{Object: map[string]any{}}
			u.SetGroupVersionKind(gvk)
			u.SetNamespace(m.Namespace)
			u.SetName(m.Name)
			u.SetUID(m.UID)
			u.SetLabels(m.Labels)
			u.SetGeneration(m.Generation)
			u.SetDeletionTimestamp(m.DeletionTimestamp)
			out = append(out, u)
		}
	}
	return out
}

func (r *fleetReader) add(u *unstructured.Unstructured) {
	if u.GetDeletionTimestamp() != nil {
		return
	}
	unstructured.RemoveNestedField(u.Object, "metadata", "annotations", hubv1.BundleAnnotation) // only the hub may set it
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

// selected reports whether a placement that matches such may select objects of a kind.
func (r *fleetReader) selected(gk schema.GroupKind, such func(hubv1.PlacementObject) bool) bool {
	return slices.ContainsFunc(r.fleet.Placements, func(p hubv1.PlacementObject) bool {
		return such(p) && slices.ContainsFunc(p.PlacementSpec().ResourceSelectors, func(s hubv1.ResourceSelector) bool {
			return s.APIGroup == gk.Group && (s.Kind == gk.Kind || s.Kind == everyKind)
		})
	})
}

// readDefinition reads the definition of a kind if a decision needs it.
func (r *fleetReader) readDefinition(ctx context.Context, mapping *meta.RESTMapping) error {
	gk := mapping.GroupVersionKind.GroupKind()
	if !inputs.NeedsVersions(mapping.GroupVersionKind, r.fleet.Clusters) && !r.selected(gk, func(p hubv1.PlacementObject) bool { return view.NeedsScalePath(p, gk) }) {
		return nil
	}
	d, err := inputs.Definition(ctx, r, gk)
	if err := r.unlessForbidden(err, fmt.Sprintf("The definition of %s is not considered", gk)); err != nil {
		return fmt.Errorf("reading the definition of %s: %w", gk, err)
	}
	r.definitions[gk] = d
	return nil
}
