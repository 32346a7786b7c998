package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/guard"
)

// guarded are facts of an object about whose removals the guard has said this.
func guarded(b *hubv1.ResourceBinding, p *hubv1.Placement, removals map[string]verdict, clusters ...*hubv1.MemberCluster) facts {
	return facts{
		id: object, binding: b, template: template("a"), now: now, guarded: true, removals: removals,
		world: world{placements: []hubv1.PlacementObject{p}, clusters: clusters, namespaceRead: true},
	}
}

// readEntries is entriesOf, with "!" before those whose removal is held.
func readEntries(spec *hubv1.BindingSpec) string {
	out := entriesOf(spec)
	for i, e := range spec.Clusters {
		if e.Removal != nil {
			out[i] = "!" + out[i] + " " + e.Removal.Reason
		}
	}
	return strings.Join(out, ", ")
}

func TestWhatTheGuardKeeps(t *testing.T) {
	since := metav1.NewTime(now)
	held := map[string]verdict{"eu": {reason: hubv1.ReasonNotSelected, since: &since}}
	released := map[string]verdict{"eu": {reason: hubv1.ReasonNotSelected, released: true}}
	three := func() []*hubv1.MemberCluster {
		return []*hubv1.MemberCluster{cluster("eu"), cluster("sg"), cluster("us")}
	}
	one := func(p *hubv1.Placement) { spreading(hubv1.SpreadPolicy{NumberOfClusters: ptr.To[int32](1)})(p) }
	orphan := func(p *hubv1.Placement) { p.Spec.Deletion.WhenUnselected = hubv1.RemovalOrphan }
	empty := func(p *hubv1.Placement) { p.Spec.AllowEmpty = true }
	deleteAdopted := func(p *hubv1.Placement) { p.Spec.Deletion.Adopted = hubv1.RemovalDelete }
	adopted := func(cluster string, entries ...hubv1.BindingTarget) *hubv1.ResourceBinding {
		b := bound(entries...)
		b.Status.Clusters = append(b.Status.Clusters, hubv1.ClusterRow{Name: cluster, Adopted: true})
		return b
	}
	drained := func(c *hubv1.MemberCluster) { c.Spec.Drain = &hubv1.DrainPolicy{} }
	refused := func(c *hubv1.MemberCluster) {
		c.Spec.Taints = []corev1.Taint{{Key: "repair", Effect: corev1.TaintEffectNoExecute}}
	}
	for name, tc := range map[string]struct {
		facts  facts
		want   string
		claims string // "cluster reason owner", with "last"
	}{
		"an unselected cluster keeps its copy until that is judged": {
			guarded(bound(present("eu"), present("sg")), policy("web", named("sg")), nil, three()...),
			"eu, sg", "[eu NotSelected Placement shop/web]",
		},
		"one whose removal is held says so": {
			guarded(bound(present("eu"), present("sg")), policy("web", named("sg")), held, three()...),
			"!eu NotSelected, sg", "[eu NotSelected Placement shop/web]",
		},
		"one whose removal is released loses it": {
			guarded(bound(present("eu"), present("sg")), policy("web", named("sg")), released, three()...),
			"-eu NotSelected Delete, sg", "[]",
		},
		"a verdict for another reason does not count": {
			guarded(bound(present("eu"), present("sg")), policy("web"), released, cluster("eu", refused), cluster("sg")),
			"eu, sg", "[eu TaintNotTolerated Placement shop/web]",
		},
		"an entry that is wanted again is held no more": {
			guarded(bound(hubv1.BindingTarget{Name: "eu", State: hubv1.TargetPresent, Removal: &hubv1.HeldRemoval{Reason: "NotSelected"}}, present("sg")),
				policy("web", named("eu", "sg")), held, three()...),
			"eu, sg", "[]",
		},
		"the last copy is told apart": {
			guarded(bound(present("eu"), present("sg")), policy("web", named("typo")), nil, three()...),
			"eu, sg", "[eu NotSelected Placement shop/web last sg NotSelected Placement shop/web last]",
		},
		"unless nowhere is meant": {
			guarded(bound(present("eu")), policy("web", named("typo"), empty), nil, three()...),
			"eu", "[eu NotSelected Placement shop/web]",
		},
		"an object that moves has no last copy, and its new place waits": {
			guarded(bound(present("eu")), policy("web", named("sg", "us"), one), nil, three()...),
			"eu", "[eu NotSelected Placement shop/web]",
		},
		"it moves once its removal is released": {
			guarded(bound(present("eu")), policy("web", named("sg", "us"), one), released, three()...),
			"-eu NotSelected Delete, sg", "[]",
		},
		"a cluster that is newly selected need not wait": {
			guarded(bound(present("eu")), policy("web", named("sg")), held, three()...),
			"!eu NotSelected, sg", "[eu NotSelected Placement shop/web]",
		},
		"orphans are not held": {
			guarded(bound(present("eu"), present("sg")), policy("web", named("sg"), orphan), nil, three()...),
			"-eu NotSelected Orphan, sg", "[]",
		},
		"copies that were adopted are orphaned, and are not held": {
			guarded(adopted("eu", present("eu"), present("sg")), policy("web", named("sg")), nil, three()...),
			"-eu NotSelected Delete, sg", "[]",
		},
		"unless adopted copies are deleted as well": {
			guarded(adopted("eu", present("eu"), present("sg")), policy("web", named("sg"), deleteAdopted), nil, three()...),
			"eu, sg", "[eu NotSelected Placement shop/web]",
		},
		"a cluster that leaves and deletes asks for itself": {
			guarded(bound(present("eu"), present("sg")), policy("web"), nil, cluster("eu", leaving(hubv1.RemovalDelete)), cluster("sg")),
			"eu, sg", "[eu ClusterLeaving MemberCluster eu]",
		},
		"one that leaves and orphans does not": {
			guarded(bound(present("eu"), present("sg")), policy("web"), nil, cluster("eu", leaving(hubv1.RemovalOrphan)), cluster("sg")),
			"-eu ClusterLeaving Orphan, sg", "[]",
		},
		"one that is abandoned is given up at once": {
			guarded(bound(present("eu"), present("sg")), policy("web"), nil, cluster("eu", unreachable, leaving(hubv1.RemovalDelete), abandonAfter(1)), cluster("sg")),
			"sg", "[]",
		},
		"a drain moves what is not to be removed, beside what is": {
			guarded(bound(present("eu"), present("sg")), policy("web", named("sg", "us"),
				spreading(hubv1.SpreadPolicy{NumberOfClusters: ptr.To[int32](2)})), held, cluster("eu"), cluster("sg", drained), cluster("us")),
			"!eu NotSelected, ~sg Drained by us, us", "[eu NotSelected Placement shop/web]",
		},
	} {
		p := decide(tc.facts)
		if got := readEntries(p.spec); got != tc.want {
			t.Errorf("%s: entries are %s, want %s", name, got, tc.want)
		}
		var claims []string
		for _, c := range p.claims {
			claims = append(claims, c.cluster+" "+c.reason+" "+c.owner.String())
			if c.last {
				claims = append(claims, "last")
			}
		}
		if got := fmt.Sprint(claims); got != tc.claims {
			t.Errorf("%s: claims are %s, want %s", name, got, tc.claims)
		}
	}
}

func TestADeletedObjectGoesWhateverTheGuardSays(t *testing.T) {
	f := guarded(bound(present("eu")), policy("web"), nil, cluster("eu"))
	f.fate, f.template = gone, nil
	if got := readEntries(decide(f).spec); got != "-eu ObjectDeleted Delete" {
		t.Errorf("entries are %s", got)
	}
}

func TestAHeldCopyKeepsItsShareAndHindersNoEviction(t *testing.T) {
	since := metav1.NewTime(now)
	b := bound(present("eu"), present("sg"))
	b.Spec.Division = &hubv1.Division{Path: "/spec/replicas"}
	b.Spec.Clusters[0].Replicas, b.Spec.Clusters[1].Replicas = ptr.To[int32](4), ptr.To[int32](4)
	p := policy("web", named("sg"))
	p.Spec.Replicas = hubv1.ReplicasPolicy{Type: hubv1.ReplicasDivide, Path: "/spec/replicas"}
	f := guarded(b, p, map[string]verdict{"eu": {reason: hubv1.ReasonNotSelected, since: &since}}, cluster("eu"), cluster("sg"))
	f.template.Object["spec"] = map[string]any{"replicas": int64(20)}
	got := decide(f)
	if eu, sg := got.spec.Target("eu"), got.spec.Target("sg"); eu == nil || sg == nil || ptr.Deref(eu.Replicas, 0) != 4 || ptr.Deref(sg.Replicas, 0) != 16 {
		t.Errorf("of 20 replicas the clusters get %+v, want 4 and 16", got.spec.Clusters)
	}
	b = bound(hubv1.BindingTarget{Name: "eu", State: hubv1.TargetPresent, Removal: &hubv1.HeldRemoval{}},
		hubv1.BindingTarget{Name: "sg", State: hubv1.TargetEvicting, Evicting: &hubv1.Eviction{Reason: hubv1.ReasonDrained}})
	if waits := awaited(b, b.Spec.Clusters[1], 0); len(waits) > 0 {
		t.Errorf("the eviction waits for %v", waits)
	}
}

// owners is what the guard asks about them.
type owners struct {
	copies   map[owner]int
	clusters map[string]int
	held     map[owner]*hubv1.RemovalHeld
	confirms map[owner]string
}

func (o *owners) copiesOf(p owner) (int, guard.Limit) { return o.copies[p], guard.DefaultLimit }
func (o *owners) copiesOn(cluster string) int         { return o.clusters[cluster] }
func (o *owners) shown(p owner) (*hubv1.RemovalHeld, string) {
	return o.held[p], o.confirms[p]
}

// bench is a guard that has led for an hour, with a clock.
type bench struct {
	*removals
	*owners
	clock *testclock.FakePassiveClock
	now   time.Time
}

func newBench() *bench {
	b := &bench{clock: testclock.NewFakePassiveClock(now), now: now, owners: &owners{
		copies: map[owner]int{}, clusters: map[string]int{"eu": 1000, "sg": 1000}, held: map[owner]*hubv1.RemovalHeld{}, confirms: map[owner]string{},
	}}
	b.restart()
	b.pass(time.Hour)
	b.look()
	return b
}

func (b *bench) restart() {
	b.removals = &removals{Guard: Guard{}.WithDefaults(), clock: b.clock, pending: &pending{clock: b.clock}}
	b.removals.begin()
}

func (b *bench) pass(d time.Duration) {
	b.now = b.now.Add(d)
	b.clock.SetTime(b.now)
}

func (b *bench) look() verdicts { return b.removals.look(b.owners) }

// ask parks the removal of so many objects of a placement from a cluster.
func (b *bench) ask(p owner, cluster string, objects int) {
	for i := range objects {
		b.decided(b.object(p, i), []claim{{cluster: cluster, reason: hubv1.ReasonNotSelected, message: "label tier is not in [prod]", owner: p, placement: p}}, true)
	}
}

func (b *bench) object(p owner, i int) key {
	return key{Kind: "Widget", Namespace: p.Namespace, Name: fmt.Sprint(p.Name, i)}
}

var web, db = owner{"Placement", "shop", "web"}, owner{"Placement", "shop", "db"}

func TestFewRemovalsGoAfterAQuietTime(t *testing.T) {
	b := newBench()
	b.copies[web] = 100
	b.ask(web, "eu", 20)
	if v := b.look(); len(v.held)+len(v.released) > 0 {
		t.Fatal("removals were judged at once")
	}
	b.pass(time.Second)
	b.ask(web, "sg", 1) // of an object that has another claim
	b.pass(1500 * time.Millisecond)
	if v := b.look(); len(v.held)+len(v.released) > 0 {
		t.Fatal("removals were judged although others had just been asked for")
	}
	b.pass(time.Second)
	if v := b.look(); len(v.released) != 20 || len(v.held) > 0 {
		t.Fatalf("released are %d, held %d", len(v.released), len(v.held))
	}
	if got := b.of(b.object(web, 3))["eu"]; !got.released {
		t.Errorf("the verdict is %+v", got)
	}
}

func TestRemovalsWaitForWhatWasWokenWithThem(t *testing.T) {
	b := newBench()
	b.copies[web] = 100
	b.pending.add(b.object(web, 1), b.object(db, 1))
	b.ask(web, "eu", 1)
	b.pass(time.Minute)
	if v := b.look(); len(v.released) > 0 {
		t.Fatal("a removal went before the others were decided on")
	}
	b.pending.begin(b.object(web, 1))
	b.pending.end(b.object(web, 1), true)
	b.pending.begin(b.object(db, 1))
	b.pending.end(b.object(db, 1), false)
	if v := b.look(); len(v.released) > 0 {
		t.Fatal("a removal went although another object could not be decided on")
	}
	b.pass(failingFor)
	if v := b.look(); len(v.released) != 1 {
		t.Fatal("an object that cannot be decided on holds up the others for ever")
	}
}

func TestAHeldSetGoesOnceSomebodyConfirmsIt(t *testing.T) {
	b := newBench()
	b.copies[web] = 30
	b.ask(web, "eu", 20)
	b.pass(3 * time.Second)
	v := b.look()
	if len(v.held) != 20 || len(v.released) > 0 || len(v.news) != 1 || v.news[0].kind != "Warning" || !slices.Contains(v.moved, web) {
		t.Fatalf("held are %d, released %d, news %v", len(v.held), len(v.released), v.news)
	}
	held, condition, _ := b.status(web)
	if held.Copies != 20 || fmt.Sprint(held.Clusters) != "[eu]" || fmt.Sprint(held.Causes) != "[NotSelected: label tier is not in [prod]]" {
		t.Errorf("shown is %+v", held)
	}
	if condition.Status != metav1.ConditionTrue || condition.Reason != hubv1.ReasonTooManyRemovals ||
		!strings.Contains(condition.Message, "hansectl confirm placement web -n shop") || !strings.Contains(condition.Message, "20 of 30 copies of Placement shop/web, limit 6") {
		t.Errorf("the condition is %+v", condition)
	}

	b.ask(web, "eu", 22) // a tenth more
	b.pass(3 * time.Second)
	b.look()
	if now, _, _ := b.status(web); now.ID != held.ID {
		t.Error("a tenth more made another id")
	}
	b.confirms[web] = "another"
	if v := b.look(); len(v.released) > 0 {
		t.Fatal("an id that was not given out confirms")
	}
	b.ask(web, "eu", 30)
	b.pass(3 * time.Second)
	b.confirms[web] = held.ID
	if v := b.look(); len(v.released) > 0 {
		t.Fatal("an old id confirms more than was shown")
	}
	now, _, _ := b.status(web)
	if now.ID == held.ID || now.Copies != 30 {
		t.Errorf("after more removals %+v is shown, before it was %+v", now, held)
	}
	b.confirms[web] = now.ID
	if v := b.look(); len(v.released) != 30 {
		t.Fatalf("after it was confirmed, %d go", len(v.released))
	}
	for i := range 30 {
		b.decided(b.object(web, i), nil, true)
	}
	b.look()
	if held, condition, _ := b.status(web); held != nil || condition.Status != metav1.ConditionFalse || condition.Reason != hubv1.ReasonRemovalConfirmed {
		t.Errorf("in the end %+v and %+v", held, condition)
	}
	b.ask(web, "eu", 20)
	b.pass(3 * time.Second)
	if v := b.look(); len(v.released) > 0 {
		t.Fatal("an id confirms a second time")
	}
}

func TestACancelledCauseClearsEverything(t *testing.T) {
	b := newBench()
	b.copies[web] = 20
	b.ask(web, "eu", 20)
	b.pass(3 * time.Second)
	b.look()
	for i := range 20 {
		b.decided(b.object(web, i), nil, true)
	}
	b.look()
	if held, condition, _ := b.status(web); held != nil || condition.Status != metav1.ConditionFalse || condition.Reason != hubv1.ReasonRemovalCancelled {
		t.Errorf("in the end %+v and %+v", held, condition)
	}
}

func TestManySmallPlacementsUnderOneWrongLabelAreOneSet(t *testing.T) {
	b := newBench()
	b.clusters["eu"] = 300
	for i := range 100 {
		p := owner{"Placement", "shop", fmt.Sprint("p", i)}
		b.copies[p] = 9
		b.ask(p, "eu", 3)
	}
	b.pass(3 * time.Second)
	if v := b.look(); len(v.released) > 0 || len(v.held) != 300 {
		t.Errorf("released are %d, held %d", len(v.released), len(v.held))
	}
}

func TestANewLeaderReleasesNothingAtFirstAndHoldsWhatWasHeld(t *testing.T) {
	b := newBench()
	b.copies[web], b.copies[db] = 20, 20
	b.restart()
	b.pending.add(b.object(web, 100))
	b.ask(db, "eu", 2)
	since := metav1.NewTime(now)
	b.held[web] = &hubv1.RemovalHeld{ID: "shown", Since: since, Copies: 3, Clusters: []string{"eu"}, Causes: []string{"NotSelected: of then"}}
	b.ask(web, "eu", 2)
	b.pass(10 * time.Second)
	if v := b.look(); len(v.held)+len(v.released) > 0 {
		t.Fatal("something was judged before all was decided on")
	}
	if _, _, known := b.status(web); known {
		t.Fatal("a new leader knows what is held before it has decided on everything")
	}
	b.pending.begin(b.object(web, 100))
	b.pending.end(b.object(web, 100), true)
	if v := b.look(); len(v.held) != 2 || len(v.released) > 0 || len(v.news) > 0 {
		t.Fatalf("held are %d, released %d, news %v: what was held stays held, and all else waits", len(v.held), len(v.released), v.news)
	}
	if held, _, _ := b.status(web); held == nil || held.ID != "shown" {
		t.Errorf("shown is %+v, want the id of before", held)
	}
	b.confirms[web] = "shown"
	if v := b.look(); len(v.released) != 2 {
		t.Error("what is confirmed goes under a new leader")
	}
	b.pass(time.Minute)
	if v := b.look(); len(v.released) != 2 {
		t.Errorf("after a minute %d of the few go", len(v.released))
	}
}
