package apply

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/answer"
	"github.com/hanse-dev/hanse/internal/informer"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/content"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Withdraw deletes or orphans the copy of one hub object. The outcome has the reason Deleting until the cluster has
// confirmed that the copy is gone.
func (a *Applier) Withdraw(ctx context.Context, in member.WithdrawIntent) member.Outcome {
	if a.isHub {
		return applied(hubv1.ReasonWithdrawn, "this cluster is the hub: the hub object is its own copy and stays")
	}
	ctx, done := answer.Keep(ctx)
	defer done()
	t, stop := a.find(in.GVK, types.NamespacedName{Namespace: in.Owner.Namespace, Name: in.Owner.Name})
	if stop != nil {
		if stop.Reason == hubv1.ReasonKindNotServed {
			return a.withdrawUnserved(ctx, t, *stop)
		}
		return *stop
	}
	if known(in) {
		if out, settled := a.withdrawUnread(ctx, t, in); settled {
			return out
		}
	}
	for range 2 { // the second time if the object changed between the read and the write
		out, again := a.withdrawOnce(ctx, t, in)
		if !again {
			return out
		}
	}
	return refused(hubv1.ReasonPending, member.RetrySoon, "another client keeps changing %s on the cluster: stop this client, and the hub withdraws the copy", t)
}

// known reports whether the watch has delivered all data that a read would return. Three kinds of copies must always be
// read: an adopted copy, a namespace, because it may have been created on demand, and a CustomResourceDefinition,
// because objects of its kind may exist.
func known(in member.WithdrawIntent) bool {
	seen := in.Seen
	return seen != nil && seen.UID != "" && seen.ResourceVersion != "" && !seen.Deleting &&
		in.Policy == hubv1.RemovalDelete && !in.Adopted && !seen.Adopted &&
		in.GVK.GroupKind() != (schema.GroupKind{Kind: "Namespace"}) && !isDefinition(in.GVK.GroupKind()) &&
		// The label needs no check, because the watch selects objects by the hub's label.
		seen.Owner == in.Owner && seen.OwnerUID == in.OwnerUID &&
		seen.Hash != "" && // the hub has applied the object
		!in.Source.Newer(seen.Source, true)
}

// withdrawUnread deletes the copy at the version that the watch has shown. settled is false if the copy has changed
// since. The copy must then be read.
func (a *Applier) withdrawUnread(
	ctx context.Context, t target, in member.WithdrawIntent,
) (out member.Outcome, settled bool) {
	left, err := a.remove(ctx, t, in.Seen.UID, in.Seen.ResourceVersion, in.Propagation)
	switch {
	case isGone(err):
		return applied(hubv1.ReasonWithdrawn, ""), true
	case isChanged(err):
		return member.Outcome{}, false
	case isNotServed(err):
		return a.withdrawUnserved(ctx, t, classify(err, t)), true
	case err != nil:
		return classify(err, t), true
	}
	return removed(ctx, t, in.Seen.UID, left), true
}

func (a *Applier) withdrawOnce(ctx context.Context, t target, in member.WithdrawIntent) (out member.Outcome, again bool) {
	live, err := t.read(ctx)
	switch {
	case isGone(err):
		return applied(hubv1.ReasonWithdrawn, ""), false
	case isNotServed(err):
		return a.withdrawUnserved(ctx, t, classify(err, t)), false
	case err != nil:
		return classify(err, t), false
	}
	whose := a.standing(live, in.Owner, in.OwnerUID, "")
	policy, why := policyFor(in, live)
	if whose != ours && !(whose == oursOutdated && asConfirmed(in, live)) {
		if whose == unmanaged && policy == hubv1.RemovalOrphan && confirmedCopy(in, live) && live.GetLabels()[hubv1.HubLabel] == "" {
			// An earlier run of this withdrawal orphaned the copy, and its outcome was not recorded.
			return orphanedCopy(t, in, live, why), false
		}
		return leftAlone(t, live, whose), false
	}
	if out := hubIsOlder(in.Source, live, whose); out != nil {
		return *out, false
	}
	return a.takeAway(ctx, t, in, live, policy, why)
}

// takeAway deletes or orphans the copy that was read, as policy says. why is empty, or the reason why policy differs
// from the policy in the intent.
func (a *Applier) takeAway(ctx context.Context, t target, in member.WithdrawIntent, live *unstructured.Unstructured, policy hubv1.RemovalPolicy, why string,
) (out member.Outcome, again bool) {
	var err error
	var left *unstructured.Unstructured
	switch {
	case policy == hubv1.RemovalOrphan || madeOnDemand(live):
		err = a.orphan(ctx, t, live, policy == hubv1.RemovalOrphan)
	case live.GetDeletionTimestamp() != nil:
		return seen(deleting(t, live), live), false
	default:
		if isDefinition(in.GVK.GroupKind()) {
			if out := a.definitionKept(ctx, live); out != nil {
				return *out, false
			}
		}
		left, err = a.remove(ctx, t, live.GetUID(), live.GetResourceVersion(), in.Propagation)
	}
	switch {
	case isGone(err):
		return applied(hubv1.ReasonWithdrawn, ""), false
	case isChanged(err):
		return member.Outcome{}, true
	case err != nil:
		return classify(err, t), false
	case policy == hubv1.RemovalOrphan || madeOnDemand(live):
		out := orphanedCopy(t, in, live, why)
		out.Wrote = true
		if policy != hubv1.RemovalOrphan {
			out.Orphaned = nil // the object can be adopted again, so that its identity need not be recorded
		}
		return out, false
	}
	return removed(ctx, t, live.GetUID(), left), false
}

// leftAlone returns the outcome for an object that is not the copy to withdraw, and therefore stays. If this object has
// the hub's label, the hub's watch still shows it. The outcome has the object's UID, so that the caller does not wait
// until the object is deleted.
func leftAlone(t target, live *unstructured.Unstructured, whose standing) member.Outcome {
	why := ""
	if whose == unmanaged && live.GetLabels()[hubv1.HubLabel] != "" {
		why = ": it has the hub's label, but the hub has not applied it, as after a restore from a backup"
	}
	return seen(applied(hubv1.ReasonWithdrawn, "%s on the cluster is not the copy of this hub object and was left alone%s", t, why), live)
}

// policyFor returns whether the copy that was read is deleted or orphaned. A copy is treated as adopted if the row in
// the binding or an annotation of the copy says so.
func policyFor(in member.WithdrawIntent, live *unstructured.Unstructured) (policy hubv1.RemovalPolicy, why string) {
	if in.Policy == hubv1.RemovalDelete && in.PolicyIfAdopted == hubv1.RemovalOrphan && wasAdopted(in, live) {
		return hubv1.RemovalOrphan, ": it was adopted, and deletion.adopted is Orphan"
	}
	return in.Policy, ""
}

func wasAdopted(in member.WithdrawIntent, live *unstructured.Unstructured) bool {
	return isAdopted(live) || in.Adopted && confirmedCopy(in, live)
}

func confirmedCopy(in member.WithdrawIntent, live *unstructured.Unstructured) bool {
	return in.ConfirmedUID != "" && live.GetUID() == in.ConfirmedUID
}

// orphanedCopy returns the outcome for a copy that stays on the member. The outcome has the UID and digest by which the
// hub recognises the copy later.
func orphanedCopy(t target, in member.WithdrawIntent, live *unstructured.Unstructured, why string) member.Outcome {
	out := applied(hubv1.ReasonWithdrawn, "%s stays on the cluster and is no longer Hanse's%s", t, why)
	out.Orphaned = &hubv1.OrphanedCopy{UID: live.GetUID(), Adopted: wasAdopted(in, live)}
	if confirmedCopy(in, live) {
		out.Orphaned.Digest = in.ConfirmedDigest
	}
	return out
}

// asConfirmed reports whether the object has the UID and the digest that the binding records for the copy. Such an
// object may be withdrawn although its annotation names an earlier hub object: the hub object may have been deleted and
// created again while the cluster was unreachable. A write for another hub object would have changed the digest.
func asConfirmed(in member.WithdrawIntent, live *unstructured.Unstructured) bool {
	return confirmedCopy(in, live) && in.ConfirmedDigest != "" &&
		live.GetAnnotations()[hubv1.DigestAnnotation] == in.ConfirmedDigest
}

// remove deletes the object with this UID at this version. left is the object from the response if the object still
// waits for finalizers. left is nil if the object is gone.
func (a *Applier) remove(
	ctx context.Context, t target, uid types.UID, version string, propagation metav1.DeletionPropagation,
) (left *unstructured.Unstructured, err error) {
	if propagation == "" {
		propagation = metav1.DeletePropagationBackground
	}
	ctx, cancel := context.WithTimeout(ctx, answer.Timeout)
	defer cancel()
	// The dynamic client cannot be used here, because it does not return the body of the response.
	result := a.requests.Delete().AbsPath(pathOf(t.resource.GroupVersion())).
		NamespaceIfScoped(t.key.Namespace, t.key.Namespace != "").Resource(t.resource.Resource).Name(t.key.Name).
		Body(&metav1.DeleteOptions{
			Preconditions:     &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
			PropagationPolicy: &propagation,
		}).Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err
	}
	raw, err := result.Raw()
	if err != nil {
		return nil, err
	}
	left = &unstructured.Unstructured{}
	if err := left.UnmarshalJSON(raw); err != nil {
		return nil, err
	}
	if left.GroupVersionKind() == metav1.Unversioned.WithKind("Status") && left.Object["status"] == metav1.StatusSuccess {
		return nil, nil
	}
	return left, informer.CheckObject(left)
}

func pathOf(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "/api/" + gv.Version
	}
	return "/apis/" + gv.Group + "/" + gv.Version
}

// removed returns the outcome of a deletion. The object may still wait for finalizers. For some kinds, the response
// contains the object even if it is gone. If the object in the response has no deletionTimestamp, removed reads it
// again to find out whether it is gone.
func removed(ctx context.Context, t target, uid types.UID, left *unstructured.Unstructured) member.Outcome {
	if left != nil && left.GetDeletionTimestamp() == nil {
		switch live, err := t.read(ctx); {
		case isGone(err):
			left = nil
		case err == nil:
			left = live
		}
	}
	out := applied(hubv1.ReasonWithdrawn, "")
	if left != nil && left.GetUID() == uid {
		out = seen(deleting(t, left), left)
	}
	out.Wrote = true
	return out
}

// orphan removes the hub's labels, annotations and managedFields entries from the object that was read. The object
// itself stays. Afterwards, the fields that the hub applied have no owner. A namespace that was created on demand keeps
// its OnDemandLabel unless all is true, which means that the policy is Orphan.
func (a *Applier) orphan(ctx context.Context, t target, live *unstructured.Unstructured, all bool) error {
	labels := map[string]any{hubv1.HubLabel: nil}
	if all {
		labels[hubv1.OnDemandLabel] = nil
	}
	left := content.WithoutOurs(live.GetManagedFields())
	if len(left) == 0 {
		left = []metav1.ManagedFieldsEntry{{}} // an empty list would leave managedFields unchanged
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":             live.GetUID(),
		"resourceVersion": live.GetResourceVersion(),
		"labels":          labels,
		"annotations":     map[string]any{hubv1.OwnerAnnotation: nil, hubv1.DigestAnnotation: nil, hubv1.SourceAnnotation: nil, hubv1.DecisionAnnotation: nil, hubv1.AdoptedAnnotation: nil},
		"managedFields":   left,
	}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answer.Timeout)
	defer cancel()
	_, err = t.objects.Patch(ctx, t.key.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: hubv1.FieldManager})
	return err
}

// withdrawUnserved returns the outcome for a copy of a kind that the cluster does not serve. If the
// CustomResourceDefinition of the kind is gone, the copy counts as withdrawn. If the definition exists, or if the kind
// is built-in and has no definition, the result is the argument unserved.
func (a *Applier) withdrawUnserved(ctx context.Context, t target, unserved member.Outcome) member.Outcome {
	if isBuiltIn(t.gvk.Group) {
		return unserved
	}
	there, err := a.defined(ctx, t)
	switch {
	case err != nil:
		return classify(err, target{gvk: schema.GroupVersionKind{Group: definitions.Group, Version: definitions.Version, Kind: "CustomResourceDefinition"}})
	case there:
		return unserved
	}
	return applied(hubv1.ReasonWithdrawn, "the definition of %s is gone from the cluster, and with it every object", t.gvk.Kind)
}

func isBuiltIn(group string) bool {
	return scheme.Scheme.IsGroupRegistered(group) || group == definitions.Group || group == "apiregistration.k8s.io"
}

// defined reports whether the cluster has the CustomResourceDefinition of the kind. It reads the definition by its
// name, or searches all definitions if the plural of the kind is not known.
func (a *Applier) defined(ctx context.Context, t target) (bool, error) {
	crds := a.client.Resource(definitions)
	if t.resource.Resource != "" {
		ctx, cancel := context.WithTimeout(ctx, answer.Timeout)
		defer cancel()
		_, err := crds.Get(ctx, t.resource.Resource+"."+t.resource.Group, metav1.GetOptions{})
		if isGone(err) {
			return false, nil
		}
		return err == nil, err
	}
	options := metav1.ListOptions{Limit: 50}
	for {
		page, err := listPage(ctx, crds.List, options)
		if err != nil {
			return false, err
		}
		for _, d := range page.Items {
			group, _, _ := unstructured.NestedString(d.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(d.Object, "spec", "names", "kind")
			if group == t.gvk.Group && kind == t.gvk.Kind {
				return true, nil
			}
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return false, nil
		}
	}
}

func listPage(
	ctx context.Context,
	list func(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error),
	options metav1.ListOptions,
) (*unstructured.UnstructuredList, error) {
	ctx, cancel := context.WithTimeout(ctx, answer.Timeout)
	defer cancel()
	return list(ctx, options)
}
