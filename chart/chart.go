// Package chart renders Helm charts into objects, with helm as a library.
//
// It renders only. A template reads the archive, the values and the capabilities of Input, and nothing else: no
// cluster, network, file or environment variable.
//   - lookup returns nothing, as helm does without a cluster. Rendered.Lookups names the templates that use it.
//   - getHostByName returns an empty text, and env and expandenv do not exist.
//   - A values.schema.json may refer to itself only. Helm's own validation would read files and URLs.
//   - A chart is rendered twice. Different results are an error, because a chart that makes passwords or certificates
//     would change them at each rendering.
//
// Limits bound the archive, the result and the time. They do not bound memory: see Render.
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
)

const (
	// MostTime is how long a rendering may take: 2 minutes. A large chart needs half a second, and more on a busy machine.
	MostTime = 2 * time.Minute
	// MostRenderedBytes is the maximum size of all rendered templates and CRDs: 16 MiB.
	MostRenderedBytes = 16 << 20
	// DefaultKubernetes is the version for templates if Input has none: that of the client libraries.
	DefaultKubernetes = "v1.36.0"
)

var (
	// ErrNonDeterministic is the error for a chart that renders differently each time.
	ErrNonDeterministic = errors.New("two renderings differ: set the values from which the template makes this field, or remove the random function or the time from it")
	// ErrTime is the error for a chart that does not render within MostTime.
	ErrTime = fmt.Errorf("it does not render within %s: look for a loop in its templates", MostTime)
)

// Input is all that decides the objects of a chart.
type Input struct {
	// Archive is a gzipped tar archive, as helm package writes it.
	Archive []byte
	// Digest that the archive must have, such as sha256:2c26...; empty means any.
	Digest string
	// Release is the name of the release; empty means the name of the chart.
	Release string
	// Namespace of the release; required.
	Namespace string
	// Values replace values of the chart. Later entries win, as with helm's flag -f.
	Values []map[string]any
	// Kubernetes is the version of the cluster, such as v1.36.2; empty means DefaultKubernetes.
	Kubernetes string
	// APIVersions that the cluster serves, such as apps/v1 or apps/v1/Deployment; empty means KubernetesAPIVersions.
	APIVersions []string
}

// Rendered is a rendered chart. All lists are sorted, so that equal Inputs give equal results.
type Rendered struct {
	Name, Version, AppVersion string
	// Digest of the archive.
	Digest string
	// Definitions are the CustomResourceDefinitions, from the folder crds and from templates.
	Definitions []*unstructured.Unstructured
	// Objects are all other objects. The scope is known for kinds of Kubernetes and of Definitions: a namespaced object
	// without a namespace then gets the release's namespace, and a cluster-scoped object loses its namespace. Objects of
	// other kinds are not changed.
	Objects []*unstructured.Unstructured
	// Hooks are objects that helm creates at a point in the life of a release. They are not in the other lists.
	Hooks []Hook
	// Lookups are the templates that call lookup. A call in a value that a template passes to tpl is not found.
	Lookups []string
}

// Hook is an object with the annotation helm.sh/hook.
type Hook struct {
	Object *unstructured.Unstructured
	// Events such as pre-install, in the order of the annotation. The old name test-success is changed to test.
	Events []string
	// Weight orders the hooks of an event. Lower ones come first.
	Weight int
	// Test reports whether an event is test.
	Test bool
	// Definition reports whether the object is a CustomResourceDefinition.
	Definition bool
	// Ignored reports whether an event is unknown to helm, such as crd-install. Helm then never creates the object.
	Ignored bool
}

// Render renders a chart. The Input is not changed.
//
// It returns when MostTime or ctx is over, but nothing can stop a template that does not end: its goroutine goes on. A
// template can also allocate any amount of memory, or use all of the stack, which ends the process. So a program that
// must not end renders charts of others by package child.
func Render(ctx context.Context, in Input) (Rendered, error) {
	digest, err := check(in)
	if err != nil {
		return Rendered{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, MostTime, ErrTime)
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

// check returns the digest of the archive.
func check(in Input) (string, error) {
	if len(in.Archive) > MostArchiveBytes {
		return "", fmt.Errorf("the archive has %d bytes: at most %d are allowed", len(in.Archive), MostArchiveBytes)
	}
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(in.Archive))
	if in.Digest != "" && in.Digest != digest {
		return "", fmt.Errorf("the archive has the digest %s, not %s", digest, in.Digest)
	}
	return digest, nil
}

// render renders the chart twice and reads the result.
func render(ctx context.Context, in Input) (Rendered, error) {
	files, err := unpack(in.Archive)
	if err != nil {
		return Rendered{}, fmt.Errorf("reading the archive: %w", err)
	}
	// Each field of the two times differs, so that a template that prints only the year is found, too.
	first, err := execute(in, files, time.Date(2001, 2, 3, 4, 5, 6, 7, time.UTC))
	if err != nil {
		return Rendered{}, err
	}
	if err := ctx.Err(); err != nil {
		return Rendered{}, context.Cause(ctx)
	}
	second, err := execute(in, files, time.Date(2012, 11, 20, 19, 28, 37, 46, time.UTC))
	if err != nil {
		return Rendered{}, err
	}
	if err := first.equal(second); err != nil {
		return Rendered{}, fmt.Errorf("rendering chart %s: %w", first.chart.Name(), err)
	}
	out, err := first.objects(in.Namespace)
	if err != nil {
		return Rendered{}, fmt.Errorf("reading the objects of chart %s: %w", first.chart.Name(), err)
	}
	return out, nil
}

func sortObjects(objects []*unstructured.Unstructured) {
	slices.SortStableFunc(objects, compareObjects)
}

func compareObjects(a, b *unstructured.Unstructured) int {
	x, y := a.GroupVersionKind(), b.GroupVersionKind()
	return cmp.Or(cmp.Compare(x.Group, y.Group), cmp.Compare(x.Kind, y.Kind),
		cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
}
