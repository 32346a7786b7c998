package apply

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/epoch"
)

// sourceOf reads the annotations of a copy that tell from which state of the hub the copy was written.
func sourceOf(live *unstructured.Unstructured) epoch.Mark {
	annotations := live.GetAnnotations()
	return epoch.ReadMark(annotations[hubv1.SourceAnnotation], annotations[hubv1.DecisionAnnotation])
}

// setSource sets the annotations for a mark.
func setSource(annotations map[string]string, m epoch.Mark) {
	for name, value := range map[string]string{hubv1.SourceAnnotation: m.String(), hubv1.DecisionAnnotation: m.Decision.String()} {
		if annotations[name] = value; value == "" {
			delete(annotations, name)
		}
	}
}

// hubIsOlder returns the outcome for a copy that was written from a later state of the hub than the current one. Such
// copies exist after the hub was restored from a backup. For any other copy, hubIsOlder returns nil.
func hubIsOlder(hub epoch.State, live *unstructured.Unstructured, whose standing) *member.Outcome {
	newer := member.Newer{Mark: sourceOf(live), SameObject: whose == ours}
	if whose != ours && whose != oursOutdated || !hub.Newer(newer.Mark, newer.SameObject) {
		return nil
	}
	out := seen(refused(hubv1.ReasonHubIsOlder, member.RetrySlowly, "a later state of this hub wrote the copy, so the hub was restored from a backup: "+
		"to overwrite or remove it, set %s=%s on the hub object, or run hansectl accept-restore", hubv1.AcceptSourceAnnotation, newer.Mark), live)
	out.Newer = newer
	return &out
}

// keepSource puts the mark of the live copy into the manifest if the content of the copy does not change. Otherwise a
// new mark alone would cause a write.
func keepSource(in member.ApplyIntent, sent, live *unstructured.Unstructured) {
	mark := sourceOf(live)
	if mark == (epoch.Mark{}) || live.GetAnnotations()[hubv1.DigestAnnotation] != in.Digest || in.Source.Newer(mark, true) {
		return
	}
	annotations := sent.GetAnnotations()
	setSource(annotations, mark)
	sent.SetAnnotations(annotations)
}
