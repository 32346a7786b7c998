package rollout

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// TestStepKeepsItsPromises runs random fleets and checks each step of each object.
func TestStepKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFleet(t)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			f.disturb(t)
			for _, o := range f.objects {
				in := f.input(o)
				revisions, targets := slices.Clone(in.Revisions), slices.Clone(in.Targets)
				r := Step(in)
				if !slices.Equal(revisions, in.Revisions) || !slices.Equal(targets, in.Targets) {
					t.Fatal("a step changes its input")
				}
				check(t, in, r)
				f.store(o, r)
				f.checkApprovals(t, o, in, r)
				checkQuiet(t, f, o, r)
			}
			f.now = f.now.Add(time.Duration(rapid.SampledFrom([]int{0, 300, 1000, 7000, 61000, 1000000}).Draw(t, "milliseconds")) * time.Millisecond)
		}
	})
}

// view contains the inputs and the result of a step, for the checks.
type view struct {
	in     Input
	r      Result
	began  time.Time
	at     int // wave in progress after the step
	before int // wave in progress before the step
}

func look(in Input, r Result) view {
	v := view{in: in, r: r, began: r.Rollout.Began.Time}
	position := func(rollout *hubv1.BindingRollout) int {
		if rollout.Wave == "" {
			return len(in.Policy.Waves)
		}
		return slices.IndexFunc(in.Policy.Waves, func(w hubv1.RolloutWave) bool { return w.Name == rollout.Wave })
	}
	v.at = position(&r.Rollout)
	if in.Before != nil && in.Before.Began.Equal(&r.Rollout.Began) && in.Before.Revision == r.Rollout.Revision {
		v.before = position(in.Before)
	}
	return v
}

func (v view) counts(t Target) bool {
	back := v.r.Rollout.Failed != 0 && v.r.Rollout.Failed != v.r.Rollout.Revision
	began := v.r.Holds[t.Cluster] == v.r.Rollout.Revision && !t.Since.Before(v.began)
	return !(t.Kept != "" && v.exempt()) && !(t.Evicting && (back || !began)) &&
		!(t.Row.Away && (back || v.in.Policy.HealthGate.Unreachable == hubv1.UnreachableSkip)) && !v.skipped(t)
}

func (v view) skipped(t Target) bool {
	covers := func(at time.Time) bool { return !at.IsZero() && !at.Before(v.began) }
	return covers(v.in.Verbs.Skipped(t.Cluster)) || covers(v.in.Verbs.SkippedWave(v.in.Policy.Waves[t.Wave].Name))
}

// exempt reports whether the revision needs no approvals: it is the first one, was promoted, or the clusters return.
func (v view) exempt() bool { return v.r.Rollout.Start != "" || v.rollingBack() }

// well reports whether the cluster has the desired revision, and reports that its copy is healthy.
func (v view) well(t Target) bool {
	return v.r.Holds[t.Cluster] == v.r.Rollout.Revision && t.Row.Revision == v.r.Rollout.Revision &&
		t.Row.Applied && t.Row.Health == hubv1.HealthHealthy && !t.Row.PassingSince.IsZero() && !t.Row.Away
}

func (v view) promoted() bool { return v.r.Rollout.Start == hubv1.StartPromotion }

func (v view) rollingBack() bool {
	return v.r.Rollout.Failed != 0 && v.r.Rollout.Failed != v.r.Rollout.Revision
}

// baseline reports whether, before the step, the first revision of the object had still to pass.
func (v view) baseline() bool {
	b := v.in.Before
	return b == nil || b.Wave == "" && b.Phase == hubv1.RolloutProgressing
}

func check(t *rapid.T, in Input, r Result) {
	checkTotal(t, in, r)
	checkMonotone(t, in, r)
	checkTemplate(t, in, r)
	shuffled := in
	shuffled.Targets = slices.Clone(in.Targets)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(in.Targets), func(i, j int) {
		shuffled.Targets[i], shuffled.Targets[j] = shuffled.Targets[j], shuffled.Targets[i]
	})
	if got := Step(shuffled); !reflect.DeepEqual(r, got) {
		t.Fatalf("the order of the targets matters:\n%s", cmp.Diff(r, got))
	}
	v := look(in, r)
	if v.promoted() || v.baseline() && v.r.Rollout.Wave == "" {
		return
	}
	if v.rollingBack() {
		for w := range in.Policy.Waves {
			checkConcurrent(t, v, w)
		}
		return
	}
	checkWaves(t, v)
	checkEvidence(t, v)
	checkHeld(t, v)
	if v.at < len(in.Policy.Waves) {
		checkConcurrent(t, v, v.at)
	}
}

// checkTotal checks that each target gets a revision that is stored, and that the result is well formed.
func checkTotal(t *rapid.T, in Input, r Result) {
	stored := map[int64]bool{}
	for _, entry := range r.Revisions {
		stored[entry.Number] = true
	}
	for _, target := range in.Targets {
		if !stored[r.Holds[target.Cluster]] {
			t.Fatalf("%s gets revision %d, which is not stored: %+v", target.Cluster, r.Holds[target.Cluster], r)
		}
	}
	for _, entry := range r.Revisions {
		if entry.SupersededBy != 0 && (entry.SupersededBy <= entry.Number || entry.Passed || entry.Number == r.Rollout.Revision) {
			t.Fatalf("%+v is superseded, in %+v", entry, r)
		}
	}
	ro := r.Rollout
	if !stored[ro.Revision] || !stored[ro.Newest] || ro.Passed != 0 && !stored[ro.Passed] || len(r.Revisions) > hubv1.MaxRevisions {
		t.Fatalf("revisions in use are not stored: %+v", r)
	}
	if !slices.IsSorted(r.Moved) || r.Again < 0 || ro.Phase == "" || len([]rune(ro.Message)) > 512 || ro.Since.IsZero() || ro.Began.IsZero() {
		t.Fatalf("%+v", r)
	}
	if done := ro.Phase == hubv1.RolloutComplete; done && (ro.Revision != ro.Newest || ro.Passed != ro.Revision && ro.Message == "" || ro.Wave != "") {
		t.Fatalf("complete without an end: %+v", ro)
	}
	if strings.HasPrefix(string(ro.Phase), "WaitingFor") && ro.Message == "" || strings.Contains(ro.Message, "PLACEMENT") {
		t.Fatalf("the rollout does not say for what it waits: %+v", ro)
	}
}

// content returns the content of a revision, from the inputs or from the result.
func content(in Input, r Result, number int64) string {
	for _, entry := range slices.Concat(r.Revisions, in.Revisions) {
		if entry.Number == number {
			return entry.Template + entry.Policies
		}
	}
	return fmt.Sprint("gone: ", number)
}

// checkMonotone checks that each cluster keeps its content or gets the desired revision. A cluster may get an older
// revision only if this is the desired revision.
func checkMonotone(t *rapid.T, in Input, r Result) {
	for _, target := range in.Targets {
		was, is := target.Holds, r.Holds[target.Cluster]
		if was == 0 {
			continue
		}
		same := content(in, r, was) == content(in, r, is)
		moved := slices.Contains(r.Moved, target.Cluster)
		switch {
		case moved == same:
			t.Fatalf("%s: from %d to %d, moved: %t", target.Cluster, was, is, moved)
		case moved && is != r.Rollout.Revision:
			t.Fatalf("%s: from %d to %d, which is not desired", target.Cluster, was, is)
		case moved && (target.Kept != "" || target.Evicting):
			t.Fatalf("%s does not keep revision %d", target.Cluster, was)
		case is < was && r.Rollout.Revision == r.Rollout.Newest:
			t.Fatalf("%s goes back from %d to %d without a cause", target.Cluster, was, is)
		}
	}
}

// checkTemplate checks that an edit of policies alone never brings back a template that was rolled back or undone.
func checkTemplate(t *rapid.T, in Input, r Result) {
	if in.Before == nil || in.Undo != in.Before.Undone || look(in, r).promoted() {
		return
	}
	template := func(number int64) string {
		i := slices.IndexFunc(in.Revisions, func(r hubv1.ObjectRevision) bool { return r.Number == number })
		return in.Revisions[i].Template
	}
	newest, desired := template(in.Before.Newest), template(in.Before.Revision)
	if newest != in.Live.Template || newest == desired || r.Rollout.Revision == in.Before.Passed || r.Rollout.Revision == r.Rollout.Passed {
		return // the user has changed the template, or the clusters return to a revision that passed
	}
	if now := content(in, r, r.Rollout.Revision); now != desired+in.Live.Policies && r.Rollout.Revision != in.Before.Revision {
		t.Fatalf("an edit of policies brings %s, and the clusters shall have template %s", now, desired)
	}
}

// checkWaves checks that only clusters up to the wave in progress get the desired revision, and that earlier waves have
// passed.
func checkWaves(t *rapid.T, v view) {
	for _, target := range v.in.Targets {
		if slices.Contains(v.r.Moved, target.Cluster) && target.Wave > v.at {
			t.Fatalf("%s of wave %d goes ahead of wave %d", target.Cluster, target.Wave, v.at)
		}
	}
	entry := slices.IndexFunc(v.in.Revisions, func(r hubv1.ObjectRevision) bool { return r.Number == v.r.Rollout.Revision })
	for w := v.before; w < v.at; w++ {
		if v.passedBefore(w) {
			continue
		}
		failed := 0
		for _, target := range v.in.Targets {
			switch {
			case target.Wave != w || !v.counts(target):
			case !v.well(target):
				failed++
			case !v.exempt() && entry >= 0 && v.in.Now.Sub(target.Row.PassingSince) < seconds(v.in.Policy.Waves[w].SoakSeconds):
				t.Fatalf("wave %d has passed, and %s has not soaked", w, target.Cluster)
			}
		}
		if failed > int(v.in.Policy.Waves[w].MaxFailures) {
			t.Fatalf("wave %d has passed, and %d of its clusters have not", w, failed)
		}
	}
}

// passedBefore reports whether the change had passed the wave before the step.
func (v view) passedBefore(w int) bool {
	b := v.in.Before
	return b != nil && b.Began.Equal(&v.r.Rollout.Began) && b.Revision == v.r.Rollout.Revision &&
		(b.Wave == "" || slices.ContainsFunc(b.PassedWaves, func(p hubv1.PassedWave) bool { return p.Name == v.in.Policy.Waves[w].Name }))
}

// checkEvidence checks that a wave which passes now has a healthy cluster, or no cluster for which it had to wait. The
// policy or a user has left out the other clusters.
func checkEvidence(t *rapid.T, v view) {
	for _, p := range v.r.Rollout.PassedWaves {
		w := slices.IndexFunc(v.in.Policy.Waves, func(w hubv1.RolloutWave) bool { return w.Name == p.Name })
		if v.passedBefore(w) {
			continue
		}
		healthy, waitedFor := false, 0
		for _, target := range v.in.Targets {
			if target.Wave == w {
				healthy = healthy || v.well(target)
				if v.counts(target) {
					waitedFor++
				}
			}
		}
		if p.Healthy && !healthy {
			t.Fatalf("wave %s has no healthy cluster", p.Name)
		}
		if !p.Healthy && waitedFor > int(v.in.Policy.Waves[w].MaxFailures) {
			t.Fatalf("wave %s passes without a healthy cluster", p.Name)
		}
	}
}

// checkApprovals checks that no cluster of a manual wave gets the revision of a change, unless a user has approved the
// wave after the change began. It compares the order in which users and hub acted, and no recorded time.
func (f *fleet) checkApprovals(t *rapid.T, o *object, in Input, r Result) {
	v := look(in, r)
	f.checkStart(t, o, v)
	if v.exempt() || v.baseline() && r.Rollout.Wave == "" {
		return
	}
	for _, target := range in.Targets {
		f.checkWavesBefore(t, o, v, target)
		w, got := in.Policy.Waves[target.Wave], r.Holds[target.Cluster]
		first := target.Holds == 0
		if w.Approval != hubv1.ApprovalManual || target.Least == got || !first && !slices.Contains(r.Moved, target.Cluster) {
			continue
		}
		if first && got != r.Rollout.Revision {
			f.checkOlder(t, v, target)
			continue
		}
		other := func(old hubv1.ObjectRevision) bool { return old.Passed && old.Number != got }
		if first && got == r.Revisions[0].Number && !slices.ContainsFunc(r.Revisions, other) {
			continue // there is no earlier revision that the cluster could have
		}
		if f.approved[w.Name].Before(o.changed.Truncate(time.Second)) {
			t.Fatalf("%s of wave %s gets revision %d, which changed at %s; approved at %s: %+v", target.Cluster, w.Name, r.Rollout.Revision, o.changed, f.approved[w.Name], r.Rollout)
		}
	}
}

// checkWavesBefore checks that no cluster changes in the current wave while an earlier manual wave has no approval,
// also if no cluster is in the earlier wave.
func (f *fleet) checkWavesBefore(t *rapid.T, o *object, v view, target Target) {
	if target.Wave != v.at || target.Holds == 0 || target.Evicting || !slices.Contains(v.r.Moved, target.Cluster) {
		return
	}
	for _, w := range v.in.Policy.Waves[:v.at] {
		if w.Approval == hubv1.ApprovalManual && f.approved[w.Name].Before(o.changed.Truncate(time.Second)) {
			t.Fatalf("%s gets revision %d before wave %s is approved: %+v", target.Cluster, v.r.Rollout.Revision, w.Name, v.r.Rollout)
		}
	}
}

// checkOlder checks that a cluster which joins a wave gets a revision that has passed. Before a revision has passed, it
// is the oldest one.
func (f *fleet) checkOlder(t *rapid.T, v view, target Target) {
	for _, old := range v.r.Revisions {
		switch got := v.r.Holds[target.Cluster]; {
		case old.Number == got && !old.Passed && old.Number != v.r.Revisions[0].Number:
			t.Fatalf("%s joins with revision %d, which has not passed: %+v", target.Cluster, got, v.r)
		case old.Number != got && old.Passed && old.Number != v.r.Rollout.Revision && slices.ContainsFunc(v.r.Revisions, func(r hubv1.ObjectRevision) bool { return r.Number == got && !r.Passed }):
			t.Fatalf("%s joins with revision %d, and revision %d has passed: %+v", target.Cluster, got, old.Number, v.r)
		}
	}
}

// checkStart checks that a change needs no approvals only after the action of a user, or a failure, that exempts it.
func (f *fleet) checkStart(t *rapid.T, o *object, v view) {
	passed := slices.ContainsFunc(v.r.Revisions, func(r hubv1.ObjectRevision) bool { return r.Number == v.r.Rollout.Revision && r.Passed })
	before := v.in.Before
	ok := true
	switch v.r.Rollout.Start {
	case hubv1.StartFirst:
		ok = before == nil || before.Start == hubv1.StartFirst && before.Began.Equal(&v.r.Rollout.Began)
	case hubv1.StartReturn:
		ok = passed
	case hubv1.StartPromotion:
		ok = !f.promoted.Before(o.changed.Truncate(time.Second))
	}
	if !ok {
		t.Fatalf("the change is exempt without a cause: %+v", v.r.Rollout)
	}
}

// checkHeld checks that no cluster begins to change while a pause, a missing approval or a closed window forbids this.
func checkHeld(t *rapid.T, v view) {
	for _, target := range v.in.Targets {
		if !slices.Contains(v.r.Moved, target.Cluster) {
			continue
		}
		if v.in.Verbs.Pause {
			t.Fatalf("%s moves in a pause", target.Cluster)
		}
		if len(v.in.Policy.Windows) > 0 && v.in.Now.Minute() >= 30 {
			t.Fatalf("%s moves outside of the window", target.Cluster)
		}
		if v.at == len(v.in.Policy.Waves) || target.Wave != v.at {
			continue
		}
		if _, failed := v.in.Peers.Failed(); failed {
			t.Fatalf("%s moves although another object has failed", target.Cluster)
		}
	}
}

// checkConcurrent checks that at most maxConcurrent clusters of a wave change at the same time, when clusters begin to
// change. Failures that the wave allows do not count.
func checkConcurrent(t *rapid.T, v view, w int) {
	counted, open, moves := 0, 0, false
	for _, target := range v.in.Targets {
		if target.Wave != w || !v.counts(target) {
			continue
		}
		counted++
		moved := slices.Contains(v.r.Moved, target.Cluster)
		moves = moves || moved
		began := moved || !target.Since.Before(v.began)
		if v.r.Holds[target.Cluster] == v.r.Rollout.Revision && began && !v.well(target) {
			open++
		}
	}
	limit := counted
	switch maxConcurrent := v.in.Policy.Waves[w].MaxConcurrent; {
	case maxConcurrent == nil:
	case maxConcurrent.StrVal == "30%":
		limit = (counted*3 + 9) / 10
	default:
		limit = maxConcurrent.IntValue()
	}
	if moves && open > limit+int(v.in.Policy.Waves[w].MaxFailures) {
		t.Fatalf("%d clusters of wave %d are changing, at most %d may be", open, w, limit)
	}
}

// checkQuiet checks that a step with unchanged inputs changes nothing before the time that the previous step returned
// in Again.
func checkQuiet(t *rapid.T, f *fleet, o *object, r Result) {
	until := r.Again - 1
	if r.Again == 0 {
		until = time.Duration(rapid.IntRange(0, 100_000).Draw(t, "later")) * time.Second
	}
	for _, wait := range []time.Duration{0, time.Duration(rapid.Float64Range(0, 1).Draw(t, "part") * float64(until)), until} {
		in := f.input(o)
		in.Now = in.Now.Add(wait)
		want, got := r, Step(in)
		want.Moved, got.Again = nil, want.Again
		if !reflect.DeepEqual(want, got) {
			t.Fatalf("after %s (again in %s) (-want +got):\n%s", wait, r.Again, cmp.Diff(want, got))
		}
	}
}

// disturbedFleet returns a random fleet after random events.
func disturbedFleet(t *rapid.T) *fleet {
	f := drawFleet(t)
	for range rapid.IntRange(0, 40).Draw(t, "steps") {
		f.disturb(t)
		for _, o := range f.objects {
			f.store(o, Step(f.input(o)))
		}
		f.now = f.now.Add(time.Duration(rapid.IntRange(0, 100).Draw(t, "seconds")) * time.Second)
	}
	return f
}

// TestEachRolloutEnds checks that each object ends with its newest revision on all clusters, when all clusters are
// healthy and all waves are approved. Earlier events must not matter.
func TestEachRolloutEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := disturbedFleet(t)
		f.heal()
		for range 1000 {
			if f.ended() {
				return
			}
			for _, w := range f.policy.Waves {
				f.steer(func(s Steering) (Request, error) { return s.Approve(w.Name) })
			}
			f.run()
		}
		for _, o := range f.objects {
			t.Errorf("%s: %+v", o.name, o.before)
		}
	})
}

// heal ends all disturbances, and gives each object a change that becomes healthy.
func (f *fleet) heal() {
	f.clusters = slices.DeleteFunc(f.clusters, func(c *cluster) bool { return c.evicting })
	for _, c := range f.clusters {
		c.away, c.kept = false, ""
	}
	f.verbs = map[string]string{}
	for _, o := range f.objects {
		o.undo, o.template, o.unhealthy = "", "new", map[string]string{}
		for _, target := range o.targets {
			target.Row.HeldByMember = false
		}
	}
}

// TestEachRolloutEndsOrSaysForWhatItWaits checks that each object ends, or waits for a user, when all clusters answer
// and report. Cordoned clusters, pauses and missing approvals stay.
func TestEachRolloutEndsOrSaysForWhatItWaits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := disturbedFleet(t)
		for _, c := range f.clusters {
			c.away = false
		}
		for range 200 {
			f.run()
		}
		user := false // whether an object waits for a user
		for _, o := range f.objects {
			switch o.before.Phase {
			case hubv1.RolloutFailed, hubv1.RolloutPaused, hubv1.RolloutWaitingForApproval, hubv1.RolloutWaitingForClusters:
				user = true
			}
			user = user || o.progress.Failed || slices.ContainsFunc(slices.Collect(maps.Values(o.targets)), func(t *Target) bool { return t.Row.HeldByMember })
		}
		for _, o := range f.objects {
			switch state := o.before; state.Phase {
			case hubv1.RolloutComplete, hubv1.RolloutRolledBack, hubv1.RolloutFailed, hubv1.RolloutPaused, hubv1.RolloutWaitingForApproval, hubv1.RolloutWaitingForClusters:
			default:
				if !user && state.Start == "" {
					t.Fatalf("%s does not end: %+v", o.name, state)
				}
			}
		}
	})
}

func (f *fleet) ended() bool {
	for _, o := range f.objects {
		if o.before == nil || o.before.Phase != hubv1.RolloutComplete {
			return false
		}
		for _, c := range f.clusters {
			if target := o.targets[c.name]; target == nil || target.Holds != o.before.Newest {
				return false
			}
		}
	}
	return true
}

// run calls Step for all objects and makes all clusters report. If nothing changes, it advances the clock by the time
// that a step returned in Again.
func (f *fleet) run() {
	moved, next := false, time.Hour
	for _, o := range f.objects {
		before := o.before
		r := Step(f.input(o))
		f.store(o, r)
		moved = moved || before == nil || !reflect.DeepEqual(*before, r.Rollout) || len(r.Moved) > 0
		if r.Again > 0 {
			next = min(next, r.Again)
		}
		for _, c := range f.clusters {
			if o.targets[c.name] == nil {
				continue
			}
			row := o.targets[c.name].Row
			f.report(o, c)
			moved = moved || row != o.targets[c.name].Row
		}
	}
	if moved {
		next = time.Second
	}
	f.now = f.now.Add(next)
}
