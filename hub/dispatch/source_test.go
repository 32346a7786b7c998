package dispatch

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/epoch"
)

func epochsOf(t *testing.T, text string) epoch.Epochs {
	t.Helper()
	l, ok := epoch.ParseEpochs(text)
	if !ok {
		t.Fatalf("reading %q", text)
	}
	return l
}

// fakeEpochs has the list of the hub's epochs in the cache, and the list on the API server.
type fakeEpochs struct {
	cached, stored epoch.Epochs
	err            error
}

func (f fakeEpochs) Current() epoch.Epochs { return f.cached }

func (f fakeEpochs) Confirm(context.Context, epoch.Epoch) (epoch.Epochs, error) {
	return f.stored, f.err
}

func (f fakeEpochs) Use(context.Context) epoch.Epochs { return f.cached }

// uncached simulates a client that reads from the API server. Its Get returns a hub object with this generation and
// accept-source annotation.
type uncached struct {
	client.Client
	generation int64
	accepted   string
	binding    *hubv1.ResourceBinding // nil: as in the cache
	failed     error                  // of a read of the binding
}

func (u uncached) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if b, isBinding := into.(*hubv1.ResourceBinding); isBinding {
		if u.binding != nil {
			u.binding.DeepCopyInto(b)
		}
		return u.failed
	}
	into.SetUID("hub")
	into.SetGeneration(u.generation)
	into.SetAnnotations(map[string]string{hubv1.AcceptSourceAnnotation: u.accepted})
	return nil
}

func TestAHubIsOlderOnlyIfUncachedReadsSaySo(t *testing.T) {
	const cached, behind, restored = "10-a 11-b", "10-a 11-b 12-c", "10-a 11-b 12-new"
	for name, test := range map[string]struct {
		mark     string
		stored   string
		read     error
		object   uncached
		accepted string
		other    bool // the copy belongs to another object of this name
		older    bool
	}{
		"an epoch that nobody knows is of a later hub":                     {mark: "5;12-lost", stored: restored, older: true},
		"an epoch that another replica began is not":                       {mark: "5;12-c", stored: behind, object: uncached{generation: 5}},
		"nothing is known of an epoch while the list cannot be read":       {mark: "5;12-lost", read: errors.New("away")},
		"a generation above that of the hub object is of a later hub":      {mark: "6;11-b", stored: cached, object: uncached{generation: 5}, older: true},
		"a generation that only the cache does not have is not":            {mark: "6;11-b", stored: cached, object: uncached{generation: 6}},
		"an epoch of another replica may come with a generation that is":   {mark: "6;12-c", stored: behind, object: uncached{generation: 5}, older: true},
		"generations of two objects are not compared":                      {mark: "6;11-b", stored: cached, object: uncached{generation: 5}, other: true},
		"a mark that was accepted in this moment is not of a later hub":    {mark: "6;11-b", stored: cached, object: uncached{generation: 5, accepted: "6;11-b"}},
		"nor is one whose epoch became old since all epochs were accepted": {mark: "6;12-lost", stored: "900-x", object: uncached{generation: 5}},
	} {
		t.Run(name, func(t *testing.T) {
			o := member.Outcome{Applied: metav1.ConditionFalse, Reason: hubv1.ReasonHubIsOlder, Newer: member.Newer{Mark: epoch.ParseMark(test.mark), SameObject: !test.other}}
			r := newRun(&fakeCluster{answer: o}, 0)
			r.queue.opts.APIReader = test.object
			stored := epoch.Epochs{}
			if test.stored != "" {
				stored = epochsOf(t, test.stored)
			}
			r.queue.opts.Epochs = fakeEpochs{cached: epochsOf(t, cached), stored: stored, err: test.read}
			r.setSource(&metav1.ObjectMeta{Generation: 5})
			got := r.write(t.Context(), &wanted{digest: "d", record: r.queue.copies.get(r.key)}, false)
			if older := got.Reason == hubv1.ReasonHubIsOlder; older != test.older || r.behind == test.older {
				t.Errorf("older %v, behind %v: %+v", older, r.behind, got)
			}
			if !test.older && got.Retry != member.RetrySoon {
				t.Errorf("not tried again soon: %+v", got)
			}
		})
	}
}

func TestADecisionIsLaterOnlyIfAnUncachedReadSaysSo(t *testing.T) {
	bound := func(uid string, generation int64, reason string) *hubv1.ResourceBinding {
		b := &hubv1.ResourceBinding{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), Generation: generation}}
		b.Status.Clusters = []hubv1.ClusterRow{{Name: "eu", Reason: reason}}
		return b
	}
	for name, test := range map[string]struct {
		cached, live *hubv1.ResourceBinding
		failed       error
		written      bool // whether this process has written the copy since
		older        bool
	}{
		"a decision above that of the binding is of a later hub":                       {cached: bound("b", 8, ""), live: bound("b", 8, ""), older: true},
		"a decision that only the cache does not have is not":                          {cached: bound("b", 8, ""), live: bound("b", 9, "")},
		"a binding that was made anew proves nothing":                                  {cached: bound("b", 8, ""), live: bound("b-2", 1, "")},
		"nothing is known of a decision while the binding cannot be read":              {cached: bound("b", 8, ""), failed: errors.New("away")},
		"a copy that is held stays so after further decisions":                         {cached: bound("b", 12, hubv1.ReasonHubIsOlder), live: bound("b", 12, hubv1.ReasonHubIsOlder), older: true},
		"a row that only the cache has holds nothing":                                  {cached: bound("b", 12, hubv1.ReasonHubIsOlder), live: bound("b", 12, "")},
		"a row that is older than the write of this process holds nothing of this hub": {cached: bound("b", 12, hubv1.ReasonHubIsOlder), live: bound("b", 12, ""), written: true},
	} {
		t.Run(name, func(t *testing.T) {
			mark := epoch.ReadMark("5;11-b", "b;9")
			o := member.Outcome{Applied: metav1.ConditionFalse, Reason: hubv1.ReasonHubIsOlder, Newer: member.Newer{Mark: mark, SameObject: true}}
			r := newRun(&fakeCluster{answer: o}, 0)
			list := epochsOf(t, "10-a 11-b")
			r.queue.opts.Epochs = fakeEpochs{cached: list, stored: list}
			r.queue.opts.APIReader = uncached{generation: 5, binding: test.live, failed: test.failed}
			b := r.binding.(*hubv1.ResourceBinding)
			b.UID, b.Generation, b.Status = test.cached.UID, test.cached.Generation, test.cached.Status
			r.target.Name = "eu"
			if test.written {
				r.queue.copies.set(r.key, record{gvk: kind, last: member.Outcome{Applied: metav1.ConditionTrue}})
			}
			r.setSource(&metav1.ObjectMeta{Generation: 5})
			if r.out.source.Held != (test.cached.Status.Clusters[0].Reason != "" && !test.written) {
				t.Errorf("held: %t", r.out.source.Held)
			}
			got := r.write(t.Context(), &wanted{digest: "d", record: r.queue.copies.get(r.key)}, false)
			if older := got.Reason == hubv1.ReasonHubIsOlder; older != test.older {
				t.Errorf("older is %t: %+v", older, got)
			}
			if !test.older && got.Retry != member.RetrySoon {
				t.Errorf("not tried again soon: %+v", got)
			}
		})
	}
}

// liveTemplates returns object for every uncached read of a hub object, or err if it is set.
type liveTemplates struct {
	Templates
	object *unstructured.Unstructured // nil: the object is deleted
	err    error
}

// Live implements Templates.
func (l liveTemplates) Live(context.Context, hubv1.ObjectIdentity, time.Time) (*unstructured.Unstructured, bool, error) {
	return l.object, l.object == nil && l.err == nil, l.err
}

func TestTheGenerationOfAnObjectOfABundleIsThatOfItsSecret(t *testing.T) {
	stored := func(generation int64) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetUID("hub")
		u.SetGeneration(generation)
		return u
	}
	for name, test := range map[string]struct {
		live  liveTemplates
		older bool
	}{
		"a generation above that of the Secret is of a later hub": {live: liveTemplates{object: stored(5)}, older: true},
		"a generation that only the cache does not have is not":   {live: liveTemplates{object: stored(6)}},
		"a missing Secret proves nothing":                         {live: liveTemplates{err: errors.New("the Secret is missing")}},
		"an object that is gone proves nothing":                   {},
	} {
		t.Run(name, func(t *testing.T) {
			o := member.Outcome{Applied: metav1.ConditionFalse, Reason: hubv1.ReasonHubIsOlder, Newer: member.Newer{Mark: epoch.ParseMark("6;11-b"), SameObject: true}}
			r := newRun(&fakeCluster{answer: o}, 0)
			r.binding.BindingSpec().ObjectRef.Bundle = &hubv1.BundleReference{Kind: "ClusterBundle", Name: "web"}
			r.queue.opts.APIReader = uncached{generation: 9} // the hub has another object of this name
			r.queue.opts.Templates = test.live
			list := epochsOf(t, "10-a 11-b")
			r.queue.opts.Epochs = fakeEpochs{cached: list, stored: list}
			r.setSource(&metav1.ObjectMeta{Generation: 5})
			got := r.write(t.Context(), &wanted{digest: "d", record: r.queue.copies.get(r.key)}, false)
			if older := got.Reason == hubv1.ReasonHubIsOlder; older != test.older {
				t.Errorf("older is %t: %+v", older, got)
			}
			if !test.older && got.Retry != member.RetrySoon {
				t.Errorf("not tried again soon: %+v", got)
			}
		})
	}
}

func TestACopyThatIsNewerIsReadBeforeItIsWritten(t *testing.T) {
	for name, test := range map[string]struct {
		mark   string
		unread bool
	}{
		"a copy of this hub is written on the version that was observed": {"5;11-b", true},
		"so is one without a mark":                                       {"", true},
		"one of a foreign epoch is not":                                  {"5;12-lost", false},
		"one of a higher generation is not":                              {"6;11-b", false},
	} {
		t.Run(name, func(t *testing.T) {
			seen := &member.Observation{Owner: object, OwnerUID: "hub", CopyState: member.CopyState{UID: "u", ResourceVersion: "20", Digest: "d", Hash: "h"}, Source: epoch.ParseMark(test.mark)}
			r := newRun(&fakeCluster{seen: seen, synced: true}, 0)
			r.queue.opts.Epochs = fakeEpochs{cached: epochsOf(t, "10-a 11-b")}
			r.setSource(&metav1.ObjectMeta{Generation: 5})
			w := &wanted{digest: "new", record: record{gvk: kind}, lastConfirmed: lastConfirmed{confirmed: "h", confirmedDigest: "d"}}
			if _, known, _ := r.compare(w); known || (w.observed == "20") != test.unread {
				t.Errorf("known %v, written on version %q", known, w.observed)
			}
			in := r.intent(w)
			if got := in.Source.Mark.String(); got != "5;11-b" {
				t.Errorf("leaves the mark %s", got)
			}
		})
	}
}

func TestADeletedObjectHoldsNothingByItsGeneration(t *testing.T) {
	r := newRun(&fakeCluster{}, 0)
	r.queue.opts.Epochs = fakeEpochs{cached: epochsOf(t, "10-a 11-b")}
	r.setSource(nil)
	if r.out.source.Newer(epoch.ParseMark("6;11-b"), true) || !r.out.source.Newer(epoch.ParseMark("6;12-lost"), true) {
		t.Errorf("%+v", r.out.source)
	}
}
