package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// hubName is the name of the hub's Deployment, which the chart creates, and of the hub's Lease.
const hubName = "hanse-hub"

const (
	// stopWithin is the maximum time for which uninstall waits until the hub's pods have ended. After that, it waits up to
	// the same time again until the Lease is free.
	stopWithin = 2 * time.Minute
	// freeFor is how long the Lease must be free before hansectl concludes that no hub runs. A standby replica tries every
	// 2 s to take a free Lease.
	freeFor = 5 * time.Second
)

// stop scales the hub's Deployment to 0 and waits until its pods have ended. It returns the name of the Helm release.
func (u *uninstall) stop(ctx context.Context, hub client.Client) (release string, err error) {
	out := u.hub.streams.Out
	key := client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: hubName}
	var deployment appsv1.Deployment
	err = hub.Get(ctx, key, &deployment)
	if apierrors.IsNotFound(err) {
		printLine(out, "deployment/"+hubName, "there is none")
		return "hanse", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading Deployment %s: %w", key, err)
	}
	release = cmp.Or(deployment.Annotations["meta.helm.sh/release-name"], "hanse")
	did := "is scaled to 0 already"
	if ptr.Deref(deployment.Spec.Replicas, 1) != 0 {
		if err := hub.Patch(ctx, &deployment, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":0}}`))); err != nil {
			return "", fmt.Errorf("scaling Deployment %s to 0: %w", key, err)
		}
		did = "scaled to 0"
	}
	printLine(out, "deployment/"+hubName, "%s", did)
	selector, err := metav1.LabelSelectorAsSelector(deployment.Spec.Selector)
	if err != nil {
		return "", fmt.Errorf("reading the selector of Deployment %s: %w", key, err)
	}
	state, err := await(ctx, out, stopWithin, func(ctx context.Context) (string, bool, error) {
		var pods corev1.PodList
		if err := hub.List(ctx, &pods, client.InNamespace(key.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
			return "", false, fmt.Errorf("listing the pods of Deployment %s: %w", key, err)
		}
		var running []string
		for _, p := range pods.Items {
			if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
				running = append(running, p.Name)
			}
		}
		if len(running) == 0 {
			return "no pod of the hub is left", true, nil
		}
		return "waiting for pods: " + strings.Join(running, ", "), false, nil
	})
	if errors.Is(err, errTimeout) {
		return "", fmt.Errorf("stopping the hub: %w: %s; if the node of these pods is down, delete the pods with kubectl delete pod --force, and run the command again", err, state)
	}
	return release, err
}

var errLed = errors.New("a hub is running that this command cannot stop: end it, then run the command again")

// watching observes the hub's Lease. It compares only times of this machine's clock: a Lease has expired if it did not
// change for its duration.
type watching struct {
	last  *holder
	since time.Time
}

// see reports whether the Lease has been free or unchanged for so long that no hub runs. It returns an error if a hub
// has renewed the Lease since the last call.
func (w *watching) see(now holder, at time.Time) (over bool, err error) {
	changed := w.last == nil || *w.last != now
	if changed && w.last != nil && now.name != "" {
		return false, fmt.Errorf("the Lease %s is renewed by %s: %w", hubName, now.name, errLed)
	}
	if changed {
		w.last, w.since = &now, at
	}
	needed := freeFor
	if now.name != "" {
		needed = max(now.lasts, freeFor)
	}
	return at.Sub(w.since) >= needed, nil
}

// awaitNoLeader waits until no hub holds the Lease.
func (u *uninstall) awaitNoLeader(ctx context.Context, hub client.Client) error {
	seen := watching{}
	_, err := await(ctx, u.hub.streams.Out, stopWithin, func(ctx context.Context) (string, bool, error) {
		now, err := readHolder(ctx, hub)
		if err != nil {
			return "", false, err
		}
		over, err := seen.see(now, time.Now())
		switch {
		case err != nil:
			return "", false, err
		case over:
			return "no hub leads any more", true, nil
		case now.name != "":
			return fmt.Sprintf("waiting for the Lease of %s to expire (%s)", now.name, now.lasts), false, nil
		}
		return "the Lease is free; checking whether another hub takes it", false, nil
	})
	if err != nil {
		return fmt.Errorf("waiting until no hub leads: %w", err)
	}
	return nil
}
