// Package apply writes one object to one member cluster, or takes it away, and says what came of it.
//
// It decides from a fresh read whether the object there is this hub's, and makes every change of an existing object
// conditional on that read. Where nothing is known to be there it writes first, in a way that is refused if something
// is. A copy that a watch has shown in full is deleted unread, at exactly the version that was shown. What is not this
// hub's is left alone unless adoption was asked for; another hub's is never touched. Everything that can go wrong is an
// Outcome with a reason and a time to retry, nothing is logged.
//
// It does not decide what an object shall look like, whether it may be removed, or how often a fight for a field is
// fought.
package apply

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/hanse-dev/hanse/answer"
	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/canonical"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/content"
)

// Resolve finds the resource of a kind on the member and says whether it is namespaced.
type Resolve func(schema.GroupVersionKind) (resource schema.GroupVersionResource, namespaced bool, err error)

// Applier implements Apply and Withdraw of a member.Cluster. It keeps no state.
type Applier struct {
	name    string
	isHub   bool
	client  dynamic.Interface
	deletes rest.Interface
	resolve Resolve
	hubUID  types.UID
	key     canonical.Key
	wrote   func(schema.GroupVersionKind, *unstructured.Unstructured)
}

// New returns the Applier of the cluster of this name. isHub means that it is the hub's own cluster, to which nothing
// is written; requests have a short time-out; hubUID is the value of the hub's label; key is that of the content hashes
// of Secrets. wrote is told of each object as it is after a write, and must not change it.
func New(name string, isHub bool, requests rest.Interface, resolve Resolve, hubUID types.UID, key canonical.Key,
	wrote func(schema.GroupVersionKind, *unstructured.Unstructured)) *Applier {
	return &Applier{
		name: name, isHub: isHub, client: dynamic.New(requests), deletes: requests, resolve: resolve, hubUID: hubUID, key: key, wrote: wrote,
	}
}

// target is the object in question on the member.
type target struct {
	gvk      schema.GroupVersionKind
	resource schema.GroupVersionResource
	key      types.NamespacedName
	objects  dynamic.ResourceInterface
}

func (t target) String() string {
	return fmt.Sprintf("%s %s", t.gvk.Kind, types.NamespacedName{Namespace: t.key.Namespace, Name: t.key.Name})
}

// find resolves the kind. An outcome comes back if that is not possible.
func (a *Applier) find(gvk schema.GroupVersionKind, key types.NamespacedName) (target, *member.Outcome) {
	t := target{gvk: gvk, key: key}
	resource, namespaced, err := a.resolve(gvk)
	if err != nil {
		out := classify(err, t)
		return t, &out
	}
	t.resource = resource
	switch {
	case namespaced && key.Namespace == "":
		out := refused(hubv1.ReasonManifestRefused, member.RetrySlowly, "%s is namespaced on this cluster, but the object has no namespace", gvk.Kind)
		return t, &out
	case !namespaced && key.Namespace != "":
		out := refused(hubv1.ReasonManifestRefused, member.RetrySlowly, "%s is cluster-scoped on this cluster, but the object has a namespace", gvk.Kind)
		return t, &out
	case namespaced:
		t.objects = a.client.Resource(resource).Namespace(key.Namespace)
	default:
		t.objects = a.client.Resource(resource)
	}
	return t, nil
}

// read gets the object as it is now.
func (t target) read(ctx context.Context) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, answer.Timeout)
	defer cancel()
	live, err := t.objects.Get(ctx, t.key.Name, metav1.GetOptions{})
	if err == nil {
		err = member.CheckObject(live)
	}
	return live, err
}

// Apply brings one object to the cluster, or says why not.
func (a *Applier) Apply(ctx context.Context, in member.ApplyIntent) member.Outcome {
	if a.isHub {
		out := applied(hubv1.ReasonIsTemplate, "this cluster is the hub: the object is the template itself")
		out.Digest = in.Digest
		return out
	}
	ctx, done := answer.Keep(ctx)
	defer done()
	manifest := a.mark(in)
	key := types.NamespacedName{Namespace: manifest.GetNamespace(), Name: manifest.GetName()}
	if isSystem(manifest.GroupVersionKind(), key) {
		return refused(hubv1.ReasonNamespaceRefused, member.RetryNever, "Hanse writes nothing in the namespaces kube-* and %s", hubv1.SystemNamespace)
	}
	t, stop := a.find(manifest.GroupVersionKind(), key)
	if stop != nil {
		return *stop
	}
	if in.Mode == hubv1.ApplyReportOnly {
		return a.report(ctx, t, in, manifest)
	}
	// What is left to the member is read first, and so is a copy that must not be made: a write on a version makes one
	// that is gone. One that was adopted is read for the mark, which a copy made anew does not get.
	if in.Observed != "" && len(in.MemberOwned) == 0 && !in.KeepAway && !in.Adopted {
		if out, settled := a.applyUnread(ctx, t, in, manifest); settled {
			return out
		}
	}
	if in.Unknown && !in.KeepAway {
		if out, settled := a.createUnread(ctx, t, in, manifest); settled {
			return out
		}
	}
	for range 2 { // the second time if the object changed between the read and the write
		out, again := a.applyOnce(ctx, t, in, manifest)
		if !again {
			return out
		}
	}
	return refused(hubv1.ReasonPending, member.RetrySoon, "%s keeps changing on the cluster while it is written", t)
}

// isSystem is true for kube-* and hanse-system, and what is in them.
func isSystem(gvk schema.GroupVersionKind, key types.NamespacedName) bool {
	if gvk.Group == "" && gvk.Kind == "Namespace" {
		return hubv1.IsSystemNamespace(key.Name)
	}
	return hubv1.IsSystemNamespace(key.Namespace)
}

// applyUnread writes on the version that was last observed, of which the caller says that nothing speaks against it.
// What comes of it is settled unless the object has changed since, or somebody else has a field with another value: an
// autoscaler, say.
func (a *Applier) applyUnread(ctx context.Context, t target, in member.ApplyIntent, manifest *unstructured.Unstructured) (out member.Outcome, settled bool) {
	after, err := a.write(ctx, t, onVersion(manifest, in.Observed), metav1.ApplyOptions{})
	switch {
	case isFieldConflict(err) || isChanged(err) || isGone(err):
		return member.Outcome{}, false
	case err != nil:
		return classify(err, t), true
	}
	out = a.done(in, after)
	out.Wrote = after.GetResourceVersion() != in.Observed
	return out, true
}

// noVersion is a resourceVersion that no object has: the store's first revision is the empty store. An apply that names
// it makes the object if there is none, and is refused as a conflict if there is one.
const noVersion = "1"

// createUnread makes an object of which nothing is known to be there. That is settled unless there is one, or a server
// takes the version for that of an object which is gone.
func (a *Applier) createUnread(ctx context.Context, t target, in member.ApplyIntent, manifest *unstructured.Unstructured) (out member.Outcome, settled bool) {
	out, again := a.create(ctx, t, in, onVersion(manifest, noVersion))
	return out, !again
}

// applyOnce reads, decides and writes.
func (a *Applier) applyOnce(ctx context.Context, t target, in member.ApplyIntent, manifest *unstructured.Unstructured) (out member.Outcome, again bool) {
	live, err := t.read(ctx)
	switch {
	case isGone(err) && in.Adopting != "":
		return refused(hubv1.ReasonMissing, member.RetryNever, "%s is gone from the cluster", t), false
	case isGone(err) && in.KeepAway:
		return refused(hubv1.ReasonNotRecreated, member.RetryNever, "%s is gone from the cluster", t), false
	case isGone(err):
		return a.create(ctx, t, in, manifest)
	case err != nil:
		return classify(err, t), false
	}
	if out := a.notToAdopt(t, in, live); out != nil {
		return *out, false
	}
	manifest, scaled := leave(in, manifest, live)
	p := a.plan(t, in, manifest, live)
	if p.stop != nil {
		return noted(*p.stop, scaled), false
	}
	if p.ifSame {
		if out, again, same := a.replaces(ctx, t, in, manifest, live, scaled); !same {
			return out, again
		}
	}
	if p.adopted {
		markAdopted(manifest, live.GetUID())
	}
	after, err := a.write(ctx, t, manifest, metav1.ApplyOptions{Force: p.force})
	switch {
	case isFieldConflict(err):
		return fieldConflict(err, t, live), false
	case isChanged(err) || isGone(err):
		return member.Outcome{}, true
	case err != nil:
		return classify(err, t), false
	}
	out = noted(a.done(in, after), scaled)
	out.Wrote = after.GetResourceVersion() != live.GetResourceVersion()
	if out.Wrote {
		out.Drifted = p.drift
	}
	return out, false
}

// write sends the manifest by server-side apply. The member is not asked to validate fields: those that it does not
// know are looked for before, and server-side apply refuses them in any case. An API server would parse the manifest a
// second time for it.
func (a *Applier) write(ctx context.Context, t target, manifest *unstructured.Unstructured, options metav1.ApplyOptions) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, answer.Timeout)
	defer cancel()
	patch := options.ToPatchOptions()
	patch.FieldManager, patch.FieldValidation = hubv1.FieldManager, metav1.FieldValidationIgnore
	after, err := t.objects.Patch(ctx, manifest.GetName(), types.ApplyPatchType, canonical.Bytes(manifest.Object), patch)
	if err == nil {
		err = member.CheckObject(after)
	}
	if err == nil && len(patch.DryRun) == 0 {
		a.wrote(t.gvk, after)
	}
	return after, err
}

// create is the first apply of an object that is not there: it forces nothing, so that an object which somebody else
// makes in the same moment shows as a conflict.
func (a *Applier) create(ctx context.Context, t target, in member.ApplyIntent, manifest *unstructured.Unstructured) (out member.Outcome, again bool) {
	after, err := a.write(ctx, t, manifest, metav1.ApplyOptions{})
	if isNamespaceMissing(err) {
		if out, ok := a.makeNamespace(ctx, t.key.Namespace, in); !ok {
			return out, false
		}
		after, err = a.write(ctx, t, manifest, metav1.ApplyOptions{})
	}
	switch {
	case isFieldConflict(err) || isChanged(err) || isGone(err) && !isNamespaceMissing(err):
		return member.Outcome{}, true
	case err != nil:
		return classify(err, t), false
	}
	out = a.done(in, after)
	out.Wrote = true
	return out, false
}

// done is the outcome of an object that is as it was asked for.
func (a *Applier) done(in member.ApplyIntent, live *unstructured.Unstructured) member.Outcome {
	out := seen(applied(hubv1.ReasonApplied, ""), live)
	out.Hash, _ = content.Hash(a.key, live)
	out.Digest, out.Adopted = in.Digest, isAdopted(live)
	return out
}
