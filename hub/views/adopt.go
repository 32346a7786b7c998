package views

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	membercontent "github.com/hanse-dev/hanse/member/content"
	"github.com/hanse-dev/hanse/view/wire"
)

// adopt handles an AdoptRequest. It adopts an object of a member, which means that Hanse takes the object over as a
// copy. If the request has no UID, adopt changes nothing, and only returns the changes that adoption would make.
func (v *View) adopt(ctx context.Context, q *question) (any, error) {
	var in wire.AdoptRequest
	if err := q.read(&in); err != nil {
		return nil, err
	}
	if in.Adoption != hubv1.AdoptionIfNoDiff && in.Adoption != hubv1.AdoptionAlways || len(in.UID) > maxNameLength {
		return nil, apierrors.NewBadRequest("the adoption of the request is not IfNoDiff or Always, or the UID is too long")
	}
	p, err := v.find(ctx, q, in.Object)
	if err != nil {
		return nil, err
	}
	if err := v.demandAdopt(ctx, q, p, in.UID != ""); err != nil {
		return nil, err
	}
	m, err := v.member(ctx, q, false, p)
	if err != nil {
		return nil, err
	}
	if in.UID == "" {
		return v.wouldAdopt(ctx, q, m, p, in)
	}
	o, err := v.opts.Adopt(ctx, q.cluster, p.id, in.Adoption, in.UID)
	if err != nil {
		return nil, v.unlessAway(err)
	}
	v.opts.Logger.Info("Took over an object", "user", q.who.name, "cluster", q.cluster, "object", p.id.String(),
		"uid", in.UID, "adoption", in.Adoption, "applied", o.Applied, "reason", o.Reason)
	switch {
	case o.Applied == metav1.ConditionTrue && o.Adopted:
		return wire.AdoptAnswer{State: wire.AdoptAdopted}, nil
	case o.Applied == metav1.ConditionTrue:
		return wire.AdoptAnswer{State: wire.AdoptCopy}, nil
	}
	return wire.AdoptAnswer{State: wire.AdoptRefused, Refused: reasonOf(&o)}, nil
}

// demandAdopt returns an error if the user lacks the verb adopt on the MemberCluster. If write is true, the user also
// needs the right to update the hub object, because adoption writes the hub object's content to the member.
func (v *View) demandAdopt(ctx context.Context, q *question, p placed, write bool) error {
	allowed, err := v.mayAdopt(ctx, q)
	if err != nil {
		return err
	}
	if !allowed {
		members := hubv1.GroupVersion.WithResource("memberclusters").GroupResource()
		return apierrors.NewForbidden(members, q.cluster, fmt.Errorf("user %q needs the verb adopt on the MemberCluster", q.who.name))
	}
	if !write {
		return nil
	}
	allowed, err = v.may(ctx, q.who, authorizationv1.ResourceAttributes{
		Verb: "update", Group: p.resource.Group, Version: p.resource.Version, Resource: p.resource.Resource,
		Namespace: p.id.Namespace, Name: p.id.Name,
	})
	if err == nil && !allowed {
		resource := schema.GroupResource{Group: p.resource.Group, Resource: p.resource.Resource}
		err = apierrors.NewForbidden(resource, p.id.Name, fmt.Errorf("user %q needs the verb update on the hub object", q.who.name))
	}
	return err
}

// mayAdopt reports whether the user has the verb adopt on the MemberCluster. The author of a placement needs the same
// right to set apply.adoption.
func (v *View) mayAdopt(ctx context.Context, q *question) (bool, error) {
	return v.may(ctx, q.who, authorizationv1.ResourceAttributes{
		Verb: "adopt", Group: hubv1.GroupVersion.Group, Resource: "memberclusters", Name: q.cluster,
	})
}

// notShown returns the reason why a user does not see a member's object that Hanse does not manage. Only a user who may
// adopt the object may see it. Otherwise, a user could create hub objects in order to read the objects of the same kind
// and name on every member.
func notShown(q *question) *wire.Reason {
	return &wire.Reason{Reason: hubv1.ReasonAlreadyExists, Message: fmt.Sprintf(
		"the object exists on the cluster and is not Hanse's; user %q needs the verb adopt on MemberCluster %s to see it",
		q.who.name, q.cluster)}
}

// wouldAdopt returns the changes that adoption would make to an object of the member. It changes nothing.
func (v *View) wouldAdopt(ctx context.Context, q *question, m Member, p placed, in wire.AdoptRequest) (any, error) {
	intent, stop, err := v.opts.Intent(ctx, q.cluster, p.id, nil)
	if err != nil {
		return nil, v.unlessAway(err)
	}
	if intent.Manifest == nil && stop.Reason == hubv1.ReasonIsTemplate {
		return wire.AdoptAnswer{State: wire.AdoptCopy}, nil
	}
	if intent.Manifest == nil {
		return wire.AdoptAnswer{State: wire.AdoptRefused, Refused: reasonOf(stop)}, nil
	}
	intent.Adoption = in.Adoption
	preview := m.Preview(ctx, intent)
	if preview.Refused == nil {
		preview.Refused = stop
	}
	return adoptable(preview), nil
}

func adoptable(p member.Preview) wire.AdoptAnswer {
	answer := wire.AdoptAnswer{State: wire.AdoptRefused, Refused: reasonOf(p.Refused)}
	switch {
	case p.Before != nil && !p.Unadopted:
		return wire.AdoptAnswer{State: wire.AdoptCopy}
	case p.Before == nil && p.After != nil:
		return wire.AdoptAnswer{State: wire.AdoptMissing}
	case p.Before == nil:
		return answer
	case p.Refused == nil:
		answer.State, answer.UID = wire.AdoptPossible, p.Before.GetUID()
	case p.Refused.Reason == hubv1.ReasonAlreadyExists:
		answer.State = wire.AdoptDiffers
	}
	if p.After != nil && !isSecret(p.Before) {
		answer.Changes = membercontent.Changes(p.Before, p.After)
	}
	return answer
}
