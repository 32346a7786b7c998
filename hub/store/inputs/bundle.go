package inputs

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/manifest"
	"github.com/hanse-dev/hanse/view"
)

// Charts is a function that renders the chart of an operator. The hub process must not render a chart itself, because a
// chart of another author could end the process (package bundles/chart/child). The console therefore renders no charts.
type Charts func(*hubv1.FederatedOperator, Source) (Rendered, error)

// Rendered has the objects of a rendered chart, and the name and version of the chart.
type Rendered struct {
	Objects []*unstructured.Unstructured
	Chart   *hubv1.RenderedChart
}

// Source has the functions with which Objects computes the objects of a bundle. ConfigMap reads a ConfigMap, and Secret
// a Secret. Namespaced tells whether a kind is namespaced, and Chart renders the chart of an operator.
type Source struct {
	ConfigMap  func(client.ObjectKey) (*corev1.ConfigMap, error)
	Secret     func(client.ObjectKey) (*corev1.Secret, error)
	Namespaced manifest.Namespaced
	Chart      Charts
}

// SourceOn returns a Source that reads ConfigMaps, Secrets and kinds from the hub's API server, and renders charts by
// the given function.
func SourceOn(ctx context.Context, c client.Client, charts Charts) Source {
	return Source{
		Chart: charts, Namespaced: manifest.NamespacedOn(c.RESTMapper()),
		ConfigMap: func(key client.ObjectKey) (*corev1.ConfigMap, error) {
			m := &corev1.ConfigMap{}
			return m, c.Get(ctx, key, m)
		},
		Secret: func(key client.ObjectKey) (*corev1.Secret, error) {
			s := &corev1.Secret{}
			return s, c.Get(ctx, key, s)
		},
	}
}

// Bundle reads a bundle. It returns nil if the bundle does not exist.
func Bundle(ctx context.Context, c client.Reader, of hubv1.BundleReference) (hubv1.BundleObject, error) {
	b := of.New()
	err := c.Get(ctx, of.Key(), b)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", of, err)
	}
	return b, nil
}

// Objects returns the objects of a bundle in the form in which the hub would store them, but without generations.
func (s Source) Objects(b hubv1.BundleObject) ([]*unstructured.Unstructured, error) {
	rendered, err := s.Read(b)
	return rendered.Objects, err
}

// Read returns the objects of a bundle as Objects does, and the chart of an operator with a chart.
func (s Source) Read(b hubv1.BundleObject) (out Rendered, err error) {
	in := manifest.Input{Namespace: b.GetNamespace(), Manifests: b.BundleSpec().Manifests, Namespaced: s.Namespaced}
	for _, source := range b.BundleSpec().ConfigMaps {
		key := client.ObjectKey{Namespace: BundleHome(b), Name: source.Name}
		m, err := s.ConfigMap(key)
		if err != nil {
			return Rendered{}, fmt.Errorf("reading ConfigMap %s of %s: %w", key, hubv1.OfBundle(b).String(), err)
		}
		in.ConfigMaps = append(in.ConfigMaps, *m)
	}
	o, isOperator := b.(*hubv1.FederatedOperator)
	in.Operator = isOperator
	if isOperator && o.Spec.Chart != nil {
		if out, err = s.Chart(o, s); err != nil {
			return Rendered{}, fmt.Errorf("rendering the chart of %s: %w", hubv1.ReferenceTo(b), err)
		}
		in.Rendered = out.Objects
	}
	if out.Objects, err = manifest.Read(in); err != nil {
		return Rendered{}, fmt.Errorf("reading the objects of %s: %w", hubv1.OfBundle(b).String(), err)
	}
	for _, o := range out.Objects {
		markBundled(o, b)
	}
	return out, nil
}

// Object returns the object of a binding in the form in which the hub would store it. The result is nil if the bundle
// does not contain the object.
func (s Source) Object(b hubv1.BundleObject, binding hubv1.BindingObject) (*unstructured.Unstructured, error) {
	objects, err := s.Objects(b)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return hubv1.IdentityOf(o) == hubv1.ObjectOf(binding) })
	if i < 0 {
		return nil, nil
	}
	objects[i].SetGeneration(view.NewestGeneration(binding))
	return objects[i], nil
}

// BundleHome returns the namespace of the ConfigMaps of a bundle.
func BundleHome(b hubv1.BundleObject) string {
	if b.GetNamespace() == "" {
		return hubv1.SystemNamespace
	}
	return b.GetNamespace()
}

// markBundled sets the annotations of an object of a bundle, as the hub does. It does not set the generation.
func markBundled(o *unstructured.Unstructured, b hubv1.BundleObject) {
	o.SetUID(b.GetUID())
	o.SetCreationTimestamp(b.GetCreationTimestamp())
	o.SetDeletionTimestamp(b.GetDeletionTimestamp())
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[hubv1.BundleAnnotation] = hubv1.OfBundle(b).Annotation()
	o.SetAnnotations(annotations)
}
