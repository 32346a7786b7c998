package dispatch

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/overrides"
	"github.com/hanse-dev/hanse/replicas"
)

// render makes the manifest for this cluster. A policy that cannot be followed is an outcome: what runs stays as it is.
// An error means that the hub could not be read.
func (r *run) render(ctx context.Context, template *unstructured.Unstructured) (*unstructured.Unstructured, *member.Outcome, error) {
	policies, err := listPolicies(ctx, r.queue.opts.Client, r.object.Namespace)
	if err != nil {
		return nil, nil, err
	}
	matching, err := overrides.Matching(replaced(policies, r.instead), r.object)
	if err != nil {
		return nil, refused(hubv1.ReasonOverrideInvalid, err), nil
	}
	divided, decided := r.divided(template)
	if !decided {
		o := outcome(metav1.ConditionFalse, hubv1.ReasonNotDivided,
			"the replicas are to be divided and this cluster has no share yet, see the condition Scheduled; what runs there stays")
		return nil, &o, nil
	}
	r.rendering = r.queue.renderings.get(template)
	if err := r.rendering.err; err != nil {
		return nil, refused(reasonOf(err), err), nil
	}
	cluster := overrides.Cluster{Name: r.target.Name}
	if r.mcl != nil {
		cluster = overrides.ClusterOf(r.mcl)
	}
	result, err := r.rendering.prepared.Render(cluster, matching, divided)
	if err != nil {
		return nil, refused(reasonOf(err), err), nil
	}
	r.overridden = overridden{cluster: cluster, policies: matching, divided: divided, applied: result.Applied}
	return result.Manifest, nil, nil
}

// divided are the numbers that this cluster has its own share of, as the binding says. decided is false if it should have one and has none.
func (r *run) divided(template *unstructured.Unstructured) (numbers []overrides.Divided, decided bool) {
	values, decided := replicas.Values(r.binding.BindingSpec(), r.target.Name, template)
	for _, v := range values {
		numbers = append(numbers, overrides.Divided{Path: v.Path, Number: v.Number})
	}
	return numbers, decided
}

func reasonOf(err error) string {
	if divided := (*overrides.DividedError)(nil); errors.As(err, &divided) {
		return hubv1.ReasonPathOwnedByDivision
	}
	if conflict := (*overrides.ConflictError)(nil); errors.As(err, &conflict) {
		return hubv1.ReasonOverrideConflict
	}
	if errors.Is(err, overrides.ErrTooLarge) {
		return hubv1.ReasonTooLarge
	}
	if invalid := (*overrides.InvalidError)(nil); errors.As(err, &invalid) && invalid.Policy == (overrides.PolicyRef{}) {
		return hubv1.ReasonManifestRefused // the hub object itself is at fault
	}
	return hubv1.ReasonOverrideInvalid
}

func refused(reason string, err error) *member.Outcome {
	o := outcome(metav1.ConditionFalse, reason, "%s", err)
	return &o
}

// listPolicies lists the override policies that may speak of objects in a namespace, or of cluster-scoped objects.
func listPolicies(ctx context.Context, c client.Reader, namespace string) ([]hubv1.OverridePolicyObject, error) {
	if namespace == "" {
		return listClusterPolicies(ctx, c, nil)
	}
	return allPolicies(ctx, c, client.InNamespace(namespace))
}

// allPolicies lists the override policies of all namespaces, or of those that the options name, and those of the cluster.
func allPolicies(ctx context.Context, c client.Reader, options ...client.ListOption) ([]hubv1.OverridePolicyObject, error) {
	var namespaced hubv1.OverridePolicyList
	if err := c.List(ctx, &namespaced, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("listing override policies: %w", err)
	}
	var out []hubv1.OverridePolicyObject
	for i := range namespaced.Items {
		out = append(out, &namespaced.Items[i])
	}
	return listClusterPolicies(ctx, c, out)
}

func listClusterPolicies(ctx context.Context, c client.Reader, out []hubv1.OverridePolicyObject) ([]hubv1.OverridePolicyObject, error) {
	var cluster hubv1.ClusterOverridePolicyList
	if err := c.List(ctx, &cluster, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing cluster override policies: %w", err)
	}
	for i := range cluster.Items {
		out = append(out, &cluster.Items[i])
	}
	return out, nil
}
