package bundles

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/crd"
	"github.com/hanse-dev/hanse/bundles/manifest"
	"github.com/hanse-dev/hanse/bundles/operator"
	"github.com/hanse-dev/hanse/hub/store/revisions"
	"github.com/hanse-dev/hanse/member/health"
	"github.com/hanse-dev/hanse/placement/decide"
)

// upgradable returns a refusal if the new version of an operator's CustomResourceDefinition breaks objects that the hub
// sends to clusters. chart is the new chart. It is nil if the operator has manifests instead of a chart.
func (c *Controller) upgradable(ctx context.Context, o *hubv1.FederatedOperator, chart *hubv1.RenderedChart, changed []change) error {
	up := operator.Upgrade{Acknowledged: o.Spec.Acknowledge, Chart: chart, Stored: o.Status.Chart}
	for _, ch := range changed {
		kind, _, ok := manifest.DefinedKind(ch.Manifest)
		if !ok || ch.before == nil || !ch.Removed.IsZero() {
			continue
		}
		d := operator.ChangedDefinition{Before: manifest.Of(ch.before), After: ch.Manifest}
		var err error
		if d.Held, err = c.heldDefinitions(ctx, o, ch.id(), d); err != nil {
			return err
		}
		if d.Objects, err = c.sent(ctx, kind); err != nil {
			return err
		}
		if d.StoredVersions, d.Earlier, err = c.storedVersions(ctx, ch.id()); err != nil {
			return err
		}
		up.Definitions = append(up.Definitions, d)
	}
	verdict, err := up.Judge(ctx)
	if err != nil {
		return err
	}
	if verdict.Reason != "" {
		return &refusal{verdict.Reason, verdict.Message}
	}
	if verdict.Warning != "" {
		c.opts.Events.Eventf(o, nil, corev1.EventTypeWarning, hubv1.ReasonStoredVersionKept, "Store", "%s", verdict.Warning)
	}
	return nil
}

// heldDefinitions returns the states of a CustomResourceDefinition that clusters hold by the operator's SetRollout,
// except those that d has already. It leaves out a state whose Secret is lost, because the SetRollout then stops.
func (c *Controller) heldDefinitions(
	ctx context.Context, o *hubv1.FederatedOperator, id hubv1.ObjectIdentity, d operator.ChangedDefinition,
) (held []*unstructured.Unstructured, err error) {
	of := hubv1.ReferenceTo(o)
	record, err := c.setRollout(ctx, c.opts.Client, of)
	if err != nil || record == nil || record.Spec.Rollout == nil {
		return nil, err
	}
	lists := map[string]decide.SetList{}
	for _, n := range decide.SetInUse(&record.Spec) {
		digest := record.Spec.Revision(n).List
		if lists[digest], err = c.opts.Sets.SetList(ctx, digest); err != nil && !errors.Is(err, decide.ErrRevisionMissing) {
			return nil, fmt.Errorf("reading revision %d of %s: %w", n, of, err)
		}
	}
	for _, part := range decide.HeldParts(&record.Spec, lists, id) {
		state, err := c.opts.Sets.SetPart(ctx, part)
		if errors.Is(err, decide.ErrRevisionMissing) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading a definition that clusters hold, %s: %w", id, err)
		}
		held = append(held, state)
	}
	return d.Others(held), nil
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
		if clusters := binding.BindingSpec().Holders(); len(clusters) > 0 {
			out = append(out, crd.Object{Content: object, Clusters: clusters})
		}
	}
	return out, nil
}
