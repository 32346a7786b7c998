package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/inputs"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/view"
)

// setOf has the rollout of a bundle as a whole.
type setOf struct {
	of hubv1.BundleReference
	in view.SetInput // Spec is nil if the user may not read the SetRollout
	// lead is the binding that shows the rollout of the bundle, if the user may not read the SetRollout. It is nil if no
	// change is in progress or has failed.
	lead  hubv1.BindingObject
	asked string // the object of the bundle that the user has named; empty for the bundle itself
}

// errNoSet means that a bundle is not rolled out as a whole.
var errNoSet = errors.New("no rollout as a whole: no placement with spec.rollout places it, or its objects still have rollouts of their own")

// isBundle reports whether an object is a Bundle, ClusterBundle or FederatedOperator.
func isBundle(id hubv1.ObjectIdentity) bool {
	return id.Group == hubv1.GroupVersion.Group && slices.Contains([]string{hubv1.BundleKind, hubv1.ClusterBundleKind, hubv1.FederatedOperatorKind}, id.Kind)
}

// bundleOfObject returns the bundle that an object is, or belongs to. It returns nil for other objects.
func bundleOfObject(ctx context.Context, c client.Client, id hubv1.ObjectIdentity) (*hubv1.BundleReference, error) {
	if isBundle(id) {
		return &hubv1.BundleReference{Kind: id.Kind, Namespace: id.Namespace, Name: id.Name}, nil
	}
	binding, err := readBinding(ctx, c, id)
	if binding == nil || err != nil {
		return nil, err
	}
	return binding.BindingSpec().ObjectRef.Bundle, nil
}

// readSet reads the rollout of the bundle that the object is, or belongs to. It returns nil for an object without a
// bundle, and for an object of a bundle that is not rolled out as a whole. For such a bundle, it returns an error.
func (h *hub) readSet(ctx context.Context, c client.Client, id hubv1.ObjectIdentity) (*setOf, error) {
	of, err := bundleOfObject(ctx, c, id)
	if of == nil || err != nil {
		return nil, err
	}
	s := &setOf{of: *of, in: view.SetInput{Now: time.Now()}}
	if !isBundle(id) {
		s.asked = id.String()
	}
	if s.in.Bundle, err = readBundle(ctx, c, *of); err != nil {
		if err = h.unlessForbidden(err, "the newest generation of "+of.String()+" is not known"); err != nil {
			return nil, err
		}
	} else if s.in.Bundle == nil && isBundle(id) {
		return nil, h.noObject(ctx, c, id)
	}
	record, err := inputs.SetRollout(ctx, c, *of)
	forbidden := apierrors.IsForbidden(err)
	if err := h.unlessForbidden(err, "the numbers are those of one object of the bundle"); err != nil {
		return nil, err
	}
	if record == nil && !forbidden {
		if isBundle(id) {
			return nil, fmt.Errorf("%s has %w", id, errNoSet)
		}
		return nil, nil
	}
	s.in.Bindings, err = bundled(ctx, c, *of)
	if err := h.unlessForbidden(err, "the objects of "+of.String()+" are not shown"); err != nil {
		return nil, err
	}
	if record == nil {
		if s.lead = decide.LeadOfSet(s.in.Bindings); s.lead == nil && isBundle(id) {
			return nil, fmt.Errorf("you may not read the SetRollout of %s, and no object of it shows a change in progress", id)
		}
		return s, nil
	}
	return s, h.readSetInputs(ctx, c, s, &record.Spec)
}

// readSetInputs reads what belongs to a SetRollout.
func (h *hub) readSetInputs(ctx context.Context, c client.Client, s *setOf, spec *hubv1.SetRolloutSpec) error {
	var err error
	s.in.Spec = spec
	if s.in.Lists, err = inputs.SetLists(ctx, c, spec); err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	followed, err := h.followed(ctx, c, spec.PlacementRef)
	if err != nil {
		return err
	}
	if followed != nil {
		s.in.Placement = followed
	}
	var members hubv1.MemberClusterList
	if err := h.unlessForbidden(c.List(ctx, &members), "the waves of clusters are not shown"); err != nil {
		return fmt.Errorf("listing MemberClusters: %w", err)
	}
	s.in.Members = members.Items
	return nil
}

// bundleRollout returns the rollout of the bundle with which an object changes. It is nil for other objects, and if it
// cannot be read.
func (h *hub) bundleRollout(ctx context.Context, c client.Client, b hubv1.BindingObject) (*view.BundleRollout, error) {
	if b == nil || b.BindingSpec().ObjectRef.Bundle == nil || b.BindingSpec().Rollout == nil {
		return nil, nil
	}
	of := *b.BindingSpec().ObjectRef.Bundle
	record, err := inputs.SetRollout(ctx, c, of)
	switch {
	case err == nil && record == nil:
		return nil, nil
	case err == nil:
		return view.RolloutOfBundle(of, &record.Spec, nil), nil
	case !apierrors.IsForbidden(err):
		return nil, err
	}
	bindings, err := bundled(ctx, c, of)
	if err = h.unlessForbidden(err, "the rollout of "+of.String()+" is not shown"); err != nil {
		return nil, err
	}
	return view.RolloutOfBundle(of, nil, bindings), nil
}

// clustersOfSet names a cluster that keeps an earlier revision of the object's bundle. It is empty if there is none, or
// if the user may not read the SetRollout.
func (h *hub) clustersOfSet(ctx context.Context, c client.Client, b hubv1.BindingObject) (string, error) {
	of := b.BindingSpec().ObjectRef.Bundle
	if of == nil || b.BindingSpec().Rollout == nil {
		return "", nil
	}
	record, err := inputs.SetRollout(ctx, c, *of)
	if err := h.unlessForbidden(err, "clusters that do not get the object yet are not known"); record == nil || err != nil {
		return "", err
	}
	newest := record.Spec.Rollout.Newest
	for _, cluster := range record.Spec.Clusters {
		if cluster.Revision != newest {
			return fmt.Sprintf("%s: %s has revision %d of the bundle, the newest is %d", of, cluster.Name, cluster.Revision, newest), nil
		}
	}
	return "", nil
}
