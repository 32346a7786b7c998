package discovery

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/openapi"
)

const (
	// publishWithin is how long Fit waits until the member publishes the schema of a new CustomResourceDefinition. Without
	// the schema, Fit cannot find unknown fields, and the member's API server would silently drop them.
	publishWithin = 3 * time.Second
	publishPoll   = 250 * time.Millisecond
)

// Fit returns the manifest without the fields that are not in the member's schema of the kind, and the paths of these
// fields. It returns the manifest itself if the schema has all its fields, or if the member publishes no readable
// schema.
func (k *Kinds) Fit(ctx context.Context, manifest *unstructured.Unstructured) (fitting *unstructured.Unstructured, unserved []string) {
	gvk := manifest.GroupVersionKind()
	sent := sentOf(manifest)
	unknown := k.published(ctx, gvk).Unknown(sent)
	if len(unknown) > 0 && k.mayHaveCome(gvk) {
		unknown = k.schemaOf(ctx, gvk).Unknown(sent)
	}
	if len(unknown) == 0 {
		return manifest, nil
	}
	k.mu.Lock()
	k.known(gvk).troubled = true
	k.mu.Unlock()
	for _, path := range unknown {
		unserved = append(unserved, path.String())
	}
	return openapi.Without(manifest, unknown), unserved
}

// Schema returns the member's schema of a kind. It returns nil if the member publishes no readable schema.
func (k *Kinds) Schema(ctx context.Context, gvk schema.GroupVersionKind) *openapi.Schema {
	if k.isMissing(gvk) {
		return nil
	}
	return k.schemaOf(ctx, gvk)
}

// Faults returns the values of a manifest that violate the member's schema of the kind.
func (k *Kinds) Faults(ctx context.Context, manifest *unstructured.Unstructured) []openapi.Fault {
	gvk := manifest.GroupVersionKind()
	faults := k.Schema(ctx, gvk).Faults(manifest.Object)
	if len(faults) > 0 {
		k.mu.Lock()
		k.known(gvk).troubled = true
		k.mu.Unlock()
	}
	return faults
}

// Misfits returns the result of Faults in the types of package member.
func (k *Kinds) Misfits(ctx context.Context, manifest *unstructured.Unstructured) []member.Misfit {
	return misfits(k.Faults(ctx, manifest))
}

// DeclaredMisfits returns Misfits without undeclared fields. The API server of another member may declare these fields.
func (k *Kinds) DeclaredMisfits(ctx context.Context, manifest *unstructured.Unstructured) []member.Misfit {
	return misfits(slices.DeleteFunc(k.Faults(ctx, manifest), func(f openapi.Fault) bool { return f.Message == openapi.Undeclared }))
}

func misfits(faults []openapi.Fault) []member.Misfit {
	out := make([]member.Misfit, 0, len(faults))
	for _, f := range faults {
		out = append(out, member.Misfit(f))
	}
	return out
}

// sentOf returns the part of the manifest that the hub writes, which is everything except the status.
func sentOf(manifest *unstructured.Unstructured) map[string]any {
	sent := make(map[string]any, len(manifest.Object))
	for name, value := range manifest.Object {
		if name != "status" {
			sent[name] = value
		}
	}
	return sent
}

// published returns the schema of a kind. If the definition is new, it waits up to publishWithin for the schema.
func (k *Kinds) published(ctx context.Context, gvk schema.GroupVersionKind) *openapi.Schema {
	s := k.Schema(ctx, gvk)
	if s != nil || !k.fresh(gvk) || k.isMissing(gvk) {
		return s
	}
	ctx, cancel := context.WithTimeout(ctx, publishWithin)
	defer cancel()
	poll := time.NewTicker(publishPoll)
	defer poll.Stop()
	for s == nil {
		select {
		case <-ctx.Done():
			return nil
		case <-poll.C:
			s = k.refreshed(ctx, gvk, publishPoll)
		}
	}
	return s
}

func (k *Kinds) fresh(gvk schema.GroupVersionKind) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return time.Since(k.known(gvk).changed) < publishLag
}

// mayHaveCome reports whether the member may have got a field that the cached schema lacks. If so, it invalidates the
// cached schema.
func (k *Kinds) mayHaveCome(gvk schema.GroupVersionKind) bool {
	if k.Watched(gvk.Group) {
		return false // the watch would have reported a change of the definition
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	d := &k.known(gvk).document
	if time.Since(d.asked) < trustedFor {
		return false
	}
	d.invalidations++
	return true
}

// refreshed returns a schema that is at most as old as within. It sends no request if the cached schema is new enough.
func (k *Kinds) refreshed(ctx context.Context, gvk schema.GroupVersionKind, within time.Duration) *openapi.Schema {
	k.mu.Lock()
	if d := &k.known(gvk).document; time.Since(d.asked) >= within {
		d.invalidations++
	}
	k.mu.Unlock()
	return k.schemaOf(ctx, gvk)
}

// LearnFrom invalidates the cached answers that the outcome of a write contradicts. It returns the outcome, if
// necessary with another time for the next attempt.
func (k *Kinds) LearnFrom(gvk schema.GroupVersionKind, o member.Outcome) member.Outcome {
	switch {
	// The cached schema may be older than the definition. With the new schema, the next outcome can name the override rule
	// that has caused the error.
	case o.Reason == hubv1.ReasonFieldsNotServed, o.Reason == hubv1.ReasonManifestRefused && k.fresh(gvk):
		k.mu.Lock()
		known := k.known(gvk)
		known.invalidate()
		known.troubled = true
		k.mu.Unlock()
	case o.Reason != hubv1.ReasonKindNotServed || o.Applied != metav1.ConditionFalse || isBuiltIn(gvk.Group):
	case k.confirmsMissing(gvk.Group):
		o.Retry, o.After = member.RetryAfter, missingForWatched
	case k.unwatchable():
		o.Message += "; the hub may not watch definitions there and asks again within a minute"
	}
	if o.Reason == hubv1.ReasonKindNotServed {
		k.mu.Lock()
		known := k.known(gvk)
		known.resource, known.troubled = nil, true
		k.mu.Unlock()
	}
	return o
}
