package chaos

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// snapshot reads the hub.
func (r *run) snapshot(ctx context.Context) (*Snapshot, error) {
	s := &Snapshot{Clusters: map[string]map[string]string{}, Objects: map[Key]*unstructured.Unstructured{}, Held: map[string]map[Key]bool{}}
	var clusters hubv1.MemberClusterList
	var placements hubv1.PlacementList
	var policies hubv1.OverridePolicyList
	var bundles hubv1.BundleList
	var operators hubv1.FederatedOperatorList
	for _, list := range []client.ObjectList{&clusters, &placements, &policies, &bundles, &operators} {
		if err := r.users.admin.List(ctx, list); err != nil {
			return nil, err
		}
	}
	for _, c := range clusters.Items {
		s.Clusters[c.Name] = map[string]string{regionLabel: regionOf(c.Name)}
		s.Held[c.Name] = map[Key]bool{}
		for key, value := range c.Labels {
			s.Clusters[c.Name][key] = value
		}
	}
	s.Placements, s.Policies, s.Bundles, s.Operators = placements.Items, policies.Items, bundles.Items, operators.Items
	err := eachObject(ctx, r.users.admin, nil, func(k Key, o *unstructured.Unstructured) {
		if o.GetDeletionTimestamp() == nil {
			s.Objects[k] = o
		}
	})
	if err != nil {
		return nil, err
	}
	bindings, err := r.bindings(ctx)
	if err != nil {
		return nil, err
	}
	for _, b := range bindings {
		for _, t := range b.Spec.Clusters {
			if t.Removal != nil && s.Held[t.Name] != nil {
				s.Held[t.Name][boundKey(&b)] = true
			}
		}
	}
	return s, nil
}

// boundKey returns the key of the object to which a binding belongs.
func boundKey(b *hubv1.ResourceBinding) Key {
	return Key{Kind: b.Spec.ObjectRef.Kind, Namespace: b.Namespace, Name: b.Spec.ObjectRef.Name}
}

// bindingOf returns the name of the binding of an object.
func bindingOf(k Key) client.ObjectKey {
	id := hubv1.ObjectIdentity{Group: Kinds[k.Kind].Group, Kind: k.Kind, Namespace: k.Namespace, Name: k.Name}
	return client.ObjectKey{Namespace: k.Namespace, Name: id.BindingName()}
}

// bindings returns the bindings of the namespaces of the run.
func (r *run) bindings(ctx context.Context) ([]hubv1.ResourceBinding, error) {
	var list hubv1.ResourceBindingList
	if err := r.users.admin.List(ctx, &list); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(b hubv1.ResourceBinding) bool { return !slices.Contains(Namespaces, b.Namespace) }), nil
}

// eachObject visits the objects of the kinds and namespaces of the run on a cluster.
func eachObject(ctx context.Context, c client.Client, options []client.ListOption, visit func(Key, *unstructured.Unstructured)) error {
	for _, gvk := range Kinds {
		var list unstructured.UnstructuredList
		list.SetGroupVersionKind(gvk)
		if err := c.List(ctx, &list, options...); err != nil {
			return fmt.Errorf("listing %s: %w", gvk.Kind, err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			if slices.Contains(Namespaces, o.GetNamespace()) {
				visit(Key{Kind: gvk.Kind, Namespace: o.GetNamespace(), Name: o.GetName()}, o)
			}
		}
	}
	return nil
}

// copiesOn returns the objects on a member that have the label of a hub.
func (r *run) copiesOn(ctx context.Context, member string) (map[Key]Copy, error) {
	out := map[Key]Copy{}
	err := eachObject(ctx, r.site.members[member], []client.ListOption{client.HasLabels{hubv1.HubLabel}}, func(k Key, o *unstructured.Unstructured) { out[k] = copyOf(o) })
	if err != nil {
		return nil, fmt.Errorf("reading the copies on %s: %w", member, err)
	}
	return out, nil
}

// unsettled returns what the bindings say that is not done. If approved is false, rollouts may wait for an approval.
func unsettled(bindings []hubv1.ResourceBinding, approved bool) []string {
	var out []string
	for _, b := range bindings {
		add := func(format string, args ...any) {
			out = append(out, fmt.Sprintf("binding of %s: %s", boundKey(&b), fmt.Sprintf(format, args...)))
		}
		if b.DeletionTimestamp != nil {
			add("is being deleted")
		}
		if b.Status.ObservedGeneration != b.Generation {
			add("generation %d is not observed", b.Generation)
		}
		for _, t := range b.Spec.Clusters {
			row := b.Status.Row(t.Name)
			switch {
			case t.State != hubv1.TargetPresent:
				add("%s is %s", t.Name, t.State)
			case row == nil:
				add("%s has no row", t.Name)
			case row.Applied != metav1.ConditionTrue:
				add("%s is Applied=%s %s: %.200s", t.Name, row.Applied, row.Reason, row.Message)
			}
		}
		waits := []hubv1.RolloutPhase{hubv1.RolloutWaitingForApproval, hubv1.RolloutWaitingForOthers}
		if ro := b.Spec.Rollout; ro != nil && ro.Phase != hubv1.RolloutComplete && (approved || !slices.Contains(waits, ro.Phase)) {
			add("rollout is %s: %.200s", ro.Phase, ro.Message)
		}
	}
	slices.Sort(out)
	return out
}
