package apply_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/epoch"
)

// hubAt returns the state of a hub with these epochs, the periods in which it writes to members. The mark, which the
// hub writes into the source annotation of a copy, has the generation and the last epoch.
func hubAt(t *testing.T, generation int64, epochs string) epoch.State {
	t.Helper()
	l, ok := epoch.ParseEpochs(epochs)
	if !ok {
		t.Fatalf("reading %q", epochs)
	}
	last, _ := l.Last()
	return epoch.State{Mark: epoch.Mark{Generation: generation, Epoch: last}, Epochs: l}
}

// sized returns the intent to apply a widget of this size. from is the state of the hub from which the widget was
// rendered. Each size has its own digest.
func (w *world) sized(size int64, from epoch.State) member.ApplyIntent {
	in := w.intent(map[string]any{"size": size}, "d"+string(rune('0'+size)))
	in.Source = from
	return in
}

// holds fails the test unless the copy has this size, and this mark as its source annotation.
func (w *world) holds(size int64, mark string) {
	w.Helper()
	live := w.get()
	spec, _ := live.Object["spec"].(map[string]any)
	if got := live.GetAnnotations()[hubv1.SourceAnnotation]; spec["size"] != size || got != mark {
		w.Errorf("the copy has size %v and mark %q, want %d and %q", spec["size"], got, size, mark)
	}
}

var older = failed(hubv1.ReasonHubIsOlder, member.RetrySlowly)

func TestACopyThatIsNewerThanTheHubIsHeld(t *testing.T) {
	const backup, lost, restored = "10-a 11-b", "10-a 11-b 12-lost", "10-a 11-b 12-new"
	for name, test := range map[string]struct {
		wrote, hub epoch.State
		accepted   string
	}{
		"its epoch is above those that the hub knows":        {wrote: hubAt(t, 5, lost), hub: hubAt(t, 5, backup), accepted: "5;12-lost"},
		"its epoch is another one than the hub has there":    {wrote: hubAt(t, 5, lost), hub: hubAt(t, 5, restored), accepted: "5;12-lost"},
		"its generation is higher than that of the hub's":    {wrote: hubAt(t, 6, backup), hub: hubAt(t, 5, restored), accepted: "6;11-b"},
		"a kind without generations is held by epochs alone": {wrote: hubAt(t, 0, lost), hub: hubAt(t, 0, restored), accepted: "0;12-lost"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.apply(w.sized(4, test.wrote), written)
			w.holds(4, test.wrote.Mark.String())

			out := w.apply(w.sized(3, test.hub), older)
			if !strings.Contains(out.Message, hubv1.AcceptSourceAnnotation+"="+test.accepted) {
				t.Errorf("the message does not tell how to accept the copy: %s", out.Message)
			}
			if want := (member.Newer{Mark: test.wrote.Mark, SameObject: true}); out.Newer != want {
				t.Errorf("got %+v, want %+v", out.Newer, want)
			}
			removal := w.withdrawal()
			removal.Source = test.hub
			w.withdraw(removal, older)
			removal.Policy = hubv1.RemovalOrphan
			w.withdraw(removal, older)
			w.holds(4, test.wrote.Mark.String())

			accepted := test.hub
			accepted.Accepted = test.accepted
			w.apply(w.sized(3, accepted), written)
			w.holds(3, test.hub.Mark.String())
			removal.Policy = hubv1.RemovalDelete
			w.withdraw(removal, withdrawn)
		})
	}
}

// decided returns the state of the hub with this generation of the binding.
func decided(hub epoch.State, binding string, generation int64) epoch.State {
	hub.Mark.Decision = epoch.Decision{Binding: binding, Generation: generation}
	return hub
}

func TestACopyOfALaterDecisionIsHeld(t *testing.T) {
	const backup, restored = "10-a 11-b", "10-a 11-b 12-new"
	wrote := decided(hubAt(t, 5, backup), "binding", 9)
	for name, test := range map[string]struct {
		hub  epoch.State
		want result
	}{
		"by an earlier decision of a restored hub":   {decided(hubAt(t, 5, restored), "binding", 8), older},
		"by the same decision":                       {decided(hubAt(t, 5, restored), "binding", 9), written},
		"by a binding that was made anew":            {decided(hubAt(t, 5, restored), "binding-2", 1), written},
		"by a hub that knows no decision":            {hubAt(t, 5, restored), written},
		"by an earlier decision that a user accepts": {decided(epoch.State{Mark: hubAt(t, 5, restored).Mark, Accepted: "5;11-b"}, "binding", 8), written},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.apply(w.sized(4, wrote), written)
			if got := w.get().GetAnnotations()[hubv1.DecisionAnnotation]; got != "binding;9" {
				t.Errorf("the copy names the decision %q", got)
			}
			out := w.apply(w.sized(3, test.hub), test.want)
			if test.want == older {
				if want := (member.Newer{Mark: wrote.Mark, SameObject: true}); out.Newer != want || !strings.Contains(out.Message, hubv1.AcceptSourceAnnotation+"=5;11-b ") {
					t.Errorf("got %+v, want %+v", out, want)
				}
				w.holds(4, "5;11-b")
				return
			}
			w.holds(3, "5;"+test.hub.Mark.Epoch.String())
			if got := w.get().GetAnnotations()[hubv1.DecisionAnnotation]; got != test.hub.Mark.Decision.String() {
				t.Errorf("the copy names the decision %q", got)
			}
		})
	}
}

func TestACopyIsUpdatedAsEver(t *testing.T) {
	wrote := hubAt(t, 5, "10-a 11-b")
	for name, hub := range map[string]epoch.State{
		"by the next generation of its object":             hubAt(t, 6, "10-a 11-b"),
		"by a policy in the same epoch":                    hubAt(t, 5, "10-a 11-b"),
		"in a later epoch":                                 hubAt(t, 5, "10-a 11-b 12-c"),
		"after its epoch left the list":                    hubAt(t, 6, "12-c 13-d"),
		"after all epochs were accepted":                   hubAt(t, 2, "500-x"),
		"by a hub that has no epochs, as before an update": {Mark: epoch.Mark{Generation: 6}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.apply(w.sized(4, wrote), written)
			w.apply(w.sized(3, hub), written)
			removal := w.withdrawal()
			removal.Source = hub
			w.withdraw(removal, withdrawn)
		})
	}
}

func TestACopyWithoutAMarkIsNotNewer(t *testing.T) {
	w := newWorld(t)
	w.apply(w.sized(4, epoch.State{}), written)
	w.apply(w.sized(3, hubAt(t, 1, "10-a")), written)
	w.holds(3, "1;10-a")
}

// The hub object is deleted and created again, and the generations of the new object start at 1.
func TestACopyOfAnEarlierObjectOfItsName(t *testing.T) {
	w := newWorld(t)
	w.apply(w.sized(4, hubAt(t, 9, "10-a 11-b")), written)
	again := w.sized(3, hubAt(t, 1, "10-a 11-b"))
	again.OwnerUID = "template-2"
	w.apply(again, result{metav1.ConditionTrue, hubv1.ReasonMadeAnew, true, member.RetryNever})

	again = w.sized(4, hubAt(t, 1, "10-a 11-c"))
	again.OwnerUID = "template-3"
	if out := w.apply(again, older); out.Newer.SameObject {
		t.Errorf("%+v", out.Newer)
	}
}

func TestTheSameContentIsWrittenFromAnOlderHub(t *testing.T) {
	w := newWorld(t)
	w.apply(w.sized(4, hubAt(t, 7, "10-a 11-lost")), written)
	w.edit(`{"spec":{"size":8}}`)
	w.apply(w.sized(4, hubAt(t, 5, "10-a 11-new")), result{metav1.ConditionTrue, hubv1.ReasonApplied, true, member.RetryNever})
	w.holds(4, "5;11-new")
}

func TestNoWriteIsMadeForTheMarkAlone(t *testing.T) {
	w := newWorld(t)
	w.apply(w.sized(4, hubAt(t, 5, "10-a")), written)
	w.apply(w.sized(4, hubAt(t, 6, "10-a 11-b")), unchanged) // the row has no confirmed hash
	w.holds(4, "5;10-a")
	w.apply(w.sized(4, decided(hubAt(t, 6, "10-a 11-b"), "binding", 9)), unchanged)
	in := w.sized(4, epoch.State{})
	in.Mode = hubv1.ApplyReportOnly
	w.apply(in, result{metav1.ConditionTrue, hubv1.ReasonInSync, false, member.RetrySlowly})
}

func TestACopyWithoutAMarkHasNotDrifted(t *testing.T) {
	w := newWorld(t)
	w.apply(w.sized(4, epoch.State{}), written)
	in := w.sized(4, decided(hubAt(t, 5, "10-a"), "binding", 9))
	in.FieldConflict = hubv1.FieldConflictReport
	w.apply(in, written)
	w.holds(4, "5;10-a")
}

func TestTheMarkGoesWithTheOthersWhenACopyIsOrphaned(t *testing.T) {
	w := newWorld(t)
	w.apply(w.sized(4, decided(hubAt(t, 5, "10-a"), "binding", 9)), written)
	removal := w.withdrawal()
	removal.Policy, removal.Source = hubv1.RemovalOrphan, hubAt(t, 5, "10-a")
	w.withdraw(removal, withdrawn)
	w.holds(4, "")
	if got := w.get().GetAnnotations(); len(got) != 0 {
		t.Errorf("the orphaned copy has the annotations %v", got)
	}
}
