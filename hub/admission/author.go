package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// AuthorPath is the path of the webhook that records authors, without its random part.
const AuthorPath = "/record-authors"

// maxAuthorLength is the length of the longest user name that is recorded, in bytes. A longer name is not cut, because
// another user could have a name with the same beginning.
const maxAuthorLength = 1024

// rolloutAnnotations are the annotations that control rollouts. The chart names them in the match conditions of the
// webhook, and in the admission policy that protects the recorded author.
var rolloutAnnotations = []string{
	hubv1.RolloutApproveAnnotation, hubv1.RolloutPauseAnnotation, hubv1.RolloutSkipAnnotation, hubv1.RolloutPromoteAnnotation,
	hubv1.RolloutUndoAnnotation,
}

// Recorder records in hubv1.ChangedByAnnotation who changed an object. It reads only the request, so it takes no slot
// of the reviews, and a slow review does not delay it.
type Recorder struct{}

var _ admission.Handler = Recorder{}

// authored is the part of an object that decides about its author.
type authored struct {
	Metadata struct {
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec any `json:"spec"`
}

// Handle implements admission.Handler.
func (Recorder) Handle(_ context.Context, req admission.Request) admission.Response {
	var after authored
	if err := utiljson.Unmarshal(req.Object.Raw, &after); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the %s: %w", req.Kind.Kind, err))
	}
	var before *authored
	if req.Operation == admissionv1.Update {
		before = &authored{}
		if err := utiljson.Unmarshal(req.OldObject.Raw, before); err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the %s before the change: %w", req.Kind.Kind, err))
		}
	}
	answer := admission.Allowed("")
	steps := annotate(after.Metadata.Annotations, changedBy(before, &after, req.UserInfo.Username))
	if len(steps) == 0 {
		return answer
	}
	patch, err := json.Marshal(steps)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("writing the patch of the %s: %w", req.Kind.Kind, err))
	}
	answer.Patch, answer.PatchType = patch, ptr.To(admissionv1.PatchTypeJSONPatch)
	return answer
}

// changedBy returns the name to record for an object that the user creates (before is nil) or updates. The name is
// empty if the author is not known. The annotation in the request has no influence on it.
func changedBy(before, after *authored, user string) string {
	switch {
	case before != nil && !differs(before, after):
		return before.Metadata.Annotations[hubv1.ChangedByAnnotation]
	case len(user) > maxAuthorLength:
		return ""
	}
	return user
}

// differs reports whether the update changes the spec or an annotation that controls rollouts.
func differs(before, after *authored) bool {
	return !reflect.DeepEqual(before.Spec, after.Spec) || slices.ContainsFunc(rolloutAnnotations, func(name string) bool {
		was, had := before.Metadata.Annotations[name]
		is, has := after.Metadata.Annotations[name]
		return had != has || was != is
	})
}

// step is an operation of a JSON patch.
type step struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// annotate returns the JSON patch that records the author. It returns nothing if the annotation has this value.
func annotate(annotations map[string]string, author string) []step {
	const path = "/metadata/annotations"
	at := path + "/" + strings.ReplaceAll(hubv1.ChangedByAnnotation, "/", "~1")
	current, found := annotations[hubv1.ChangedByAnnotation]
	switch {
	case current == author && found == (author != ""):
		return nil
	case author == "":
		return []step{{Op: "remove", Path: at}}
	case annotations == nil:
		return []step{{Op: "add", Path: path, Value: map[string]string{hubv1.ChangedByAnnotation: author}}}
	}
	return []step{{Op: "add", Path: at, Value: author}}
}
