package views

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/view/wire"
)

func (v *View) copy(ctx context.Context, q *question) (any, error) {
	var in wire.CopyRequest
	if err := q.read(&in); err != nil {
		return nil, err
	}
	p, err := v.find(ctx, q, in.Object)
	if err != nil {
		return nil, err
	}
	m, err := v.member(ctx, q, false, p)
	if err != nil {
		return nil, err
	}
	gvk, err := v.copyGVK(ctx, q.cluster, p)
	if err != nil {
		return nil, err
	}
	intent := member.ViewIntent{GVK: gvk, Owner: p.id, OwnerUID: p.binding.BindingSpec().ObjectRef.UID}
	if row := p.binding.BindingStatus().Row(q.cluster); row != nil {
		intent.ConfirmedUID = row.UID
	}
	live, refusal := m.View(ctx, intent)
	answer := wire.CopyAnswer{Refused: reasonOf(refusal)}
	if live != nil {
		answer.Object = withoutSecrets(live).Object
	}
	return answer, nil
}

// copyGVK returns the group, version and kind with which the hub writes the copy on a cluster.
func (v *View) copyGVK(ctx context.Context, cluster string, p placed) (schema.GroupVersionKind, error) {
	o, err := v.opts.HubObject(ctx, p.binding.BindingSpec().ObjectRef, nil)
	if err != nil {
		return schema.GroupVersionKind{}, v.internal("reading the definition of a kind", err)
	}
	c, err := v.memberCluster(ctx, cluster)
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	return hubv1.Wanted(*p.binding.BindingSpec().Target(cluster), o).At(c), nil
}

// memberCluster returns a MemberCluster from the cache. If the MemberCluster does not exist, the result is empty.
func (v *View) memberCluster(ctx context.Context, name string) (*hubv1.MemberCluster, error) {
	c := &hubv1.MemberCluster{}
	if err := v.opts.Client.Get(ctx, client.ObjectKey{Name: name}, c, client.UnsafeDisableDeepCopy); client.IgnoreNotFound(err) != nil {
		return nil, v.internal("reading a MemberCluster", err)
	}
	return c, nil
}

func (v *View) diff(ctx context.Context, q *question) (any, error) {
	var in wire.DiffRequest
	if err := q.read(&in); err != nil {
		return nil, err
	}
	p, err := v.find(ctx, q, in.Object)
	if err != nil {
		return nil, err
	}
	if in.Next && len(in.Policies) > 0 {
		return nil, apierrors.NewBadRequest("a request for the next revision tries no policies")
	}
	policies, err := policiesOf(in.Policies, p.id)
	if err != nil {
		return nil, err
	}
	if err := v.mayTry(ctx, q, p, policies); err != nil {
		return nil, err
	}
	if err := readable(policies); err != nil {
		return nil, err
	}
	m, err := v.member(ctx, q, false, p)
	if err != nil {
		return nil, err
	}
	intent, stop, err := v.intent(ctx, q.cluster, p.id, policies, in.Next)
	if err != nil {
		return nil, v.unlessAway(err)
	}
	if intent.Manifest == nil {
		return wire.DiffAnswer{Refused: reasonOf(stop)}, nil
	}
	preview := m.Preview(ctx, intent)
	if preview.Unadopted {
		allowed, err := v.mayAdopt(ctx, q)
		if err != nil {
			return nil, err
		}
		if !allowed {
			return wire.DiffAnswer{Refused: notShown(q)}, nil
		}
	}
	if preview.Refused == nil {
		preview.Refused = stop
	}
	before, after := compared(preview.Before), compared(preview.After)
	redactBoth(before, after, preview.InSync)
	return wire.DiffAnswer{
		Before: content(before), After: content(after), Unadopted: preview.Unadopted, Changed: preview.Changed, Refused: reasonOf(preview.Refused),
	}, nil
}

func (v *View) intent(
	ctx context.Context, cluster string, id hubv1.ObjectIdentity, policies []hubv1.OverridePolicyObject, next bool,
) (member.ApplyIntent, *member.Outcome, error) {
	if next {
		return v.opts.NextIntent(ctx, cluster, id)
	}
	return v.opts.Intent(ctx, cluster, id, policies)
}

func (v *View) unlessAway(err error) error {
	if errors.Is(err, member.ErrNotConnected) {
		return err
	}
	return v.internal("rendering for a preview", err)
}

// policiesOf decodes the override policies of a request. It returns an error for a policy that cannot select the
// object, because the policy is in another namespace.
func policiesOf(raw []json.RawMessage, id hubv1.ObjectIdentity) ([]hubv1.OverridePolicyObject, error) {
	if len(raw) > maxPolicies {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("at most %d policies can be tried at a time", maxPolicies))
	}
	var out []hubv1.OverridePolicyObject
	for _, text := range raw {
		var kind metav1.TypeMeta
		if err := json.Unmarshal(text, &kind); err != nil {
			return nil, apierrors.NewBadRequest("a policy is not a valid object: " + err.Error())
		}
		var p hubv1.OverridePolicyObject
		switch kind.GroupVersionKind() {
		case hubv1.GroupVersion.WithKind("OverridePolicy"):
			p = &hubv1.OverridePolicy{}
		case hubv1.GroupVersion.WithKind("ClusterOverridePolicy"):
			p = &hubv1.ClusterOverridePolicy{}
		default:
			return nil, apierrors.NewBadRequest(fmt.Sprintf("%s of %q is no override policy of %s", kind.Kind, kind.APIVersion, hubv1.GroupVersion))
		}
		if err := json.Unmarshal(text, p); err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("a policy of kind %s is invalid: %s", kind.Kind, err))
		}
		_, namespaced := p.(*hubv1.OverridePolicy)
		if p.GetName() == "" || namespaced && p.GetNamespace() != id.Namespace || !namespaced && p.GetNamespace() != "" {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("%s %q does not concern %s: it has no name, or is in another namespace", kind.Kind, p.GetName(), id))
		}
		out = append(out, p)
	}
	return out, nil
}

func (v *View) children(ctx context.Context, q *question) (any, error) {
	var in wire.ChildrenRequest
	if err := q.read(&in); err != nil {
		return nil, err
	}
	if len(in.Objects) > maxObjects {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("a request may name at most %d objects", maxObjects))
	}
	answer := wire.ChildrenAnswer{}
	var owners []member.Owner
	var allowed []placed
	for _, o := range in.Objects {
		p, err := v.find(ctx, q, o)
		if apierrors.IsForbidden(err) {
			answer.Objects = append(answer.Objects, wire.ObjectChildren{Object: o, Refused: &wire.Reason{Reason: string(metav1.StatusReasonForbidden), Message: err.Error()}})
			continue
		}
		if err != nil {
			return nil, err
		}
		found := wire.ObjectChildren{Object: o}
		if row := p.binding.BindingStatus().Row(q.cluster); row != nil {
			found.UID = row.UID
		}
		allowed = append(allowed, p)
		owners = append(owners, member.Owner{Kind: p.id.GroupKind(), Namespace: o.Namespace, UID: found.UID})
		answer.Objects = append(answer.Objects, found)
	}
	if len(owners) == 0 {
		return answer, nil
	}
	m, err := v.member(ctx, q, true, allowed...)
	if err != nil {
		return nil, err
	}
	found := m.Children(ctx, owners)
	for i := range answer.Objects {
		if uid := answer.Objects[i].UID; uid != "" {
			answer.Objects[i].Children = found.Of[uid]
		}
	}
	answer.Notes = found.Notes
	return answer, nil
}

func reasonOf(o *member.Outcome) *wire.Reason {
	if o == nil {
		return nil
	}
	return &wire.Reason{Reason: o.Reason, Message: o.Message}
}
