package dispatch

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/scopes"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/placement/decide"
)

// hold returns the template of the revision that the binding names for the cluster, and stores the override rules of
// this revision in r. If the binding names no revision, or a preview uses other policies, hold returns the newest
// template. If a part of the revision is missing or cannot be read, hold returns an outcome or an error, and never the
// newest state instead, unless the newest state has the content of the revision.
func (r *run) hold(ctx context.Context, newest *unstructured.Unstructured) (*unstructured.Unstructured, *member.Outcome, error) {
	if r.target.Revision == 0 || len(r.instead) > 0 {
		return newest, nil, nil
	}
	spec := r.binding.BindingSpec()
	revision := spec.Revision(r.target.Revision)
	if revision == nil || r.queue.opts.Revisions == nil {
		return nil, r.revisionMissing(fmt.Errorf("the binding does not list the revision: %w", decide.ErrRevisionMissing)), nil
	}
	rules, err := r.queue.opts.Revisions.Rules(ctx, revision.Policies)
	if errors.Is(err, decide.ErrRevisionMissing) {
		rules, err = r.newestRules(ctx, newest, revision.Policies, err)
	}
	template := newest
	if err == nil && !r.isNewest(newest, *revision) {
		template, err = r.queue.opts.Revisions.Template(ctx, revision.Template)
	}
	switch {
	case errors.Is(err, decide.ErrRevisionMissing):
		return nil, r.revisionMissing(err), nil
	case err != nil:
		return nil, nil, err
	}
	r.out.revised = rules
	return template, nil, nil
}

// isNewest reports whether the newest template has the content of the revision. If so, the stored template need not be
// read.
func (r *run) isNewest(newest *unstructured.Unstructured, revision hubv1.ObjectRevision) bool {
	of := r.queue.renderings.get(newest, newest.GroupVersionKind().Version)
	if of.err != nil {
		return false
	}
	digest := func(template *unstructured.Unstructured) string {
		return decide.TemplateDigest(r.queue.opts.Key, template, r.binding.BindingSpec().Division)
	}
	// An earlier version of the hub has sent all fields, and has computed the digest from all of them.
	return digest(of.prepared.Manifest()) == revision.Template || digest(of.prepared.Whole()) == revision.Template
}

// newestRules returns the newest override rules of the object, if they have the wanted digest. Otherwise it returns the
// error missing.
func (r *run) newestRules(ctx context.Context, newest *unstructured.Unstructured, digest string, missing error) (*decide.HeldRules, error) {
	policies, err := scopes.OverridePoliciesFor(ctx, r.queue.opts.Client, r.in.object.Namespace, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, err
	}
	settings := r.policy()
	inputs, err := decide.InputsOf(newest, r.in.object, policies, &settings, r.queue.opts.DeniedMetadataPrefixes)
	if err != nil {
		return nil, missing // a user has broken a policy, so that there are no newest rules
	}
	if _, rules := inputs.Digests(r.queue.opts.Key, nil); rules != digest {
		return nil, missing
	}
	return inputs.Rules.Held(), nil
}

// revisionMissing returns the outcome for a revision of which a part is not stored. The copy is tried again slowly, as
// the part may be stored again.
func (r *run) revisionMissing(err error) *member.Outcome {
	o := refused(hubv1.ReasonRevisionMissing, fmt.Errorf(
		"revision %d cannot be read (%w), so the copy stays as it is: change the object, or, during a rollout, run hansectl rollout promote PLACEMENT --full --reason TEXT",
		r.target.Revision, err))
	o.Retry = member.RetrySlowly
	return o
}
