package schedule

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
)

func numbered(n int) key {
	return key{Group: object.Group, Kind: object.Kind, Namespace: object.Namespace, Name: fmt.Sprint(n)}
}

func bindingOf(id key, entries ...hubv1.BindingTarget) *hubv1.ResourceBinding {
	b := bound(entries...)
	b.Name = id.BindingName()
	return b
}

func TestADrainMovesSoManyAtATime(t *testing.T) {
	t.Parallel()
	var woken []key
	d := drains{wake: func(id key) { woken = append(woken, id) }}
	moving := func(n int) *hubv1.ResourceBinding {
		return bindingOf(numbered(n), evictedBy("Drained", "sg"), present("sg"))
	}
	d.see(numbered(0).BindingKey(), moving(0)) // an earlier leader began this move
	for range 2 {
		if !d.ask("eu", numbered(1), 2, 5) {
			t.Fatal("there is no room for a second object")
		}
	}
	if d.ask("eu", numbered(2), 2, 5) || d.ask("eu", numbered(3), 2, 5) || d.ask("eu", numbered(2), 2, 5) {
		t.Fatal("a third object is moved")
	}
	if !d.ask("sg", numbered(2), 1, 5) {
		t.Fatal("another cluster's drain is in the way")
	}
	d.decided(numbered(1), decide.Claims{Evicted: []string{"eu"}}, true)
	d.decided(numbered(1), decide.Claims{}, true) // the binding has the move, but d has not seen it yet
	if d.ask("eu", numbered(3), 2, 5) {
		t.Fatal("a third object is moved while it is not shown that the second one is")
	}
	// This is a late event: it shows the binding before the move.
	d.see(numbered(1).BindingKey(), bindingOf(numbered(1), hubv1.BindingTarget{Name: "eu", State: hubv1.TargetPresent}))
	d.see(numbered(1).BindingKey(), moving(1))
	if len(woken) > 0 {
		t.Fatalf("woken are %v, although nothing is done", woken)
	}
	d.see(numbered(0).BindingKey(), saying(moving(0), "sg"))
	if diff := cmp.Diff([]key{numbered(2)}, woken); diff != "" {
		t.Fatalf("when one has its replacement, woken are (-want +got):\n%s", diff)
	}
	// No other cluster can take the object, so the object does not move.
	d.decided(numbered(2), decide.Claims{Blocked: map[string]string{"eu": hubv1.ReasonNoReplacement}}, true)
	if diff := cmp.Diff([]key{numbered(2), numbered(3)}, woken); diff != "" {
		t.Fatalf("when one cannot go, woken are (-want +got):\n%s", diff)
	}
	d.decided(numbered(4), decide.Claims{Blocked: map[string]string{"eu": hubv1.ReasonWantedEverywhere}}, true)
	got, cannot := d.left("eu")
	want := remains{blocked: []key{numbered(2)}, staying: []key{numbered(4)}}
	if diff := cmp.Diff(hubv1.DrainStatus{Total: 5, Remaining: 2, Moving: 1, Blocked: 1, Staying: 1}, got) + cmp.Diff(want, cannot, cmp.AllowUnexported(remains{})); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	d.see(numbered(0).BindingKey(), nil)
	d.see(numbered(1).BindingKey(), bindingOf(numbered(1), present("sg")))
	d.decided(numbered(2), decide.Claims{}, true)
	d.decided(numbered(4), decide.Claims{}, true)
	if got, _ := d.left("eu"); got != (hubv1.DrainStatus{Total: 5}) {
		t.Errorf("at the end %+v is left", got)
	}
	before := &hubv1.DrainStatus{Evicted: 3} // the count of an earlier leader
	for _, written := range []bool{false, true, true} {
		d.decided(numbered(4), decide.Claims{Unreplaced: []string{"eu"}}, written)
		if got, want := d.evictedFrom("eu", before), int32(3); got != want && !written || written && got != want+1 {
			t.Errorf("%d objects were evicted, written %t", got, written)
		}
	}
	d.see(numbered(4).BindingKey(), bindingOf(numbered(4), absent("eu", hubv1.ReasonDraining, hubv1.RemovalDelete), present("sg")))
	if got := d.evictedFrom("eu", before); got != 3 {
		t.Errorf("%d objects have left, while one is still being withdrawn", got)
	}
	d.see(numbered(4).BindingKey(), bindingOf(numbered(4), present("sg")))
	d.began("eu", 9)
	if got, _ := d.left("eu"); got != (hubv1.DrainStatus{Total: 9}) || d.evictedFrom("eu", before) != 4 {
		t.Errorf("after the withdrawal %+v is left, and %d objects were evicted", got, d.evictedFrom("eu", before))
	}
	d.ended("eu")
	if got, _ := d.left("eu"); got != (hubv1.DrainStatus{}) {
		t.Errorf("the next drain begins with %+v", got)
	}
}

// In any order of events, at most the allowed number of objects is moving at a time, and in the end all objects have
// left the cluster.
func TestADrainKeepsItsBound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const limit, objects = 3, 8
		var due, unseen, moving []int
		d := drains{wake: func(id key) {
			n, err := strconv.Atoi(id.Name)
			if err != nil {
				t.Fatal(err)
			}
			due = append(due, n)
		}}
		present, left := map[int]bool{}, 0
		for n := range objects {
			due, present[n] = append(due, n), true
		}
		decideOn := func(n int) {
			var leaves []string
			full := d.full("eu", numbered(n), limit)
			switch {
			case !present[n]:
			case d.ask("eu", numbered(n), limit, 0) == full:
				t.Fatalf("for object %d the drain was full: %t, and then it was not so", n, full)
			case !full:
				if rapid.IntRange(0, 3).Draw(t, "confirmed") > 0 {
					leaves, present[n], unseen = []string{"eu"}, false, append(unseen, n)
				} else {
					due = append(due, n) // the write failed, so the object is tried again
				}
			}
			d.decided(numbered(n), decide.Claims{Evicted: leaves}, true)
		}
		for step := 0; left < objects; step++ {
			if step > 1000 {
				t.Fatalf("%d of %d have left; due are %v, on their way %v and %v", left, objects, due, unseen, moving)
			}
			switch rapid.SampledFrom([]string{"decide", "decide again", "show", "heal"}).Draw(t, "step") {
			case "decide":
				if len(due) > 0 {
					n := due[0]
					due = due[1:]
					decideOn(n)
				}
			case "decide again":
				if len(unseen) > 0 {
					d.decided(numbered(unseen[0]), decide.Claims{}, true)
				}
			case "show":
				if len(unseen) > 0 {
					n := unseen[0]
					unseen, moving = unseen[1:], append(moving, n)
					d.see(numbered(n).BindingKey(), bindingOf(numbered(n), evictedBy("Drained", "sg"), hubv1.BindingTarget{Name: "sg", State: hubv1.TargetPresent}))
					due = append(due, n)
				}
			case "heal":
				if len(moving) > 0 {
					n := moving[0]
					moving, left = moving[1:], left+1
					d.see(numbered(n).BindingKey(), nil)
				}
			}
			if len(unseen)+len(moving) > limit {
				t.Fatalf("on their way are %v and %v", unseen, moving)
			}
		}
	})
}
