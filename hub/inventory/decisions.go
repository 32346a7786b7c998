package inventory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/inventory/profile"
	"github.com/hanse-dev/hanse/hub/store/changes"
	"github.com/hanse-dev/hanse/hub/store/scopes"
)

// coalesce is the shortest time between two looks at all bindings.
const coalesce = 2 * time.Second

// Decisions publishes what each placement decided, as PlacementDecisions. It runs in the leader.
type Decisions struct {
	client    client.Client
	namespace string
	pause     time.Duration
	coalesce  time.Duration
	changed   chan struct{}

	stored map[string]*unstructured.Unstructured // nil until they were listed, and after a failure
	told   string                                // the last failure in the log
}

// NewDecisions returns Decisions that are written to a namespace. The client reads bindings and placements from a
// cache.
func NewDecisions(c client.Client, namespace string) *Decisions {
	return &Decisions{client: c, namespace: namespace, pause: lookAgain, coalesce: coalesce, changed: make(chan struct{}, 1)}
}

// BindingChanged makes Decisions look again.
func (d *Decisions) BindingChanged(context.Context, changes.Binding) { d.wake() }

// PlacementChanged makes Decisions look again.
func (d *Decisions) PlacementChanged(context.Context, changes.Placement) { d.wake() }

func (d *Decisions) wake() {
	select {
	case d.changed <- struct{}{}:
	default:
	}
}

// Lead publishes decisions until ctx ends.
func (d *Decisions) Lead(ctx context.Context) error {
	for {
		pause, changed := d.coalesce, d.changed
		if err := d.write(ctx); err != nil {
			d.tell(ctx, err)
			d.stored, pause, changed = nil, d.pause, nil
		} else {
			d.told = ""
		}
		if changed != nil && !received(ctx, changed) || !received(ctx, time.After(pause)) {
			return nil
		}
	}
}

// received waits for a value. It returns false if ctx ends before.
func received[T any](ctx context.Context, from <-chan T) bool {
	select {
	case <-ctx.Done():
		return false
	case <-from:
		return true
	}
}

func (d *Decisions) tell(ctx context.Context, err error) {
	if ctx.Err() != nil || d.told == err.Error() {
		return
	}
	d.told = err.Error()
	if meta.IsNoMatchError(err) {
		ctrl.LoggerFrom(ctx).Info("The hub has no definition of PlacementDecisions, and publishes none", "namespace", d.namespace)
		return
	}
	ctrl.LoggerFrom(ctx).Error(err, "Failed to publish the decisions of placements", "namespace", d.namespace)
}

// write brings the PlacementDecisions to what the bindings say.
func (d *Decisions) write(ctx context.Context) error {
	wanted, err := d.wanted(ctx)
	if err != nil {
		return err
	}
	if d.stored == nil {
		if err := d.list(ctx); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if err := d.store(ctx, wanted[name]); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.stored)) {
		if wanted[name] != nil {
			continue
		}
		if err := client.IgnoreNotFound(d.client.Delete(ctx, d.stored[name])); err != nil {
			return fmt.Errorf("deleting PlacementDecision %s/%s: %w", d.namespace, name, err)
		}
		delete(d.stored, name)
	}
	return nil
}

func (d *Decisions) wanted(ctx context.Context) (map[string]*unstructured.Unstructured, error) {
	placements, err := scopes.Placements(ctx, d.client, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, err
	}
	bindings, err := scopes.Bindings(ctx, d.client, "", client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, err
	}
	var names []profile.Placement
	for _, p := range placements {
		names = append(names, profile.Placement{Kind: kindOf(p), Namespace: p.GetNamespace(), Name: p.GetName()})
	}
	return profile.Decisions(d.namespace, names, bindings), nil
}

func kindOf(p hubv1.PlacementObject) string {
	if p.GetNamespace() == "" {
		return "ClusterPlacement"
	}
	return "Placement"
}

func (d *Decisions) list(ctx context.Context) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(profile.DecisionKind.GroupVersion().WithKind(profile.DecisionKind.Kind + "List"))
	if err := d.client.List(ctx, list, client.InNamespace(d.namespace), client.MatchingLabels{profile.ManagerLabel: profile.Manager}); err != nil {
		return fmt.Errorf("listing PlacementDecisions: %w", err)
	}
	d.stored = map[string]*unstructured.Unstructured{}
	for i := range list.Items {
		d.stored[list.Items[i].GetName()] = &list.Items[i]
	}
	return nil
}

// store writes a PlacementDecision, unless it is stored already.
func (d *Decisions) store(ctx context.Context, wanted *unstructured.Unstructured) error {
	stored := d.stored[wanted.GetName()]
	if stored == nil {
		if err := d.client.Create(ctx, wanted); err != nil {
			return fmt.Errorf("publishing the decision of %s: %w", wanted.GetAnnotations()[profile.PlacementAnnotation], err)
		}
		d.stored[wanted.GetName()] = wanted
		return nil
	}
	if profile.SameDecision(stored, wanted) {
		return nil
	}
	after := stored.DeepCopy()
	after.SetLabels(merged(stored.GetLabels(), wanted.GetLabels()))
	after.SetAnnotations(merged(stored.GetAnnotations(), wanted.GetAnnotations()))
	after.Object["decisions"], after.Object["schedulerName"] = wanted.Object["decisions"], wanted.Object["schedulerName"]
	if err := d.client.Patch(ctx, after, client.MergeFrom(stored)); err != nil {
		return fmt.Errorf("publishing the decision of %s: %w", wanted.GetAnnotations()[profile.PlacementAnnotation], err)
	}
	d.stored[wanted.GetName()] = after
	return nil
}

func merged(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, b)
	return out
}
