package hub

import (
	"context"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// controllerManager is the Lease by which a kube-controller-manager shows that it works.
var controllerManager = types.NamespacedName{Namespace: metav1.NamespaceSystem, Name: "kube-controller-manager"}

// workloadsFor is how long an answer of hubRunsWorkloads holds.
const workloadsFor = time.Minute

// hubRunsWorkloads says whether the hub would itself run what is placed on members: it has nodes, or a
// controller-manager whose Lease is current. If that cannot be read it would: then workloads are refused rather than
// run twice.
func hubRunsWorkloads(ctx context.Context, r client.Reader) func() bool {
	var mu sync.Mutex
	var answer bool
	var asked time.Time
	return func() bool {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(asked) > workloadsFor {
			answer, asked = runsWorkloads(ctx, r), time.Now()
		}
		return answer
	}
}

func runsWorkloads(ctx context.Context, r client.Reader) bool {
	var nodes corev1.NodeList
	if err := r.List(ctx, &nodes, client.Limit(1)); err != nil || len(nodes.Items) > 0 {
		if err != nil {
			ctrl.LoggerFrom(ctx).Info("Assuming that the hub runs workloads: its nodes cannot be read", "reason", err.Error())
		}
		return true
	}
	var lease coordinationv1.Lease
	switch err := r.Get(ctx, controllerManager, &lease); {
	case client.IgnoreNotFound(err) != nil:
		ctrl.LoggerFrom(ctx).Info("Assuming that the hub runs workloads: the Lease of its controller-manager cannot be read", "reason", err.Error())
		return true
	case err != nil, lease.Spec.RenewTime == nil:
		return false
	}
	return time.Since(lease.Spec.RenewTime.Time) < workloadsFor
}
