package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/answer"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/content"
)

// report returns the outcome that Apply would return, but writes nothing. The outcome asks for a retry after some time,
// because the hub does not watch objects that it does not manage.
func (a *Applier) report(ctx context.Context, t target, in member.ApplyIntent, manifest *unstructured.Unstructured) member.Outcome {
	if t.secret() {
		return a.reportSecret(ctx, t, in)
	}
	for range 2 { // the second time if the object changed between the read and the dry run
		live, err := t.read(ctx)
		switch {
		case isGone(err):
			return missing(t)
		case err != nil:
			return classify(err, t)
		}
		whose := a.standing(live, in.Owner, in.OwnerUID, in.ConfirmedUID)
		if out := a.othersOrDeleting(t, live, whose); out != nil {
			return seen(*out, live)
		}
		sent, scaled := leave(in, manifest, live)
		after, err := a.write(ctx, t, keeping(in, sent, live), metav1.ApplyOptions{Force: true, DryRun: []string{metav1.DryRunAll}})
		switch {
		case isChanged(err) || isGone(err):
			continue
		case err != nil:
			return classify(err, t)
		}
		changes, covers := content.Changes(live, after), true
		if whose == unmanaged && in.Adoption == hubv1.AdoptionIfNoDiff && len(changes) == 0 {
			out, again, same := a.replaces(ctx, t, in, sent, live, scaled)
			if again {
				continue
			}
			if !same && out.Reason != hubv1.ReasonAlreadyExists {
				return out
			}
			covers = same
		}
		return seen(reported(changes, covers, wasOrphaned(in, live), whose, in, scaled, changed(t, in, sent, after)), live)
	}
	return refused(hubv1.ReasonPending, member.RetrySoon, "another client keeps changing %s on the cluster: stop this client, and the hub compares the copy", t)
}

// reportSecret does the same as report for a Secret. It compares no values, because the result would reveal whether the
// hub's values equal the cluster's values. Instead it reports a difference if the copy lacks the recorded content hash,
// or if the manifest has changed since the last write.
func (a *Applier) reportSecret(ctx context.Context, t target, in member.ApplyIntent) member.Outcome {
	live, err := t.read(ctx)
	switch {
	case isGone(err):
		return missing(t)
	case err != nil:
		return classify(err, t)
	}
	whose := a.standing(live, in.Owner, in.OwnerUID, in.ConfirmedUID)
	if out := a.othersOrDeleting(t, live, whose); out != nil {
		return seen(*out, live)
	}
	var out member.Outcome
	switch {
	case whose == unmanaged:
		out = refused(hubv1.ReasonDiffers, member.RetrySlowly, "%s exists on the cluster and is not Hanse's, and the values of a Secret are not compared", t)
	case whose == ours && a.synced(in, live):
		out = applied(hubv1.ReasonInSync, "apply.mode Enforce would change no value")
		out.Retry = member.RetrySlowly
	default:
		out = refused(hubv1.ReasonDiffers, member.RetrySlowly,
			"apply.mode Enforce would write the Secret: the hub object or the copy has changed since it was last confirmed; values are not compared")
	}
	return seen(out, live)
}

func missing(t target) member.Outcome {
	return refused(hubv1.ReasonMissing, member.RetrySlowly, "%s is not on the cluster, and apply.mode ReportOnly creates no copy", t)
}

// reported returns the outcome of report. changes are the paths that a write would change. covers is false if the
// object is unmanaged and has fields that the manifest lacks. back is true for a copy that the hub orphaned on this
// cluster before. altered names the values that the cluster would store otherwise.
func reported(changes []string, covers, back bool, whose standing, in member.ApplyIntent, scaled []string, altered string) member.Outcome {
	also := ""
	switch {
	case whose == unmanaged && (in.Adoption == hubv1.AdoptionAlways || back),
		whose == unmanaged && in.Adoption == hubv1.AdoptionIfNoDiff && len(changes) == 0 && covers:
		also = "; the object is not Hanse's yet"
	case whose == unmanaged:
		also = "; the object is not Hanse's, and apply.adoption does not take it over"
	}
	if len(scaled) > 0 {
		also += "; " + scaledText(scaled)
	}
	if altered != "" {
		also += "; the cluster would store " + altered
	}
	out := applied(hubv1.ReasonInSync, "apply.mode Enforce would change no value%s", also)
	switch {
	case len(changes) > 0:
		out = refused(hubv1.ReasonDiffers, member.RetrySlowly, "apply.mode Enforce would change %s%s", first(changes), also)
	case altered != "":
		out = refused(hubv1.ReasonDiffers, member.RetrySlowly, "apply.mode Enforce would change no value%s", also)
	}
	out.Retry = member.RetrySlowly
	return out
}

// replaces reports whether the object would stay unchanged if the manifest replaced its content. It asks by a dry run
// on the member. Only the member's API server can tell, because it adds the defaults. Labels and annotations of other
// managers, and fields that are left to the member, are not compared.
func (a *Applier) replaces(ctx context.Context, t target, in member.ApplyIntent, manifest, live *unstructured.Unstructured, scaled []string,
) (out member.Outcome, again, same bool) {
	patch, err := replacement(manifest, live, slices.Concat(scaled, in.MemberOwned, leftOut(in)))
	if err != nil {
		return refused(hubv1.ReasonManifestRefused, member.RetryNever, "%s cannot be compared: %v", t, err), false, false
	}
	ctx, cancel := context.WithTimeout(ctx, answer.Timeout)
	defer cancel()
	after, err := t.objects.Patch(ctx, t.key.Name, types.JSONPatchType, patch, metav1.PatchOptions{
		DryRun: []string{metav1.DryRunAll}, FieldManager: hubv1.FieldManager, FieldValidation: metav1.FieldValidationIgnore,
	})
	const remedy = "make them equal, run hansectl adopt --overwrite, or set spec.apply.adoption to Always"
	switch {
	case isChanged(err) || isGone(err):
		return member.Outcome{}, true, false
	case apierrors.IsInvalid(err):
		return seen(refused(hubv1.ReasonAlreadyExists, member.RetrySlowly,
			"%s exists on the cluster, is not Hanse's, and cannot be replaced by the rendered object: %s: %s", t, t.invalid(statusOf(err)), remedy), live), false, false
	case err != nil:
		return classify(err, t), false, false
	}
	changes := content.Changes(live, after)
	if len(changes) == 0 {
		return member.Outcome{}, false, true
	}
	return seen(refused(hubv1.ReasonAlreadyExists, member.RetrySlowly,
		"%s exists on the cluster, is not Hanse's, and differs from the rendered object in %s: %s", t, first(changes), remedy), live), false, false
}

// replacement returns the JSON patch that replaces the content of the live object with the manifest, at the version
// that was read. left are the JSON pointers of fields that keep the member's value. The request is a patch because it
// needs the same right as an apply.
func replacement(manifest, live *unstructured.Unstructured, left []string) ([]byte, error) {
	wanted := manifest.DeepCopy()
	for _, pointer := range left {
		steps := hubv1.PointerKeys(pointer)
		if value, there, err := unstructured.NestedFieldCopy(live.Object, steps...); err == nil && there {
			if err := unstructured.SetNestedField(wanted.Object, value, steps...); err != nil {
				return nil, err
			}
		}
	}
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value,omitempty"`
	}
	put := func(path string, value any) operation { return operation{Op: "add", Path: path, Value: value} }
	ops := []operation{
		put("/metadata/resourceVersion", live.GetResourceVersion()),
		put("/metadata/labels", merged(live.GetLabels(), manifest.GetLabels())),
		put("/metadata/annotations", merged(live.GetAnnotations(), manifest.GetAnnotations())),
	}
	for _, name := range slices.Sorted(maps.Keys(live.Object)) {
		if _, stays := wanted.Object[name]; !stays && !identifying[name] {
			ops = append(ops, operation{Op: "remove", Path: pointerTo(name)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wanted.Object)) {
		if value := wanted.Object[name]; value != nil && !identifying[name] {
			ops = append(ops, put(pointerTo(name), value))
		}
	}
	return json.Marshal(ops)
}

// leftOut returns JSON pointers to the fields that the manifest leaves out because the hub's API server has filled them
// in. It does not search lists.
func leftOut(in member.ApplyIntent) []string {
	if in.Whole == nil {
		return nil
	}
	var out []string
	var search func(at string, sent, whole map[string]any)
	search = func(at string, sent, whole map[string]any) {
		for _, name := range slices.Sorted(maps.Keys(whole)) {
			value, is := sent[name]
			below, isMap := value.(map[string]any)
			inside, alsoMap := whole[name].(map[string]any)
			switch pointer := at + pointerTo(name); {
			case !is:
				out = append(out, pointer)
			case isMap && alsoMap:
				search(pointer, below, inside)
			}
		}
	}
	search("", in.Manifest.Object, in.Whole.Object)
	return out
}

// identifying has the top-level fields of an object that do not belong to its content.
var identifying = map[string]bool{"apiVersion": true, "kind": true, "metadata": true, "status": true}

func pointerTo(name string) string {
	return "/" + strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

func merged(under, over map[string]string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, under)
	maps.Copy(out, over)
	return out
}

// leave returns the manifest for a write to an existing object. The manifest gets the resourceVersion that was read,
// and loses the fields that the placement leaves to the member. scaled are the fields that an autoscaler on the member
// sets.
func leave(in member.ApplyIntent, manifest, live *unstructured.Unstructured) (sent *unstructured.Unstructured, scaled []string) {
	for _, pointer := range content.Autoscaled(live) {
		if _, ok, _ := unstructured.NestedFieldNoCopy(manifest.Object, hubv1.PointerKeys(pointer)...); ok {
			scaled = append(scaled, pointer)
		}
	}
	left := slices.Concat(scaled, in.MemberOwned)
	if len(left) > 0 {
		manifest = manifest.DeepCopy() // copied, because fields are removed from the manifest
	}
	sent = onVersion(manifest, live.GetResourceVersion())
	content.LeaveToMember(sent, live, left)
	keepSource(in, sent, live)
	return sent, scaled
}

// keeping returns the manifest for a dry run. It has the values that the copy keeps when the hub gives up their fields.
func keeping(in member.ApplyIntent, manifest, live *unstructured.Unstructured) *unstructured.Unstructured {
	if in.Whole == nil {
		return manifest
	}
	return content.Keeping(live, manifest, in.Whole)
}

// noted adds the fields that an autoscaler sets to the message of a successful outcome.
func noted(out member.Outcome, scaled []string) member.Outcome {
	if len(scaled) > 0 && out.Reason == hubv1.ReasonApplied {
		out.Reason, out.Message = hubv1.ReasonAutoscaled, line(scaledText(scaled))
	}
	return out
}

func scaledText(pointers []string) string {
	return strings.Join(pointers, ", ") + " is left to the autoscaler that set it on the cluster"
}

const maxPaths = 3

// first returns a text with the first paths, at most maxPaths.
func first(paths []string) string {
	text := strings.Join(paths[:min(len(paths), maxPaths)], ", ")
	if more := len(paths) - maxPaths; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
