package inputs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/scopes"
	"github.com/hanse-dev/hanse/placement"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/view"
)

// Fleet reads the inputs of the decisions about all objects of a namespace, or of all namespaces if Namespace is empty.
// It reads the CustomResourceDefinition of a kind once.
type Fleet struct {
	client.Client
	Namespace string
	// Unless returns nil for an error about a missing right, after it has noted the consequence for the user. It returns
	// all other errors.
	Unless func(err error, consequence string) error
	// Whole is true if Kind reads the content of all objects. Otherwise it reads only their metadata, except for kinds
	// whose replicas a placement divides.
	Whole bool
	// PageSize is the page size of list requests for whole objects. Pages of metadata have twice as many. Kind calls Page,
	// which is required, after each page of objects.
	PageSize int64
	Page     func([]*unstructured.Unstructured) error

	// Clusters and Placements decide which definitions and which content the decisions need.
	Clusters   []*hubv1.MemberCluster
	Placements []hubv1.PlacementObject

	definitions map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition
	hubRuns     *bool
}

// Around reads the clusters, the policies and the labels of namespaces into fleet. If the clusters or the placements of
// the namespace cannot be read, it returns an error.
func (f *Fleet) Around(ctx context.Context, fleet *decide.Fleet) error {
	var members hubv1.MemberClusterList
	if err := f.List(ctx, &members); err != nil {
		return fmt.Errorf("listing MemberClusters: %w", err)
	}
	for i := range members.Items {
		fleet.Clusters = append(fleet.Clusters, &members.Items[i])
	}
	var everywhere hubv1.ClusterPlacementList
	if err := f.Unless(f.List(ctx, &everywhere), "ClusterPlacements are not considered"); err != nil {
		return fmt.Errorf("listing ClusterPlacements: %w", err)
	}
	for i := range everywhere.Items {
		fleet.Placements = append(fleet.Placements, &everywhere.Items[i])
	}
	var here hubv1.PlacementList
	if err := f.List(ctx, &here, client.InNamespace(f.Namespace)); err != nil {
		return fmt.Errorf("listing Placements: %w", err)
	}
	for i := range here.Items {
		fleet.Placements = append(fleet.Placements, &here.Items[i])
	}
	var err error
	if fleet.Overrides, err = Overrides(ctx, f, true, f.Namespace, f.Unless); err != nil {
		return err
	}
	fleet.NamespaceLabels, err = f.namespaceLabels(ctx)
	return err
}

// Overrides reads the cluster-scoped override policies. If namespaced is true, it also reads the policies of the
// namespace, or of all namespaces if namespace is empty. It passes each error to the function unless, with a text about
// the consequence of the missing list.
func Overrides(ctx context.Context, r client.Reader, namespaced bool, namespace string, unless func(err error, consequence string) error) ([]hubv1.OverridePolicyObject, error) {
	var out []hubv1.OverridePolicyObject
	var everywhere hubv1.ClusterOverridePolicyList
	if err := unless(r.List(ctx, &everywhere), "ClusterOverridePolicies are not considered"); err != nil {
		return nil, fmt.Errorf("listing ClusterOverridePolicies: %w", err)
	}
	for i := range everywhere.Items {
		out = append(out, &everywhere.Items[i])
	}
	if !namespaced {
		return out, nil
	}
	var here hubv1.OverridePolicyList
	if err := unless(r.List(ctx, &here, client.InNamespace(namespace)), "OverridePolicies are not considered"); err != nil {
		return nil, fmt.Errorf("listing OverridePolicies: %w", err)
	}
	for i := range here.Items {
		out = append(out, &here.Items[i])
	}
	return out, nil
}

func (f *Fleet) namespaceLabels(ctx context.Context) (map[string]map[string]string, error) {
	if f.Namespace != "" {
		var ns corev1.Namespace
		if err := f.Unless(f.Get(ctx, client.ObjectKey{Name: f.Namespace}, &ns), "labels of the namespace are not considered"); err != nil {
			return nil, fmt.Errorf("reading namespace %s: %w", f.Namespace, err)
		}
		return map[string]map[string]string{f.Namespace: ns.Labels}, nil
	}
	var all corev1.NamespaceList
	if err := f.Unless(f.List(ctx, &all), "labels of namespaces are not considered"); err != nil {
		return nil, fmt.Errorf("listing namespaces: %w", err)
	}
	out := map[string]map[string]string{}
	for _, ns := range all.Items {
		out[ns.Name] = ns.Labels
	}
	return out, nil
}

// ErrNotServed is the error of Kind for a kind that the hub does not serve.
var ErrNotServed = errors.New("the hub does not serve the kind")

// Kind adds the objects of a kind, with their bindings, to fleet. It leaves out objects that are being deleted, and
// objects of bundles. read is false if the user may not list them.
func (f *Fleet) Kind(ctx context.Context, fleet *decide.Fleet, kind schema.GroupKind, bindings map[hubv1.ObjectIdentity]hubv1.BindingObject) (read bool, err error) {
	mapping, err := f.RESTMapper().RESTMapping(kind)
	if meta.IsNoMatchError(err) {
		return false, fmt.Errorf("%w %s", ErrNotServed, kind)
	}
	if err != nil {
		return false, fmt.Errorf("finding the kind %s on the hub: %w", kind, err)
	}
	if f.Namespace != "" && mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return true, nil
	}
	whole := f.Whole || Selects(f.Placements, kind, Divides)
	for next, more := "", true; more; more = next != "" {
		var page []*unstructured.Unstructured
		page, next, err = f.objects(ctx, mapping.GroupVersionKind, whole, next)
		if err != nil {
			if err := f.Unless(err, fmt.Sprintf("objects of kind %s are not considered", kind)); err != nil {
				return false, fmt.Errorf("listing the objects of kind %s: %w", kind, err)
			}
			return false, nil
		}
		for _, u := range page {
			o := decide.FleetObject{Object: u}
			o.Binding = bindings[o.Identity()]
			if u.GetDeletionTimestamp() != nil || o.Binding != nil && o.Binding.BindingSpec().ObjectRef.Bundle != nil {
				continue
			}
			if err := f.Complete(ctx, &o, nil); err != nil {
				return false, err
			}
			fleet.Objects = append(fleet.Objects, o)
		}
		if err := f.Page(page); err != nil {
			return false, err
		}
	}
	return true, nil
}

// Complete adds to o the data that a decision needs but that the object does not contain, such as the path of the field
// with its replicas. known has the CustomResourceDefinitions that need not be read from the hub.
func (f *Fleet) Complete(ctx context.Context, o *decide.FleetObject, known map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition) error {
	gvk := o.Object.GroupVersionKind()
	kind, bundled := gvk.GroupKind(), hubv1.BundleOf(o.Object) != nil
	switch {
	case bundled:
		o.HubRuns = false // the hub does not have the object
	case o.Binding != nil:
		o.HubRuns = view.Refused(o.Binding, o.Object)
	case placement.HubWouldRun(kind, true):
		o.HubRuns = placement.HubWouldRun(kind, false) || f.hubRunsWorkloads(ctx)
	}
	d, ok := known[kind]
	if !ok && (NeedsVersions(gvk, f.Clusters) || Selects(f.Placements, kind, func(p hubv1.PlacementObject) bool { return view.NeedsScalePath(p, kind) })) {
		var err error
		if d, err = f.Definition(ctx, kind, fmt.Sprintf("the definition of %s is not considered", kind)); err != nil {
			return err
		}
	}
	if o.ScalePath = ScalePath(d); !bundled {
		o.OtherVersions = OthersOf(d, gvk.Version)
	}
	return nil
}

// Definition returns the hub's CustomResourceDefinition of a kind. It returns nil for a kind without a definition, and
// for a definition that the user may not read, after it has noted the consequence.
func (f *Fleet) Definition(ctx context.Context, kind schema.GroupKind, consequence string) (*apiextensionsv1.CustomResourceDefinition, error) {
	if d, ok := f.definitions[kind]; ok {
		return d, nil
	}
	d, err := Definition(ctx, f.Client, kind)
	if err != nil && !meta.IsNoMatchError(err) {
		if err := f.Unless(err, consequence); err != nil {
			return nil, fmt.Errorf("reading the definition of %s: %w", kind, err)
		}
	}
	if f.definitions == nil {
		f.definitions = map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition{}
	}
	f.definitions[kind] = d
	return d, nil
}

// hubRunsWorkloads reports whether the hub has nodes or a running controller-manager. The hub makes the same check. If
// the hub cannot be read, the function returns true.
func (f *Fleet) hubRunsWorkloads(ctx context.Context) bool {
	if f.hubRuns == nil {
		runs, err := scopes.RunsWorkloads(ctx, f.Client)
		runs = runs || err != nil
		f.hubRuns = &runs
	}
	return *f.hubRuns
}

// objects reads one page of the objects of a kind, from a continue token on, and returns the token of the next page. If
// whole is true, it reads the content of the objects, and otherwise only the metadata that decisions read. It removes
// the annotation of an object of a bundle, because only the hub may set it.
func (f *Fleet) objects(ctx context.Context, kind schema.GroupVersionKind, whole bool, from string) (objects []*unstructured.Unstructured, next string, err error) {
	limit := f.PageSize
	if !whole {
		limit *= 2
	}
	options := []client.ListOption{client.InNamespace(f.Namespace), client.Limit(limit), client.Continue(from)}
	listKind := kind.GroupVersion().WithKind(kind.Kind + "List")
	if whole {
		var list unstructured.UnstructuredList
		list.SetGroupVersionKind(listKind)
		err := f.List(ctx, &list, options...)
		for i := range list.Items {
			unstructured.RemoveNestedField(list.Items[i].Object, "metadata", "annotations", hubv1.BundleAnnotation)
			objects = append(objects, &list.Items[i])
		}
		return objects, list.GetContinue(), err
	}
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(listKind)
	err = f.List(ctx, &list, options...)
	for i := range list.Items {
		m, u := &list.Items[i], &unstructured.Unstructured{Object: map[string]any{}}
		u.SetGroupVersionKind(kind)
		u.SetNamespace(m.Namespace)
		u.SetName(m.Name)
		u.SetUID(m.UID)
		u.SetLabels(m.Labels)
		u.SetGeneration(m.Generation)
		u.SetDeletionTimestamp(m.DeletionTimestamp)
		objects = append(objects, u)
	}
	return objects, list.Continue, err
}

// EveryKind is the value of a selector for all kinds of a group.
const EveryKind = "*"

// SelectedKinds returns the kinds that placements select, the kinds of objects that the selected objects need, and the
// groups of which placements select all kinds.
func SelectedKinds(placements []hubv1.PlacementObject) (kinds map[schema.GroupKind]bool, groups map[string]bool) {
	kinds, groups = map[schema.GroupKind]bool{}, map[string]bool{}
	for _, p := range placements {
		for _, s := range p.PlacementSpec().ResourceSelectors {
			switch {
			case s.Kind == EveryKind:
				groups[s.APIGroup] = true
			case s.APIGroup != hubv1.GroupVersion.Group:
				kinds[schema.GroupKind{Group: s.APIGroup, Kind: s.Kind}] = true
			}
		}
		for _, gk := range decide.ReferencedKinds(p.PlacementSpec().References) {
			kinds[gk] = true
		}
	}
	return kinds, groups
}

// Selects reports whether one of the placements selects objects of the kind. It considers only the placements for which
// `such` returns true.
func Selects(placements []hubv1.PlacementObject, kind schema.GroupKind, such func(hubv1.PlacementObject) bool) bool {
	return slices.ContainsFunc(placements, func(p hubv1.PlacementObject) bool {
		return such(p) && slices.ContainsFunc(p.PlacementSpec().ResourceSelectors, func(s hubv1.ResourceSelector) bool {
			return s.APIGroup == kind.Group && (s.Kind == kind.Kind || s.Kind == EveryKind)
		})
	})
}

// Divides reports whether a placement divides replicas among clusters.
func Divides(p hubv1.PlacementObject) bool { return p.PlacementSpec().Replicas.Divides() }
