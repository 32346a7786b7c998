package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/content"
)

// report says what Apply would do, and writes nothing. No event tells when an object that is not the hub's changes, or when one
// is made: every answer is looked at again.
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
		after, err := a.write(ctx, t, sent, metav1.ApplyOptions{Force: true, DryRun: []string{metav1.DryRunAll}})
		switch {
		case isChanged(err) || isGone(err):
			continue
		case err != nil:
			return classify(err, t)
		}
		return seen(reported(content.Changes(live, after), whose, in, scaled), live)
	}
	return refused(hubv1.ReasonPending, member.RetrySoon, "%s keeps changing on the cluster while it is compared", t)
}

// reportSecret compares no values: the answer would tell whether the hub object holds those of the cluster. What is compared is whether the copy
// is as it was last confirmed, and whether the hub would write the same again.
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
	case whose == nobodys:
		out = refused(hubv1.ReasonDiffers, member.RetrySlowly, "%s exists on the cluster and is not Hanse's, and the values of a Secret are not compared", t)
	case whose == ours && a.synced(in, live):
		out = applied(hubv1.ReasonInSync, "no value would be changed")
		out.Retry = member.RetrySlowly
	default:
		out = refused(hubv1.ReasonDiffers, member.RetrySlowly,
			"apply.mode Enforce would write the Secret: the hub object or the copy has changed since it was last confirmed; values are not compared")
	}
	return seen(out, live)
}

func missing(t target) member.Outcome {
	return refused(hubv1.ReasonMissing, member.RetrySlowly, "%s is not on the cluster, and apply.mode ReportOnly makes none", t)
}

// reported is the outcome of a comparison.
func reported(changes []string, whose standing, in member.ApplyIntent, scaled []string) member.Outcome {
	also := ""
	switch {
	case whose == nobodys && in.Adoption == hubv1.AdoptionAlways, whose == nobodys && in.Adoption == hubv1.AdoptionIfNoDiff && len(changes) == 0:
		also = "; the object is not Hanse's yet"
	case whose == nobodys:
		also = "; the object is not Hanse's, and apply.adoption does not take it over"
	}
	if len(scaled) > 0 {
		also += "; " + scaledText(scaled)
	}
	out := applied(hubv1.ReasonInSync, "no value would be changed%s", also)
	if len(changes) > 0 {
		out = refused(hubv1.ReasonDiffers, member.RetrySlowly, "apply.mode Enforce would change %s%s", first(changes), also)
	}
	out.Retry = member.RetrySlowly
	return out
}

// wouldChange makes a dry run of taking an object over. same is true if no value of it changes.
func (a *Applier) wouldChange(ctx context.Context, t target, manifest, live *unstructured.Unstructured) (out member.Outcome, again, same bool) {
	after, err := a.write(ctx, t, manifest, metav1.ApplyOptions{Force: true, DryRun: []string{metav1.DryRunAll}})
	switch {
	case isChanged(err) || isGone(err):
		return member.Outcome{}, true, false
	case err != nil:
		return classify(err, t), false, false
	}
	changes := content.Changes(live, after)
	if len(changes) == 0 {
		return member.Outcome{}, false, true
	}
	return seen(refused(hubv1.ReasonAlreadyExists, member.RetrySlowly,
		"%s exists on the cluster, is not Hanse's, and taking it over would change %s: make them equal, or set spec.apply.adoption to Always",
		t, first(changes)), live), false, false
}

// leave returns the manifest as it is sent to an object that exists: on the version that was read, and without a claim on what is
// left to the member. scaled are the fields of it that an autoscaler of the member sets.
func leave(in member.ApplyIntent, manifest, live *unstructured.Unstructured) (sent *unstructured.Unstructured, scaled []string) {
	for _, pointer := range content.Autoscaled(live) {
		if _, ok, _ := unstructured.NestedFieldNoCopy(manifest.Object, content.Steps(pointer)...); ok {
			scaled = append(scaled, pointer)
		}
	}
	left := slices.Concat(scaled, in.MemberOwned)
	if len(left) > 0 {
		manifest = manifest.DeepCopy() // fields are taken out of it
	}
	sent = onVersion(manifest, live.GetResourceVersion())
	content.LeaveToMember(sent, live, left)
	keepSource(in, sent, live)
	return sent, scaled
}

// noted says in an outcome that all is as it should be but for what an autoscaler sets.
func noted(out member.Outcome, scaled []string) member.Outcome {
	if len(scaled) > 0 && out.Reason == hubv1.ReasonApplied {
		out.Reason, out.Message = hubv1.ReasonAutoscaled, bounded(scaledText(scaled))
	}
	return out
}

func scaledText(pointers []string) string {
	return strings.Join(pointers, ", ") + " is left to the HorizontalPodAutoscaler that set it on the cluster"
}

const mostPaths = 3

// first names up to three paths.
func first(paths []string) string {
	text := strings.Join(paths[:min(len(paths), mostPaths)], ", ")
	if more := len(paths) - mostPaths; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
