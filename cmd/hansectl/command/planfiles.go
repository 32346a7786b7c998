package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/inputs"
	"github.com/hanse-dev/hanse/overrides"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/view/preview"
)

// fileKinds tells which kinds and bundles the hub has, for plan --from. With this flag, hansectl reads files that
// replace the hub.
type fileKinds struct {
	definitions map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition
	namespaced  map[schema.GroupKind]bool // the kinds of the objects in the files
	home        string
	files       *fleetFiles
}

func kindsOfFiles(files *fleetFiles, home string) *fileKinds {
	k := &fileKinds{definitions: files.definitions(), namespaced: map[schema.GroupKind]bool{}, home: home, files: files}
	for _, u := range files.objects {
		k.namespaced[u.GroupVersionKind().GroupKind()] = u.GetNamespace() != ""
	}
	return k
}

// definition returns the CustomResourceDefinition of a kind, from known or from the files that replace the hub. It
// returns nil if neither has it.
func (k *fileKinds) definition(kind schema.GroupKind, known map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	if d, ok := known[kind]; ok {
		return d
	}
	return k.definitions[kind]
}

// locate sets the namespace of an object that has none. If it is not known whether a kind is namespaced, locate puts
// the object into the namespace that the user has named. If the user has named no namespace, the object counts as
// cluster-scoped.
func (k *fileKinds) locate(u *unstructured.Unstructured, known map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition) error {
	kind := u.GroupVersionKind().GroupKind()
	if u.GetNamespace() != "" || kind == (schema.GroupKind{Kind: "Namespace"}) || kind == inputs.DefinitionKind.GroupKind() {
		return nil
	}
	namespaced, seen := k.namespaced[kind]
	if d := k.definition(kind, known); d != nil {
		namespaced, seen = d.Spec.Scope == apiextensionsv1.NamespaceScoped, true
	}
	switch {
	case seen && namespaced && k.home == "":
		u.SetNamespace(corev1.NamespaceDefault)
	case seen && namespaced, !seen:
		u.SetNamespace(k.home)
	}
	return nil
}

// complete implements hubKinds.
func (k *fileKinds) complete(o *decide.FleetObject, known map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition) error {
	d := k.definition(o.Identity().GroupKind(), known)
	o.ScalePath, o.OtherVersions = inputs.ScalePath(d), inputs.OthersOf(d, o.Object.GroupVersionKind().Version)
	return nil
}

// known returns an error if the files have an object whose kind neither the hub nor the files define.
func (r *fleetReader) known(files *fleetFiles) error {
	own := files.definitions()
	for _, u := range files.objects {
		kind, source := u.GroupVersionKind(), files.sources[hubv1.IdentityOf(u)]
		_, err := r.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		switch {
		case meta.IsNoMatchError(err) && own[kind.GroupKind()] == nil:
			return fmt.Errorf("reading %s: the hub does not serve %s %s, and no file has its CustomResourceDefinition", source, kind.GroupVersion(), kind.Kind)
		case err != nil && !meta.IsNoMatchError(err):
			return fmt.Errorf("finding the kind %s on the hub: %w", kind.GroupKind(), err)
		}
	}
	return nil
}

// inNamespace returns an error if the files have an object in a namespace other than the requested one. If they have
// cluster-scoped objects, it returns a note: the result ignores their effects on other namespaces.
func (f *fleetFiles) inNamespace(namespace string) (note string, err error) {
	if namespace == "" {
		return "", nil
	}
	for id, source := range f.sources {
		if id.Namespace != "" && id.Namespace != namespace {
			return "", fmt.Errorf("reading %s: %s is not in namespace %s: leave out -n, or name its namespace", source, id, namespace)
		}
	}
	everywhere := slices.ContainsFunc(f.placements, isClusterScoped) || slices.ContainsFunc(f.overrides, isClusterScoped) ||
		slices.ContainsFunc(f.bundles, isClusterScoped) || len(f.clusters) > 0
	isOperator := func(b hubv1.BundleObject) bool { return hubv1.ReferenceTo(b).Kind == hubv1.FederatedOperatorKind }
	switch {
	case slices.ContainsFunc(f.bundles, isOperator):
		return "objects of other namespaces than " + namespace + ", and the definitions that an operator changes, are not considered: to consider them, leave out -n, which needs rights in all namespaces", nil
	case everywhere:
		return "objects of other namespaces than " + namespace + " are not considered: to consider them, leave out -n, which needs rights in all namespaces", nil
	}
	return "", nil
}

// hintNamespace adds advice to the error of a user who may not read all namespaces: name a namespace with -n. named is
// the namespace of -n. home is the default namespace in the kubeconfig.
func (f *fleetFiles) hintNamespace(err error, named, home string) error {
	if named != "" || !apierrors.IsForbidden(err) {
		return err
	}
	found := map[string]bool{}
	for id := range f.sources {
		if id.Namespace != "" {
			found[id.Namespace] = true
		}
	}
	namespaces := slices.Sorted(maps.Keys(found))
	switch {
	case len(namespaces) == 0 || found[home]:
		return err
	case len(namespaces) == 1:
		return fmt.Errorf("all namespaces are read without -n: pass -n %s to read this one alone: %w", namespaces[0], err)
	}
	return fmt.Errorf("all namespaces are read without -n: pass -n NAMESPACE with the files of one namespace, such as %s: %w", namespaces[0], err)
}

func isClusterScoped[P interface{ GetNamespace() string }](p P) bool { return p.GetNamespace() == "" }

// source returns the file that contains the object. A policy may have no namespace in its file, because the command has
// set the namespace. source also finds the file of such a policy.
func (f *fleetFiles) source(id hubv1.ObjectIdentity) string {
	if source, ok := f.sources[id]; ok {
		return source
	}
	id.Namespace = ""
	return f.sources[id]
}

// definitionsFor returns the CustomResourceDefinitions of the kinds in the files, and of the kinds that their override
// policies select. It leaves out definitions that the user may not read.
func (r *fleetReader) definitionsFor(files *fleetFiles) (map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition, error) {
	out := files.definitions()
	var kinds []schema.GroupKind
	for _, u := range files.objects {
		kinds = append(kinds, u.GroupVersionKind().GroupKind())
	}
	for _, p := range files.overrides {
		for _, s := range p.OverrideSpec().ResourceSelectors {
			kinds = append(kinds, schema.GroupKind{Group: s.APIGroup, Kind: s.Kind})
		}
	}
	for _, kind := range kinds {
		if _, known := out[kind]; known || !strings.Contains(kind.Group, ".") || kind.Kind == inputs.EveryKind {
			continue
		}
		d, err := r.Definition(r.ctx, kind, fmt.Sprintf("objects are not compared with the definition of %s", kind))
		if err != nil {
			return nil, err
		}
		out[kind] = d
	}
	return out, nil
}

// fits checks objects against the definitions of their kinds: CustomResourceDefinitions, or the Go types of the kinds
// of Kubernetes.
type fits struct {
	definitions map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition
	read        map[schema.GroupVersionKind]*definition
}

// check returns why an object does not match the definition of its kind. It returns nil if the kind has no definition
// here.
func (f *fits) check(ctx context.Context, u *unstructured.Unstructured) error {
	kind := u.GroupVersionKind()
	crd := f.definitions[kind.GroupKind()]
	if crd == nil {
		return fitsKubernetes(u)
	}
	d, known := f.read[kind]
	if !known {
		for i := range crd.Spec.Versions {
			v := &crd.Spec.Versions[i]
			if v.Name != kind.Version || v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
				continue
			}
			if found, err := readDefinition(v); err == nil { // an invalid definition cannot check objects
				d = &found
			}
		}
		f.read[kind] = d
	}
	if d == nil {
		return nil
	}
	return d.check(ctx, u)
}

// fitsKubernetes returns the first field of an object whose value has another type than its kind in Kubernetes says. It
// returns nil for a kind that Kubernetes does not have.
func fitsKubernetes(u *unstructured.Unstructured) error {
	typed, err := scheme.Scheme.New(u.GroupVersionKind())
	if err != nil {
		return nil //nolint:nilerr // not a kind of Kubernetes
	}
	raw, err := u.MarshalJSON()
	if err != nil {
		return err
	}
	err = json.Unmarshal(raw, typed)
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return fmt.Errorf("%s must be of type %s, not %s", wrong.Field, wrong.Type, wrong.Value)
	}
	return err
}

// refused returns an error if the hub would refuse a placement or an override policy of the files.
func (f *fleetFiles) refused() error {
	for _, p := range f.placements {
		o := decide.OwnerOf(decide.ReferenceTo(p))
		if err := preview.CheckPlacement(p); err != nil {
			return f.refusal(hubv1.ObjectIdentity{Group: hubv1.GroupVersion.Group, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}, err)
		}
	}
	for _, p := range f.overrides {
		o := overrides.RefOf(p)
		if err := preview.CheckOverrides(p); err != nil {
			return f.refusal(hubv1.ObjectIdentity{Group: hubv1.GroupVersion.Group, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}, err)
		}
	}
	return nil
}

func (f *fleetFiles) refusal(id hubv1.ObjectIdentity, err error) error {
	return fmt.Errorf("reading %s: %s: %w", f.sources[id], id, err)
}
