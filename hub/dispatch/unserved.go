package dispatch

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/overrides"
)

// notServed returns the outcome for a manifest with fields that the cluster does not serve. The copy is not changed.
// The write is tried again when the cluster's schema changes. For built-in kinds, no event shows such a change. The
// write is therefore also tried again after a long pause.
func (r *run) notServed(ctx context.Context, manifest *unstructured.Unstructured, paths []string) member.Outcome {
	lacks := func(m *unstructured.Unstructured) bool {
		_, unserved := r.cluster.Fit(ctx, m)
		return slices.Contains(unserved, paths[0])
	}
	return lacking(manifest, paths, r.setter(ctx, lacks))
}

// setter returns the override rule that makes the manifest wrong. It returns nil if the manifest is wrong without any
// rule.
func (r *run) setter(ctx context.Context, wrong func(*unstructured.Unstructured) bool) *overrides.RuleRef {
	if len(r.out.overridden.applied) == 0 {
		return nil
	}
	if without, err := r.renderedWith(nil); err != nil || wrong(without) {
		return nil
	}
	culprit := r.culprit(ctx, wrong)
	return &culprit
}

// lacking returns the outcome for a manifest with paths that the cluster does not serve. setter is the rule that sets
// the first of these paths, or nil if no rule sets it.
func lacking(manifest *unstructured.Unstructured, paths []string, setter *overrides.RuleRef) member.Outcome {
	hint := "update its definition there, override the fields, or set spec.apply.unknownFields to Drop"
	if setter != nil {
		hint = fmt.Sprintf("%s sets %s: update the definition there, select other clusters in the rule, or set spec.apply.unknownFields to Drop",
			setter, firstOf(paths[:1]))
	}
	o := outcome(metav1.ConditionFalse, hubv1.ReasonFieldsNotServed, "the cluster's %s has no %s: %s", manifest.GetKind(), firstOf(paths), hint)
	o.Retry = member.RetrySlowly
	return o
}

// atOtherVersions returns the outcome with the reason VersionNotServed instead of KindNotServed, if the cluster serves
// the kind at other versions. Its copy then still exists, and the remedy is another one.
func atOtherVersions(o member.Outcome, sent schema.GroupVersionKind, mcl *hubv1.MemberCluster) member.Outcome {
	if o.Reason != hubv1.ReasonKindNotServed || mcl == nil {
		return o
	}
	versions := mcl.ServedVersions(sent.GroupKind())
	if len(versions) == 0 || slices.Contains(versions, sent.Version) {
		return o
	}
	o.Reason = hubv1.ReasonVersionNotServed
	o.Message = fmt.Sprintf("the cluster serves %s at %s, but the hub can send it only at %s: serve this version on the cluster too, or update the definition and the object on the hub",
		sent.Kind, strings.Join(versions, ", "), sent.Version)
	return o
}

// dropped adds the paths of the fields that were not written to the message of the outcome.
func dropped(o member.Outcome, paths []string) member.Outcome {
	switch text := "sent without fields that the cluster's definition lacks: " + firstOf(paths); {
	case len(paths) == 0:
	case o.Reason == hubv1.ReasonApplied || o.Reason == hubv1.ReasonChangedByCluster || notes[o.Reason]:
		o.Reason, o.Message = hubv1.ReasonFieldsDropped, text
	case o.Reason == hubv1.ReasonInSync || o.Reason == hubv1.ReasonDiffers:
		o.Message += "; " + text
	}
	return o
}

// maxPathLength is the maximum length of a path in a row's message.
const maxPathLength = 50

// firstOf returns up to three of the paths as text.
func firstOf(paths []string) string {
	var named []string
	for _, path := range paths[:min(len(paths), 3)] {
		if r := []rune(path); len(r) > maxPathLength {
			path = "…" + string(r[len(r)-maxPathLength+1:])
		}
		named = append(named, path)
	}
	text := strings.Join(named, ", ")
	if more := len(paths) - len(named); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
