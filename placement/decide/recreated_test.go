package decide

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// recreated returns the input for the hub object with the UID b. The binding records the earlier object with the UID a.
// released has the clusters on which package guard permits the removal of the earlier copy. Without a name, no guard
// runs, and every removal is permitted.
func recreated(b *hubv1.ResourceBinding, p *hubv1.Placement, released ...string) Input {
	verdicts := map[string]Verdict{}
	for _, name := range released {
		verdicts[name] = Verdict{Reason: hubv1.ReasonMadeAnew, Released: true}
	}
	if len(released) == 0 {
		verdicts = nil
	}
	return Input{
		Object: Object{ID: object, Template: template("b")}, Binding: b, Now: now, Removals: verdicts,
		Facts: Facts{Placements: []hubv1.PlacementObject{p}, Clusters: three(), NamespaceRead: true},
	}
}

// recorded sets the UID of the hub object that a binding records.
func recorded(b *hubv1.ResourceBinding, uid types.UID) *hubv1.ResourceBinding {
	b.Spec.ObjectRef.UID = uid
	return b
}

func TestARecreatedObject(t *testing.T) {
	since := metav1.NewTime(now)
	held := map[string]Verdict{"eu": {Reason: hubv1.ReasonMadeAnew, HeldSince: &since}, "sg": {Reason: hubv1.ReasonMadeAnew, HeldSince: &since}}
	with := func(in Input, change func(*Input)) Input {
		change(&in)
		return in
	}
	deleted := func(p *hubv1.Placement) { p.Spec.Deletion.WhenUnselected = hubv1.RemovalOrphan }
	orphan := func(p *hubv1.Placement) { p.Spec.Deletion.WhenDeleted = hubv1.RemovalOrphan }
	euSG := func() *hubv1.ResourceBinding { return bound(present("eu"), present("sg")) }
	gone := absent("eu", hubv1.ReasonMadeAnew, hubv1.RemovalDelete)
	for name, tc := range map[string]struct {
		in   Input
		want string
		uid  types.UID
	}{
		"its earlier copies are removed": {
			recreated(euSG(), policy("web", named("eu", "sg"))), "-eu MadeAnew Delete, -sg MadeAnew Delete", "b",
		},
		"whatever happens to copies that are no longer selected": {
			recreated(euSG(), policy("web", named("eu", "sg"), deleted)), "-eu MadeAnew Delete, -sg MadeAnew Delete", "b",
		},
		"nothing is written until the guard has judged": {
			with(recreated(euSG(), policy("web", named("eu", "sg"))), func(in *Input) { in.Removals = map[string]Verdict{} }), "eu, sg", "a",
		},
		"the guard does not judge a deletion that the hub has seen": {
			with(recreated(euSG(), policy("web", named("eu", "sg"))), func(in *Input) { in.Removals, in.Object.DeletionSeen = map[string]Verdict{}, true }),
			"-eu MadeAnew Delete, -sg MadeAnew Delete", "b",
		},
		"the guard holds all removals": {
			with(recreated(euSG(), policy("web", named("eu", "sg"))), func(in *Input) { in.Removals = held }), "!eu MadeAnew, !sg MadeAnew", "a",
		},
		"the guard has permitted one of two removals": {
			recreated(euSG(), policy("web", named("eu", "sg")), "eu"), "eu, sg", "a",
		},
		"the guard has permitted all": {
			recreated(euSG(), policy("web", named("eu", "sg")), "eu", "sg"), "-eu MadeAnew Delete, -sg MadeAnew Delete", "b",
		},
		"a cached template alone removes nothing": {
			with(recreated(euSG(), policy("web", named("eu", "sg"))), func(in *Input) { in.Object.Unconfirmed = true }), "eu, sg", "a",
		},
		"a cluster that has removed its copy gets the object, and the other is not waited for": {
			recreated(recorded(withdrawnRow(bound(gone, absent("sg", hubv1.ReasonMadeAnew, hubv1.RemovalDelete)), "eu"), "b"), policy("web", named("eu", "sg"))),
			"eu, -sg MadeAnew Delete", "b",
		},
		"a third object does not change which copy is removed": {
			with(recreated(recorded(bound(gone, present("sg")), "b"), policy("web", named("eu", "sg"))), func(in *Input) { in.Object.Template = template("c") }),
			"-eu MadeAnew Delete, -sg MadeAnew Delete", "c",
		},
		"a new cluster waits for the guard, too": {
			with(recreated(bound(present("eu")), policy("web", named("eu", "sg"))), func(in *Input) { in.Removals = map[string]Verdict{} }), "eu", "a",
		},
		"and gets the object with the others": {
			recreated(bound(present("eu")), policy("web", named("eu", "sg"))), "-eu MadeAnew Delete, sg", "b",
		},
		"a withdrawal of the deleted object continues": {
			recreated(bound(absent("eu", hubv1.ReasonObjectDeleted, hubv1.RemovalDelete)), policy("web", named("eu"))), "-eu MadeAnew Delete", "b",
		},
		"one of the same object is cancelled, as after a restore": {
			with(recreated(bound(absent("eu", hubv1.ReasonObjectDeleted, hubv1.RemovalDelete)), policy("web", named("eu"))), func(in *Input) { in.Object.Template = template("a") }),
			"eu", "a",
		},
		"one that was unselected, and is selected again": {
			recreated(bound(absent("eu", hubv1.ReasonNotSelected, hubv1.RemovalDelete)), policy("web", named("eu"))), "-eu MadeAnew Delete", "b",
		},
		"the policy keeps copies of deleted objects": {
			recreated(euSG(), policy("web", named("eu", "sg"), orphan)), "eu, sg", "b",
		},
		"an adopted copy is kept": {
			with(recreated(euSG(), policy("web", named("eu", "sg"))), func(in *Input) {
				b := euSG()
				b.Status.Clusters = []hubv1.ClusterRow{{Name: "eu", Adopted: true}}
				in.Binding = b
			}), "eu, -sg MadeAnew Delete", "b",
		},
		"the object was deleted with its kind": {
			with(recreated(euSG(), policy("web", named("eu", "sg"))), func(in *Input) { in.Object.KindRecreated = true }), "eu, sg", "b",
		},
		"a rollout keeps the content of the clusters": {
			with(recreated(euSG(), policy("web", named("eu", "sg"), func(p *hubv1.Placement) { p.Spec.Rollout = &hubv1.RolloutPolicy{} })), func(in *Input) {
				b := euSG()
				b.Spec.Rollout = &hubv1.BindingRollout{}
				in.Binding = b
			}), "eu, sg", "b",
		},
		"a suspended placement keeps the earlier copies as they are": {
			recreated(euSG(), policy("web", named("eu", "sg"), func(p *hubv1.Placement) { p.Spec.Suspend.Scheduling = true })), "eu, sg", "a",
		},
		"a simulated object without UID is not another one": {
			with(recreated(euSG(), policy("web", named("eu", "sg"))), func(in *Input) { in.Object.Template = template("") }), "eu, sg", "",
		},
		"the shares stay while the copies are replaced": {
			with(recreated(divided(share("eu", 2), share("sg", 1)), policy("web", named("eu", "sg"), dividing(hubv1.DivideByWeight))), func(in *Input) {
				in.Object.Template.Object["spec"] = map[string]any{"size": int64(3)}
			}), "-eu=2 MadeAnew Delete, -sg=1 MadeAnew Delete", "b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := Decide(tc.in)
			if diff := cmp.Diff(tc.want, readEntries(p.Spec)); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
			if p.Spec.ObjectRef.UID != tc.uid {
				t.Errorf("the binding records the object %q, want %q", p.Spec.ObjectRef.UID, tc.uid)
			}
		})
	}
}

func TestARemovalOfAnEarlierCopyIsNotTheLastOne(t *testing.T) {
	in := recreated(bound(present("eu")), policy("web", named("eu")))
	in.Removals = map[string]Verdict{}
	p := Decide(in)
	if len(p.Claims.Removals) != 1 || p.Claims.Removals[0].Last || p.Claims.Removals[0].Message == "" {
		t.Errorf("the guard is asked about %+v", p.Claims.Removals)
	}
	if !strings.Contains(p.Status.Scheduled.Message, "was deleted and created again") {
		t.Errorf("the condition says %q", p.Status.Scheduled.Message)
	}
}

// TestAReplacementEnds follows a replacement on two clusters to its end. In each round, the decision is stored and the
// clusters confirm the removals.
func TestAReplacementEnds(t *testing.T) {
	b := bound(present("eu"), present("sg"))
	var got []string
	for range 4 {
		p := Decide(recreated(b, policy("web", named("eu", "sg"))))
		got = append(got, fmt.Sprint(p.Spec.ObjectRef.UID, " ", readEntries(p.Spec)))
		b = bound()
		b.Spec = *p.Spec
		for _, e := range p.Spec.Clusters {
			if e.State == hubv1.TargetAbsent {
				withdrawnRow(b, e.Name)
			}
		}
	}
	want := []string{"b -eu MadeAnew Delete, -sg MadeAnew Delete", "b eu, sg", "b eu, sg", "b eu, sg"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("decisions (-want +got):\n%s", diff)
	}
}
