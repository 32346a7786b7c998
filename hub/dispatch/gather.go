package dispatch

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// gathered are the hub's objects that a run uses.
type gathered struct {
	object          hubv1.SelectableObject
	mcl             *hubv1.MemberCluster  // nil if it does not exist
	placement       hubv1.PlacementObject // nil if it does not exist
	namespaceLabels map[string]string
}

// gather reads the objects for a run from the cache. An object that does not exist stays nil. A failed read is an
// error.
func (r *run) gather(ctx context.Context) error {
	c := r.queue.opts.Client
	r.in.object.ObjectIdentity = hubv1.ObjectOf(r.binding)

	var mcl hubv1.MemberCluster
	switch found, err := get(ctx, c, types.NamespacedName{Name: r.target.Name}, &mcl); {
	case err != nil:
		return err
	case found:
		r.in.mcl = &mcl
	}
	if ref := r.binding.BindingSpec().PlacementRef; ref != nil {
		var p hubv1.PlacementObject = &hubv1.Placement{}
		if ref.Kind == "ClusterPlacement" {
			p = &hubv1.ClusterPlacement{}
		}
		switch found, err := get(ctx, c, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, p); {
		case err != nil:
			return err
		case found && p.GetUID() == ref.UID:
			r.in.placement = p
		}
	}
	if r.in.object.Namespace != "" {
		var ns corev1.Namespace
		if _, err := get(ctx, c, types.NamespacedName{Name: r.in.object.Namespace}, &ns); err != nil {
			return err
		}
		r.in.namespaceLabels = ns.Labels
		r.in.object.NamespaceLabels = ns.Labels
	}
	return nil
}

func get(ctx context.Context, c client.Reader, key types.NamespacedName, into client.Object) (bool, error) {
	err := c.Get(ctx, key, into, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading %T %s: %w", into, key, err)
	}
	return err == nil, nil
}

// policy returns the placement's settings for writes. If the placement was deleted, it returns the settings that the
// binding has recorded.
func (r *run) policy() hubv1.PlacementSpec {
	var spec hubv1.PlacementSpec
	if r.in.placement != nil {
		spec = *r.in.placement.PlacementSpec()
	} else {
		spec = hubv1.LastSettings(r.binding)
	}
	if r.out.revised != nil {
		spec.Apply.MemberOwnedFields, spec.Apply.UnknownFields = r.out.revised.MemberOwnedFields, r.out.revised.UnknownFields
	}
	return spec
}

// suspended reports whether the placement suspends writes to this cluster.
func (r *run) suspended() bool {
	suspend := r.policy().Suspend
	return suspend.SuspendsWrites(r.target.Name, r.in.mcl)
}
