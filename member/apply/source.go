package apply

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/source"
)

// sourceOf reads the annotation of a copy that tells from which state of the hub the copy was written.
func sourceOf(live *unstructured.Unstructured) source.Mark {
	return source.ParseMark(live.GetAnnotations()[hubv1.SourceAnnotation])
}

// hubIsOlder returns the outcome for a copy that was written from a later state of the hub than the current one. Such
// copies exist after the hub was restored from a backup. For any other copy, hubIsOlder returns nil.
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

// keepSource puts the source annotation of the live copy into the manifest if the content of the copy does not change.
// Otherwise a new value of this annotation alone would cause a write.
func keepSource(in member.ApplyIntent, sent, live *unstructured.Unstructured) {
	mark := sourceOf(live)
	if mark == (source.Mark{}) || live.GetAnnotations()[hubv1.DigestAnnotation] != in.Digest || in.Source.Newer(mark, true) {
		return
	}
	annotations := sent.GetAnnotations()
	annotations[hubv1.SourceAnnotation] = mark.String()
	sent.SetAnnotations(annotations)
}
