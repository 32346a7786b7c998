package console

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/inputs"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/view"
)

// setRolloutOf reads the rollout of the bundle with which an object changes. It returns nil if the object does not
// change with a bundle, or if the user may not read the SetRollout.
func (u *user) setRolloutOf(ctx context.Context, b hubv1.BindingObject) (*hubv1.SetRolloutSpec, error) {
	of := b.BindingSpec().ObjectRef.Bundle
	if of == nil || b.BindingSpec().Rollout == nil {
		return nil, nil
	}
	record, err := inputs.SetRollout(ctx, u, *of)
	if err := u.unlessForbidden(err, "You see the rollout of one object, and not that of its bundle"); record == nil || err != nil {
		return nil, err
	}
	return &record.Spec, nil
}

// showSet replaces the rollout and the history of an object by those of the bundle with which the object changes.
func (b *rolloutObjectBody) showSet(ctx context.Context, u *user, asked hubv1.BindingObject, spec *hubv1.SetRolloutSpec, in view.RolloutInput) error {
	set := view.SetInput{Spec: spec, Placement: in.Placement, Members: in.Members, Now: in.Now}
	bundle, err := inputs.Bundle(ctx, u, spec.Bundle)
	if err := u.unlessForbidden(err, "You do not see the bundle"); err != nil {
		return fmt.Errorf("reading %s: %w", spec.Bundle, err)
	}
	set.Bundle = bundle
	err = u.eachBinding(ctx, spec.Bundle.Namespace, func(o hubv1.BindingObject) {
		if of := o.BindingSpec().ObjectRef.Bundle; of != nil && *of == spec.Bundle {
			set.Bindings = append(set.Bindings, o.DeepCopyObject().(hubv1.BindingObject))
		}
	})
	if apierrors.IsForbidden(err) {
		set.Bindings, err = []hubv1.BindingObject{asked}, nil
	}
	if err != nil {
		return err
	}
	b.Rollout, b.History = view.SetRolloutOf(set, hubv1.ObjectOf(asked).String()), view.SetHistoryOf(set)
	b.Stored, b.State = "", stateOf(string(asked.GetUID()), spec.Rollout)
	return nil
}

// revisionsOf returns the revisions to which a user can return the clusters, and the object that gets the request: the
// object of a binding, or the bundle with which it changes.
func (u *user) revisionsOf(ctx context.Context, b hubv1.BindingObject) (of hubv1.ObjectIdentity, spec *hubv1.BindingSpec, state string, err error) {
	set, err := u.setRolloutOf(ctx, b)
	if err != nil {
		return of, nil, "", err
	}
	if set != nil {
		return set.Bundle.Identity(), decide.BindingOfSet(set), stateOf(string(b.GetUID()), set.Rollout), nil
	}
	return hubv1.ObjectOf(b), b.BindingSpec(), stateOfObject(b), nil
}
