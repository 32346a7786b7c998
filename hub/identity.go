package hub

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/internal/answer"
	"github.com/hanse-dev/hanse/internal/canonical"
)

const (
	awaitLogEvery = 10 * time.Second
	// awaitYes is how long the process repeats a request that the hub's API server refuses. A server that has just started
	// may not have read its roles and definitions yet.
	awaitYes = 30 * time.Second
)

// identity has the UID of the hub's cluster, and the key for the HMAC digests of Secrets.
type identity struct {
	UID types.UID // UID of its kube-system namespace
	Key canonical.Key
}

// awaitIdentity waits until the hub's API server answers and serves Hanse's kinds. namespace is the namespace of the
// Secret with the key. awaitIdentity waits without a limit, because Kubernetes would restart a failing process with
// pauses of up to five minutes. It returns an error if the server refuses for 30 s. If ctx ends first, the UID is empty
// and the error is nil.
func awaitIdentity(ctx context.Context, config *rest.Config, namespace string) (identity, error) {
	return awaitWithin(ctx, config, namespace, awaitYes)
}

// awaitWithin implements awaitIdentity. yes is how long the API server may answer 401, 403 or 404 before awaitWithin
// returns the error. An API server that does not serve the kind MemberCluster is treated like an answer 404. Any other
// error, such as a lost connection, restarts this time.
func awaitWithin(ctx context.Context, config *rest.Config, namespace string, yes time.Duration) (f identity, err error) {
	config = rest.CopyConfig(config)
	config.Timeout = answer.Timeout
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		return f, fmt.Errorf("making the client that waits for the hub: %w", err)
	}
	defer http.CloseIdleConnections()
	hub, err := kubernetes.NewForConfigAndClient(config, http)
	if err != nil {
		return f, fmt.Errorf("making the client that waits for the hub: %w", err)
	}
	kinds, err := apiutil.NewDynamicRESTMapper(config, http)
	if err != nil {
		return f, fmt.Errorf("making the client that waits for the hub: %w", err)
	}
	begin, logged, noSince := time.Now(), time.Time{}, time.Time{}
	for {
		f.UID, err = readUID(ctx, hub, kinds)
		if err == nil {
			f.Key, err = readSecretKey(ctx, hub, namespace)
		}
		if err == nil {
			return f, nil
		}
		switch denied := apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || meta.IsNoMatchError(err); {
		case !denied:
			noSince = time.Time{}
		case noSince.IsZero():
			noSince = time.Now()
		}
		if !noSince.IsZero() && time.Since(noSince) >= yes {
			return identity{}, err
		}
		if time.Since(logged) >= awaitLogEvery {
			logged = time.Now()
			ctrl.LoggerFrom(ctx).Info("Waiting for the hub's API server", "waited", time.Since(begin).Round(time.Second).String(), "reason", err.Error())
		}
		select {
		case <-ctx.Done():
			return identity{}, nil
		case <-time.After(pace.RetryAfter):
		}
	}
}

func readUID(ctx context.Context, hub kubernetes.Interface, kinds meta.RESTMapper) (types.UID, error) {
	ns, err := hub.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reading the hub's identity from namespace kube-system: %w", err)
	}
	kind := schema.GroupKind{Group: hubv1.GroupVersion.Group, Kind: "MemberCluster"}
	if _, err := kinds.RESTMapping(kind, hubv1.GroupVersion.Version); err != nil {
		return "", fmt.Errorf("looking for the hub's own kinds, whose definitions come with the chart hanse-hub: %w", err)
	}
	return ns.UID, nil
}
