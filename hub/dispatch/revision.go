package dispatch

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/decide"
	"github.com/hanse-dev/hanse/member"
)

// hold returns the template of the revision that the binding names for the cluster, and stores the override rules of
// this revision in r. If the binding names no revision, or a preview uses other policies, hold returns the newest
// template. If the revision is missing or cannot be read, hold returns an outcome or an error, and never the newest
// template instead.
func (r *run) hold(ctx context.Context, newest *unstructured.Unstructured) (*unstructured.Unstructured, *member.Outcome, error) {
	if r.target.Revision == 0 || len(r.instead) > 0 {
		return newest, nil, nil
	}
	spec := r.binding.BindingSpec()
	revision := spec.Revision(r.target.Revision)
	if revision == nil || r.queue.opts.Revisions == nil {
		return nil, r.revisionMissing(fmt.Errorf("the binding does not list it: %w", decide.ErrRevisionMissing)), nil
	}
	rules, err := r.queue.opts.Revisions.Rules(ctx, revision.Policies)
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
	r.revised = rules
	return template, nil, nil
}

// isNewest reports whether the newest template has the content of the revision. If so, the stored template need not be
// read.
func (r *run) isNewest(newest *unstructured.Unstructured, revision hubv1.ObjectRevision) bool {
	prepared := r.queue.renderings.get(newest, newest.GroupVersionKind().Version)
	return prepared.err == nil &&
		decide.TemplateDigest(r.queue.opts.Key, prepared.prepared.Manifest(), r.binding.BindingSpec().Division) == revision.Template
}

func (r *run) revisionMissing(err error) *member.Outcome {
	return refused(hubv1.ReasonRevisionMissing, fmt.Errorf(
		"revision %d cannot be read, so the copy stays as it is; hansectl rollout promote sends the newest one: %w", r.target.Revision, err))
}
