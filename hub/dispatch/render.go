package dispatch

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/scopes"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/overrides"
	"github.com/hanse-dev/hanse/placement/replicas"
)

// render makes the manifest for this cluster at the given version of the object's kind. If an override policy cannot be
// applied, render returns no manifest but an outcome, so that the copy is not changed. An error means that a read of
// the hub failed.
func (r *run) render(ctx context.Context, template *unstructured.Unstructured, version string) (*unstructured.Unstructured, *member.Outcome, error) {
	template, refusal, err := r.hold(ctx, template)
	if err != nil || refusal != nil {
		return nil, refusal, err
	}
	matching, refusal, err := r.matching(ctx)
	if err != nil || refusal != nil {
		return nil, refusal, err
	}
	divided, decided := r.divided(template)
	if !decided {
		o := outcome(metav1.ConditionFalse, hubv1.ReasonNotDivided,
			"this cluster has no share of the divided replicas yet, see the condition Scheduled; the copy on it stays as it is")
		return nil, &o, nil
	}
	r.out.rendering = r.queue.renderings.get(template, version)
	if err := r.out.rendering.err; err != nil {
		return nil, refused(reasonOf(err), err), nil
	}
	r.out.prepared = r.leavingDefaults(ctx)
	cluster := overrides.Cluster{Name: r.target.Name}
	if r.in.mcl != nil {
		cluster = overrides.ClusterOf(r.in.mcl)
	}
	if r.binding.BindingSpec().ObjectRef.IsOfOperator() {
		cluster.Operators = nil
	}
	result, err := r.out.prepared.Render(cluster, matching, divided)
	if err != nil {
		return nil, refused(reasonOf(err), err), nil
	}
	r.out.overridden = overridden{cluster: cluster, policies: matching, divided: divided, applied: result.Applied}
	return r.withReload(ctx, result)
}

// matching returns the override policies that select the object. If the binding names a revision for this cluster,
// these are the stored policies of the revision, and else the newest ones.
func (r *run) matching(ctx context.Context) ([]hubv1.OverridePolicyObject, *member.Outcome, error) {
	if r.out.revised != nil {
		return r.out.revised.Objects, nil, nil
	}
	policies, err := scopes.OverridePoliciesFor(ctx, r.queue.opts.Client, r.in.object.Namespace, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, nil, err
	}
	matching, err := overrides.Matching(replaced(policies, r.instead), r.in.object)
	if err != nil {
		return nil, refused(hubv1.ReasonOverrideInvalid, err), nil
	}
	return matching, nil, nil
}

// divided returns the numbers that the division of replicas sets on this cluster: the replicas, or the completions and
// the parallelism of a Job. decided is false if the replicas are divided, but the binding has no share for the cluster
// yet.
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
		return hubv1.ReasonManifestRefused // the hub object itself is invalid
	}
	return hubv1.ReasonOverrideInvalid
}

func refused(reason string, err error) *member.Outcome {
	o := outcome(metav1.ConditionFalse, reason, "%s", err)
	return &o
}
