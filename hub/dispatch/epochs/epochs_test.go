package epochs_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/dispatch/epochs"
	"github.com/hanse-dev/hanse/member/epoch"
)

var place = types.NamespacedName{Namespace: hubv1.SystemNamespace, Name: hubv1.EpochsConfigMap}

// world is a hub with the objects that the chart creates.
type world struct {
	*testing.T
	client.Client
	clock         *testclock.FakePassiveClock
	reads, writes int
	refuses       bool // whether the server refuses every update
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, hubv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{T: t, clock: testclock.NewFakePassiveClock(time.Unix(1_764_028_800, 0))}
	objects = append(objects, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: place.Namespace, Name: place.Name}})
	w.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			w.reads++
			return c.Get(ctx, key, obj, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			if w.refuses {
				return errors.New("the server is in trouble")
			}
			w.writes++
			return c.Update(ctx, obj, opts...)
		},
	}).Build()
	return w
}

// replica returns the Keeper of a new replica that has read the list of epochs.
func (w *world) replica() *epochs.Keeper {
	w.Helper()
	k := epochs.New(epochs.Options{Reader: w.Client, Client: w.Client, ConfigMap: place, Clock: w.clock})
	k.Ready(w.Context())
	return k
}

// leader returns the Keeper of a hub process that has just started. The process has called Use, which the hub calls
// before a write to a member.
func (w *world) leader() *epochs.Keeper {
	w.Helper()
	k := w.replica()
	if err := k.Lead(w.Context()); err != nil {
		w.Fatal(err)
	}
	k.Use(w.Context())
	return k
}

func (w *world) look(k *epochs.Keeper) {
	w.Helper()
	if err := k.Look(w.Context()); err != nil {
		w.Fatal(err)
	}
}

// stored reads the list of epochs from the API server.
func (w *world) stored() epoch.Epochs {
	w.Helper()
	var c corev1.ConfigMap
	if err := w.Get(w.Context(), place, &c); err != nil {
		w.Fatal(err)
	}
	l, ok := epoch.ParseEpochs(c.Data[hubv1.EpochsKey])
	if !ok {
		w.Fatalf("cannot be read: %q", c.Data)
	}
	return l
}

func (w *world) store(l epoch.Epochs) {
	w.Helper()
	c := &corev1.ConfigMap{}
	if err := w.Get(w.Context(), place, c); err != nil {
		w.Fatal(err)
	}
	c.Data = map[string]string{hubv1.EpochsKey: l.String()}
	if err := w.Update(w.Context(), c); err != nil {
		w.Fatal(err)
	}
}

func TestAProcessBeginsAnEpochBeforeItWrites(t *testing.T) {
	w := newWorld(t)
	if l := w.replica().Current(); l.Len() != 0 {
		t.Errorf("a replica that does not lead uses %q", l)
	}
	for n := 1; n <= 3; n++ {
		l := w.leader().Current()
		if l.Len() != n || l.String() != w.stored().String() {
			t.Errorf("leader %d uses %q, and stored is %q", n, l, w.stored())
		}
	}
	if first, _ := w.stored().First(); first.Sequence != w.clock.Now().Unix() {
		t.Errorf("the first epoch is %s", first)
	}
}

func TestARestartThatWritesToNoMemberBeginsNoEpoch(t *testing.T) {
	w := newWorld(t)
	w.leader()
	writes := w.writes
	for range 3 {
		k := w.replica()
		if err := k.Lead(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.clock.SetTime(w.clock.Now().Add(time.Hour))
		w.look(k)
	}
	if w.writes != writes {
		t.Errorf("%d writes of the list by restarts", w.writes-writes)
	}
	late := w.replica()
	newest, _ := w.leader().Current().Last()
	late.Ready(t.Context()) // as if the watch called it
	if last, _ := late.Use(t.Context()).Last(); last != newest {
		t.Errorf("a replica begins %s although another one has just begun %s", last, newest)
	}
}

func TestAnEpochThatCannotBeBegunHoldsUpNoWrite(t *testing.T) {
	w := newWorld(t)
	before, _ := w.leader().Current().Last()
	k := w.replica()
	w.refuses = true
	reads := w.reads
	for range 5 {
		if last, _ := k.Use(t.Context()).Last(); last != before {
			t.Errorf("the write is made in %s", last)
		}
	}
	if w.reads != reads+1 {
		t.Errorf("%d tries for five writes at one moment", w.reads-reads)
	}
	w.refuses = false
	w.look(k)
	if last, _ := k.Current().Last(); last == before {
		t.Error("no epoch was begun when that was possible again")
	}
}

func TestAnEpochLastsForTenMinutesInWhichMembersWereWritten(t *testing.T) {
	w := newWorld(t)
	leader := w.replica()
	if err := leader.Lead(t.Context()); err != nil {
		t.Fatal(err)
	}
	follower := w.replica()
	writes := w.writes
	for range 60 { // an hour without a write to a member
		w.clock.SetTime(w.clock.Now().Add(time.Minute))
		w.look(leader)
		w.look(follower)
	}
	if w.writes != writes {
		t.Errorf("%d writes of the list although no member was written", w.writes-writes)
	}
	for range 60 {
		leader.Use(t.Context())
		follower.Use(t.Context())
		w.clock.SetTime(w.clock.Now().Add(time.Minute))
		w.look(leader)
		w.look(follower)
	}
	if n := w.writes - writes; n < 4 || n > 7 { // the start of the follower makes one of the writes
		t.Errorf("%d writes of the list within an hour of writes to members", n)
	}
	leader.Ready(t.Context()) // as if the watch called it
	if leader.Current().String() != w.stored().String() {
		t.Errorf("the leader uses %q, and stored is %q", leader.Current(), w.stored())
	}
}

func TestAnEpochIsForeignOnlyIfAnUncachedReadSaysSo(t *testing.T) {
	w := newWorld(t)
	w.leader()
	late := w.replica()
	newer, _ := w.leader().Current().Last()
	if !late.Current().Foreign(newer) {
		t.Fatal("the replica is not behind")
	}
	l, err := late.Confirm(t.Context(), newer)
	if err != nil || l.Foreign(newer) || late.Current().Foreign(newer) {
		t.Errorf("an epoch of another replica is foreign: %v", err)
	}
	other := epoch.Epoch{Sequence: newer.Sequence, Random: "x"}
	reads := w.reads
	for range 3 {
		if l, err := late.Confirm(t.Context(), other); err != nil || !l.Foreign(other) {
			t.Errorf("an epoch of another state of the hub is not foreign: %v", err)
		}
	}
	if w.reads != reads+1 {
		t.Errorf("%d reads for one foreign epoch", w.reads-reads)
	}
}

// A compromised member may write into a copy an epoch that the hub never had, and another one at every event.
func TestForeignEpochsDoNotFillTheMemory(t *testing.T) {
	w := newWorld(t)
	k := w.leader()
	last, _ := k.Current().Last()
	confirm := func(n int) {
		t.Helper()
		e := epoch.Epoch{Sequence: last.Sequence + 1, Random: strconv.Itoa(n)}
		if l, err := k.Confirm(t.Context(), e); err != nil || !l.Foreign(e) {
			t.Fatalf("%s is not foreign: %v", e, err)
		}
	}
	for n := range 5000 {
		confirm(n)
	}
	reads := w.reads
	if confirm(4999); w.reads != reads {
		t.Error("the newest epoch is not remembered")
	}
	if confirm(0); w.reads == reads {
		t.Error("all of 5000 epochs are remembered")
	}
}

func TestARestoredHubFindsForeignWhatItForgot(t *testing.T) {
	w := newWorld(t)
	w.leader()
	backup := w.stored()
	forgotten, _ := w.leader().Current().Last()
	w.store(backup)
	restored := w.leader()
	if l, err := restored.Confirm(t.Context(), forgotten); err != nil || !l.Foreign(forgotten) {
		t.Errorf("%s is not foreign to %q: %v", forgotten, l, err)
	}
	reported := 0
	restored.OnRestart(func() { reported++ })
	w.store(w.stored().Restart("n", w.clock.Now().Unix()))
	restored.Ready(t.Context())
	if l, err := restored.Confirm(t.Context(), forgotten); err != nil || l.Foreign(forgotten) || reported != 1 {
		t.Errorf("after it was accepted, %s is foreign to %q; told %d times: %v", forgotten, l, reported, err)
	}
}

// lose deletes the ConfigMap with the list of epochs, or the list in it.
func (w *world) lose(configMap bool) {
	w.Helper()
	if !configMap {
		w.store(epoch.Epochs{})
		return
	}
	if err := w.Delete(w.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: place.Namespace, Name: place.Name}}); err != nil {
		w.Fatal(err)
	}
}

func TestAListThatAUserDeletesIsWrittenAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		configMap bool
		again     func(w *world, k *epochs.Keeper)
	}{
		"the ConfigMap, found by the watch": {configMap: true, again: func(w *world, k *epochs.Keeper) {
			k.Ready(w.Context())
			_, _ = k.Confirm(w.Context(), epoch.Epoch{Sequence: 1, Random: "a"}) // reads that there is no ConfigMap, as the watch does
			w.look(k)
		}},
		"the list in it, found by the watch": {again: func(w *world, k *epochs.Keeper) {
			k.Ready(w.Context())
			w.look(k)
		}},
		"the ConfigMap, before the next epoch": {configMap: true, again: func(w *world, k *epochs.Keeper) {
			k.Use(w.Context())
			w.clock.SetTime(w.clock.Now().Add(time.Hour))
			w.look(k)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			k := w.leader()
			before := w.stored()
			reported := 0
			k.OnRestart(func() { reported++ })
			forgotten := epoch.Epoch{Sequence: w.clock.Now().Unix() + 5, Random: "later"} // of a state of the hub before a restore
			w.lose(tc.configMap)
			if l, err := k.Confirm(t.Context(), forgotten); err != nil || !l.Foreign(forgotten) {
				t.Errorf("while there is no list, %s is not foreign: %v", forgotten, err)
			}
			tc.again(w, k)
			after := w.stored()
			if after.Len() != before.Len()+1 || !strings.HasPrefix(after.String(), before.String()) || !after.Foreign(forgotten) || reported != 0 {
				t.Errorf("the list was %q and is %q; told %d times of a new list", before, after, reported)
			}
			other := w.replica()
			w.look(other)
			if got := w.stored().String(); got != after.String() {
				t.Errorf("a second replica makes %q of the list %q", got, after)
			}
		})
	}
}

func TestAListThatNoProcessKnowsIsANewList(t *testing.T) {
	w := newWorld(t)
	w.leader()
	k := w.replica()
	reported := 0
	k.OnRestart(func() { reported++ })
	w.lose(true)
	k.Ready(t.Context())
	if reported != 0 {
		t.Errorf("told %d times of a list without epochs", reported)
	}
	w.clock.SetTime(w.clock.Now().Add(time.Minute))
	w.leader() // has started after the deletion
	k.Ready(t.Context())
	if n := w.stored().Len(); reported != 1 || n != 1 {
		t.Errorf("told %d times of the new list, want once; it has %d epochs", reported, n)
	}
}

func TestTheFirstEpochStaysWhileACopyIsHeld(t *testing.T) {
	full := epoch.Epochs{}
	for range 1000 {
		full = full.Append("a", 1, 1000)
	}
	for name, test := range map[string]struct {
		reason string
		first  int64
	}{
		"a copy that is held keeps it": {hubv1.ReasonHubIsOlder, 1},
		"else it goes":                 {hubv1.ReasonApplied, 2},
	} {
		t.Run(name, func(t *testing.T) {
			b := &hubv1.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
			b.Status.Clusters = []hubv1.ClusterRow{{Name: "eu", Reason: test.reason}}
			w := newWorld(t, b)
			w.store(full)
			w.leader()
			if first, _ := w.stored().First(); first.Sequence != test.first {
				t.Errorf("the first epoch is %s", first)
			}
		})
	}
}

func TestALeaderWithoutAConfigMapCreatesIt(t *testing.T) {
	w := newWorld(t)
	w.lose(true)
	k := w.replica()
	e := epoch.Epoch{Sequence: 1, Random: "a"}
	if l, err := k.Confirm(t.Context(), e); err != nil || l.Foreign(e) || k.Current().Len() != 0 {
		t.Errorf("before there is a leader: %q, %v", l, err)
	}
	if l := w.leader().Current(); l.Len() != 1 || l.String() != w.stored().String() {
		t.Errorf("the leader uses %q, and stored is %q", l, w.stored())
	}
}

func TestAListThatCannotBeReadBeginsAfterTheOldOne(t *testing.T) {
	w := newWorld(t)
	old, _ := w.leader().Current().Last()
	c := &corev1.ConfigMap{}
	if err := w.Get(t.Context(), place, c); err != nil {
		t.Fatal(err)
	}
	c.Data[hubv1.EpochsKey] = "nonsense"
	if err := w.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	w.clock.SetTime(w.clock.Now().Add(time.Minute))
	if l := w.leader().Current(); l.Len() != 1 || l.Foreign(old) {
		t.Errorf("%q after an epoch %s", l, old)
	}
}
