// Package inventory publishes each MemberCluster as a ClusterProfile, and each placement's decision as a
// PlacementDecision, so that other tools know the fleet. It decides nothing: package profile says what is written, and
// when. A hub without the definitions, or a profile of another manager, stops nothing else; the log says so once.
package inventory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/inventory/profile"
)

// lookAgain is the pause after a failure that only a user can end.
const lookAgain = time.Minute

var errForeign = errors.New("a ClusterProfile of this name belongs to another cluster manager: delete it, or choose another namespace in inventory.namespace")

// Controller writes ClusterProfiles in one namespace. It runs in the leader, with one worker.
type Controller struct {
	client    client.Client
	namespace string
	pause     time.Duration
	now       func() time.Time

	written map[string]profile.Profile // by cluster: what is published
	told    map[string]string          // by cluster: the last problem in the log
	absent  time.Time                  // until then, the hub is taken to have no definition of ClusterProfiles
}

// New returns a Controller. The client reads MemberClusters from a cache, and ClusterProfiles from the API server.
func New(c client.Client, namespace string) *Controller {
	return &Controller{
		client: c, namespace: namespace, pause: lookAgain, now: time.Now, written: map[string]profile.Profile{}, told: map[string]string{},
	}
}

// SetupWithManager adds the controller.
func (c *Controller) SetupWithManager(mgr ctrl.Manager) error {
	if err := mgr.Add(manager.RunnableFunc(c.sweep)); err != nil {
		return fmt.Errorf("adding the sweep of ClusterProfiles: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).Named("inventory").For(&hubv1.MemberCluster{}).Complete(c)
}

// Reconcile implements reconcile.Reconciler.
func (c *Controller) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var cluster hubv1.MemberCluster
	var err error
	switch err = c.client.Get(ctx, req.NamespacedName, &cluster); {
	case c.now().Before(c.absent):
		return ctrl.Result{RequeueAfter: c.absent.Sub(c.now())}, nil
	case apierrors.IsNotFound(err):
		delete(c.written, req.Name)
		err = c.withdraw(ctx, req.Name)
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("reading MemberCluster %s: %w", req.Name, err)
	default:
		err = c.publish(ctx, profile.Of(&cluster))
	}
	switch {
	case meta.IsNoMatchError(err):
		c.absent = c.now().Add(c.pause)
		c.tell(ctx, "", "The hub has no definition of ClusterProfiles: install those of cluster-inventory-api v0.1.2", nil)
		return ctrl.Result{RequeueAfter: c.pause}, nil
	case errors.Is(err, errForeign):
		c.tell(ctx, req.Name, "Cannot publish a member cluster", err)
		return ctrl.Result{RequeueAfter: c.pause}, nil
	case err == nil:
		delete(c.told, req.Name)
		delete(c.told, "")
	}
	return ctrl.Result{}, err
}

// tell logs a problem, unless it is the last one that was logged of the cluster.
func (c *Controller) tell(ctx context.Context, cluster, message string, err error) {
	text := fmt.Sprint(message, err)
	if c.told[cluster] == text {
		return
	}
	c.told[cluster] = text
	ctrl.LoggerFrom(ctx).Error(err, message, "cluster", cluster, "namespace", c.namespace)
}

// publish writes the profile of a cluster, if it is worth a write.
func (c *Controller) publish(ctx context.Context, p profile.Profile) error {
	if before, ok := c.written[p.Name]; ok && !profile.Due(before, p) {
		return nil
	}
	existing, err := c.read(ctx, p.Name)
	if apierrors.IsNotFound(err) {
		existing = p.New(c.namespace)
		err = c.client.Create(ctx, existing)
	}
	if err != nil {
		return fmt.Errorf("publishing MemberCluster %s in namespace %s: %w", p.Name, c.namespace, err)
	}
	if !profile.IsOurs(existing) {
		return fmt.Errorf("ClusterProfile %s/%s: %w", c.namespace, p.Name, errForeign)
	}
	wanted, err := p.On(existing)
	if err != nil {
		return err
	}
	status := wanted.DeepCopy()
	if !maps.Equal(existing.GetLabels(), wanted.GetLabels()) {
		if err := c.client.Patch(ctx, wanted, client.MergeFrom(existing)); err != nil {
			return fmt.Errorf("writing ClusterProfile %s/%s: %w", c.namespace, p.Name, err)
		}
	}
	if err := c.client.Status().Patch(ctx, status, client.MergeFrom(existing)); err != nil {
		return fmt.Errorf("writing the status of ClusterProfile %s/%s: %w", c.namespace, p.Name, err)
	}
	c.written[p.Name] = p
	return nil
}

func (c *Controller) read(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	existing := &unstructured.Unstructured{}
	existing.SetGroupVersionKind(profile.Kind)
	return existing, c.client.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, existing)
}

// withdraw deletes the profile of a cluster that left the fleet.
func (c *Controller) withdraw(ctx context.Context, name string) error {
	existing, err := c.read(ctx, name)
	if err != nil || !profile.IsOurs(existing) {
		return client.IgnoreNotFound(err)
	}
	uid := existing.GetUID()
	err = c.client.Delete(ctx, existing, client.Preconditions{UID: &uid})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting ClusterProfile %s/%s: %w", c.namespace, name, err)
	}
	return nil
}

// sweep deletes the profiles of clusters that left while no hub was running. It tries until it has succeeded once.
func (c *Controller) sweep(ctx context.Context) error {
	for {
		err := c.sweepOnce(ctx)
		if err == nil || meta.IsNoMatchError(err) {
			return nil
		}
		ctrl.LoggerFrom(ctx).Error(err, "Failed to sweep ClusterProfiles", "namespace", c.namespace)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(c.pause):
		}
	}
}

func (c *Controller) sweepOnce(ctx context.Context) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(profile.Kind.GroupVersion().WithKind(profile.Kind.Kind + "List"))
	if err := c.client.List(ctx, list, client.InNamespace(c.namespace), client.MatchingLabels{profile.ManagerLabel: profile.Manager}); err != nil {
		return fmt.Errorf("listing ClusterProfiles: %w", err)
	}
	for _, o := range list.Items {
		err := c.client.Get(ctx, client.ObjectKey{Name: o.GetName()}, &hubv1.MemberCluster{})
		if apierrors.IsNotFound(err) {
			err = c.withdraw(ctx, o.GetName())
		}
		if err != nil {
			return err
		}
	}
	return nil
}
