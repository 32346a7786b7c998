package hub

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
)

const (
	awaitTimeout = 5 * time.Second // of one request
	awaitEvery   = time.Second
	awaitTells   = 10 * time.Second
	// awaitRights is how long a server may say no: one that has just started does until it has read its roles.
	awaitRights = 10 * time.Second
)

// awaitHub waits until the hub's API server answers, and returns its identity: the UID of its kube-system namespace. A process that ends when its
// server is away is started anew while that may still be away; if it ended again, the kubelet would wait longer each time, for up to five
// minutes. A server that keeps saying no is not waited for.
func awaitHub(ctx context.Context, config *rest.Config) (types.UID, error) {
	config = rest.CopyConfig(config)
	config.Timeout = awaitTimeout
	hub, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", fmt.Errorf("making the client for the hub's identity: %w", err)
	}
	begin, told, noSince := time.Now(), time.Time{}, time.Time{}
	for {
		ns, err := hub.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		if err == nil {
			return ns.UID, nil
		}
		switch saysNo := apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) || apierrors.IsNotFound(err); {
		case !saysNo:
			noSince = time.Time{}
		case noSince.IsZero():
			noSince = time.Now()
		}
		if ctx.Err() != nil || (!noSince.IsZero() && time.Since(noSince) >= awaitRights) {
			return "", fmt.Errorf("reading the hub's identity from namespace kube-system: %w", err)
		}
		if time.Since(told) >= awaitTells {
			told = time.Now()
			ctrl.LoggerFrom(ctx).Info("Waiting for the hub's API server", "waited", time.Since(begin).Round(time.Second).String(), "reason", err.Error())
		}
		select {
		case <-ctx.Done():
		case <-time.After(awaitEvery):
		}
	}
}
