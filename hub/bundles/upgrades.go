package bundles

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/crd"
	"github.com/hanse-dev/hanse/bundles/manifest"
	"github.com/hanse-dev/hanse/hub/store/revisions"
	"github.com/hanse-dev/hanse/member/health"
)

// maxUndoLength is the maximum length, in characters, of the text that tells how to undo an upgrade. It leaves room for
// the name and the versions of the chart in the message of the condition Stored.
const maxUndoLength = 824

// upgradable returns a refusal if the new version of an operator's CustomResourceDefinition breaks objects that the hub
// sends to clusters. chart is the new chart. It is nil if the operator has manifests instead of a chart.
func (c *Controller) upgradable(ctx context.Context, o *hubv1.FederatedOperator, chart *hubv1.RenderedChart, changed []change) error {
	var reports []crd.Report
	for _, ch := range changed {
		kind, _, ok := manifest.DefinedKind(ch.Manifest)
		if !ok || ch.before == nil || !ch.Removed.IsZero() {
			continue
		}
		before, err := crd.Definition(manifest.Of(ch.before))
		if err != nil {
			return err
		}
		after, err := crd.Definition(ch.Manifest)
		if err != nil {
			return &refusal{hubv1.ReasonManifestInvalid, err.Error() + "; the stored objects stay"}
		}
		objects, err := c.sent(ctx, kind)
		if err != nil {
			return err
		}
		stored, earlier, err := c.storedVersions(ctx, ch.id())
		if err != nil {
			return err
		}
		report, err := crd.Check(ctx, crd.Input{
			Before: before, After: after, StoredVersions: stored, Earlier: earlier, Objects: objects, Acknowledged: o.Spec.Acknowledge,
		})
		if ctx.Err() != nil {
			return fmt.Errorf("comparing the definitions of %s: %w", kind, ctx.Err())
		}
		if err != nil {
			return &refusal{hubv1.ReasonManifestInvalid, fmt.Sprintf("comparing the definitions of %s: %v; the stored objects stay", kind, err)}
		}
		reports = append(reports, report)
	}
	if isOlder(chart, o.Status.Chart) {
		if text := crd.UndoMessage(maxUndoLength, "accept a change by its crd, rule and path in spec.acknowledge", reports...); text != "" {
			return &refusal{hubv1.ReasonUndoBlocked, fmt.Sprintf("chart %s %s is older than the stored %s: %s", chart.Name, chart.Version, o.Status.Chart.Version, text)}
		}
	} else if text := crd.Message(reports...); text != "" {
		return &refusal{hubv1.ReasonUpgradeBlocked, text}
	}
	if text := crd.Warning(reports...); text != "" {
		c.opts.Events.Eventf(o, nil, corev1.EventTypeWarning, hubv1.ReasonStoredVersionKept, "Store", "%s", text)
	}
	return nil
}

// isOlder reports whether a chart is an earlier version of the stored chart.
func isOlder(chart, stored *hubv1.RenderedChart) bool {
	if chart == nil || stored == nil || chart.Name != stored.Name {
		return false
	}
	now, err := version.ParseSemantic(chart.Version)
	before, err2 := version.ParseSemantic(stored.Version)
	return err == nil && err2 == nil && now.LessThan(before)
}

// storedVersions returns, for each cluster, the versions in which the cluster's API server stores the objects of a
// CustomResourceDefinition. They come from the rows of the binding of the CustomResourceDefinition. Clusters that have
// not reported are left out. storedVersions also returns the definitions in the stored revisions.
func (c *Controller) storedVersions(
	ctx context.Context, id hubv1.ObjectIdentity,
) (stored map[string][]string, earlier []*apiextensionsv1.CustomResourceDefinition, err error) {
	binding := hubv1.NewBinding(id.BindingKey())
	if err := c.opts.Client.Get(ctx, id.BindingKey(), binding, client.UnsafeDisableDeepCopy); apierrors.IsNotFound(err) {
		return nil, nil, nil
	} else if err != nil {
		return nil, nil, fmt.Errorf("reading the binding of %s: %w", id, err)
	}
	if stored, err = health.StoredVersions(binding.BindingStatus().Clusters); err != nil {
		return nil, nil, fmt.Errorf("reading the rows of %s: %w", id, err)
	}
	if earlier, err = revisions.Definitions(ctx, c.opts.Revisions, binding.BindingSpec()); err != nil {
		return nil, nil, fmt.Errorf("reading the revisions of %s: %w", id, err)
	}
	return stored, earlier, nil
}

// errObjectsUnknown means that the objects of a kind are not in memory yet.
var errObjectsUnknown = errors.New("the hub has not read the objects yet")

// sent returns the objects of a kind that the hub sends to clusters.
func (c *Controller) sent(ctx context.Context, kind schema.GroupKind) ([]crd.Object, error) {
	if state, watched := c.opts.Templates.State(kind); watched && !state.Synced {
		return nil, fmt.Errorf("reading the objects of %s: %w", kind, errObjectsUnknown)
	}
	var out []crd.Object
	for _, id := range c.opts.Templates.List(kind) {
		object, ok := c.opts.Templates.Get(id)
		if !ok {
			continue
		}
		binding := hubv1.NewBinding(id.BindingKey())
		if err := c.opts.Client.Get(ctx, id.BindingKey(), binding, client.UnsafeDisableDeepCopy); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("reading the binding of %s: %w", id, err)
		}
		var clusters []string
		for _, t := range binding.BindingSpec().Clusters {
			if t.State != hubv1.TargetAbsent {
				clusters = append(clusters, t.Name)
			}
		}
		if len(clusters) > 0 {
			out = append(out, crd.Object{Content: object, Clusters: clusters})
		}
	}
	return out, nil
}
