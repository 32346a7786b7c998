package scopes

import (
	"context"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hanse-dev/hanse/hub/pace"
)

// controllerManager is the Lease of a running kube-controller-manager.
var controllerManager = types.NamespacedName{Namespace: metav1.NamespaceSystem, Name: "kube-controller-manager"}

// workloadsFor is how long HubRunsWorkloads returns the same result before it reads the hub again. It is also how long
// the Lease of a controller-manager counts as current after its last renewal.
const workloadsFor = time.Minute

// HubRunsWorkloads returns a function that returns the result of RunsWorkloads. The result is at most a minute old. If
// a later read of the hub fails, the function returns the former result, and logs the error. HubRunsWorkloads itself
// waits for the first result, because a guess would either refuse workloads or run them on the hub too. It returns an
// error if the hub may not make the reads, or if ctx ends.
func HubRunsWorkloads(ctx context.Context, r client.Reader) (func() bool, error) {
	var runs bool
	err := wait.PollUntilContextCancel(ctx, pace.RetryAfter, true, func(ctx context.Context) (bool, error) {
		now, err := RunsWorkloads(ctx, r)
		if err != nil && !apierrors.IsForbidden(err) {
			ctrl.LoggerFrom(ctx).Info("Waiting to find out whether the hub runs workloads", "reason", err.Error())
			return false, nil
		}
		runs = now
		return true, err
	})
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	read := time.Now()
	return func() bool {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(read) > workloadsFor {
			read = time.Now()
			if now, err := RunsWorkloads(ctx, r); err == nil {
				runs = now
			} else if ctx.Err() == nil {
				ctrl.LoggerFrom(ctx).Error(err, "Finding out whether the hub runs workloads", "assumed", runs)
			}
		}
		return runs
	}, nil
}

// RunsWorkloads reports whether the hub would itself run the objects that are placed on members, because it has nodes,
// or a controller-manager with a current Lease.
func RunsWorkloads(ctx context.Context, r client.Reader) (bool, error) {
	var nodes corev1.NodeList
	if err := r.List(ctx, &nodes, client.Limit(1)); err != nil {
		return false, fmt.Errorf("listing the nodes of the hub: %w", err)
	}
	if len(nodes.Items) > 0 {
		return true, nil
	}
	var lease coordinationv1.Lease
	if err := r.Get(ctx, controllerManager, &lease); err != nil {
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return false, fmt.Errorf("reading the Lease of the hub's controller-manager: %w", err)
	}
	return lease.Spec.RenewTime != nil && time.Since(lease.Spec.RenewTime.Time) < workloadsFor, nil
}
