package dispatch

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/overrides"
	"github.com/hanse-dev/hanse/placement/decide"
)

// Pods may have to restart when a ConfigMap or Secret changes. The hub then writes a digest of the content of the
// ConfigMap or Secret into the pod template (package decide). The digest is computed from the content that the hub
// sends to the same cluster. If a cluster keeps an earlier revision of a Secret, the digest on this cluster does not
// change. The hub writes the copy with a new digest after the cluster has the new content. Until then, the hub does not
// change the copy at all.

// readCopy is the wanted copy of a ConfigMap or Secret that pods read.
type readCopy struct {
	id       hubv1.ObjectIdentity
	manifest *unstructured.Unstructured
	digest   string
	row      *hubv1.ClusterRow // nil if the binding of the ConfigMap or Secret has no row for the cluster
}

// restartPaths returns the paths of the pod templates that get a digest of the ConfigMaps and Secrets their pods read.
// A new digest restarts the pods. The paths come from the revision that the binding names for the cluster. If the
// binding names no revision, the paths come from the placement.
func (r *run) restartPaths() []string {
	if r.out.revised != nil {
		return r.out.revised.RestartPaths
	}
	spec := r.policy()
	return spec.RestartPaths()
}

// keepReads updates queue.readers after a render of the copy's manifest. It removes the copy from the readers of each
// ConfigMap and Secret that the pods of the new manifest do not read.
func (r *run) keepReads() {
	names := sets.New[types.NamespacedName]()
	for _, id := range r.out.readByPods {
		names.Insert(id.BindingKey())
	}
	r.queue.needs.readers.keep(r.key, names)
}

// withReload returns the manifest with the digests in its pod templates. It also sets r.out.whole, r.out.readByPods and
// r.out.reads. The error is errBehind if the hub has not decided on a ConfigMap or Secret in r.out.readByPods yet.
func (r *run) withReload(ctx context.Context, rendered overrides.Result) (*unstructured.Unstructured, *member.Outcome, error) {
	paths := r.restartPaths()
	r.out.whole = rendered.Whole
	if len(paths) == 0 {
		return rendered.Manifest, nil, nil
	}
	read, err := decide.ReadByPods(rendered.Manifest, paths)
	if err != nil {
		return nil, refused(hubv1.ReasonManifestRefused, err), nil
	}
	r.out.readByPods = read
	contents := map[hubv1.ObjectIdentity]*unstructured.Unstructured{}
	for _, id := range read {
		r.queue.needs.readers.add(r.key, id.BindingKey()) // add before the read, so that no change is lost
		c, refusal, err := r.copyOf(ctx, id)
		if refusal != nil || err != nil {
			return nil, refusal, err
		}
		if c != nil {
			contents[id] = c.manifest
			r.out.reads = append(r.out.reads, *c)
		}
	}
	if len(contents) == 0 {
		return rendered.Manifest, nil, nil
	}
	out, err := decide.WithReload(r.queue.opts.Key, rendered.Manifest, paths, contents)
	if err == nil && r.out.whole != nil {
		r.out.whole, err = decide.WithReload(r.queue.opts.Key, r.out.whole, paths, contents)
	}
	if err != nil {
		return nil, refused(hubv1.ReasonManifestRefused, err), nil
	}
	return out, nil, nil
}

// copyOf returns the wanted copy of another object on this cluster. It is nil if the hub sends no such object to the
// cluster, or if the object's placement has the mode ReportOnly.
func (r *run) copyOf(ctx context.Context, id hubv1.ObjectIdentity) (*readCopy, *member.Outcome, error) {
	key := id.BindingKey()
	b := hubv1.NewBinding(key)
	found, err := get(ctx, r.queue.opts.Client, key, b)
	if err != nil {
		return nil, nil, err
	}
	target := b.BindingSpec().Target(r.target.Name)
	if !found || target == nil || target.State == hubv1.TargetAbsent {
		return nil, nil, nil
	}
	other := &run{queue: r.queue, cluster: r.cluster, key: key, binding: b, target: target}
	if !hubv1.IsSecret(id.GroupKind()) {
		other.instead = r.instead // not for a Secret: its digest could confirm a user's guesses of values
	}
	if err := other.gather(ctx); err != nil {
		return nil, nil, err
	}
	if other.policy().Apply.Mode == hubv1.ApplyReportOnly {
		return nil, nil, nil
	}
	template, ok := other.template()
	if !ok {
		return nil, nil, fmt.Errorf("%s: %w", id, errBehind)
	}
	want, err := other.wantedState(ctx, template)
	if err != nil {
		return nil, nil, err
	}
	other.in.object = hubv1.Selectable(id, template, other.in.namespaceLabels)
	manifest, refusal, err := other.render(ctx, template, want.At(other.in.mcl).Version)
	if err != nil {
		return nil, nil, err
	}
	if refusal != nil {
		o := outcome(metav1.ConditionFalse, hubv1.ReasonReferenceNotReady,
			"the copy stays as it is, because its pods read %s, which cannot be sent: %s: %s", id, refusal.Reason, refusal.Message)
		return nil, &o, nil
	}
	fitting, _ := r.cluster.Fit(ctx, manifest)
	row := b.BindingStatus().Row(r.target.Name)
	confirmed := r.queue.copies.get(key).last.Digest
	if confirmed == "" && row != nil {
		confirmed = row.Digest
	}
	return &readCopy{id: id, manifest: fitting, digest: other.digestOf(ctx, fitting, confirmed), row: row}, nil, nil
}

// contentOnTheWay returns the outcome for a copy that waits until the cluster has the content that its pods read. It is
// nil if the copy does not wait. If the content is about to be written, the outcome has no reason and is not recorded.
func (r *run) contentOnTheWay() *member.Outcome {
	if r.suspended() {
		return nil // a suspended copy is not written
	}
	for _, c := range r.out.reads {
		here, why := r.hasContent(c)
		if here {
			continue
		}
		o := member.Outcome{Retry: member.RetrySlowly} // retried later: the other copy is written first, see Reconcile
		if why != "" {
			o = outcome(metav1.ConditionFalse, hubv1.ReasonReferenceNotReady,
				"the copy waits until %s, which its pods read, has its new content on the cluster: %s", c.id, why)
			o.Retry = member.RetrySlowly
		}
		return &o
	}
	return nil
}

// hasContent reports whether the cluster has the content of a ConfigMap or Secret that pods shall read. An object of
// this name that the hub does not manage, and will not change, is accepted as well. If here is false, why tells why the
// last write failed. why is empty if the row of the ConfigMap or Secret shows no failed write.
func (r *run) hasContent(c readCopy) (here bool, why string) {
	known := r.queue.copies.get(c.id.BindingKey())
	if known.last.Applied == metav1.ConditionTrue && known.last.Digest == c.digest {
		return true, ""
	}
	seen, found, _ := r.cluster.Observation(c.manifest.GroupVersionKind(), types.NamespacedName{Namespace: c.id.Namespace, Name: c.id.Name})
	if found && seen.Owner == c.id && !seen.Deleting && seen.Digest == c.digest {
		return true, ""
	}
	return failed(c.row)
}

// wakeReaders queues the copies whose pods read the object with this key. It is called after a run on the object.
func (q *queue) wakeReaders(key types.NamespacedName) {
	for _, reader := range q.needs.readers.of(key) {
		q.gate.add(due{reader, normalPriority + q.copies.rank(reader)})
	}
}

// isBehind reports whether a manifest could not be made because the hub has not decided yet on a ConfigMap or Secret
// that the pods read.
func isBehind(err error) bool { return errors.Is(err, errBehind) }
