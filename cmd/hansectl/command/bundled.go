package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/chart"
	"github.com/hanse-dev/hanse/hub/store/inputs"
	"github.com/hanse-dev/hanse/view"
)

// template returns an object of the hub, or an object of a bundle as the hub would store it. It returns nil if the
// object or its bundle does not exist. binding is nil if the object has no binding.
func (h *hub) template(ctx context.Context, c client.Client, id hubv1.ObjectIdentity, version string, binding hubv1.BindingObject) (*unstructured.Unstructured, error) {
	if binding == nil || binding.BindingSpec().ObjectRef.Bundle == nil {
		return readObject(ctx, c, id, version)
	}
	b, err := readBundle(ctx, c, *binding.BindingSpec().ObjectRef.Bundle)
	if b == nil || err != nil {
		return nil, err
	}
	if unstored := view.Unstored(b); unstored != "" {
		h.warn("warning: " + unstored + "\n")
	}
	return inputs.SourceOn(ctx, c, renderedChart).Object(b, binding)
}

// readBundle reads a bundle. It returns nil if the bundle does not exist.
func readBundle(ctx context.Context, c client.Reader, of hubv1.BundleReference) (hubv1.BundleObject, error) {
	b, err := inputs.Bundle(ctx, c, of)
	if meta.IsNoMatchError(err) {
		return nil, errNoHub
	}
	return b, err
}

// renderedChart renders the chart of an operator, as the hub does.
func renderedChart(o *hubv1.FederatedOperator, source inputs.Source) (inputs.Rendered, error) {
	if r := o.Spec.Chart.Repository; r != nil {
		return inputs.Rendered{}, fmt.Errorf("hansectl does not fetch the chart from %s: only the hub does", r.URL)
	}
	in, err := chart.InputOf(o.Spec.Chart, chart.Sources{ConfigMap: func(name string, optional bool) (*corev1.ConfigMap, error) {
		key := client.ObjectKey{Namespace: inputs.BundleHome(o), Name: name}
		m, err := source.ConfigMap(key)
		switch {
		case apierrors.IsNotFound(err) && optional:
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("reading ConfigMap %s: %w", key, err)
		}
		return m, nil
	}})
	if err != nil {
		return inputs.Rendered{}, err
	}
	rendered, err := chart.Render(context.Background(), in) // Render ends by itself after chart.MaxTime
	if err != nil {
		return inputs.Rendered{}, err
	}
	if len(rendered.Generated) > 0 || o.Status.GeneratedValues != nil {
		if err := keep(o, &rendered, source); err != nil {
			return inputs.Rendered{}, err
		}
	}
	objects, err := rendered.ForMembers(o.Spec.Chart.Hooks)
	return inputs.Rendered{Objects: objects, Chart: &hubv1.RenderedChart{Name: rendered.Name, Version: rendered.Version}}, err
}

// keep puts the values that the hub keeps for an operator into the objects of its chart. Fields without a kept value
// get a placeholder.
func keep(o *hubv1.FederatedOperator, rendered *chart.Rendered, source inputs.Source) error {
	key := client.ObjectKey{Namespace: inputs.BundleHome(o), Name: hubv1.ReferenceTo(o).Identity().GeneratedValuesName()}
	secret, err := source.Secret(key)
	stored := chart.StoredValues{}
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("reading Secret %s, which has the values that the chart generated: %w", key, err)
	default:
		err = stored.Read(secret)
	}
	if err != nil || stored.Operator != o.UID {
		stored.Values = rendered.Placeholders()
	}
	_, err = rendered.Keep(stored.Values)
	return err
}

// inBundle returns the name of the bundle that contains the object of a binding. It returns an empty text for an object
// of the hub, and if b is nil.
func inBundle(b hubv1.BindingObject) string {
	if b == nil {
		return ""
	}
	return view.BundleOf(b.BindingSpec().ObjectRef)
}

// notOnHub returns an error that says that the object is only in a bundle and not on the hub. The argument "instead" is
// a text that tells the user another way. Its %s stands for the bundle.
func notOnHub(id hubv1.ObjectIdentity, b hubv1.BindingObject, instead string) error {
	of := inBundle(b)
	return fmt.Errorf("%s is an object of %s, and the hub itself has no such object: %s", id, of, fmt.Sprintf(instead, of))
}

// hubObject marks an object as an object of the hub: it removes the annotation that marks objects of bundles. Only the
// hub itself may set this annotation.
func hubObject(u *unstructured.Unstructured) {
	annotations := u.GetAnnotations()
	if _, ok := annotations[hubv1.BundleAnnotation]; ok {
		delete(annotations, hubv1.BundleAnnotation)
		u.SetAnnotations(annotations)
	}
}

// identifyBundled finds a kind that the hub does not serve, but that an object of a bundle has. It searches the
// bindings. ok is false if no binding has the kind. If name is empty, the returned identity has no name.
func (h *hub) identifyBundled(ctx context.Context, c client.Client, kind, name string) (id hubv1.ObjectIdentity, version string, ok bool, err error) {
	namespace, _, err := h.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return id, "", false, fmt.Errorf("finding the namespace: %w", err)
	}
	found := map[hubv1.ObjectIdentity]string{}
	visit := func(b hubv1.BindingObject) {
		ref := b.BindingSpec().ObjectRef
		if ref.Bundle == nil || !isNamed(ref.GroupVersionKind(), kind) || name != "" && ref.Name != name {
			return
		}
		id := hubv1.ObjectOf(b)
		id.Name = name
		found[id] = ref.GroupVersionKind().Version
	}
	err = eachBindingIn(ctx, c, namespace, visit)
	if err == nil {
		err = h.unlessForbidden(eachClusterBinding(ctx, c, visit), "objects without a namespace are not considered")
	}
	if err != nil && !meta.IsNoMatchError(err) {
		return id, "", false, err
	}
	var names []string
	for id, version = range found {
		names = append(names, id.GroupKind().String())
	}
	if len(found) > 1 {
		slices.Sort(names)
		return id, "", false, fmt.Errorf("%q matches %s: name the group, as in KIND.GROUP", kind, strings.Join(names, " or "))
	}
	return id, version, len(found) == 1, nil
}

// emptyBundle returns an empty bundle of the kind. It returns nil if the kind is neither Bundle, ClusterBundle nor
// FederatedOperator.
func emptyBundle(kind string, key client.ObjectKey) hubv1.BundleObject {
	kind, group, found := strings.Cut(strings.ToLower(kind), ".")
	if found && group != hubv1.GroupVersion.Group {
		return nil
	}
	switch kind {
	case "bundle", "bundles":
		return hubv1.BundleReference{Kind: hubv1.BundleKind, Namespace: key.Namespace, Name: key.Name}.New()
	case "clusterbundle", "clusterbundles":
		return hubv1.BundleReference{Kind: hubv1.ClusterBundleKind, Name: key.Name}.New()
	case "federatedoperator", "federatedoperators", "fop":
		return hubv1.BundleReference{Kind: hubv1.FederatedOperatorKind, Name: key.Name}.New()
	}
	return nil
}

// findBundle reads the bundle that the user has named. It returns nil if the kind is neither Bundle, ClusterBundle nor
// FederatedOperator.
func (h *hub) findBundle(ctx context.Context, c client.Client, kind, name string) (hubv1.BundleObject, error) {
	namespace, _, err := h.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, fmt.Errorf("finding the namespace: %w", err)
	}
	b := emptyBundle(kind, client.ObjectKey{Namespace: namespace, Name: name})
	if b == nil {
		return nil, nil
	}
	of := hubv1.ReferenceTo(b)
	found, err := readBundle(ctx, c, of)
	if found == nil && err == nil {
		return nil, fmt.Errorf("%w %s%s", errNoObject, of, h.elsewhere(of.Namespace))
	}
	return found, err
}

// bundled returns the bindings of the objects of a bundle.
func bundled(ctx context.Context, c client.Client, of hubv1.BundleReference) ([]hubv1.BindingObject, error) {
	var out []hubv1.BindingObject
	keep := func(binding hubv1.BindingObject) {
		if ref := binding.BindingSpec().ObjectRef.Bundle; ref != nil && *ref == of {
			out = append(out, binding.DeepCopyObject().(hubv1.BindingObject))
		}
	}
	if of.Namespace != "" {
		err := eachBindingIn(ctx, c, of.Namespace, keep)
		return out, err
	}
	err := eachBinding(ctx, c, keep)
	return out, err
}

// unplacedOf returns the objects of a bundle that have no binding. If the bundle's manifests cannot be read, it prints
// a warning.
func (h *hub) unplacedOf(ctx context.Context, c client.Client, b hubv1.BundleObject, bindings []hubv1.BindingObject) []hubv1.ObjectIdentity {
	objects, err := inputs.SourceOn(ctx, c, renderedChart).Objects(b)
	if err != nil {
		h.warn(fmt.Sprintf("warning: objects without a placement are not shown: %v\n", err))
	}
	var out []hubv1.ObjectIdentity
	for _, o := range objects {
		id := hubv1.IdentityOf(o)
		if !slices.ContainsFunc(bindings, func(b hubv1.BindingObject) bool { return hubv1.ObjectOf(b) == id }) {
			out = append(out, id)
		}
	}
	return out
}

// statusOfBundle prints a bundle and its objects.
func (h *hub) statusOfBundle(ctx context.Context, c client.Client, out output, kind, name string) error {
	b, err := h.findBundle(ctx, c, kind, name)
	if err != nil {
		return err
	}
	if _, err := h.warnOfSilence(ctx, c); err != nil {
		return err
	}
	bindings, err := bundled(ctx, c, hubv1.ReferenceTo(b))
	if err != nil {
		return err
	}
	found := view.Objects{Bundle: view.SummaryOfBundle(b), Objects: []view.ObjectSummary{}}
	for _, binding := range bindings {
		found.Objects = append(found.Objects, view.SummaryOf(binding))
	}
	for _, id := range h.unplacedOf(ctx, c, b, bindings) {
		found.Objects = append(found.Objects, view.UnplacedOf(id))
	}
	found.Sort()
	return out.print(h.streams.Out, found)
}

// unstoredOf returns why the hub has not stored the newest manifests of the bundle that contains the object of the
// binding. It returns an empty text if the hub has stored them, or if the bundle was deleted.
func (h *hub) unstoredOf(ctx context.Context, c client.Client, binding hubv1.BindingObject) (string, error) {
	b, err := readBundle(ctx, c, *binding.BindingSpec().ObjectRef.Bundle)
	if b == nil || err != nil {
		return "", err
	}
	return view.Unstored(b), nil
}

// bundleWith returns the name of the first bundle whose manifests contain the object. It ignores bundles that the user
// may not read. It returns an empty text if no bundle contains the object.
func bundleWith(ctx context.Context, c client.Client, id hubv1.ObjectIdentity) string {
	var bundles []hubv1.BundleObject
	var everywhere hubv1.ClusterBundleList
	var operators hubv1.FederatedOperatorList
	var here hubv1.BundleList
	if c.List(ctx, &everywhere) == nil {
		for i := range everywhere.Items {
			bundles = append(bundles, &everywhere.Items[i])
		}
	}
	if c.List(ctx, &operators) == nil {
		for i := range operators.Items {
			bundles = append(bundles, &operators.Items[i])
		}
	}
	if id.Namespace != "" && c.List(ctx, &here, client.InNamespace(id.Namespace)) == nil {
		for i := range here.Items {
			bundles = append(bundles, &here.Items[i])
		}
	}
	for _, b := range bundles {
		objects, err := inputs.SourceOn(ctx, c, renderedChart).Objects(b)
		if err == nil && slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool { return hubv1.IdentityOf(o) == id }) {
			return hubv1.OfBundle(b).String()
		}
	}
	return ""
}
