package apply

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/answer"
	"github.com/hanse-dev/hanse/member"
)

// View reads the copy of a hub object. For any other object it returns an outcome and no object.
func (a *Applier) View(ctx context.Context, in member.ViewIntent) (*unstructured.Unstructured, *member.Outcome) {
	if a.isHub {
		return nil, isTemplate()
	}
	ctx, done := answer.Keep(ctx)
	defer done()
	t, stop := a.find(in.GVK, types.NamespacedName{Namespace: in.Owner.Namespace, Name: in.Owner.Name})
	if stop != nil {
		return nil, stop
	}
	live, err := t.read(ctx)
	switch {
	case isGone(err):
		out := refused(hubv1.ReasonMissing, member.RetrySlowly, "%s is not on the cluster", t)
		return nil, &out
	case err != nil:
		out := classify(err, t)
		return nil, &out
	}
	if out := a.notShown(t, live, a.standing(live, in.Owner, in.OwnerUID, in.ConfirmedUID)); out != nil {
		return nil, out
	}
	return live, nil
}

// Preview makes a dry run of Apply, and returns the object before and after it.
func (a *Applier) Preview(ctx context.Context, in member.ApplyIntent) member.Preview {
	if a.isHub {
		return member.Preview{Refused: isTemplate()}
	}
	ctx, done := answer.Keep(ctx)
	defer done()
	manifest := a.mark(in)
	t, stop := a.find(manifest.GroupVersionKind(), types.NamespacedName{Namespace: manifest.GetNamespace(), Name: manifest.GetName()})
	if stop != nil {
		return member.Preview{Refused: stop}
	}
	for range 2 { // the second time if the object changed between the read and the dry run
		p, again := a.previewOnce(ctx, t, in, manifest)
		if !again {
			return p
		}
	}
	out := refused(hubv1.ReasonPending, member.RetrySoon, "another client keeps changing %s on the cluster: stop this client, and the hub compares the copy", t)
	return member.Preview{Refused: &out}
}

var dryRun = metav1.ApplyOptions{Force: true, DryRun: []string{metav1.DryRunAll}}

func (a *Applier) previewOnce(ctx context.Context, t target, in member.ApplyIntent, manifest *unstructured.Unstructured) (p member.Preview, again bool) {
	live, err := t.read(ctx)
	if isGone(err) {
		return a.previewNew(ctx, t, in, manifest)
	}
	if err != nil {
		out := classify(err, t)
		return member.Preview{Refused: &out}, false
	}
	whose := a.standing(live, in.Owner, in.OwnerUID, in.ConfirmedUID)
	if whose == otherHubs || whose == otherCopy {
		return member.Preview{Refused: a.othersOrDeleting(t, live, whose)}, false
	}
	p = member.Preview{Before: live, Unadopted: whose == unmanaged, InSync: whose == ours && a.synced(in, live)}
	sent, scaled := leave(in, manifest, live)
	after, err := a.write(ctx, t, keeping(in, sent, live), dryRun)
	switch {
	case isChanged(err) || isGone(err):
		return member.Preview{}, true
	case err != nil:
		out := classify(err, t)
		p.Refused = &out
		return p, false
	}
	p.After, p.Changed = after, changed(t, in, sent, after)
	plan := a.plan(t, in, sent, live)
	switch {
	case plan.stop != nil && (plan.stop.Applied != metav1.ConditionTrue || plan.stop.Reason == hubv1.ReasonPaused):
		p.Refused = plan.stop
	case plan.ifSame:
		out, again, same := a.replaces(ctx, t, in, sent, live, scaled)
		if again {
			return member.Preview{}, true
		}
		if !same {
			p.Refused = &out
		}
	}
	return p, false
}

// previewNew makes the dry run for a missing object. If the namespace is missing, too, no dry run is possible, and the
// preview shows the object that the hub would send.
func (a *Applier) previewNew(ctx context.Context, t target, in member.ApplyIntent, manifest *unstructured.Unstructured) (p member.Preview, again bool) {
	after, err := a.write(ctx, t, manifest, dryRun)
	switch {
	case isNamespaceMissing(err) && in.CreateNamespace:
		return member.Preview{After: manifest}, false
	case isChanged(err) || isGone(err) && !isNamespaceMissing(err):
		return member.Preview{}, true
	case err != nil:
		out := classify(err, t)
		return member.Preview{Refused: &out}, false
	}
	return member.Preview{After: after, Changed: changed(t, in, manifest, after)}, false
}

// notShown returns the outcome if the object on the member is not the requested copy. Otherwise the result is nil.
func (a *Applier) notShown(t target, live *unstructured.Unstructured, whose standing) *member.Outcome {
	if whose == unmanaged {
		out := refused(hubv1.ReasonAlreadyExists, member.RetrySlowly, "%s exists on the cluster and is not Hanse's: it is not shown", t)
		return &out
	}
	if whose == otherHubs || whose == otherCopy {
		return a.othersOrDeleting(t, live, whose)
	}
	return nil
}

func isTemplate() *member.Outcome {
	out := applied(hubv1.ReasonIsTemplate, "this cluster is the hub: the hub object is its own copy")
	return &out
}
