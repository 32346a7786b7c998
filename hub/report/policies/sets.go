package policies

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/changes"
	"github.com/hanse-dev/hanse/placement/decide"
)

// Sets reads the lists of objects in the revisions of bundles. The error may be decide.ErrRevisionMissing.
type Sets interface {
	SetList(ctx context.Context, digest string) (decide.SetList, error)
}

// SetRolloutChanged queues the bundle of a SetRollout whose spec changed, or which was deleted. Other objects may count
// on a cluster that shall hold another revision.
func (c *Controllers) SetRolloutChanged(_ context.Context, change changes.SetRollout) {
	c.wakeBundle(cmp.Or(change.After, change.Before).Spec.Bundle)
}

// notInRevision returns, for each object of a bundle, the function that reports whether a cluster shall hold a revision
// of the bundle without the object. The function is nil if the object counts on all clusters: the hub does not decide
// on the bundle as a whole, or a list is lost.
func (p *bundles) notInRevision(ctx context.Context, of hubv1.BundleReference) (func(hubv1.ObjectIdentity) func(string) bool, error) {
	none := func(hubv1.ObjectIdentity) func(string) bool { return nil }
	if p.Sets == nil {
		return none, nil
	}
	record := &hubv1.SetRollout{}
	err := p.Client.Get(ctx, of.SetRolloutKey(p.Namespace), record, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) || err == nil && record.Spec.Rollout == nil {
		return none, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the SetRollout of %s: %w", of, err)
	}
	lists := map[int64]decide.SetList{}
	for _, n := range decide.SetInUse(&record.Spec) {
		if lists[n], err = p.Sets.SetList(ctx, record.Spec.Revision(n).List); errors.Is(err, decide.ErrRevisionMissing) {
			return none, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading revision %d of %s: %w", n, of, err)
		}
	}
	return func(id hubv1.ObjectIdentity) func(string) bool {
		without := map[string]bool{}
		for _, c := range record.Spec.Clusters {
			_, has := lists[c.Revision][id]
			if !has && decide.NoRollback(id) {
				_, has = lists[c.Definitions][id]
			}
			without[c.Name] = !has
		}
		return func(cluster string) bool { return without[cluster] }
	}, nil
}
