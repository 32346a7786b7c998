package apply

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/source"
)

// sourceOf returns the mark on a copy of the hub's state from which the copy was written.
func sourceOf(live *unstructured.Unstructured) source.Mark {
	return source.ParseMark(live.GetAnnotations()[hubv1.SourceAnnotation])
}

// hubIsOlder returns the outcome for a copy that was written from a later state of the hub than the current one, for
// example if the hub was restored from a backup. It returns nil for other copies.
func hubIsOlder(hub source.State, live *unstructured.Unstructured, whose standing) *member.Outcome {
	newer := member.Newer{Mark: sourceOf(live), SameObject: whose == ours}
	if whose != ours && whose != oursOutdated || !hub.Newer(newer.Mark, newer.SameObject) {
		return nil
	}
	out := seen(refused(hubv1.ReasonHubIsOlder, member.RetrySlowly, "a later state of this hub wrote the copy, so the hub was restored from a backup: "+
		"to overwrite or remove it, set %s=%s on the hub object, or run hansectl accept-restore", hubv1.AcceptSourceAnnotation, newer.Mark), live)
	out.Newer = newer
	return &out
}

// keepSource keeps the mark of the source on a copy whose content does not change. Otherwise a new mark alone would
// cause a write.
func keepSource(in member.ApplyIntent, sent, live *unstructured.Unstructured) {
	mark := sourceOf(live)
	if mark == (source.Mark{}) || live.GetAnnotations()[hubv1.DigestAnnotation] != in.Digest || in.Source.Newer(mark, true) {
		return
	}
	annotations := sent.GetAnnotations()
	annotations[hubv1.SourceAnnotation] = mark.String()
	sent.SetAnnotations(annotations)
}
