package membership

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/scopes"
)

const (
	lookAgain    = 2 * time.Second // pause before the hub looks again at a leaving cluster
	pageSize     = 500
	leaveDefault = 600 // default timeout of leaving, in seconds
)

// release removes the finalizer of a deleted MemberCluster when no binding names the cluster any more. An uncached read
// of all bindings must confirm that there is none.
func (r *Reconciler) release(ctx context.Context, run *run) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(run.cluster, hubv1.WithdrawFinalizer) {
		r.links.Remove(run.cluster.Name)
		run.released = true
		return ctrl.Result{}, nil
	}
	left, err := r.entriesLeft(ctx, run.cluster.Name)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("listing the copies that are left on cluster %s: %w", run.cluster.Name, err)
	}
	if left.count > 0 {
		if run.state == nil || run.state.Ready != metav1.ConditionUnknown { // while it is Unknown, Ready may be outdated
			describeRemaining(run.cluster, left, time.Now())
		}
		return ctrl.Result{RequeueAfter: lookAgain}, nil
	}
	if over, result, err := r.revokeLast(ctx, run); err != nil || !over {
		return result, err
	}
	r.links.Remove(run.cluster.Name)
	controllerutil.RemoveFinalizer(run.cluster, hubv1.WithdrawFinalizer)
	run.released = true
	return ctrl.Result{}, client.IgnoreNotFound(r.patchFinalizers(ctx, run))
}

// left has the number of bindings that still name a leaving cluster (whose MemberCluster is being deleted), and one
// object of these bindings as an example.
type left struct {
	count   int
	example string // the first object whose withdrawal is blocked, or else the first object
	heldUp  string // why the withdrawal of the example is blocked; empty if it is only in progress
}

func (l *left) add(b hubv1.BindingObject, cluster string) {
	l.count++
	heldUp := ""
	if row := b.BindingStatus().Row(cluster); row != nil && b.BindingSpec().Target(cluster).State == hubv1.TargetAbsent && row.Applied == metav1.ConditionFalse {
		heldUp = row.Reason + ": " + row.Message
	}
	if l.example != "" && (l.heldUp != "" || heldUp == "") {
		return
	}
	ref := b.BindingSpec().ObjectRef
	l.heldUp, l.example = heldUp, ref.Kind+" "+types.NamespacedName{Namespace: b.GetNamespace(), Name: ref.Name}.String()
	if b.GetNamespace() == "" {
		l.example = ref.Kind + " " + ref.Name
	}
}

var bindingKinds = []func() client.ObjectList{
	func() client.ObjectList { return &hubv1.ResourceBindingList{} },
	func() client.ObjectList { return &hubv1.ClusterResourceBindingList{} },
}

func (r *Reconciler) entriesLeft(ctx context.Context, cluster string) (left, error) {
	var l left
	for _, newList := range bindingKinds {
		list := newList()
		if err := r.client.List(ctx, list, client.MatchingFields{scopes.TargetIndex: cluster}, client.UnsafeDisableDeepCopy); err != nil {
			return left{}, err
		}
		if err := l.addAll(list, cluster); err != nil {
			return left{}, err
		}
	}
	if l.count > 0 {
		return l, nil
	}
	for _, newList := range bindingKinds {
		options := []client.ListOption{client.Limit(pageSize)}
		for {
			page := newList()
			if err := r.apiReader.List(ctx, page, options...); err != nil {
				return left{}, err
			}
			if err := l.addAll(page, cluster); err != nil {
				return left{}, err
			}
			if page.GetContinue() == "" {
				break
			}
			options = []client.ListOption{client.Limit(pageSize), client.Continue(page.GetContinue())}
		}
	}
	return l, nil
}

// addAll counts the bindings of a list that name the cluster.
func (l *left) addAll(list client.ObjectList, cluster string) error {
	return meta.EachListItem(list, func(o runtime.Object) error {
		if b, ok := o.(hubv1.BindingObject); ok && b.BindingSpec().Target(cluster) != nil {
			l.add(b, cluster)
		}
		return nil
	})
}

// describeRemaining adds the objects that delay the deletion to the message of the condition Ready. If the cluster
// answers, describeRemaining also sets the reason Leaving; otherwise the reason does not change. After a long outage,
// the message says how to give up the objects on the cluster.
func describeRemaining(c *hubv1.MemberCluster, l left, now time.Time) {
	ready := meta.FindStatusCondition(c.Status.Conditions, hubv1.ConditionReady)
	objects := fmt.Sprintf("%d objects are left, such as %s", l.count, l.example)
	if l.count == 1 {
		objects = "1 object is left: " + l.example
	}
	if l.heldUp != "" {
		objects += " (" + l.heldUp + ")"
	}
	if ready == nil || ready.Status == metav1.ConditionTrue {
		what := "its copies stay there without marks of the hub"
		if c.Spec.Leave.Policy == hubv1.RemovalDelete {
			what = "its copies are deleted"
		}
		setCondition(c, hubv1.ConditionReady, metav1.ConditionTrue, hubv1.ReasonLeaving,
			fmt.Sprintf("the cluster leaves, and %s (spec.leave.policy): %s; waiting for the cluster to confirm%s", what, objects, wayOut(c, l)))
		return
	}
	way := "they are withdrawn when the cluster answers"
	switch {
	case c.Spec.Leave.WhenUnreachable == hubv1.UnreachableAbandon:
		patience := time.Duration(ptr.Deref(c.Spec.Leave.TimeoutSeconds, leaveDefault)) * time.Second
		way = "they are abandoned if the cluster does not answer by " + c.DeletionTimestamp.Add(patience).UTC().Format(time.RFC3339)
	case c.MayBeLost(now):
		way = "to abandon them, set spec.leave.whenUnreachable to Abandon"
	}
	setCondition(c, hubv1.ConditionReady, ready.Status, ready.Reason, fmt.Sprintf("%s; the cluster leaves, and %s: %s", ready.Message, objects, way))
}

// wayOut returns the advice for a cluster that answers, but on which the withdrawal of an object is blocked. It is
// empty if no withdrawal is blocked, or if the MemberCluster already has the advised setting.
func wayOut(c *hubv1.MemberCluster, l left) string {
	if l.heldUp == "" || c.Spec.Leave.WhenUnreachable == hubv1.UnreachableAbandon {
		return ""
	}
	return "; if the cluster refuses, set spec.leave.whenUnreachable to Abandon"
}
