package apply

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/source"
)

// sourceOf returns the mark of the hub's state that wrote the copy.
func sourceOf(live *unstructured.Unstructured) source.Mark {
	return source.ParseMark(live.GetAnnotations()[hubv1.SourceAnnotation])
}

// hubIsOlder is the outcome for a copy that a later state of the hub wrote, such as before a restore; nil for other
// copies.
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

// keepSource keeps the mark of a copy if the content does not change, because the mark alone causes no write.
func keepSource(in member.ApplyIntent, sent, live *unstructured.Unstructured) {
	mark := sourceOf(live)
	if mark == (source.Mark{}) || live.GetAnnotations()[hubv1.DigestAnnotation] != in.Digest || in.Source.Newer(mark, true) {
		return
	}
	annotations := sent.GetAnnotations()
	annotations[hubv1.SourceAnnotation] = mark.String()
	sent.SetAnnotations(annotations)
}
