package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	cliresource "k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/inputs"
	"github.com/hanse-dev/hanse/overrides"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/view"
	"github.com/hanse-dev/hanse/view/preview"
)

// fleetFiles has the objects in the files of plan and render.
type fleetFiles struct {
	sources map[hubv1.ObjectIdentity]string // file of each object
	// policies has the clusters, placements and override policies, as written in the files.
	policies   map[hubv1.ObjectIdentity]*unstructured.Unstructured
	clusters   []*hubv1.MemberCluster
	placements []hubv1.PlacementObject
	overrides  []hubv1.OverridePolicyObject
	bindings   []hubv1.BindingObject
	bundles    []hubv1.BundleObject
	objects    []*unstructured.Unstructured
	// bundled are the objects of bundles that the files change. applyBundles sets it.
	bundled map[hubv1.ObjectIdentity]bool
	// problems are the bundles in the files whose objects the hub would not store. applyBundles sets it.
	problems []preview.Problem
}

// readFiles reads files in the forms that kubectl accepts: YAML and JSON, several documents, lists and directories. It
// returns an error for an object of Hanse's kinds that the hub's API server would refuse.
func readFiles(ctx context.Context, options cliresource.FilenameOptions) (*fleetFiles, error) {
	files := &fleetFiles{sources: map[hubv1.ObjectIdentity]string{}, policies: map[hubv1.ObjectIdentity]*unstructured.Unstructured{}}
	if len(options.Filenames) == 0 && options.Kustomize == "" {
		return files, nil
	}
	infos, err := cliresource.NewLocalBuilder().Unstructured().FilenameParam(false, &options).Flatten().Do().Infos()
	if err != nil {
		return nil, fmt.Errorf("reading the files: %w", err)
	}
	for _, info := range infos {
		u, ok := info.Object.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		if u.GetName() == "" {
			return nil, fmt.Errorf("reading %s: a %s has no name", info.Source, u.GetKind())
		}
		hubObject(u)
		id := hubv1.IdentityOf(u)
		if first, twice := files.sources[id]; twice {
			return nil, fmt.Errorf("reading %s: %s is there twice, first in %s", info.Source, id, first)
		}
		files.sources[id] = info.Source
		if err := files.add(ctx, u); err != nil {
			return nil, fmt.Errorf("reading %s: %s: %w", info.Source, id, err)
		}
	}
	return files, nil
}

func (f *fleetFiles) add(ctx context.Context, u *unstructured.Unstructured) error {
	if u.GroupVersionKind().Group != hubv1.GroupVersion.Group {
		f.objects = append(f.objects, u)
		return nil
	}
	f.policies[hubv1.IdentityOf(u)] = u
	switch u.GetKind() {
	case "MemberCluster":
		return into(ctx, u, &f.clusters, &hubv1.MemberCluster{})
	case "Placement":
		return into[hubv1.PlacementObject](ctx, u, &f.placements, &hubv1.Placement{})
	case "ClusterPlacement":
		return into[hubv1.PlacementObject](ctx, u, &f.placements, &hubv1.ClusterPlacement{})
	case "OverridePolicy":
		return into[hubv1.OverridePolicyObject](ctx, u, &f.overrides, &hubv1.OverridePolicy{})
	case "ClusterOverridePolicy":
		return into[hubv1.OverridePolicyObject](ctx, u, &f.overrides, &hubv1.ClusterOverridePolicy{})
	case "ResourceBinding":
		return into[hubv1.BindingObject](ctx, u, &f.bindings, &hubv1.ResourceBinding{})
	case "ClusterResourceBinding":
		return into[hubv1.BindingObject](ctx, u, &f.bindings, &hubv1.ClusterResourceBinding{})
	case hubv1.BundleKind:
		return into[hubv1.BundleObject](ctx, u, &f.bundles, &hubv1.Bundle{})
	case hubv1.ClusterBundleKind:
		return into[hubv1.BundleObject](ctx, u, &f.bundles, &hubv1.ClusterBundle{})
	case hubv1.FederatedOperatorKind:
		return into[hubv1.BundleObject](ctx, u, &f.bundles, &hubv1.FederatedOperator{})
	}
	own, err := definitions()
	if _, known := own[u.GetKind()]; err != nil || known {
		return err // other kinds of Hanse do not affect scheduling
	}
	return fmt.Errorf("the hub has no kind %s: it has %s", u.GetKind(), strings.Join(slices.Sorted(maps.Keys(own)), ", "))
}

func into[T any](ctx context.Context, u *unstructured.Unstructured, list *[]T, typed T) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, typed, true); err != nil {
		if invalid := validate(ctx, u); invalid != nil && !runtime.IsStrictDecodingError(err) {
			return invalid // this error names the field whose type is wrong
		}
		return err
	}
	if err := validate(ctx, u); err != nil {
		return err
	}
	*list = append(*list, typed)
	return nil
}

// fleet returns the inputs of the decisions (objects, policies and clusters) from the files alone. It also returns
// notes about what the decisions do not consider. namespace is for policies and bundles without a namespace. Other
// objects without a namespace count as cluster-scoped.
func (f *fleetFiles) fleet(now time.Time, namespace string) (decide.Fleet, []string) {
	fleet := decide.Fleet{Now: now, NamespaceLabels: map[string]map[string]string{}}
	for _, c := range f.clusters {
		fleet.Clusters = append(fleet.Clusters, assumed(c, now))
	}
	fleet.Placements, fleet.Overrides = f.placements, f.overrides
	f.defaultNamespaces(namespace)
	bindings := map[hubv1.ObjectIdentity]hubv1.BindingObject{}
	for _, b := range f.bindings {
		bindings[hubv1.ObjectOf(b)] = b
	}
	definitions := f.definitions()
	for _, u := range f.objects {
		addNamespaceLabels(fleet.NamespaceLabels, u)
		o := decide.FleetObject{Object: u}
		id := o.Identity()
		d := definitions[id.GroupKind()]
		o.Binding, o.ScalePath, o.OtherVersions = bindings[id], inputs.ScalePath(d), inputs.OthersOf(d, u.GroupVersionKind().Version)
		if o.Binding != nil {
			o.HubRuns = view.Refused(o.Binding, u)
		}
		delete(bindings, id)
		fleet.Objects = append(fleet.Objects, o)
	}
	notes := f.bundledFleet(&fleet, bindings)
	if len(bindings) > 0 {
		notes = append(notes, counted(len(bindings), "binding")+" without an object in the files not considered")
	}
	return fleet, notes
}

// defaultNamespaces sets the namespace of Placements, OverridePolicies and Bundles that have none in their file.
func (f *fleetFiles) defaultNamespaces(namespace string) {
	locate := func(o client.Object) {
		if o.GetNamespace() == "" {
			o.SetNamespace(cmp.Or(namespace, corev1.NamespaceDefault))
		}
	}
	for _, p := range f.placements {
		if _, ok := p.(*hubv1.Placement); ok {
			locate(p)
		}
	}
	for _, p := range f.overrides {
		if _, ok := p.(*hubv1.OverridePolicy); ok {
			locate(p)
		}
	}
	for _, b := range f.bundles {
		if _, ok := b.(*hubv1.Bundle); ok {
			locate(b)
		}
	}
}

// addNamespaceLabels adds to the map all what an object shows about the labels of a namespace. A Namespace shows all
// its labels. Any other object shows only the label kubernetes.io/metadata.name of its namespace.
func addNamespaceLabels(all map[string]map[string]string, u *unstructured.Unstructured) {
	name := u.GetNamespace()
	isNamespace := u.GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "Namespace"}
	if isNamespace {
		name = u.GetName()
	}
	if name == "" {
		return
	}
	if all[name] == nil {
		all[name] = map[string]string{corev1.LabelMetadataName: name}
	}
	if isNamespace {
		maps.Copy(all[name], u.GetLabels())
	}
}

// definitions returns the CustomResourceDefinitions in the files, by the kind that they define. It skips definitions
// that cannot be read.
func (f *fleetFiles) definitions() map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition {
	definitions := map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition{}
	for _, u := range f.objects {
		if u.GroupVersionKind().GroupKind() != inputs.DefinitionKind.GroupKind() {
			continue
		}
		if d, err := inputs.DefinitionOf(u); err == nil {
			definitions[schema.GroupKind{Group: d.Spec.Group, Kind: d.Spec.Names.Kind}] = d
		}
	}
	return definitions
}

var errBindings = errors.New("bindings are written by the hub alone: leave them out, or read them with --from")

// hubKinds knows the kinds and bundles of a hub, or of the files that replace a hub.
type hubKinds interface {
	// locate sets the namespace of an object that has none, if the kind of the object is namespaced. known has the
	// CustomResourceDefinitions in the changed files.
	locate(u *unstructured.Unstructured, known map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition) error
	// complete adds to o the data that a decision needs but that the object does not contain, such as the path of the
	// field with its replicas. known has the CustomResourceDefinitions that need not be read from the hub.
	complete(o *decide.FleetObject, known map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition) error
	// bundled returns the bundles of the hub, and the source that reads their objects.
	bundled() ([]hubv1.BundleObject, inputs.Source)
	// held returns the contents of an object that clusters shall hold by the SetRollout of its bundle.
	held(of hubv1.BundleReference, id hubv1.ObjectIdentity) ([]*unstructured.Unstructured, error)
	// within reports whether hansectl has read the objects of a namespace. It is false for other namespaces if the user
	// has named one.
	within(namespace string) bool
}

// applyTo changes a fleet as if a user had applied the files to the hub. A fleet has the objects, policies and clusters
// of a plan.
func (f *fleetFiles) applyTo(ctx context.Context, fleet *decide.Fleet, kinds hubKinds) error {
	if len(f.bindings) > 0 {
		return errBindings
	}
	fleet.Clusters, fleet.Placements, fleet.Objects = slices.Clone(fleet.Clusters), slices.Clone(fleet.Placements), slices.Clone(fleet.Objects)
	for _, c := range f.clusters {
		if i, err := preview.FindCluster(fleet, c.Name); err == nil {
			if fleet.Clusters[i], err = appliedTo(fleet.Clusters[i], f.written("MemberCluster", c)); err != nil {
				return err
			}
			continue
		}
		fleet.Clusters = append(fleet.Clusters, assumed(c, fleet.Now))
	}
	for _, p := range f.placements {
		if err := f.applyPlacement(fleet, p); err != nil {
			return err
		}
	}
	if err := f.applyOverrides(fleet); err != nil {
		return err
	}
	labels := map[string]map[string]string{}
	for namespace, of := range fleet.NamespaceLabels {
		labels[namespace] = maps.Clone(of)
	}
	fleet.NamespaceLabels = labels
	places := map[hubv1.ObjectIdentity]int{}
	for i, o := range fleet.Objects {
		places[o.Identity()] = i
	}
	known := f.definitions()
	for _, u := range f.objects {
		if err := kinds.locate(u, known); err != nil {
			return err
		}
		addNamespaceLabels(fleet.NamespaceLabels, u)
		o := decide.FleetObject{Object: u}
		if i, ok := places[o.Identity()]; ok {
			fleet.Objects[i].Object = preview.Applied(fleet.Objects[i].Object, u)
			continue
		}
		if err := kinds.complete(&o, known); err != nil {
			return err
		}
		fleet.Objects = append(fleet.Objects, o)
	}
	return f.applyBundles(ctx, fleet, kinds)
}

// policiesOver returns the override policies that exist after a user has applied the files. The argument "there" has
// the policies of the hub.
func (f *fleetFiles) policiesOver(there []hubv1.OverridePolicyObject) []hubv1.OverridePolicyObject {
	out := slices.DeleteFunc(slices.Clone(there), func(p hubv1.OverridePolicyObject) bool {
		return slices.ContainsFunc(f.overrides, func(o hubv1.OverridePolicyObject) bool { return overrides.RefOf(o) == overrides.RefOf(p) })
	})
	return append(out, f.overrides...)
}

// written returns an object exactly as it is in its file. It also finds a policy to which the command has added a
// namespace.
func (f *fleetFiles) written(kind string, o client.Object) *unstructured.Unstructured {
	id := hubv1.ObjectIdentity{Group: hubv1.GroupVersion.Group, Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}
	if u, ok := f.policies[id]; ok {
		return u
	}
	id.Namespace = ""
	return f.policies[id]
}

// appliedTo returns the hub object "there" as it is after a user has applied the file. If the file changes nothing, it
// returns the same pointer.
func appliedTo[T client.Object](there T, file *unstructured.Unstructured) (T, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(there)
	if err != nil {
		return there, fmt.Errorf("applying %s %s: %w", file.GetKind(), file.GetName(), err)
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(file.GroupVersionKind())
	merged := preview.Applied(object, file)
	if merged == object {
		return there, nil
	}
	out := reflect.New(reflect.TypeOf(there).Elem()).Interface().(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(merged.Object, out); err != nil {
		return there, fmt.Errorf("applying %s %s: %w", file.GetKind(), file.GetName(), err)
	}
	return out, nil
}

func (f *fleetFiles) applyPlacement(fleet *decide.Fleet, p hubv1.PlacementObject) error {
	for i, there := range fleet.Placements {
		if there.GetNamespace() != p.GetNamespace() || there.GetName() != p.GetName() {
			continue
		}
		merged, err := appliedTo(there.(client.Object), f.written(decide.OwnerOf(decide.ReferenceTo(p)).Kind, p.(client.Object)))
		if err != nil {
			return err
		}
		p := merged.(hubv1.PlacementObject)
		if !equality.Semantic.DeepEqual(there.PlacementSpec(), p.PlacementSpec()) || !equality.Semantic.DeepEqual(there.SelectedNamespaces(), p.SelectedNamespaces()) ||
			there.IsEnforced() != p.IsEnforced() {
			p.SetGeneration(there.GetGeneration() + 1)
		}
		fleet.Placements[i] = p
		return nil
	}
	p.SetGeneration(1)
	fleet.Placements = append(fleet.Placements, p)
	return nil
}

func (f *fleetFiles) applyOverrides(fleet *decide.Fleet) error {
	fleet.Overrides = slices.Clone(fleet.Overrides)
	for _, p := range f.overrides {
		i := slices.IndexFunc(fleet.Overrides, func(o hubv1.OverridePolicyObject) bool { return overrides.RefOf(o) == overrides.RefOf(p) })
		if i < 0 {
			fleet.Overrides = append(fleet.Overrides, p)
			continue
		}
		merged, err := appliedTo(fleet.Overrides[i].(client.Object), f.written(overrides.RefOf(p).Kind, p.(client.Object)))
		if err != nil {
			return err
		}
		fleet.Overrides[i] = merged.(hubv1.OverridePolicyObject)
	}
	return nil
}
