package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/placement/guard"
)

// owners has the inputs for the limits of removals: the numbers of copies, the held removals, and the confirmations of
// users.
type owners struct {
	copies   map[decide.Owner]int
	limits   map[decide.Owner]guard.Limit
	clusters map[string]int
	held     map[decide.Owner]*hubv1.RemovalHeld
	confirms map[decide.Owner]string
}

func (o *owners) copiesOf(group decide.Owner) int { return o.copies[group] }
func (o *owners) copiesOn(cluster string) int     { return o.clusters[cluster] }
func (o *owners) limitOf(p decide.Owner) guard.Limit {
	if limit, set := o.limits[p]; set {
		return limit
	}
	return guard.DefaultLimit
}
func (o *owners) shown(p decide.Owner) (*hubv1.RemovalHeld, string) {
	return o.held[p], o.confirms[p]
}

// bench has the decided removals of a hub process that has been the leader for an hour. The test sets its clock.
type bench struct {
	*removals
	*owners
	clock *testclock.FakePassiveClock
	now   time.Time
}

func newBench() *bench {
	b := &bench{clock: testclock.NewFakePassiveClock(now), now: now, owners: &owners{
		copies: map[decide.Owner]int{}, clusters: map[string]int{"eu": 1000, "sg": 1000}, held: map[decide.Owner]*hubv1.RemovalHeld{}, confirms: map[decide.Owner]string{},
	}}
	b.restart()
	b.pass(time.Hour)
	b.look()
	return b
}

func (b *bench) restart() {
	b.removals = &removals{opts: Guard{}.WithDefaults(), clock: b.clock, pending: pending{clock: b.clock}}
	b.removals.begin()
}

func (b *bench) pass(d time.Duration) {
	b.now = b.now.Add(d)
	b.clock.SetTime(b.now)
}

func (b *bench) look() verdicts { return b.removals.look(b.owners) }

// ask adds removals of a number of objects of a placement from a cluster.
func (b *bench) ask(p decide.Owner, cluster string, objects int) {
	for i := range objects {
		b.decided(b.object(p, i), []decide.Removal{{Cluster: cluster, Reason: hubv1.ReasonNotSelected, Message: "label tier is not in [prod]", Owner: p, Placement: p}}, true)
	}
}

func (b *bench) object(p decide.Owner, i int) key {
	return key{Kind: "Widget", Namespace: p.Namespace, Name: fmt.Sprint(p.Name, i)}
}

var web, db = decide.Owner{Kind: "Placement", Namespace: "shop", Name: "web"}, decide.Owner{Kind: "Placement", Namespace: "shop", Name: "db"}

func TestFewRemovalsGoAfterAQuietTime(t *testing.T) {
	b := newBench()
	b.copies[web] = 100
	b.ask(web, "eu", 20)
	if v := b.look(); len(v.held)+len(v.released) > 0 {
		t.Fatal("removals were judged at once")
	}
	b.pass(time.Second)
	b.ask(web, "sg", 1) // of one of these objects, which thus gets a second removal
	b.pass(1500 * time.Millisecond)
	if v := b.look(); len(v.held)+len(v.released) > 0 {
		t.Fatal("removals were judged although others had just been asked for")
	}
	b.pass(time.Second)
	if v := b.look(); len(v.released) != 20 || len(v.held) > 0 {
		t.Fatalf("released are %d, held %d", len(v.released), len(v.held))
	}
	if got := b.of(b.object(web, 3))["eu"]; !got.Released {
		t.Errorf("the verdict is %+v", got)
	}
}

func TestRemovalsWaitForWhatWasWokenWithThem(t *testing.T) {
	b := newBench()
	b.copies[web] = 100
	b.pending.add(true, b.object(web, 1), b.object(db, 1))
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
	b.pass(maxQuiet)
	if v := b.look(); len(v.released) != 1 {
		t.Fatal("an object that cannot be decided on holds up the others for ever")
	}
}

func TestHeldRemovalsAreReleasedByAConfirmation(t *testing.T) {
	b := newBench()
	b.copies[web] = 30
	b.ask(web, "eu", 20)
	b.pass(3 * time.Second)
	v := b.look()
	if len(v.held) != 20 || len(v.released) > 0 || len(v.events) != 1 || v.events[0].kind != "Warning" || !slices.Contains(v.moved, web) {
		t.Fatalf("held are %d, released %d, news %v", len(v.held), len(v.released), v.events)
	}
	held, condition, _ := b.status(web)
	if held.Copies != 20 || fmt.Sprint(held.Clusters) != "[eu]" || fmt.Sprint(held.Causes) != "[NotSelected: label tier is not in [prod]]" {
		t.Errorf("shown is %+v", held)
	}
	if condition.Status != metav1.ConditionTrue || condition.Reason != hubv1.ReasonTooManyRemovals ||
		!strings.Contains(condition.Message, "hansectl confirm placement web -n shop") || !strings.Contains(condition.Message, "20 of 30 copies of Placement shop/web, limit 6") {
		t.Errorf("the condition is %+v", condition)
	}

	b.ask(web, "eu", 22) // 22 objects are a tenth more than before
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
		p := decide.Owner{Kind: "Placement", Namespace: "shop", Name: fmt.Sprint("p", i)}
		b.copies[p] = 9
		b.ask(p, "eu", 3)
	}
	b.pass(3 * time.Second)
	if v := b.look(); len(v.released) > 0 || len(v.held) != 300 {
		t.Errorf("released are %d, held %d", len(v.released), len(v.held))
	}
}

func TestTheObjectsOfABundleAreCountedTogether(t *testing.T) {
	bundle := decide.Owner{Kind: hubv1.BundleKind, Namespace: "shop", Name: "all"}
	cut := func(b *bench, p decide.Owner, objects int) {
		for i := range objects {
			b.decided(b.object(p, i), []decide.Removal{{
				Cluster: "eu", Reason: hubv1.ReasonObjectDeleted, Message: "the bundle no longer contains the object", Owner: bundle, Placement: p,
			}}, true)
		}
	}
	for name, tc := range map[string]struct {
		web, db int // copies that the bundle loses, by placement
		limits  map[decide.Owner]guard.Limit
		want    string // text in the condition; empty: nothing is held
	}{
		"few go":                             {web: 3, db: 2},
		"many under two placements are held": {web: 3, db: 3, want: "6 of 20 copies of Bundle shop/all, limit 5"},
		"the limit of a placement applies":   {web: 8, limits: map[decide.Owner]guard.Limit{web: {Copies: 8}}},
		"the smallest limit applies": {
			web: 2, db: 1, limits: map[decide.Owner]guard.Limit{web: {Copies: 8}, db: {Copies: 2}}, want: "3 of 20 copies of Bundle shop/all, limit 2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			b.copies[web], b.copies[db], b.copies[bundle], b.limits = 1000, 1000, 20, tc.limits
			cut(b, web, tc.web)
			cut(b, db, tc.db)
			b.pass(3 * time.Second)
			v := b.look()
			_, c, _ := b.status(bundle)
			switch {
			case tc.want == "" && len(v.released) != tc.web+tc.db:
				t.Errorf("released are %d, held %d: %+v", len(v.released), len(v.held), c)
			case tc.want != "" && (len(v.held) != tc.web+tc.db || c == nil || !strings.Contains(c.Message, tc.want) || !strings.Contains(c.Message, "hansectl confirm bundle all -n shop")):
				t.Errorf("released are %d, held %d: %+v", len(v.released), len(v.held), c)
			}
		})
	}
}

func TestANewLeaderReleasesNothingAtFirstAndHoldsWhatWasHeld(t *testing.T) {
	b := newBench()
	b.copies[web], b.copies[db] = 20, 20
	b.restart()
	b.pending.add(true, b.object(web, 100))
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
	if v := b.look(); len(v.held) != 2 || len(v.released) > 0 || len(v.events) > 0 {
		t.Fatalf("held are %d, released %d, news %v: what was held stays held, and all else waits", len(v.held), len(v.released), v.events)
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

func TestAnObjectOnSeveralClustersHasOneLastCopy(t *testing.T) {
	b := newBench()
	b.copies[web] = 100
	var all []decide.Removal
	for _, cluster := range []string{"eu", "sg", "us"} {
		all = append(all, decide.Removal{Cluster: cluster, Reason: hubv1.ReasonNotSelected, Owner: web, Placement: web, Last: true})
	}
	b.decided(b.object(web, 0), all, true)
	b.pass(3 * time.Second)
	b.look()
	_, c, _ := b.status(web)
	if c == nil || !strings.Contains(c.Message, "3 copies on 3 clusters would be removed") || !strings.Contains(c.Message, ": the last copy of 1 object.") {
		t.Errorf("the condition is %+v", c)
	}
}
