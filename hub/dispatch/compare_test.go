package dispatch

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/openapi"
)

// fakeCluster is a member whose watch shows the copy in the field seen, or no copy if seen is nil. It returns answer
// for every apply.
type fakeCluster struct {
	member.Cluster
	seen    *member.Observation
	synced  bool
	holders map[schema.GroupVersionKind]bool
	answer  member.Outcome
	applies int
	looked  func() // called after each look at the watch, unless nil
}

func (c *fakeCluster) IsHub() bool { return false }

func (c *fakeCluster) Fit(_ context.Context, manifest *unstructured.Unstructured) (*unstructured.Unstructured, []string) {
	return manifest, nil
}

func (*fakeCluster) Schema(context.Context, schema.GroupVersionKind) *openapi.Schema { return nil }

func (c *fakeCluster) Misfits(context.Context, *unstructured.Unstructured) []member.Misfit {
	return nil
}

func (c *fakeCluster) Observation(schema.GroupVersionKind, types.NamespacedName) (o member.Observation, found, synced bool) {
	if c.looked != nil {
		defer c.looked()
	}
	if c.seen == nil {
		return member.Observation{}, false, c.synced
	}
	return *c.seen, true, c.synced
}

func (c *fakeCluster) Observe(gvk schema.GroupVersionKind, _ types.NamespacedName) {
	if c.holders == nil {
		c.holders = map[schema.GroupVersionKind]bool{}
	}
	c.holders[gvk] = true
}

func (c *fakeCluster) Forget(gvk schema.GroupVersionKind, _ types.NamespacedName) {
	delete(c.holders, gvk)
}

func (c *fakeCluster) Apply(context.Context, member.ApplyIntent) member.Outcome {
	c.applies++
	return c.answer
}

var (
	now    = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	object = hubv1.ObjectIdentity{Group: "test.hanse.dev", Kind: "Widget", Namespace: "ns", Name: "web"}
	kind   = schema.GroupVersionKind{Group: "test.hanse.dev", Version: "v1", Kind: "Widget"}
)

// newRun returns a run. The clock of the run is ahead of now by the given duration.
func newRun(c member.Cluster, after time.Duration) *run {
	b := hubv1.NewBinding(object.BindingKey())
	b.BindingSpec().ObjectRef = hubv1.ObjectReference{APIVersion: "test.hanse.dev/v1", Kind: "Widget", Name: "web", UID: "hub"}
	clock := testclock.NewFakePassiveClock(now.Add(after))
	q := &queue{renderings: &renderings{}, opts: Options{Clock: clock, Epochs: noEpochs{}, HubObject: atHubVersion}, copies: newCopies(clock)}
	return &run{
		queue: q, cluster: c, key: object.BindingKey(), binding: b, target: &hubv1.BindingTarget{Name: "eu", State: hubv1.TargetPresent},
		in: gathered{object: hubv1.SelectableObject{ObjectIdentity: object}},
	}
}

func TestCompare(t *testing.T) {
	// The copy was last confirmed at version 20, with digest d and hash h.
	last := member.Outcome{Applied: metav1.ConditionTrue, Reason: hubv1.ReasonApplied, CopyState: member.CopyState{UID: "u", ResourceVersion: "20", Digest: "d", Hash: "h"}}
	copied := func(version, digest, hash string) *member.Observation {
		return &member.Observation{Owner: object, OwnerUID: "hub", CopyState: member.CopyState{UID: "u", ResourceVersion: version, Digest: digest, Hash: hash}}
	}
	paused := copied("21", "d", "h")
	paused.Paused = now.Add(time.Hour)
	type verdict struct {
		known, waits, drift bool
		after               time.Duration // time until the next try
	}
	tests := map[string]struct {
		last     *member.Outcome // last write of this process; nil: none, so that digest d and hash h come from the row
		after    time.Duration
		waited   time.Duration // how long the run has waited for the list
		seen     *member.Observation
		unsynced bool
		digest   string // wanted digest
		want     verdict
	}{
		"a copy as it is wanted is known":                       {seen: copied("20", "d", "h"), want: verdict{known: true}},
		"a copy that was changed has drifted":                   {seen: copied("21", "d", "x"), want: verdict{drift: true}},
		"a copy that lost its digest has drifted":               {seen: copied("21", "", "x"), want: verdict{drift: true}},
		"a copy on pause is asked for, so that its row says so": {seen: paused},
		"a pause that is over is none":                          {seen: paused, after: 2 * time.Hour, want: verdict{known: true}},
		"a copy of an older template has not drifted":           {seen: copied("20", "d", "h"), digest: "new"},
		"a copy that is gone has drifted if this process held":  {last: &last, want: verdict{drift: true}},
		"a copy that is gone is made again":                     {},
		"our own write is waited for": {
			last: &last, after: time.Second, seen: copied("10", "old", "x"), want: verdict{known: true, after: 9 * time.Second},
		},
		"a write that never comes back is asked for": {
			last: &last, after: pace.AnswerWithin, seen: copied("10", "old", "x"), want: verdict{drift: true},
		},
		"a cluster that was restored to a good copy is in order": {
			last: &last, after: time.Hour, seen: copied("10", "d", "h"), want: verdict{known: true},
		},
		"the first list is waited for": {unsynced: true, want: verdict{waits: true, after: calm}},
		"the first list is waited for only so long": {
			unsynced: true, after: calm, waited: calm,
		},
		"a new template does not wait for the first list": {unsynced: true, digest: "new"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRun(&fakeCluster{seen: tc.seen, synced: !tc.unsynced}, tc.after)
			w := &wanted{digest: "d", record: record{gvk: kind}, lastConfirmed: lastConfirmed{confirmed: "h", confirmedDigest: "d"}}
			if tc.digest != "" {
				w.digest = tc.digest
			}
			if tc.last != nil {
				w.record.last, w.record.confirmedAt = *tc.last, now
			}
			if tc.waited != 0 {
				r.queue.copies.awaited[kind] = now.Add(tc.after - tc.waited)
			}
			o, known, drift := r.compare(w)
			if got := (verdict{known, w.wait, drift, o.After}); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
			if known && o.Applied != metav1.ConditionTrue {
				t.Errorf("known, but %+v", o)
			}
		})
	}
}

func TestTheListOfAKindIsAwaitedOnceForAllItsCopies(t *testing.T) {
	clock := testclock.NewFakePassiveClock(now)
	r := newCopies(clock)
	another := schema.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: "Another"}
	got := []time.Duration{r.listWait(kind)}
	clock.SetTime(now.Add(calm - time.Second))
	got = append(got, r.listWait(kind), r.listWait(another))
	if want := []time.Duration{calm, time.Second, calm}; !slices.Equal(got, want) {
		t.Errorf("awaited for %v, want %v", got, want)
	}
}

// The list arrives after the run has looked at the watch, and the run of another copy sees the list first.
func TestAListThatArrivesDuringARunCausesNoRead(t *testing.T) {
	c := &fakeCluster{}
	r := newRun(c, 0)
	c.looked = func() { r.queue.copies.listed(kind) }
	w := &wanted{digest: "d", record: record{gvk: kind}, lastConfirmed: lastConfirmed{confirmed: "h", confirmedDigest: "d"}}
	if o, known, _ := r.compare(w); known || !w.wait || o.After != calm {
		t.Errorf("known %t, waits %t: %+v", known, w.wait, o)
	}
}

// The cluster no longer serves the kind, and its answer to a read has this reason.
func TestAListThatArrivedIsNotAwaitedAgain(t *testing.T) {
	c := &fakeCluster{synced: true}
	r := newRun(c, 0)
	for _, c.synced = range []bool{true, false} {
		w := &wanted{digest: "d", record: record{gvk: kind}, lastConfirmed: lastConfirmed{confirmed: "h", confirmedDigest: "d"}}
		if o, known, _ := r.compare(w); known || w.wait {
			t.Errorf("synced %t: known %t, waits %t: %+v", c.synced, known, w.wait, o)
		}
	}
}

func TestAKindIsNoLongerWatchedForABindingThatTookAnother(t *testing.T) {
	c := &fakeCluster{}
	r := newRun(c, 0)
	older := schema.GroupVersionKind{Group: kind.Group, Version: "v1beta1", Kind: kind.Kind}
	r.watch(r.queue.copies.get(r.key), older)
	r.watch(r.queue.copies.get(r.key), kind)
	if diff := cmp.Diff(map[schema.GroupVersionKind]bool{kind: true}, c.holders); diff != "" {
		t.Errorf("watched (-want +got):\n%s", diff)
	}
}

func TestACopyThatKeepsBeingDeletedIsContested(t *testing.T) {
	c := &fakeCluster{synced: true, answer: member.Outcome{Applied: metav1.ConditionTrue, CopyState: member.CopyState{UID: "u", ResourceVersion: "20", Digest: "d", Hash: "h"}, Wrote: true}}
	r := newRun(c, 0)
	for range fightRounds + 1 { // the first write is no correction
		if o := r.write(t.Context(), &wanted{digest: "d", record: r.queue.copies.get(r.key)}, c.applies > 0); o.Applied != metav1.ConditionTrue {
			t.Fatalf("write %d: %+v", c.applies, o)
		}
	}
	o := r.write(t.Context(), &wanted{digest: "d", record: r.queue.copies.get(r.key)}, true)
	if o.Reason != hubv1.ReasonContested || o.After != calm || c.applies != fightRounds+1 {
		t.Errorf("after %d writes: %+v", c.applies, o)
	}
}
