package rollout

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// fleet is a placement with objects and clusters. Its methods apply the results of Step to the clusters, as the hub and
// its members do.
type fleet struct {
	policy   *hubv1.RolloutPolicy
	clusters []*cluster
	objects  []*object
	// verbs are the annotations of the placement, and recorded is its status. placement reads both.
	verbs    map[string]string
	recorded hubv1.PlacementRollout
	now      time.Time
	// skew is the difference between the clock of the hub's leader and now. A new leader has another clock.
	skew time.Duration
	// approved has the time of the last approval of each wave, by the clock of the users.
	approved map[string]time.Time
	// promoted is the time of the last promotion, by the clock of the users.
	promoted time.Time
	joined   int
}

type cluster struct {
	name           string
	wave           int
	kept           string
	away, evicting bool
}

// object is one object with its binding and its copies.
type object struct {
	name      string
	template  string
	policies  string
	undo      string
	neverBack bool
	observes  bool
	before    *hubv1.BindingRollout
	revisions []hubv1.ObjectRevision
	targets   map[string]*Target
	unhealthy map[string]string // template whose copy is Degraded, by cluster
	progress  Progress
	changed   time.Time // time at which the change in progress began, by the clock of the users
}

func drawFleet(t *rapid.T) *fleet {
	f := &fleet{now: noon, verbs: map[string]string{}, approved: map[string]time.Time{}, policy: drawPolicy(t)}
	for range rapid.IntRange(0, 7).Draw(t, "clusters") {
		f.join(rapid.IntRange(0, len(f.policy.Waves)-1).Draw(t, "wave"))
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "objects") {
		f.objects = append(f.objects, &object{
			name: fmt.Sprint("o", i), template: "a", policies: "p", targets: map[string]*Target{}, unhealthy: map[string]string{},
			neverBack: rapid.IntRange(0, 3).Draw(t, "neverBack") == 0, observes: rapid.Bool().Draw(t, "observes"),
		})
	}
	return f
}

func drawPolicy(t *rapid.T) *hubv1.RolloutPolicy {
	p := &hubv1.RolloutPolicy{
		SettleSeconds: ptr.To(rapid.SampledFrom([]int32{0, 5}).Draw(t, "settle")),
		HealthGate: hubv1.RolloutGate{
			TimeoutSeconds:     ptr.To(rapid.SampledFrom([]int32{30, 900}).Draw(t, "timeout")),
			MinObservedSeconds: ptr.To(rapid.SampledFrom([]int32{0, 60}).Draw(t, "observed")),
			Unreachable:        rapid.SampledFrom([]hubv1.UnreachableInWave{hubv1.UnreachableHold, hubv1.UnreachableSkip}).Draw(t, "unreachable"),
		},
		OnFailure:            rapid.SampledFrom([]hubv1.RolloutFailure{hubv1.FailurePause, hubv1.FailureRollback}).Draw(t, "onFailure"),
		RevisionHistoryLimit: ptr.To(rapid.Int32Range(0, 3).Draw(t, "history")),
	}
	for i := range rapid.IntRange(1, 4).Draw(t, "waves") {
		w := hubv1.RolloutWave{
			Name: fmt.Sprint("w", i), SoakSeconds: rapid.SampledFrom([]int32{0, 0, 120}).Draw(t, "soak"),
			MaxFailures: rapid.SampledFrom([]int32{0, 0, 1}).Draw(t, "maxFailures"),
			Approval:    rapid.SampledFrom([]hubv1.RolloutApproval{hubv1.ApprovalAutomatic, hubv1.ApprovalAutomatic, hubv1.ApprovalManual}).Draw(t, "approval"),
		}
		if n := rapid.SampledFrom([]string{"", "1", "2", "30%"}).Draw(t, "maxConcurrent"); n != "" {
			w.MaxConcurrent = ptr.To(intstr.Parse(n))
		}
		p.Waves = append(p.Waves, w)
	}
	if rapid.IntRange(0, 3).Draw(t, "windows") == 0 {
		p.Windows = []hubv1.RolloutWindow{{Schedule: "0 * * * *", DurationSeconds: 1800}}
	}
	if rapid.IntRange(0, 3).Draw(t, "mostMoving") == 0 {
		p.MaxObjectsMoving = ptr.To[int32](1)
	}
	return p
}

func (f *fleet) join(wave int) {
	f.joined++
	f.clusters = append(f.clusters, &cluster{name: fmt.Sprintf("c%02d", f.joined), wave: wave})
}

// read records the requests in the annotations, as the hub does, and returns the recorded ones.
func (f *fleet) read() Verbs {
	requests, errs := ParseRequests(f.verbs)
	if len(errs) > 0 {
		panic(errs)
	}
	records, _ := requests.Record(&f.recorded, "kim", f.bindings(), f.clock())
	f.recorded = hubv1.PlacementRollout{Approvals: records.Approvals, Skips: records.Skips, Promotion: records.Promotion}
	p := &hubv1.Placement{}
	p.Annotations, p.Status.Rollout = f.verbs, &f.recorded
	return VerbsOf(p)
}

// clock returns the time of the clock of the hub's leader.
func (f *fleet) clock() time.Time { return f.now.Add(f.skew) }

// bindings returns the bindings of all objects.
func (f *fleet) bindings() (out []hubv1.BindingObject) {
	for _, o := range f.objects {
		b := &hubv1.ResourceBinding{}
		b.Spec.Rollout = o.before
		for _, c := range f.clusters {
			if t := o.targets[c.name]; t != nil {
				b.Spec.Clusters = append(b.Spec.Clusters, hubv1.BindingTarget{Name: c.name, State: hubv1.TargetPresent, Revision: t.Holds})
			}
		}
		out = append(out, b)
	}
	return out
}

// steer makes a request as hansectl does, if it would have an effect.
func (f *fleet) steer(ask func(Steering) (Request, error)) bool {
	p := &hubv1.Placement{}
	p.Spec.Rollout = f.policy
	request, err := ask(Steering{Placement: p, Objects: f.bindings()})
	if err != nil {
		return false
	}
	request.Change(f.verbs)
	return true
}

// approve approves a wave: with hansectl, or with a time that a user writes by hand.
func (f *fleet) approve(t *rapid.T, wave string) {
	switch how := rapid.SampledFrom([]string{"hansectl", "hansectl", "now", "to come"}).Draw(t, "how"); how {
	case "hansectl":
		if !f.steer(func(s Steering) (Request, error) { return s.Approve(wave) }) {
			return
		}
	case "now":
		f.verbs[hubv1.RolloutApproveAnnotation] += fmt.Sprintf(",%s@%s", wave, f.now.Format(time.RFC3339))
	default:
		f.verbs[hubv1.RolloutApproveAnnotation] += fmt.Sprintf(",%s@%s", wave, f.now.Add(time.Hour).Format(time.RFC3339))
		f.read()
		return // it is no approval
	}
	f.approved[wave] = f.now
	f.read()
}

// input returns the input of Step for an object. It adds to o.targets the clusters that have joined.
func (f *fleet) input(o *object) Input {
	verbs := f.read()
	var all []Progress
	for _, other := range f.objects {
		if other.before != nil {
			all = append(all, other.progress)
		}
	}
	in := Input{
		Policy: f.policy, Before: o.before, Revisions: o.revisions, Live: hubv1.ObjectRevision{Template: o.template, Policies: o.policies},
		Undo: o.undo, NoRollback: o.neverBack, Verbs: verbs, Peers: NewPeers(all).Without(o.name), Now: f.clock(),
	}
	for _, c := range f.clusters {
		t := o.targets[c.name]
		if c.evicting && (t == nil || t.Holds == 0) {
			continue
		}
		if t == nil {
			t = &Target{Cluster: c.name}
			o.targets[c.name] = t
		}
		t.Wave, t.Kept, t.Evicting, t.Row.Away = c.wave, c.kept, c.evicting, c.away
		in.Targets = append(in.Targets, *t)
	}
	return in
}

// store stores a result as the binding stores it, with times in whole seconds.
func (f *fleet) store(o *object, r Result) {
	if o.before == nil || !o.before.Began.Equal(&r.Rollout.Began) || o.before.Revision != r.Rollout.Revision && r.Rollout.Start == "" {
		o.changed = f.now
	}
	o.before, o.revisions, o.progress = &r.Rollout, r.Revisions, r.Progress
	for name, revision := range r.Holds {
		o.targets[name].Holds, o.targets[name].Least, o.targets[name].KeptHealth = revision, 0, r.KeptHealth[name]
		if slices.Contains(r.Moved, name) {
			o.targets[name].Since = latest(f.clock().Truncate(time.Second), r.Rollout.Began.Time)
		}
	}
}

// report makes a cluster apply the revision that its target holds. The cluster first reports that the copy is
// progressing, and finally the result.
func (f *fleet) report(o *object, c *cluster) {
	t := o.targets[c.name]
	if t == nil || t.Holds == 0 || c.away || t.Row.HeldByMember {
		return
	}
	before, row := t.Row, &t.Row
	*row = Row{Revision: t.Holds, Applied: true, Health: hubv1.HealthProgressing, Observes: o.observes, Changed: before.Changed, PassingSince: before.PassingSince}
	unhealthy := o.unhealthy[c.name]
	template := ""
	for _, r := range o.revisions {
		if r.Number == t.Holds {
			template = r.Template
		}
	}
	switch {
	case before.Revision != row.Revision: // a new revision is progress
	case unhealthy != "" && unhealthy == template:
		row.Health = hubv1.HealthDegraded
	default:
		row.Health = hubv1.HealthHealthy
	}
	stamp := f.clock().Truncate(time.Second)
	if row.Health != before.Health {
		row.Changed = stamp
	}
	if row.Health != hubv1.HealthHealthy || before.Revision != row.Revision {
		row.PassingSince = time.Time{}
	} else if row.PassingSince.IsZero() {
		row.PassingSince = stamp
	}
}

// disturb makes one random event: a request of a user, a change of a member, or the passing of time.
func (f *fleet) disturb(t *rapid.T) {
	o := f.objects[rapid.IntRange(0, len(f.objects)-1).Draw(t, "object")]
	action := rapid.IntRange(0, 24).Draw(t, "action")
	switch action {
	case 0:
		o.template = rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}).Draw(t, "template")
	case 1:
		o.undo = rapid.SampledFrom([]string{"", "1", "2", "3", "4", "x"}).Draw(t, "undo")
	case 2:
		f.verbs[hubv1.RolloutPauseAnnotation] = rapid.SampledFrom([]string{"true", "false", "false"}).Draw(t, "pause")
	case 3, 4:
		f.approve(t, f.policy.Waves[rapid.IntRange(0, len(f.policy.Waves)-1).Draw(t, "wave")].Name)
	case 5:
		if rapid.IntRange(0, 4).Draw(t, "promote") == 0 {
			if f.steer(func(s Steering) (Request, error) { return s.Promote("now") }) {
				f.promoted = f.now
			}
		}
	case 20, 21:
		o.policies = rapid.SampledFrom([]string{"p", "q", "r"}).Draw(t, "policies")
	case 22:
		f.skew = rapid.SampledFrom([]time.Duration{0, -time.Minute, time.Minute}).Draw(t, "skew")
	case 23:
		if rapid.IntRange(0, 2).Draw(t, "skip wave") == 0 {
			wave := f.policy.Waves[rapid.IntRange(0, len(f.policy.Waves)-1).Draw(t, "wave")].Name
			f.steer(func(s Steering) (Request, error) { return s.SkipWave(wave) })
		}
	case 6:
		f.join(rapid.IntRange(0, len(f.policy.Waves)-1).Draw(t, "wave"))
	}
	if len(f.clusters) == 0 {
		return
	}
	c := f.clusters[rapid.IntRange(0, len(f.clusters)-1).Draw(t, "cluster")]
	switch action {
	case 7:
		c.away = !c.away
	case 8:
		c.kept = map[bool]string{true: cordoned}[c.kept == ""]
	case 9:
		if copied := o.targets[c.name]; copied != nil {
			copied.Row.HeldByMember = !copied.Row.HeldByMember
		}
	case 10:
		f.steer(func(s Steering) (Request, error) { return s.Skip(c.name) })
	case 11:
		o.unhealthy[c.name] = rapid.SampledFrom([]string{"", "b", "c", "d"}).Draw(t, "sick")
	case 12:
		f.replace(c, rapid.Bool().Draw(t, "at once"))
	case 24:
		f.clusters = slices.DeleteFunc(f.clusters, func(other *cluster) bool { return other == c })
	case 13:
		c.wave = rapid.IntRange(0, len(f.policy.Waves)-1).Draw(t, "wave")
	default:
		for _, c := range f.clusters {
			if rapid.Bool().Draw(t, "report") {
				f.report(o, c)
			}
		}
	}
}

// replace moves all objects of a cluster to a new cluster. If atOnce is false, the old cluster keeps its copies until a
// later event.
func (f *fleet) replace(c *cluster, atOnce bool) {
	if atOnce {
		f.clusters = slices.DeleteFunc(f.clusters, func(other *cluster) bool { return other == c })
	}
	if c.evicting {
		return
	}
	f.join(c.wave)
	c.evicting = true
	for _, o := range f.objects {
		if left := o.targets[c.name]; left != nil {
			name := f.clusters[len(f.clusters)-1].name
			o.targets[name] = &Target{Cluster: name, Least: left.Holds}
			if atOnce {
				delete(o.targets, c.name)
			}
		}
	}
}
