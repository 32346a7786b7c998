// Package chart renders Helm charts into Kubernetes objects. It uses helm as a library.
//
// The package installs nothing. A template can read only the archive, the values and the capabilities of Input. It can
// read no cluster, no network, no other file and no environment variable.
//   - The template function lookup returns nothing, like helm without a cluster. Rendered.Lookups names the templates
//     that use lookup.
//   - The template function getHostByName returns an empty text. The functions env and expandenv do not exist.
//   - A values.schema.json may refer to itself only. Helm's own validation would read files and URLs.
//   - A chart is rendered twice. Fields with passwords and certificates may differ: Rendered.Keep puts kept values into
//     them. Any other difference is an error, because the objects would change at each rendering.
//
// The package limits the size of the archive, the size of the result, and the time of a rendering. It does not limit
// memory: see Render.
package chart

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

const (
	// MaxTime is the maximum duration of a rendering: 2 minutes. The rendering of a large chart takes half a second, or
	// longer on a busy machine.
	MaxTime = 2 * time.Minute
	// MaxRenderedBytes is the maximum size of all rendered templates and of the files in the folders crds: 16 MiB.
	MaxRenderedBytes = 16 << 20
	// DefaultKubernetes is the Kubernetes version that templates see if Input has no version. It is the version of the
	// Kubernetes client libraries.
	DefaultKubernetes = "v1.36.0"
)

var (
	// ErrNonDeterministic is the error for a chart that two renderings with equal inputs render differently, outside of
	// the fields whose values can be kept.
	ErrNonDeterministic = errors.New("two renderings differ: set the values from which the template makes this field, or remove the random function or the time from it")
	// ErrTime is the error for a chart that does not render within MaxTime.
	ErrTime = fmt.Errorf("the chart does not render within %s: look for a loop in its templates", MaxTime)
)

// Input has everything that determines the objects of a chart.
type Input struct {
	// Archive is a gzipped tar archive, as helm package writes it.
	Archive []byte
	// Digest is the digest that the archive must have, such as sha256:2c26... If it is empty, any archive is accepted.
	Digest string
	// Release is the name of the Helm release. If it is empty, the name of the chart is used.
	Release string
	// Namespace is the namespace of the Helm release. It is required.
	Namespace string
	// Values replace values of the chart. A later entry replaces values of an earlier one, as with helm's flag -f.
	Values []map[string]any
	// Kubernetes is the Kubernetes version that templates see, such as v1.36.2. If it is empty, DefaultKubernetes is used.
	Kubernetes string
	// APIVersions are the API versions and kinds that templates see as served, such as apps/v1 or apps/v1/Deployment. If
	// the list is empty, KubernetesAPIVersions is used.
	APIVersions []string
	// GeneratedValues is Refuse if no field may differ between two renderings.
	GeneratedValues hubv1.ChartGeneratedValues
}

// Rendered is the result of rendering a chart. Its lists are sorted, so that equal Inputs give equal results, except
// for the values in Generated.
type Rendered struct {
	Name, Version, AppVersion string
	// Digest is the SHA-256 digest of the archive.
	Digest string
	// Definitions are the CustomResourceDefinitions of the chart, from the folders crds and from templates.
	Definitions []*unstructured.Unstructured
	// Objects are the other objects of the chart. Namespaced objects without a namespace have the namespace of the
	// release, and cluster-scoped objects have none. This is so for kinds of Kubernetes and for kinds in Definitions. For
	// other kinds, it is not known whether they are namespaced, and their objects are not changed.
	Objects []*unstructured.Unstructured
	// Hooks are the objects with the annotation helm.sh/hook, which helm creates at certain steps of a release. They are
	// not in the other lists.
	Hooks []Hook
	// Generated are fields whose values differ at each rendering, in the order of their objects: values of Secrets, and
	// the field caBundle of the kinds that have one.
	Generated []GeneratedField
	// Checksums are annotations with checksums that differ at each rendering, because Generated differs.
	Checksums []GeneratedField
	// Lookups are the paths of the templates that call the function lookup, which finds no object here. A call in a text
	// that a template passes to the function tpl is not detected.
	Lookups []string
}

// Hook is an object with the annotation helm.sh/hook.
type Hook struct {
	Object *unstructured.Unstructured
	// Events are the events of the hook, such as pre-install, in the order of the annotation. The old name test-success is
	// replaced by test.
	Events []string
	// Weight orders the hooks of one event. Helm creates hooks with a lower weight first.
	Weight int
	// Test is true if one of the events is test.
	Test bool
	// Definition is true if the object is a CustomResourceDefinition.
	Definition bool
	// Ignored is true if helm does not know one of the events, such as crd-install. Helm never creates such an object.
	Ignored bool
}

// Render renders a chart. It does not change the Input.
//
// Render returns after MaxTime at the latest, or when ctx ends. A template that does not end cannot be stopped: its
// goroutine goes on after Render has returned. A template can also use up the memory or the stack, which ends the
// process. A program that must not end uses package child to render charts of other authors.
func Render(ctx context.Context, in Input) (Rendered, error) {
	digest, err := check(in)
	if err != nil {
		return Rendered{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, MaxTime, ErrTime)
	defer cancel()
	type result struct {
		rendered Rendered
		err      error
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			if p := recover(); p != nil {
				r.err = fmt.Errorf("helm failed on the chart: %v", p)
			}
			done <- r
		}()
		r.rendered, r.err = render(ctx, in)
	}()
	select {
	case <-ctx.Done():
		return Rendered{}, context.Cause(ctx)
	case r := <-done:
		if r.err != nil {
			return Rendered{}, r.err
		}
		r.rendered.Digest = digest
		return r.rendered, nil
	}
}

// check checks the size and the digest of the archive, and returns the digest.
func check(in Input) (string, error) {
	if len(in.Archive) > MaxArchiveBytes {
		return "", fmt.Errorf("the archive has %d bytes, and at most %d are allowed: remove files from the chart", len(in.Archive), MaxArchiveBytes)
	}
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(in.Archive))
	if in.Digest != "" && in.Digest != digest {
		return "", fmt.Errorf("the archive has the digest %s, not %s", digest, in.Digest)
	}
	return digest, nil
}

// render renders the chart twice, compares the two results, and reads the objects.
func render(ctx context.Context, in Input) (Rendered, error) {
	files, err := unpack(in.Archive)
	if err != nil {
		return Rendered{}, fmt.Errorf("reading the archive: %w", err)
	}
	// The template function now returns another time in the second rendering. Year, month, day and so on differ, so that
	// even a template that prints only the year renders differently.
	now := time.Now()
	first, err := execute(in, files, now)
	if err != nil {
		return Rendered{}, err
	}
	if err := ctx.Err(); err != nil {
		return Rendered{}, context.Cause(ctx)
	}
	second, err := execute(in, files, now.AddDate(11, 5, 13).Add(7*time.Hour+23*time.Minute+31*time.Second+39))
	if err != nil {
		return Rendered{}, err
	}
	out, err := objectsOf(in, first, second)
	if err != nil {
		return Rendered{}, fmt.Errorf("reading the objects of chart %s: %w", first.chart.Name(), err)
	}
	return out, nil
}

// objectsOf compares two renderings of a chart, and returns the objects of the first one.
func objectsOf(in Input, first, second rendering) (Rendered, error) {
	found, err := first.read()
	if err != nil {
		return Rendered{}, err
	}
	changing, err := first.changing(found, second, in.GeneratedValues)
	if err != nil {
		return Rendered{}, err
	}
	out, err := first.objects(found, in.Namespace)
	for _, object := range slices.Concat(out.Definitions, out.Objects) {
		for _, path := range changing.values[object] {
			out.Generated = append(out.Generated, GeneratedField{hubv1.IdentityOf(object), path})
		}
		for _, path := range changing.checksums[object] {
			out.Checksums = append(out.Checksums, GeneratedField{hubv1.IdentityOf(object), path})
		}
	}
	return out, err
}

func sortObjects(objects []*unstructured.Unstructured) {
	slices.SortStableFunc(objects, compareObjects)
}

func compareObjects(a, b *unstructured.Unstructured) int {
	x, y := a.GroupVersionKind(), b.GroupVersionKind()
	return cmp.Or(cmp.Compare(x.Group, y.Group), cmp.Compare(x.Kind, y.Kind),
		cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
}
