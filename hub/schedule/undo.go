package schedule

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/decide"
	"github.com/hanse-dev/hanse/member/health"
	"github.com/hanse-dev/hanse/rollout"
)

// undoBlocked returns why the clusters cannot return to the revision of a definition that its annotation names: they
// store objects at a version that this revision lacks. It is empty if they can, or if no undo is requested.
func (s *Scheduler) undoBlocked(ctx context.Context, in decide.Input) string {
	earlier := requestedUndo(in)
	if earlier == nil {
		return ""
	}
	template, err := s.Revisions.Template(ctx, earlier.Template)
	if err == nil {
		var stored map[string][]string
		if stored, err = health.StoredVersions(in.Binding.BindingStatus().Clusters); err == nil {
			return missingVersion(earlier.Number, template, stored)
		}
	}
	return fmt.Sprintf("cannot compare revision %d with the versions that clusters store: %v", earlier.Number, err)
}

// requestedUndo returns the revision of a definition to which a user asks the clusters to return; nil if there is none,
// or if the rollout follows the request already.
func requestedUndo(in decide.Input) *hubv1.ObjectRevision {
	if !decide.NeverBack(in.Object.ID) || in.Object.Template == nil || in.Binding == nil || in.Spec().Rollout == nil {
		return nil
	}
	value := in.Object.Template.GetAnnotations()[hubv1.RolloutUndoAnnotation]
	number, ok := rollout.UndoNumber(value)
	if !ok || value == in.Spec().Rollout.Undone {
		return nil
	}
	return in.Spec().Revision(number)
}

// missingVersion names the first version, by name, that clusters store and that a definition lacks.
func missingVersion(revision int64, definition *unstructured.Unstructured, stored map[string][]string) string {
	has := map[string]bool{}
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, v := range versions {
		if version, ok := v.(map[string]any); ok {
			name, _ := version["name"].(string)
			has[name] = true
		}
	}
	missing := map[string][]string{} // clusters by version
	for _, cluster := range slices.Sorted(maps.Keys(stored)) {
		for _, version := range stored[cluster] {
			if !has[version] {
				missing[version] = append(missing[version], cluster)
			}
		}
	}
	if len(missing) == 0 {
		return ""
	}
	version := slices.Min(slices.Collect(maps.Keys(missing)))
	clusters := missing[version]
	const named = 3
	more := ""
	if n := len(clusters) - named; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("%s: revision %d of the definition lacks version %s, at which these clusters store objects: %s%s; the clusters keep their revision",
		hubv1.ReasonUndoBlocked, revision, version, strings.Join(clusters[:min(len(clusters), named)], ", "), more)
}
