package report

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/member/rollup"
)

// merged is the status that this process last wrote to a hub object.
type merged struct {
	sent map[string]any // the applied status; nil if the server returned it unchanged
	// resourceVersion and result are from the server's response to the last write of the status.
	resourceVersion string
	result          map[string]any
}

// seen returns m without the data that is not needed any more. resourceVersion is that of the cached hub object. If the
// cached object is at least as new as the server's response to the last write, the cached object has the written
// status. seen then drops m.result, unless the server has changed the status that was sent.
func (m merged) seen(resourceVersion string) merged {
	if m.sent == nil && !hubv1.Older(resourceVersion, m.resourceVersion) {
		m.result = nil
	}
	return m
}

// refusal has a status that the hub's API server has refused. The status is not sent again until the object or its
// schema has changed.
type refusal struct {
	generation int64  // generation of the hub object; 0 if there is no refusal
	definition string // resourceVersion of the CRD
	condition  verdict
	status     map[string]any
	at         metav1.Time // time of the refused merge; the status has it in its conditions
	stays      bool        // whether the server also refuses to remove the earlier status
}

// isRefused reports whether the API server has refused a status of the hub object, and neither the object nor its
// schema has changed since.
func (o *objectWrite) isRefused(template *unstructured.Unstructured) bool {
	f := o.refusal
	return f.generation != 0 && f.generation == template.GetGeneration() && f.definition == o.definition.resourceVersion
}

// verdict is the next value of the condition StatusWritten: its status, reason and message.
type verdict struct {
	status          metav1.ConditionStatus
	reason, message string
}

func notWritten(reason, format string, args ...any) *verdict {
	return &verdict{metav1.ConditionFalse, reason, bounded(fmt.Sprintf(format, args...))}
}

// A reservation is a check that can forbid the hub to write the status of the hub object. It returns nil if it allows
// the write. Otherwise it returns the condition with the reason.
type reservation func(*run) *verdict

var reservations = []reservation{
	hubIsTarget,   // the hub is one of the targets, so that the object's own controller writes its status
	ofBundle,      // the object is in a bundle, and the hub does not have it
	coreWorkload,  // controllers on the hub write it, or the statuses of several clusters cannot be merged
	bindingOnly,   // the placement wants the merged status in the binding only
	noDefinition,  // no CRD, or no status subresource: each write would raise the generation
	ownedByOthers, // another field manager writes this status
}

func hubIsTarget(r *run) *verdict {
	if !r.in.hubIsTarget {
		return nil
	}
	return notWritten(hubv1.ReasonStatusOwnedByOther, "the hub's own cluster is a target: the controllers there write the status")
}

func ofBundle(r *run) *verdict {
	if r.binding.BindingSpec().ObjectRef.Bundle == nil {
		return nil
	}
	return notWritten(hubv1.ReasonBindingOnly, "the object is in a bundle, and the hub does not have it: its merged status is in this binding only")
}

var coreWorkloads = map[schema.GroupKind]bool{
	{Group: "", Kind: "Pod"}:                   true,
	{Group: "", Kind: "ReplicationController"}: true,
	{Group: "apps", Kind: "DaemonSet"}:         true,
	{Group: "apps", Kind: "Deployment"}:        true,
	{Group: "apps", Kind: "ReplicaSet"}:        true,
	{Group: "apps", Kind: "StatefulSet"}:       true,
	{Group: "batch", Kind: "CronJob"}:          true,
	{Group: "batch", Kind: "Job"}:              true,
}

func coreWorkload(r *run) *verdict {
	if !coreWorkloads[r.id.GroupKind()] {
		return nil
	}
	if _, folds := rollup.WorkloadSchema(r.in.template.GroupVersionKind()); !folds {
		return notWritten(hubv1.ReasonCoreWorkload, "the status of a %s is merged in this binding only: several clusters cannot be shown as one", r.id.Kind)
	}
	if r.reporter.opts.HubRunsWorkloads() {
		return notWritten(hubv1.ReasonCoreWorkload, "the hub has nodes or a controller-manager, whose controllers write the status of a %s", r.id.Kind)
	}
	return nil
}

func bindingOnly(r *run) *verdict {
	if r.in.aggregation.Mode != hubv1.StatusBindingOnly {
		return nil
	}
	return notWritten(hubv1.ReasonBindingOnly, "the placement's statusAggregation.mode is BindingOnly")
}

func noDefinition(r *run) *verdict {
	switch {
	case !r.object.definition.known:
		return notWritten(hubv1.ReasonBindingOnly, "%s is not a custom resource: its merged status is in this binding only", r.id.Kind)
	case !r.object.definition.subresource:
		return notWritten(hubv1.ReasonNoStatusSubresource, "the hub's CustomResourceDefinition of %s has no status subresource at %s", r.id.GroupKind(), r.in.template.GetAPIVersion())
	}
	return nil
}

func ownedByOthers(r *run) *verdict {
	others, _ := statusManagers(r.in.template)
	if len(others) == 0 {
		return nil
	}
	return notWritten(hubv1.ReasonStatusOwnedByOther,
		"field manager %s owns fields in the status of the hub object; stop it on the hub, then remove its entry from metadata.managedFields", strings.Join(others, ", "))
}

// statusManagers returns the field managers of the object's status. hub is true if Hanse is one of them. others has all
// field managers except Hanse.
func statusManagers(o *unstructured.Unstructured) (others []string, hub bool) {
	for _, f := range o.GetManagedFields() {
		switch {
		case f.Subresource != "status":
		case f.Manager == hubv1.StatusFieldManager:
			hub = true
		default:
			others = append(others, f.Manager)
		}
	}
	slices.Sort(others)
	return slices.Compact(others), hub
}

// writeObject writes the merged status to the hub object, and sets the condition StatusWritten. While the hub object or
// its CustomResourceDefinition cannot be read, the condition does not change.
func (r *run) writeObject(ctx context.Context) error {
	if !r.part.leads || r.in.template == nil || r.in.template.GetDeletionTimestamp() != nil || r.in.template.GetUID() != r.binding.BindingSpec().ObjectRef.UID {
		return nil
	}
	r.object.merged = r.object.merged.seen(r.in.template.GetResourceVersion())
	var err error
	if r.object.definition, err = r.reporter.define(ctx, r.in.template.GroupVersionKind()); err != nil {
		return err
	}
	v, err := r.merge(ctx)
	r.noteRefusal(err)
	if v == nil || err != nil {
		return err
	}
	meta.SetStatusCondition(&r.out.after.Conditions, metav1.Condition{
		Type: hubv1.ConditionStatusWritten, Status: v.status, Reason: v.reason, Message: v.message,
		ObservedGeneration: r.binding.GetGeneration(), LastTransitionTime: r.now,
	})
	return nil
}

// noteRefusal records whether the hub lacks the right to write the status of the hub object. If so, the write is tried
// again as pace.Refusals says. err is the error of the merge.
func (r *run) noteRefusal(err error) {
	refusals := &r.reporter.refusals
	switch {
	case r.object.forbidden:
		if refusals.Refused(r.key, r.id.GroupKind()) {
			r.object.again = pace.ProbeEvery
		}
	case err == nil:
		r.reporter.mu.Lock()
		defer r.reporter.mu.Unlock()
		r.reporter.tryAgain(refusals.Settled(r.key, r.out.wrote))
	}
}

// tryAgain queues bindings whose hub object could not be written. The caller holds r.mu.
func (r *Reporter) tryAgain(keys []types.NamespacedName) {
	for _, key := range keys {
		if e := r.entries[key]; e != nil {
			r.wakeAfter(key, e, 0, pace.MergedStatus)
		}
	}
}

// Refused returns the namespaces of hub objects whose status the hub may not write, one object of each kind.
func (r *Reporter) Refused() []string {
	var out []string
	for _, key := range r.refusals.Probes() {
		out = append(out, key.Namespace)
	}
	return out
}

// TryRefused writes the status of one object of each refused kind again at once, because the rights of the hub have
// changed. If the API server accepts it, all refused statuses are written.
func (r *Reporter) TryRefused() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tryAgain(r.refusals.Probes())
}

// merge merges the statuses in the rows, writes the result to the hub object, and returns the next condition
// StatusWritten. It returns nil if the condition stays as it is.
func (r *run) merge(ctx context.Context) (*verdict, error) {
	for _, against := range reservations {
		if v := against(r); v != nil {
			return v, r.takeBack(ctx, v)
		}
	}
	rules, faults := rollup.NewRules(r.in.aggregation)
	if v := r.alreadyRefused(rules); v != nil {
		return v, r.takeBack(ctx, v)
	}
	status, leftOut, err := rollup.MergeStatus(r.object.definition.schema, rules, r.current(), r.out.rows, r.targets, r.now)
	switch {
	case (errors.Is(err, rollup.ErrRequired) || err == nil && len(status) == 0) && !r.out.observed():
		v := notWritten(hubv1.ReasonNothingToMerge, "no cluster has reported a status yet")
		return v, r.takeBack(ctx, v)
	case errors.Is(err, rollup.ErrRequired), errors.Is(err, rollup.ErrInvalid):
		v := notWritten(hubv1.ReasonBindingOnly, "%s", err)
		return v, r.takeBack(ctx, v)
	case errors.Is(err, rollup.ErrIncomplete):
		return nil, nil // no merge: the earlier status was merged from more rows
	case err != nil:
		return nil, fmt.Errorf("merging the status of %s: %w", r.id, err)
	case len(status) == 0:
		v := notWritten(hubv1.ReasonNothingToMerge, "the schema of %s has no status field that can be merged", r.id.Kind)
		return v, r.takeBack(ctx, v)
	}
	if v, err := r.apply(ctx, status); v != nil || err != nil {
		if v != nil && r.object.isRefused(r.in.template) {
			err = r.takeBack(ctx, v)
		}
		return v, err
	}
	v := &verdict{status: metav1.ConditionTrue, reason: hubv1.ReasonWritten}
	if len(leftOut) > 0 {
		v.message = "left out: " + strings.Join(leftOut, ", ")
		if faults != nil {
			v.message += "; " + strings.ReplaceAll(faults.Error(), "\n", "; ")
		}
		v.message = bounded(v.message)
	}
	return v, nil
}

// alreadyRefused returns the condition StatusWritten of the earlier refusal, if the merged status equals the status
// that the server has refused. Otherwise it returns nil.
func (r *run) alreadyRefused(rules rollup.Rules) *verdict {
	if !r.object.isRefused(r.in.template) {
		return nil
	}
	status, _, err := rollup.MergeStatus(r.object.definition.schema, rules, r.current(), r.out.rows, r.targets, r.object.refusal.at)
	if err != nil || !equality.Semantic.DeepEqual(status, r.object.refusal.status) {
		return nil
	}
	v := r.object.refusal.condition
	return &v
}

// observed reports whether at least one row has the status of a copy.
func (c *computed) observed() bool {
	return slices.ContainsFunc(c.rows, func(row hubv1.ClusterRow) bool { return row.Observed != nil })
}

// takeBack removes the status that the hub has written earlier. It is called when the hub may not write the status any
// more, and the written status would become outdated. The status stays if other managers own fields in it, or if the
// server refuses the removal.
func (r *run) takeBack(ctx context.Context, v *verdict) error {
	others, ours := statusManagers(r.in.template)
	if !ours || len(others) > 0 || (r.object.isRefused(r.in.template) && r.object.refusal.stays) || r.in.hubIsTarget || len(r.current().Object["status"].(map[string]any)) == 0 {
		return nil
	}
	refused, err := r.apply(ctx, nil)
	if refused != nil {
		v.message = bounded(v.message + "; the hub object keeps its earlier status: " + refused.message)
	}
	return err
}

// current returns the newest state of the hub object that this process knows. The cached object may be older than the
// response to the last status write of this process.
func (r *run) current() *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{}}
	for k, v := range r.in.template.Object {
		out.Object[k] = v
	}
	if r.object.merged.result != nil && hubv1.Older(r.in.template.GetResourceVersion(), r.object.merged.resourceVersion) {
		out.Object["status"] = r.object.merged.result
	}
	if _, ok := out.Object["status"].(map[string]any); !ok {
		out.Object["status"] = map[string]any{}
	}
	return out
}

// errKindIsSlow means that the status of a hub object is written later. Writes to its kind are slow, and too many slow
// writes are in flight.
var errKindIsSlow = errors.New("writes to this kind are slow, and one is in flight")

// apply writes the status if it differs from the status of the hub object. It returns the next condition StatusWritten,
// or nil if the hub object has the status now.
func (r *run) apply(ctx context.Context, status map[string]any) (*verdict, error) {
	current := r.current().Object["status"].(map[string]any)
	if equality.Semantic.DeepEqual(current, status) || (len(current) == 0 && len(status) == 0) ||
		// The server may have added defaults to the last status that this process sent. The new status is therefore also
		// compared with the status that was sent.
		(r.object.merged.sent != nil && equality.Semantic.DeepEqual(r.object.merged.sent, status) && equality.Semantic.DeepEqual(r.object.merged.result, current)) {
		return nil, nil
	}
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(r.in.template.GroupVersionKind())
	object.SetNamespace(r.in.template.GetNamespace())
	object.SetName(r.in.template.GetName())
	object.SetUID(r.in.template.GetUID())
	if status != nil {
		object.Object["status"] = status
	}
	turn, wait := r.reporter.opts.Pacer.TryKind(r.id.GroupKind())
	if turn == nil {
		r.object.again = wait
		return nil, errKindIsSlow
	}
	answer, err := r.reporter.writer.apply(ctx, r.object.definition.resource, object)
	turn.Done()
	if err != nil {
		return r.refused(err, status)
	}
	pace.Writes.WithLabelValues(r.id.Kind, writeStatus).Inc()
	result := answer.Status
	if result == nil {
		result = map[string]any{}
	}
	r.object.merged = merged{sent: status, resourceVersion: answer.Metadata.ResourceVersion, result: result}
	if equality.Semantic.DeepEqual(status, result) {
		r.object.merged.sent = nil
	}
	if status != nil {
		r.object.refusal = refusal{}
	}
	r.out.wrote = true
	return nil, nil
}

// refused handles a failed write. If a retry cannot succeed, it returns the next condition StatusWritten. If a retry
// may succeed, it returns an error.
func (r *run) refused(err error, status map[string]any) (*verdict, error) {
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("writing the status of %s: the object does not exist any more: %w", r.id, err)
	case apierrors.IsConflict(err) && apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict):
		return notWritten(hubv1.ReasonStatusOwnedByOther, "%s", err), nil
	case apierrors.IsForbidden(err):
		r.object.forbidden = true
		return notWritten(hubv1.ReasonStatusRefused, "the hub may not write this status; grant it patch on the status subresource of the kind: %s", err), nil
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), undeclared(err):
		// The API server may already use a newer schema than the cache has.
		if r.reporter.opts.Sources.Definitions.Invalidate(r.id.GroupKind(), r.object.definition.resourceVersion) {
			return nil, fmt.Errorf("writing the status of %s: %w", r.id, err)
		}
		v := notWritten(hubv1.ReasonStatusRefused, "the hub's API server refused the merged status: %s", err)
		if status == nil && r.object.isRefused(r.in.template) {
			r.object.refusal.stays = true
			return v, nil
		}
		r.object.refusal = refusal{
			generation: r.in.template.GetGeneration(), definition: r.object.definition.resourceVersion, condition: *v, status: status, at: r.now, stays: status == nil,
		}
		return v, nil
	}
	return nil, fmt.Errorf("writing the status of %s: %w", r.id, err)
}

// undeclared reports whether the error is about an undeclared field. Server-side apply returns the code 500 and a text
// for such a field.
func undeclared(err error) bool {
	return apierrors.IsInternalError(err) && strings.Contains(err.Error(), "field not declared in schema")
}

// bounded cuts a message to 256 characters.
func bounded(s string) string { return hubv1.CutMessage(s, 256) }
