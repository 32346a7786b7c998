// Package apply writes one object to one member cluster, or removes it, and returns the outcome.
//
// Package apply reads the object before a change, checks that it belongs to this hub, and makes the change conditional
// on the version that was read. If no copy is known on the member, it creates the object without a read, and the server
// refuses the create if the object exists. If a watch has delivered all data that a read would return, it deletes the
// copy without a read. The delete then requires the version that the watch has delivered. The package never changes an
// object of another hub. It changes an object that no hub manages only if the caller asks to adopt it. Each failure is
// an Outcome with a reason and a time to retry. The package writes no log.
//
// The caller of package apply decides the content of the object, whether it may be removed, and how often the hub
// restores a field that another manager changes.
package apply

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/answer"
	"github.com/hanse-dev/hanse/internal/canonical"
	"github.com/hanse-dev/hanse/internal/informer"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/content"
	"github.com/hanse-dev/hanse/member/system"
)

// Resolve returns the resource of a kind on the member, and whether the kind is namespaced.
type Resolve func(schema.GroupVersionKind) (resource schema.GroupVersionResource, namespaced bool, err error)

// Applier implements the methods Apply and Withdraw of member.Cluster. It keeps no state.
type Applier struct {
	name     string
	isHub    bool
	client   dynamic.Interface
	requests rest.Interface
	resolve  Resolve
	hubUID   types.UID
	key      canonical.Key
	wrote    func(schema.GroupVersionKind, *unstructured.Unstructured)
}

// New returns the Applier of one cluster. isHub is true for the hub's own cluster, to which the Applier writes nothing.
// hubUID is the value of the hub's label on copies. key is the HMAC key of the content hashes of Secrets. wrote is
// called with each object after a write, and must not change it.
func New(name string, isHub bool, requests rest.Interface, resolve Resolve, hubUID types.UID, key canonical.Key,
	wrote func(schema.GroupVersionKind, *unstructured.Unstructured)) *Applier {
	return &Applier{
		name: name, isHub: isHub, client: dynamic.New(requests), requests: requests, resolve: resolve, hubUID: hubUID, key: key, wrote: wrote,
	}
}

// target is one object on the member, with the client for it.
type target struct {
	gvk      schema.GroupVersionKind
	resource schema.GroupVersionResource
	key      types.NamespacedName
	objects  dynamic.ResourceInterface
}

func (t target) String() string {
	return fmt.Sprintf("%s %s", t.gvk.Kind, types.NamespacedName{Namespace: t.key.Namespace, Name: t.key.Name})
}

// find resolves the kind to a resource. If the kind cannot be resolved, the returned outcome is not nil.
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

// read gets the object from the API server.
func (t target) read(ctx context.Context) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, answer.Timeout)
	defer cancel()
	live, err := t.objects.Get(ctx, t.key.Name, metav1.GetOptions{})
	if err == nil {
		err = informer.CheckObject(live)
	}
	return live, err
}

// Apply writes one object to the cluster, or returns why it cannot.
func (a *Applier) Apply(ctx context.Context, in member.ApplyIntent) member.Outcome {
	if a.isHub {
		out := applied(hubv1.ReasonIsTemplate, "this cluster is the hub: the hub object is its own copy")
		out.Digest = in.Digest
		return out
	}
	ctx, done := answer.Keep(ctx)
	defer done()
	manifest := a.mark(in)
	key := types.NamespacedName{Namespace: manifest.GetNamespace(), Name: manifest.GetName()}
	if err := system.Refused(manifest, in.OfOperator); err != nil {
		return refused(hubv1.ReasonNamespaceRefused, member.RetryNever, "%v", err)
	}
	t, stop := a.find(manifest.GroupVersionKind(), key)
	if stop != nil {
		return *stop
	}
	if in.Mode == hubv1.ApplyReportOnly {
		return a.report(ctx, t, in, manifest)
	}
	// A write without a read creates the copy if it is missing. In four cases the copy must therefore be read first.
	// First, the placement leaves some fields to the member (MemberOwned), and their live values are needed. Second, a
	// deleted copy must not be created again (KeepAway). Third, the hub had adopted the copy, and a newly created copy
	// must not get the annotation of an adopted copy. Fourth, the hub may own fields that the manifest leaves out (Whole).
	if in.Observed != "" && len(in.MemberOwned) == 0 && !in.KeepAway && !in.Adopted && in.Whole == nil {
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
	return refused(hubv1.ReasonPending, member.RetrySoon, "another client keeps changing %s on the cluster: stop this client, and the hub writes the copy", t)
}

// applyUnread writes on the condition that the object still has the last observed version, without a read. settled is
// false if the object has changed since that version, or if another manager, such as an autoscaler, owns a field with
// another value. The caller must then read the object.
func (a *Applier) applyUnread(ctx context.Context, t target, in member.ApplyIntent, manifest *unstructured.Unstructured) (out member.Outcome, settled bool) {
	after, err := a.write(ctx, t, onVersion(manifest, in.Observed), metav1.ApplyOptions{})
	switch {
	case isFieldConflict(err) || isChanged(err) || isGone(err):
		return member.Outcome{}, false
	case err != nil:
		return classify(err, t), true
	}
	out = a.written(t, in, manifest, after)
	out.Wrote = after.GetResourceVersion() != in.Observed
	return out, true
}

// yield gives up the fields that the manifest leaves out and that the hub still owns on the copy, so that their values
// stay. It changes only managedFields, and returns the manifest for the next write.
func (a *Applier) yield(ctx context.Context, t target, in member.ApplyIntent, manifest, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if in.Whole == nil {
		return manifest, nil
	}
	managed, ok := content.Yielded(live, manifest, in.Whole)
	if !ok {
		return manifest, nil
	}
	patch := canonical.Bytes(map[string]any{"metadata": map[string]any{
		"uid": string(live.GetUID()), "resourceVersion": live.GetResourceVersion(), "managedFields": managed,
	}})
	ctx, cancel := context.WithTimeout(ctx, answer.Timeout)
	defer cancel()
	after, err := t.objects.Patch(ctx, t.key.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: hubv1.FieldManager})
	if err != nil {
		return nil, err
	}
	return onVersion(manifest, after.GetResourceVersion()), nil
}

// noVersion is a resourceVersion that no object has, because etcd's revision 1 is the empty store. An apply with this
// version creates a missing object, and fails with a conflict if the object exists.
const noVersion = "1"

// createUnread creates an object without a read. settled is false if the object exists, or if the server reports that
// it has just been deleted. The caller must then read the object.
func (a *Applier) createUnread(ctx context.Context, t target, in member.ApplyIntent, manifest *unstructured.Unstructured) (out member.Outcome, settled bool) {
	out, again := a.create(ctx, t, in, onVersion(manifest, noVersion))
	return out, !again
}

// applyOnce reads the object, decides what to do, and writes. again is true if the object has changed between the read
// and the write.
func (a *Applier) applyOnce(ctx context.Context, t target, in member.ApplyIntent, manifest *unstructured.Unstructured) (out member.Outcome, again bool) {
	live, err := t.read(ctx)
	switch {
	case isGone(err):
		return a.missing(ctx, t, in, manifest)
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
	manifest, err = a.yield(ctx, t, in, manifest, live)
	switch {
	case isChanged(err) || isGone(err):
		return member.Outcome{}, true
	case err != nil:
		return classify(err, t), false
	}
	after, err := a.write(ctx, t, manifest, metav1.ApplyOptions{Force: p.force})
	switch {
	case isFieldConflict(err):
		return fieldConflict(err, t, live), false
	case isChanged(err) || isGone(err):
		return member.Outcome{}, true
	case err != nil:
		return p.complete(t, classify(err, t)), false
	}
	out = p.complete(t, noted(a.written(t, in, manifest, after), scaled))
	out.Wrote = after.GetResourceVersion() != live.GetResourceVersion()
	if out.Wrote {
		out.Drifted = p.drift
	}
	return out, false
}

// missing creates the object, which the cluster does not have, unless the intent forbids it.
func (a *Applier) missing(ctx context.Context, t target, in member.ApplyIntent, manifest *unstructured.Unstructured) (out member.Outcome, again bool) {
	switch {
	case in.Adopting != "":
		return refused(hubv1.ReasonMissing, member.RetryNever, "%s is gone from the cluster", t), false
	case in.KeepAway:
		return refused(hubv1.ReasonNotRecreated, member.RetryNever, "%s is gone from the cluster", t), false
	}
	return a.create(ctx, t, in, manifest)
}

// write sends the manifest by server-side apply, without field validation on the member. The hub has already checked
// the fields against the member's schema, and server-side apply refuses unknown fields anyway. With validation, the
// server would parse the manifest twice.
func (a *Applier) write(ctx context.Context, t target, manifest *unstructured.Unstructured, options metav1.ApplyOptions) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, answer.Timeout)
	defer cancel()
	patch := options.ToPatchOptions()
	patch.FieldManager, patch.FieldValidation = hubv1.FieldManager, metav1.FieldValidationIgnore
	after, err := t.objects.Patch(ctx, manifest.GetName(), types.ApplyPatchType, canonical.Bytes(manifest.Object), patch)
	if err == nil {
		err = informer.CheckObject(after)
	}
	if err == nil && len(patch.DryRun) == 0 {
		a.wrote(t.gvk, after)
	}
	return after, err
}

// create makes the first apply of a missing object. The apply is not forced, so that it fails with a conflict if
// another client creates the object at the same time.
func (a *Applier) create(ctx context.Context, t target, in member.ApplyIntent, manifest *unstructured.Unstructured) (out member.Outcome, again bool) {
	after, err := a.write(ctx, t, manifest, metav1.ApplyOptions{})
	if isNamespaceMissing(err) {
		if out, ok := a.makeNamespace(ctx, t.key.Namespace, in); !ok {
			return out, false
		}
		after, err = a.write(ctx, t, manifest, metav1.ApplyOptions{})
	}
	gone := isGone(err) && !isNamespaceMissing(err)
	role, isBinding, _ := unstructured.NestedStringMap(manifest.Object, "roleRef")
	switch {
	case gone && isBinding && t.gvk.Group == rbacv1.GroupName:
		// To a client without the right to bind the role, the server answers as if the binding were missing.
		return refused(hubv1.ReasonPending, member.RetrySoon, "the cluster has no %s %s, which %s names: the hub writes the binding when the role exists",
			role["kind"], role["name"], t), false
	case isFieldConflict(err) || isChanged(err) || gone:
		return member.Outcome{}, true
	case err != nil:
		return classify(err, t), false
	}
	out = a.written(t, in, manifest, after)
	out.Wrote = true
	return out, false
}

// written returns the outcome for a live object that was written from the manifest, either now or before. The outcome
// has the reason ChangedByCluster if the cluster has stored other values than the manifest has.
func (a *Applier) written(t target, in member.ApplyIntent, manifest, live *unstructured.Unstructured) member.Outcome {
	out := a.done(in, live)
	if out.Changed = changed(t, in, manifest, live); out.Changed != "" {
		out.Reason, out.Message = hubv1.ReasonChangedByCluster, line(member.ChangedMessage(out.Changed))
	}
	return out
}

// done returns the successful outcome for a live object that is the hub's copy.
func (a *Applier) done(in member.ApplyIntent, live *unstructured.Unstructured) member.Outcome {
	out := seen(applied(hubv1.ReasonApplied, ""), live)
	out.Hash, _ = content.Hash(a.key, live)
	out.Digest, out.Adopted = in.Digest, isAdopted(live)
	return out
}

// changed names the values of the manifest that the cluster stores otherwise. It is empty if the cluster stores all of
// them. Fields that the placement leaves to the member do not count: the hub sends them only to create the object.
func changed(t target, in member.ApplyIntent, manifest, stored *unstructured.Unstructured) string {
	if len(in.MemberOwned) > 0 {
		manifest = manifest.DeepCopy()
		content.LeaveToMember(manifest, stored, in.MemberOwned)
	}
	return line(content.AlterationText(content.Altered(stored, manifest), t.secret()))
}
