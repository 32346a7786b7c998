package bundles

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/chart/child"
	"github.com/hanse-dev/hanse/bundles/manifest"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/internal/canonical"
)

const (
	// maxLookups is the maximum number of templates in status.chart.lookups, and maxLookupLength the maximum length of
	// each path there, in characters.
	maxLookups      = 20
	maxLookupLength = 253
)

// Render renders a chart.
type Render func(ctx context.Context, in child.Input) (child.Rendered, error)

// rendering caches the last result of rendering an operator's chart.
type rendering struct {
	input  [sha256.Size]byte
	at     time.Time
	result []byte // the child.Rendered as compressed JSON
	err    error
}

// renderChart sets the chart of an operator in its content, and returns the objects of the chart. The error may be a
// refusal, or charts.ErrFetching.
func (c *Controller) renderChart(ctx context.Context, o *hubv1.FederatedOperator, has *content) ([]*unstructured.Unstructured, error) {
	spec := o.Spec.Chart
	fetched, err := c.fetched(ctx, o)
	if err != nil {
		return nil, err
	}
	var unread error // error of reading a ConfigMap; other errors are about its content
	in, err := child.InputOf(spec, child.Sources{Fetched: fetched, ConfigMap: func(name string, optional bool) (m *corev1.ConfigMap, _ error) {
		m, unread = c.configMap(ctx, types.NamespacedName{Namespace: c.opts.Namespace, Name: name}, optional)
		return m, unread
	}})
	if unread != nil {
		return nil, unread
	}
	if err != nil {
		return nil, invalidChart(err)
	}
	rendered, err := c.rendered(ctx, o, in)
	if err != nil {
		return nil, err
	}
	out := &hubv1.RenderedChart{Name: rendered.Name, Version: rendered.Version, AppVersion: rendered.AppVersion, Digest: rendered.Digest}
	for _, name := range rendered.Lookups[:min(len(rendered.Lookups), maxLookups)] {
		out.Lookups = append(out.Lookups, hubv1.CutMessage(name, maxLookupLength))
	}
	if r := spec.Repository; r != nil {
		if rendered.Name != r.Name || rendered.Version != r.Version {
			return nil, invalidChart(fmt.Errorf("the archive from %s has chart %s %s, not %s %s", r.URL, rendered.Name, rendered.Version, r.Name, r.Version))
		}
		out.Repository = repositoryOf(r)
	}
	if has.kept, err = c.keepValues(ctx, o, &rendered); err != nil {
		return nil, err
	}
	objects, err := rendered.ForMembers(spec.Hooks)
	if err != nil {
		return nil, invalidChart(err)
	}
	has.chart = out
	return objects, nil
}

// rendered renders the chart of an operator. If the last rendering had the same input, rendered returns the result of
// that rendering. A request for new generated values counts as another input, because the values of the last rendering
// may be those in use. A failed rendering with the same input is repeated only after pace.MaxSlowRetry. The error may
// be a *refusal.
func (c *Controller) rendered(ctx context.Context, o *hubv1.FederatedOperator, in child.Input) (out child.Rendered, err error) {
	sum, err := sumOf(o, in)
	if err != nil {
		return out, err
	}
	last := c.lastRendering(o.Name)
	if last.input == sum && (last.err == nil || c.opts.Clock.Since(last.at) < pace.MaxSlowRetry) {
		if last.err != nil {
			return out, invalidChart(last.err)
		}
		text, err := canonical.Decompress(last.result, child.MaxReplyBytes)
		if err == nil {
			err = json.Unmarshal(text, &out)
		}
		return out, err
	}
	out, err = c.opts.Render(ctx, in)
	switch {
	case ctx.Err() != nil:
		return out, fmt.Errorf("rendering the chart: %w", ctx.Err())
	case errors.Is(err, child.ErrProcess):
		return out, invalidChart(err) // the next reconcile tries again
	}
	last = rendering{input: sum, at: c.opts.Clock.Now(), err: err}
	if err == nil {
		var text []byte
		if text, err = json.Marshal(out); err == nil {
			last.result, err = canonical.Compress(text)
		}
		if err != nil {
			return out, fmt.Errorf("keeping the rendered chart: %w", err)
		}
	}
	c.keepRendering(o.Name, last)
	if last.err != nil {
		return out, invalidChart(last.err)
	}
	return out, nil
}

// sumOf returns a checksum of the input of an operator's chart, and of the request for new generated values. The
// archive counts by its own checksum, because its JSON would take 11 MiB at each reconciliation.
func sumOf(o *hubv1.FederatedOperator, in child.Input) ([sha256.Size]byte, error) {
	archive := sha256.Sum256(in.Archive)
	in.Archive = archive[:]
	text, err := json.Marshal(struct {
		Input    child.Input
		Operator types.UID
		Request  string
	}{in, o.UID, o.Annotations[hubv1.RegenerateValuesAnnotation]})
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("writing the input of the chart as JSON: %w", err)
	}
	return sha256.Sum256(text), nil
}

func (c *Controller) lastRendering(operator string) rendering {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.renderings[operator]
}

func (c *Controller) keepRendering(operator string, r rendering) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.renderings[operator] = r
}

func (c *Controller) forgetRendering(operator string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.renderings, operator)
}

func invalidChart(err error) error {
	reason := hubv1.ReasonChartInvalid
	if errors.Is(err, child.ErrNonDeterministic) {
		reason = hubv1.ReasonNonDeterministicChart
	}
	return &refusal{reason, err.Error() + "; the stored objects stay"}
}

// provided returns the kinds that the CustomResourceDefinitions among the objects define.
func provided(objects []*unstructured.Unstructured) []string {
	var kinds []string
	for _, o := range objects {
		if gk, _, ok := manifest.DefinedKind(o); ok {
			kinds = append(kinds, gk.String())
		}
	}
	slices.Sort(kinds)
	return kinds
}

// describe sets the chart, its kept values and the provided kinds in the status of an operator. The operator's objects
// must be stored before. describe returns true if the status has changed.
func describe(o *hubv1.FederatedOperator, has content, now time.Time) bool {
	changed := has.kept.describe(o, now)
	kinds := provided(has.objects)
	if equality.Semantic.DeepEqual(o.Status.Chart, has.chart) && slices.Equal(o.Status.Provides, kinds) {
		return changed
	}
	o.Status.Chart, o.Status.Provides = has.chart, kinds
	return true
}
