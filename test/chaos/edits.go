package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// edit carries out a step of a user. It records the causes of deletions first, because a request may have an effect
// although its answer is an error.
func (r *run) edit(ctx context.Context, s Step) error {
	switch s.Action {
	case Apply:
		return r.apply(ctx, s)
	case Delete:
		return r.delete(ctx, s.Key)
	case Recreate:
		return errors.Join(r.delete(ctx, s.Key), r.apply(ctx, s))
	case Override:
		r.expected.regions[regionOf(s.Target)] = s.Value
		return r.applyAs(ctx, everywhere, r.policy())
	case Bundle:
		for i := range bundleObjects {
			if k := bundleKey(i); !slices.Contains(s.Keys, k) {
				r.expected.causes.Add(time.Now(), "", k, s.String())
			}
		}
		return r.applyAs(ctx, bundled, bundleOf(s.Keys, s.Value))
	case Operate:
		o, err := operatorOf(r.site.gadgetCRD, s.Value)
		if err != nil {
			return err
		}
		return r.users.admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("fleet"), client.ForceOwnership)
	case Label:
		key, value, _ := strings.Cut(s.Text, "=")
		if key == tierLabel && value != "prod" {
			r.expected.causes.Add(time.Now(), s.Target, Key{Namespace: selected}, s.String())
		}
		return r.patchMember(ctx, s.Target, map[string]any{"metadata": map[string]any{"labels": map[string]any{key: value}}})
	case Cordon:
		return r.patchMember(ctx, s.Target, map[string]any{"spec": map[string]any{"unschedulable": true}})
	case Approve:
		return r.approve(ctx)
	case Confirm:
		return r.confirm(ctx)
	}
	return fmt.Errorf("no user does %s", s)
}

func (r *run) apply(ctx context.Context, s Step) error {
	if s.Key.Namespace == referring && s.Key.Kind == WidgetKind.Kind {
		r.expected.causes.Add(time.Now(), "", Key{Kind: "ConfigMap", Namespace: referring}, s.String()) // the Widget may name another ConfigMap
	}
	if s.Key.Namespace == staged {
		r.expected.history.Write(s.Key, s.Value, time.Now(), !r.hasRevision(ctx, s.Key))
	}
	return r.applyAs(ctx, s.Key.Namespace, object(s.Key, s.Value, s.Text))
}

func (r *run) delete(ctx context.Context, k Key) error {
	r.expected.causes.Add(time.Now(), "", k, "delete "+k.String())
	if k.Namespace == referring && k.Kind == WidgetKind.Kind {
		r.expected.causes.Add(time.Now(), "", Key{Kind: "ConfigMap", Namespace: referring}, "delete "+k.String())
	}
	return client.IgnoreNotFound(r.users.teams[k.Namespace].Delete(ctx, object(k, 0, "")))
}

// hasRevision reports whether the hub surely has a revision of this object, and not only of an earlier object of the
// same name.
func (r *run) hasRevision(ctx context.Context, k Key) bool {
	var b hubv1.ResourceBinding
	o := object(k, 0, "")
	if r.users.admin.Get(ctx, client.ObjectKeyFromObject(o), o) != nil || r.users.admin.Get(ctx, bindingOf(k), &b) != nil {
		return false
	}
	return o.GetDeletionTimestamp() == nil && b.Spec.ObjectRef.UID == o.GetUID() && b.Spec.Rollout != nil
}

// applyAs applies an object as the team of a namespace.
func (r *run) applyAs(ctx context.Context, namespace string, o *unstructured.Unstructured) error {
	return r.users.teams[namespace].Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("team"), client.ForceOwnership)
}

// policy returns the OverridePolicy of the namespace everywhere: one rule for each region that has a value.
func (r *run) policy() *unstructured.Unstructured {
	spec := hubv1.OverridePolicySpec{ResourceSelectors: []hubv1.ResourceSelector{{APIGroup: WidgetKind.Group, Kind: WidgetKind.Kind}}}
	for _, m := range Members {
		region := regionOf(m)
		if value, ok := r.expected.regions[region]; ok {
			spec.Rules = append(spec.Rules, hubv1.OverrideRule{
				Name:       region,
				Clusters:   &hubv1.RuleClusters{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{regionLabel: region}}},
				MergePatch: &apiextensionsv1.JSON{Raw: []byte(policyPatch(value))},
			})
		}
	}
	return manifest("OverridePolicy", everywhere, spec)
}

// bundleOf returns the Bundle with these objects, whose content is a number.
func bundleOf(keys []Key, value int64) *unstructured.Unstructured {
	spec := hubv1.BundleSpec{ServiceAccountName: bundleAccount}
	for _, k := range keys {
		raw, _ := json.Marshal(object(k, value, "").Object) // maps of texts and numbers have no error
		spec.Manifests = append(spec.Manifests, runtime.RawExtension{Raw: raw})
	}
	return manifest(hubv1.BundleKind, bundled, spec)
}

// operatorOf returns the FederatedOperator: a definition, and a ConfigMap whose content is a number.
func operatorOf(definition []byte, value int64) (*unstructured.Unstructured, error) {
	crd, err := yaml.YAMLToJSON(definition)
	if err != nil {
		return nil, fmt.Errorf("reading the definition of the operator: %w", err)
	}
	settings, _ := json.Marshal(object(settingsKey, value, "").Object) // as above
	o := manifest(hubv1.FederatedOperatorKind, "", hubv1.BundleSpec{
		ServiceAccountName: bundleAccount, Manifests: []runtime.RawExtension{{Raw: crd}, {Raw: settings}},
	})
	o.SetName(operated)
	return o, nil
}

// manifest returns an object of Hanse. Its name is that of its namespace.
func manifest(kind, namespace string, spec any) *unstructured.Unstructured {
	raw, _ := json.Marshal(map[string]any{"spec": spec}) // API types have no error
	o := &unstructured.Unstructured{}
	_ = json.Unmarshal(raw, &o.Object)
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: hubv1.GroupVersion.Group, Version: hubv1.GroupVersion.Version, Kind: kind})
	o.SetNamespace(namespace)
	o.SetName(namespace)
	return o
}

// patchMember applies a merge patch to a MemberCluster, as the fleet's admin.
func (r *run) patchMember(ctx context.Context, member string, patch map[string]any) error {
	raw, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	return r.users.admin.Patch(ctx, &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: member}}, client.RawPatch(types.MergePatchType, raw))
}

// approve approves the manual wave for all changes until now. The time of an approval has whole seconds, as the times
// of changes have, so it also holds for changes later in the same second.
func (r *run) approve(ctx context.Context) error {
	now := time.Now().UTC().Truncate(time.Second)
	r.expected.history.Approve(now.Add(time.Second))
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, hubv1.RolloutApproveAnnotation, manualWave+"@"+now.Format(time.RFC3339))
	return r.users.lead.Patch(ctx, &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: staged, Name: staged}}, client.RawPatch(types.MergePatchType, patch))
}

// confirm confirms the held removals of the namespace guarded, if there are any.
func (r *run) confirm(ctx context.Context) error {
	p := &hubv1.Placement{}
	if err := r.users.admin.Get(ctx, client.ObjectKey{Namespace: guarded, Name: guarded}, p); err != nil {
		return err
	}
	held := p.Status.RemovalHeld
	if held == nil {
		return nil
	}
	for _, m := range held.Clusters {
		r.expected.causes.Add(time.Now(), m, Key{Namespace: guarded}, "confirm "+held.ID)
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, hubv1.ConfirmRemovalAnnotation, held.ID)
	return r.users.admin.Patch(ctx, p, client.RawPatch(types.MergePatchType, patch))
}
