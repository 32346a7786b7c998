package command

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/crd"
	"github.com/hanse-dev/hanse/bundles/manifest"
	"github.com/hanse-dev/hanse/bundles/operator"
	"github.com/hanse-dev/hanse/hub/store/inputs"
	"github.com/hanse-dev/hanse/member/health"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/view"
	"github.com/hanse-dev/hanse/view/preview"
)

// haveOne reports whether one of the bindings has an object that a bundle of this kind contains. kind is Bundle,
// ClusterBundle or FederatedOperator.
func haveOne(bindings map[hubv1.ObjectIdentity]hubv1.BindingObject, kind string) bool {
	for _, b := range bindings {
		if ref := b.BindingSpec().ObjectRef.Bundle; ref != nil && ref.Kind == kind {
			return true
		}
	}
	return false
}

// readBundles reads the bundles of the hub and adds their objects to the fleet.
func (r *fleetReader) readBundles(fleet *decide.Fleet, bindings map[hubv1.ObjectIdentity]hubv1.BindingObject) error {
	var bundles []hubv1.BundleObject
	var everywhere hubv1.ClusterBundleList
	var operators hubv1.FederatedOperatorList
	var here hubv1.BundleList
	for _, of := range []struct {
		kind string
		list client.ObjectList
	}{{hubv1.ClusterBundleKind, &everywhere}, {hubv1.FederatedOperatorKind, &operators}} {
		err := r.List(r.ctx, of.list)
		if apierrors.IsForbidden(err) && !haveOne(bindings, of.kind) {
			err = nil // no readable binding is of such a bundle, so no note is needed
		}
		if err := r.unlessForbidden(err, "objects of "+of.kind+"s are not considered"); err != nil && !meta.IsNoMatchError(err) {
			return fmt.Errorf("listing %ss: %w", of.kind, err)
		}
	}
	err := r.unlessForbidden(r.List(r.ctx, &here, client.InNamespace(r.Namespace)), "objects of Bundles are not considered")
	if err != nil && !meta.IsNoMatchError(err) {
		return fmt.Errorf("listing Bundles: %w", err)
	}
	for i := range everywhere.Items {
		bundles = append(bundles, &everywhere.Items[i])
	}
	for i := range here.Items {
		bundles = append(bundles, &here.Items[i])
	}
	for i := range operators.Items {
		bundles = append(bundles, &operators.Items[i])
	}
	_, source := r.bundled()
	for _, b := range bundles {
		if b.GetDeletionTimestamp() != nil {
			continue
		}
		objects, err := source.Objects(b)
		if err != nil { // the manifests are invalid, or the user may not read them
			r.notes = append(r.notes, "objects not considered: "+err.Error())
			continue
		}
		r.bundles = append(r.bundles, b)
		if text := view.Unstored(b); text != "" {
			r.notes = append(r.notes, text)
		}
		for _, u := range objects {
			if !r.within(u.GetNamespace()) {
				continue
			}
			o := bundledObject(u, bindings)
			if err := r.complete(&o, nil); err != nil {
				return err
			}
			fleet.Objects = append(fleet.Objects, o)
		}
	}
	return nil
}

// bundledObject returns an object of a bundle, together with the binding of the object, as an input of the decisions.
func bundledObject(u *unstructured.Unstructured, bindings map[hubv1.ObjectIdentity]hubv1.BindingObject) decide.FleetObject {
	o := decide.FleetObject{Object: u}
	if b := bindings[o.Identity()]; b != nil && inBundle(b) != "" {
		o.Binding = b
		u.SetGeneration(view.NewestGeneration(b))
	}
	return o
}

// bundled implements hubKinds.
func (r *fleetReader) bundled() ([]hubv1.BundleObject, inputs.Source) {
	return r.bundles, inputs.SourceOn(r.ctx, r.Client, renderedChart)
}

// held implements hubKinds. Without the right to read the SetRollout and its Secrets, it adds a note.
func (r *fleetReader) held(of hubv1.BundleReference, id hubv1.ObjectIdentity) ([]*unstructured.Unstructured, error) {
	record, err := inputs.SetRollout(r.ctx, r.Client, of)
	if record != nil {
		var held []*unstructured.Unstructured
		if held, err = inputs.HeldContents(r.ctx, r.Client, &record.Spec, id); err == nil {
			return held, nil
		}
	}
	return nil, r.unlessForbidden(err, "definitions that clusters hold in earlier waves are not compared")
}

// held implements hubKinds.
func (*fileKinds) held(hubv1.BundleReference, hubv1.ObjectIdentity) ([]*unstructured.Unstructured, error) {
	return nil, nil
}

// within implements hubKinds.
func (r *fleetReader) within(namespace string) bool {
	return r.Namespace == "" || r.Namespace == namespace
}

// within implements hubKinds.
func (*fileKinds) within(string) bool { return true }

// bundled implements hubKinds.
func (k *fileKinds) bundled() ([]hubv1.BundleObject, inputs.Source) {
	return k.files.bundles, inputs.Source{ConfigMap: k.configMap, Secret: noSecret, Chart: renderedChart, Namespaced: func(kind schema.GroupKind) (namespaced, known bool, err error) {
		if d := k.definition(kind, nil); d != nil {
			return d.Spec.Scope == apiextensionsv1.NamespaceScoped, true, nil
		}
		namespaced, known = k.namespaced[kind]
		return namespaced, known, nil
	}}
}

// noSecret returns a NotFound error, because files that describe a fleet have no Secrets of the hub.
func noSecret(key client.ObjectKey) (*corev1.Secret, error) {
	return nil, apierrors.NewNotFound(corev1.Resource("secrets"), key.Name)
}

// configMap returns the ConfigMap of this name in the files. It returns a NotFound error if the files do not have it.
func (k *fileKinds) configMap(key client.ObjectKey) (*corev1.ConfigMap, error) {
	m := &corev1.ConfigMap{}
	if u := k.files.configMap(key); u != nil {
		return m, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, m)
	}
	return nil, apierrors.NewNotFound(corev1.Resource("configmaps"), key.Name)
}

// configMap returns the ConfigMap of this name in the files. It returns nil if the files do not have it.
func (f *fleetFiles) configMap(key client.ObjectKey) *unstructured.Unstructured {
	id := hubv1.ObjectIdentity{Kind: "ConfigMap", Namespace: key.Namespace, Name: key.Name}
	i := slices.IndexFunc(f.objects, func(u *unstructured.Unstructured) bool { return hubv1.IdentityOf(u) == id })
	if i < 0 {
		return nil
	}
	return f.objects[i]
}

// bundledFleet adds the objects of all bundles in the files to the fleet. It also adds their bindings. It returns a
// note for each bundle that cannot be read.
func (f *fleetFiles) bundledFleet(fleet *decide.Fleet, bindings map[hubv1.ObjectIdentity]hubv1.BindingObject) (notes []string) {
	bundles, source := kindsOfFiles(f, "").bundled()
	for _, b := range bundles {
		objects, err := source.Objects(b)
		if err != nil {
			notes = append(notes, "objects not considered: "+err.Error())
		}
		for _, u := range objects {
			o := bundledObject(u, bindings)
			if o.Binding != nil {
				delete(bindings, o.Identity())
			}
			addNamespaceLabels(fleet.NamespaceLabels, u)
			fleet.Objects = append(fleet.Objects, o)
		}
	}
	return notes
}

// applyBundles changes the objects of bundles in the fleet. The fleet then has the objects that the hub would have
// after a user has applied the files. This concerns bundles in the files, and bundles of the hub that use a ConfigMap
// in the files.
func (f *fleetFiles) applyBundles(ctx context.Context, fleet *decide.Fleet, kinds hubKinds) error {
	there, source := kinds.bundled()
	f.bundled, f.problems = map[hubv1.ObjectIdentity]bool{}, nil
	onHub := source.ConfigMap
	source.ConfigMap = func(key client.ObjectKey) (*corev1.ConfigMap, error) {
		file := f.configMap(key)
		if file == nil {
			return onHub(key)
		}
		m, err := onHub(key)
		if apierrors.IsNotFound(err) {
			m = &corev1.ConfigMap{}
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(file.Object, m)
			return m, err
		}
		if err != nil {
			return nil, err
		}
		return appliedTo(m, file)
	}
	for _, b := range f.bundles {
		i := slices.IndexFunc(there, func(o hubv1.BundleObject) bool { return hubv1.OfBundle(o).Identity() == hubv1.OfBundle(b).Identity() })
		changed := b
		if i >= 0 {
			merged, err := appliedTo[client.Object](there[i], f.written(hubv1.ReferenceTo(b).Kind, b))
			if err != nil {
				return err
			}
			changed = merged.(hubv1.BundleObject)
		}
		if err := f.applyBundle(ctx, fleet, kinds, source, changed, f.source(hubv1.OfBundle(b).Identity())); err != nil {
			return err
		}
	}
	for _, b := range there {
		inFiles := slices.ContainsFunc(f.bundles, func(o hubv1.BundleObject) bool { return hubv1.OfBundle(o).Identity() == hubv1.OfBundle(b).Identity() })
		for _, name := range configMapsOf(b) {
			u := f.configMap(client.ObjectKey{Namespace: inputs.BundleHome(b), Name: name})
			if u == nil || inFiles {
				continue
			}
			if err := f.applyBundle(ctx, fleet, kinds, source, b, f.source(hubv1.IdentityOf(u))); err != nil {
				return err
			}
			break
		}
	}
	return nil
}

// configMapsOf returns the names of the ConfigMaps that a bundle uses for its objects.
func configMapsOf(b hubv1.BundleObject) []string {
	var names []string
	for _, m := range b.BundleSpec().ConfigMaps {
		names = append(names, m.Name)
	}
	if o, ok := b.(*hubv1.FederatedOperator); ok && o.Spec.Chart != nil {
		if o.Spec.Chart.Archive != nil {
			names = append(names, o.Spec.Chart.Archive.ConfigMap)
		}
		for _, from := range o.Spec.Chart.ValuesFrom {
			names = append(names, from.ConfigMap)
		}
	}
	return names
}

// applyBundle replaces the objects of one bundle in the fleet. If the bundle no longer has an object, the object is
// marked as removed.
func (f *fleetFiles) applyBundle(ctx context.Context, fleet *decide.Fleet, kinds hubKinds, source inputs.Source, b hubv1.BundleObject, file string) error {
	read, err := source.Read(b)
	if err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	if blocked, err := f.upgradeBlocked(ctx, fleet, kinds, b, read); blocked || err != nil {
		return err
	}
	objects := read.Objects
	places, lost := map[hubv1.ObjectIdentity]int{}, map[hubv1.ObjectIdentity]int{}
	for i, o := range fleet.Objects {
		places[o.Identity()] = i
		if of := hubv1.BundleOf(o.Object); of != nil && of.BundleReference == hubv1.ReferenceTo(b) {
			lost[o.Identity()] = i
		}
	}
	for _, u := range objects {
		if !kinds.within(u.GetNamespace()) {
			continue
		}
		o := decide.FleetObject{Object: u}
		id := o.Identity()
		i, known := places[id]
		_, ours := lost[id]
		delete(lost, id)
		switch {
		case ours:
			f.replaceBundled(fleet, i, u)
			continue
		case known && (hubv1.BundleOf(fleet.Objects[i].Object) != nil || fleet.Objects[i].Binding != nil):
			return fmt.Errorf("reading %s: %s cannot have %s: %s has it already", file, hubv1.ReferenceTo(b), id, ownerOf(fleet.Objects[i].Object))
		}
		if err := kinds.complete(&o, f.definitions()); err != nil {
			return err
		}
		f.bundled[id] = true
		addNamespaceLabels(fleet.NamespaceLabels, u)
		if known {
			fleet.Objects[i] = o
		} else {
			fleet.Objects = append(fleet.Objects, o)
		}
	}
	for _, i := range lost {
		fleet.Objects[i].Removed = true
	}
	return nil
}

// upgradeBlocked judges the definitions that an operator changes, as the hub does. If they break objects in use, the
// hub keeps the stored objects: upgradeBlocked then records the problem and returns true.
func (f *fleetFiles) upgradeBlocked(ctx context.Context, fleet *decide.Fleet, kinds hubKinds, b hubv1.BundleObject, read inputs.Rendered) (bool, error) {
	o, ok := b.(*hubv1.FederatedOperator)
	if !ok {
		return false, nil
	}
	up := operator.Upgrade{Acknowledged: o.Spec.Acknowledge, Chart: read.Chart, Stored: o.Status.Chart}
	for _, after := range read.Objects {
		kind, _, ok := manifest.DefinedKind(after)
		if !ok {
			continue
		}
		d := operator.ChangedDefinition{After: after}
		for _, in := range fleet.Objects {
			switch id := in.Identity(); {
			case id == hubv1.IdentityOf(after):
				if of := hubv1.BundleOf(in.Object); of == nil || of.BundleReference != hubv1.ReferenceTo(b) {
					continue
				}
				d.Before = in.Object
				if in.Binding != nil {
					var err error
					if d.StoredVersions, err = health.StoredVersions(in.Binding.BindingStatus().Clusters); err != nil {
						return false, fmt.Errorf("reading the rows of %s: %w", id, err)
					}
				}
			case id.GroupKind() == kind && in.Binding != nil:
				if clusters := in.Binding.BindingSpec().Holders(); len(clusters) > 0 {
					d.Objects = append(d.Objects, crd.Object{Content: in.Object, Clusters: clusters})
				}
			}
		}
		if d.Before != nil && !equality.Semantic.DeepEqual(d.Before.Object["spec"], after.Object["spec"]) {
			held, err := kinds.held(hubv1.ReferenceTo(b), hubv1.IdentityOf(after))
			if err != nil {
				return false, err
			}
			d.Held = d.Others(held)
			up.Definitions = append(up.Definitions, d)
		}
	}
	verdict, err := up.Judge(ctx)
	if err != nil || verdict.Reason == "" {
		return false, err
	}
	f.problems = append(f.problems, preview.Problem{Object: preview.Object(hubv1.ReferenceTo(b).Identity()), Reason: verdict.Reason, Message: verdict.Message})
	return true, nil
}

// replaceBundled replaces the object with index i in the fleet by u, an object of a bundle. It does nothing if both are
// equal.
func (f *fleetFiles) replaceBundled(fleet *decide.Fleet, i int, u *unstructured.Unstructured) {
	before := fleet.Objects[i].Object
	if before.GetGeneration() != 0 {
		u.SetGeneration(before.GetGeneration())
	}
	if equality.Semantic.DeepEqual(before.Object, u.Object) {
		return
	}
	u.SetGeneration(before.GetGeneration() + 1)
	f.bundled[hubv1.IdentityOf(u)] = true
	fleet.Objects[i].Object = u
}

// ownerOf returns the bundle that contains an object, or "the hub itself" for an object of the hub.
func ownerOf(u *unstructured.Unstructured) string {
	if b := hubv1.BundleOf(u); b != nil {
		return b.String()
	}
	return "the hub itself"
}
