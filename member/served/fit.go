package served

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
	// A definition that came this recently is about to have its schema published.
	freshFor = 5 * time.Second
	// publishWithin is how long that is awaited: a field that is unknown then would be dropped without a word.
	publishWithin = 3 * time.Second
	publishPoll   = 250 * time.Millisecond
)

// Fit returns the manifest without the fields that the member's schema of its kind does not have, and their paths. It
// is the manifest itself if there are none, or if the schema cannot be had.
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

// Schema returns the member's schema of a kind; nil if it cannot be had, or the member has no such kind.
func (k *Kinds) Schema(ctx context.Context, gvk schema.GroupVersionKind) *openapi.Schema {
	if k.isMissing(gvk) {
		return nil
	}
	return k.schemaOf(ctx, gvk)
}

// Faults are the values of a manifest that the member's schema of its kind does not take.
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

// Misfits are Faults as the door names them.
func (k *Kinds) Misfits(ctx context.Context, manifest *unstructured.Unstructured) []member.Misfit {
	return misfits(k.Faults(ctx, manifest))
}

// DeclaredMisfits are Misfits without fields that the schema does not declare: these may be declared by another server.
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

// sentOf is the manifest as far as it is written: the status is not.
func sentOf(manifest *unstructured.Unstructured) map[string]any {
	sent := make(map[string]any, len(manifest.Object))
	for name, value := range manifest.Object {
		if name != "status" {
			sent[name] = value
		}
	}
	return sent
}

// published returns the schema of a kind, and waits a moment for that of a definition which has just come.
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
			s = k.askedAnew(ctx, gvk, publishPoll)
		}
	}
	return s
}

func (k *Kinds) fresh(gvk schema.GroupVersionKind) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return time.Since(k.known(gvk).changed) < freshFor
}

// mayHaveCome says that a field which is unknown may have come since the member was last asked, and makes the next who
// asks ask it.
func (k *Kinds) mayHaveCome(gvk schema.GroupVersionKind) bool {
	if k.Watched(gvk.Group) {
		return false // that would have been seen
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	d := &k.known(gvk).document
	if time.Since(d.asked) < doubtAfter {
		return false
	}
	d.doubts++
	return true
}

// askedAnew asks the member unless somebody else has just done so.
func (k *Kinds) askedAnew(ctx context.Context, gvk schema.GroupVersionKind, within time.Duration) *openapi.Schema {
	k.mu.Lock()
	if d := &k.known(gvk).document; time.Since(d.asked) >= within {
		d.doubts++
	}
	k.mu.Unlock()
	return k.schemaOf(ctx, gvk)
}

// waitForDefinition is how often a kind that is not served is asked for although its definition would be seen to come:
// it may be that of an aggregated API server, which has none.
const waitForDefinition = 5 * time.Minute

// Heed takes up what the outcome of a write says of what the member serves, and says how the kind is waited for.
func (k *Kinds) Heed(gvk schema.GroupVersionKind, o member.Outcome) member.Outcome {
	switch {
	case o.Reason == hubv1.ReasonFieldsNotServed:
		k.mu.Lock()
		known := k.known(gvk)
		known.doubt()
		known.troubled = true
		k.mu.Unlock()
	case o.Reason != hubv1.ReasonKindNotServed || o.Applied != metav1.ConditionFalse || isBuiltIn(gvk.Group):
	case k.Watched(gvk.Group):
		o.Retry, o.After = member.RetryAfter, waitForDefinition
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
