package decide

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// phases are the phases of a change in which an event may happen. "before", "approval", "moving" and "soaking" say how
// far the second wave is. In "after", the change is in the last wave. In "rollback", it is rolled back from the last
// wave.
var phases = []string{"before", "approval", "moving", "soaking", "after", "rollback"}

// midway is a change during which an event concerns cluster us. us is in the second wave, with ux and uy. eu is in the
// first wave, and ap and zz are in the last one. uy joins in one event, and zz replaces us in others.
type midway struct {
	*staged
	unhealthy, paused map[string]bool
	// stale has the last rows of clusters that no longer report.
	stale map[string]hubv1.ClusterRow
}

func newMidway(t *testing.T, replaces bool) *midway {
	t.Helper()
	m := &midway{unhealthy: map[string]bool{}, paused: map[string]bool{}, stale: map[string]hubv1.ClusterRow{}}
	m.staged = newStaged(t, func(p *hubv1.Placement) {
		p.Spec.Rollout.Waves = []hubv1.RolloutWave{
			{Name: "first", Clusters: naming("eu")},
			{Name: "second", Clusters: naming("us", "ux", "uy"), SoakSeconds: 600, Approval: hubv1.ApprovalManual},
			{Name: "rest"},
		}
		if replaces {
			p.Spec.Spread = &hubv1.SpreadPolicy{NumberOfClusters: ptr.To[int32](4)}
			p.Spec.Failover.EvictAfterSeconds = ptr.To[int32](300)
		}
	})
	m.in.Facts.Clusters = []*hubv1.MemberCluster{cluster("ap"), cluster("eu"), cluster("us"), cluster("ux")}
	m.decide()
	m.report()
	m.decide()
	if replaces {
		m.in.Facts.Clusters = append(m.in.Facts.Clusters, cluster("zz"))
	}
	return m
}

// begin advances the change to a phase.
func (m *midway) begin(phase string) *midway {
	m.t.Helper()
	if phase == "rollback" {
		m.policy.Spec.Rollout.OnFailure = hubv1.FailureRollback
	}
	m.edit("new")
	for _, step := range phases {
		switch step {
		case "approval", "soaking":
			m.say()
		case "moving":
			m.approve()
		case "after":
			m.later(600 * time.Second)
		case "rollback":
			m.unhealthy["ap"] = true
			m.say()
			m.unhealthy["ap"] = false
		}
		m.decide()
		if step == phase {
			return m
		}
	}
	m.t.Fatalf("there is no phase %s", phase)
	return nil
}

func (m *midway) later(d time.Duration) { m.in.Now = m.in.Now.Add(d) }

// approve approves the second wave for the change in progress.
func (m *midway) approve() {
	approval := hubv1.RolloutRequest{Wave: "second", Time: m.binding.Spec.Rollout.Began}
	m.policy.Status.Rollout = &hubv1.PlacementRollout{Approvals: []hubv1.RolloutRequest{approval}}
}

// us replaces the MemberCluster us by a new one with these changes.
func (m *midway) us(change ...func(*hubv1.MemberCluster)) {
	i := slices.IndexFunc(m.in.Facts.Clusters, func(c *hubv1.MemberCluster) bool { return c.Name == "us" })
	m.in.Facts.Clusters[i] = cluster("us", change...)
}

// silence makes the cluster us stop its reports. Its row keeps the last report, or the report about revision 1 if first
// is true.
func (m *midway) silence(first bool) {
	row := *m.binding.Status.Row("us")
	if first {
		row.Revision, row.PassingSince, row.LastTransitionTime = 1, &metav1.Time{Time: now}, &metav1.Time{Time: now}
		*m.binding.Status.Row("us") = row
	}
	m.stale["us"] = row
}

// say makes each cluster report that it has the revision of its target and is healthy. A silent cluster keeps its last
// row, an unhealthy one reports Degraded, and a paused one keeps its revision.
func (m *midway) say() {
	before := m.binding.Status.DeepCopy()
	m.report()
	for i := range m.binding.Status.Clusters {
		row := &m.binding.Status.Clusters[i]
		stale, isStale := m.stale[row.Name]
		old := before.Row(row.Name)
		switch {
		case isStale:
			*row = stale
		case m.unhealthy[row.Name]:
			row.Health, row.PassingSince = hubv1.HealthDegraded, nil
		case m.paused[row.Name]:
			if row.Revision != old.Revision {
				row.Applied, row.Revision, row.PassingSince = metav1.ConditionFalse, old.Revision, nil
			}
			row.Reason = hubv1.ReasonPaused
		case row.Reason == hubv1.ReasonPaused:
			row.Reason = ""
		}
	}
}

// goOn approves waves and makes clusters report until nothing changes.
func (m *midway) goOn() {
	m.approve()
	for last := ""; last != m.text(); {
		last = m.text()
		m.say()
		if m.binding.Spec.Rollout.Phase == hubv1.RolloutSoaking {
			m.later(600 * time.Second)
		}
		m.decide()
	}
}

// text returns the rollout's phase and wave, and the revision of each cluster, such as "Progressing second: ap1 eu2 us2
// ux2". An Evicting cluster has the mark ~, and an Absent cluster the mark -.
func (m *midway) text() string {
	r := m.binding.Spec.Rollout
	text := strings.TrimSpace(fmt.Sprintf("%s %s", r.Phase, r.Wave)) + ":"
	for _, e := range m.binding.Spec.Clusters {
		switch e.State {
		case hubv1.TargetAbsent:
			text += " -" + e.Name
		case hubv1.TargetEvicting:
			text += fmt.Sprintf(" ~%s%d", e.Name, e.Revision)
		default:
			text += fmt.Sprintf(" %s%d", e.Name, e.Revision)
		}
	}
	return text
}

// quiet checks that decisions with unchanged inputs change nothing, and returns the state as text.
func (m *midway) quiet() string {
	m.t.Helper()
	for range 3 {
		p := Decide(m.in)
		if diff := cmp.Diff(&m.binding.Spec, p.Spec); diff != "" {
			m.t.Errorf("a decision without a new fact changes %s:\n%s", m.text(), diff)
		}
		if later := m.in; p.Again == 0 || p.Again > time.Second {
			later.Now = later.Now.Add(time.Second)
			if diff := cmp.Diff(&m.binding.Spec, Decide(later).Spec); diff != "" {
				m.t.Errorf("a second later, %s changes:\n%s", m.text(), diff)
			}
		}
	}
	return m.text()
}

// waveEvent is an event that concerns cluster us, and its effects in each phase.
type waveEvent struct {
	// row is the title of a row of the table in docs/rollout.md.
	row string
	// replaces is true if other clusters can replace us.
	replaces bool
	begin    func(*midway)
	// end ends the event. It is nil if the event does not end.
	end func(*midway)
	// says is a part of the message that the rollout has 15 minutes after the event, if the event happens in the phase
	// "moving".
	says string
	// want has a line for each phase, with four states. They are the state after the event, the state when the other
	// clusters have reported and users have approved, the state 15 minutes later, and the state after the end of the
	// event. A dot means that the state did not change.
	want string
}

// allBut selects all clusters except one.
func allBut(cluster string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{cluster}}}}
}

// waveEvents are the events of the table in docs/rollout.md. Some events have two variants.
var waveEvents = map[string]waveEvent{
	"goes down": {
		row:   "goes down (`Hold`)",
		begin: func(m *midway) { m.silence(false); m.us(unreachable) },
		end:   func(m *midway) { clear(m.stale); m.us() },
		says:  "us failed: the cluster does not answer",
		want: `
			before   | Progressing first: ap1 eu2 us1 ux1 | Progressing second: ap1 eu2 us2 ux2 | Failed second: ap1 eu2 us2 ux2 | Complete: ap2 eu2 us2 ux2
			approval | WaitingForApproval second: ap1 eu2 us1 ux1 | Progressing second: ap1 eu2 us2 ux2 | Failed second: ap1 eu2 us2 ux2 | Complete: ap2 eu2 us2 ux2
			moving   | Progressing second: ap1 eu2 us2 ux2 | . | Failed second: ap1 eu2 us2 ux2 | Complete: ap2 eu2 us2 ux2
			soaking  | Progressing second: ap1 eu2 us2 ux2 | . | Failed second: ap1 eu2 us2 ux2 | Complete: ap2 eu2 us2 ux2
			after    | Progressing rest: ap2 eu2 us2 ux2 | Complete: ap2 eu2 us2 ux2 | . | .
			rollback | RollingBack rest: ap1 eu1 us1 ux1 | RolledBack: ap1 eu1 us1 ux1 | . | .
		`,
	},
	"goes down, and the gate skips it": {
		row: "goes down (`Skip`)",
		begin: func(m *midway) {
			m.silence(false)
			m.us(unreachable)
			m.policy.Spec.Rollout.HealthGate.Unreachable = hubv1.UnreachableSkip
		},
		end: func(m *midway) { clear(m.stale); m.us() },
		want: `
			before   | Progressing first: ap1 eu2 us1 ux1 | Complete: ap2 eu2 us2 ux2 | . | .
			approval | WaitingForApproval second: ap1 eu2 us1 ux1 | Complete: ap2 eu2 us2 ux2 | . | .
			moving   | Progressing second: ap1 eu2 us2 ux2 | Complete: ap2 eu2 us2 ux2 | . | .
			soaking  | Soaking second: ap1 eu2 us2 ux2 | Complete: ap2 eu2 us2 ux2 | . | .
			after    | Progressing rest: ap2 eu2 us2 ux2 | Complete: ap2 eu2 us2 ux2 | . | .
			rollback | RollingBack rest: ap1 eu1 us1 ux1 | RolledBack: ap1 eu1 us1 ux1 | . | .
		`,
	},
	"goes down, and another cluster takes the object": {
		row: "fails over, or is drained", replaces: true,
		begin: func(m *midway) { m.silence(false); m.us(lost(time.Hour)) },
		end:   func(m *midway) { clear(m.stale); m.us() },
		want: `
			before   | Progressing first: ap1 eu2 ~us1 ux1 zz1 | Complete: ap2 eu2 ~us1 ux2 zz2 | . | Complete: ap2 eu2 -us ux2 zz2
			approval | WaitingForApproval second: ap1 eu2 ~us1 ux1 zz1 | Complete: ap2 eu2 ~us1 ux2 zz2 | . | Complete: ap2 eu2 -us ux2 zz2
			moving   | Progressing second: ap1 eu2 ~us2 ux2 zz2 | . | Failed second: ap1 eu2 ~us2 ux2 zz2 | Complete: ap2 eu2 -us ux2 zz2
			soaking  | Progressing second: ap1 eu2 ~us2 ux2 zz2 | . | Failed second: ap1 eu2 ~us2 ux2 zz2 | Complete: ap2 eu2 -us ux2 zz2
			after    | Progressing rest: ap2 eu2 ~us2 ux2 zz2 | Complete: ap2 eu2 ~us2 ux2 zz2 | . | Complete: ap2 eu2 -us ux2 zz2
			rollback | RollingBack rest: ap1 eu1 ~us1 ux1 zz1 | RolledBack: ap1 eu1 ~us1 ux1 zz1 | . | RolledBack: ap1 eu1 -us ux1 zz1
		`,
	},
	"is drained, and another cluster takes the object": {
		row: "fails over, or is drained", replaces: true,
		begin: func(m *midway) { m.us(drained) },
		end:   func(m *midway) { m.us() },
		want: `
			before   | Progressing first: ap1 eu2 ~us1 ux1 zz1 | Complete: ap2 eu2 -us ux2 zz2 | . | .
			approval | WaitingForApproval second: ap1 eu2 ~us1 ux1 zz1 | Complete: ap2 eu2 -us ux2 zz2 | . | .
			moving   | Progressing second: ap1 eu2 ~us2 ux2 zz2 | Complete: ap2 eu2 -us ux2 zz2 | . | .
			soaking  | Soaking second: ap1 eu2 ~us2 ux2 zz2 | Complete: ap2 eu2 -us ux2 zz2 | . | .
			after    | Progressing rest: ap2 eu2 ~us2 ux2 zz2 | Complete: ap2 eu2 -us ux2 zz2 | . | .
			rollback | RollingBack rest: ap1 eu1 ~us1 ux1 zz1 | RolledBack: ap1 eu1 -us ux1 zz1 | . | .
		`,
	},
	"is drained, and no other cluster can take the object": {
		row:   "is drained, and no other cluster takes the object",
		begin: func(m *midway) { m.us(drained) },
		end:   func(m *midway) { m.us() },
		want: `
			before   | Progressing first: ap1 eu2 us1 ux1 | Complete: ap2 eu2 us2 ux2 | . | .
			approval | WaitingForApproval second: ap1 eu2 us1 ux1 | Complete: ap2 eu2 us2 ux2 | . | .
			moving   | Progressing second: ap1 eu2 us2 ux2 | Complete: ap2 eu2 us2 ux2 | . | .
			soaking  | Soaking second: ap1 eu2 us2 ux2 | Complete: ap2 eu2 us2 ux2 | . | .
			after    | Progressing rest: ap2 eu2 us2 ux2 | Complete: ap2 eu2 us2 ux2 | . | .
			rollback | RollingBack rest: ap1 eu1 us1 ux1 | RolledBack: ap1 eu1 us1 ux1 | . | .
		`,
	},
	"is drained, and its copies are evicted": {
		row:   "leaves, or is drained with `--evict`",
		begin: func(m *midway) { m.us(emptied) },
		end:   func(m *midway) { m.us() },
		want: `
			before   | Progressing first: ap1 eu2 -us ux1 | Complete: ap2 eu2 -us ux2 | . | Complete: ap2 eu2 us2 ux2
			approval | WaitingForApproval second: ap1 eu2 -us ux1 | Complete: ap2 eu2 -us ux2 | . | Complete: ap2 eu2 us2 ux2
			moving   | Progressing second: ap1 eu2 -us ux2 | Complete: ap2 eu2 -us ux2 | . | Complete: ap2 eu2 us2 ux2
			soaking  | Soaking second: ap1 eu2 -us ux2 | Complete: ap2 eu2 -us ux2 | . | Complete: ap2 eu2 us2 ux2
			after    | Progressing rest: ap2 eu2 -us ux2 | Complete: ap2 eu2 -us ux2 | . | Complete: ap2 eu2 us2 ux2
			rollback | RollingBack rest: ap1 eu1 -us ux1 | RolledBack: ap1 eu1 -us ux1 | . | RolledBack: ap1 eu1 us1 ux1
		`,
	},
	"leaves": {
		row:   "leaves, or is drained with `--evict`",
		begin: func(m *midway) { *m.policy.Spec.Clusters.LabelSelector = allBut("us") },
		end:   func(m *midway) { *m.policy.Spec.Clusters.LabelSelector = allBut("none") },
		want: `
			before   | Progressing first: ap1 eu2 -us ux1 | Complete: ap2 eu2 -us ux2 | . | Complete: ap2 eu2 us2 ux2
			approval | WaitingForApproval second: ap1 eu2 -us ux1 | Complete: ap2 eu2 -us ux2 | . | Complete: ap2 eu2 us2 ux2
			moving   | Progressing second: ap1 eu2 -us ux2 | Complete: ap2 eu2 -us ux2 | . | Complete: ap2 eu2 us2 ux2
			soaking  | Soaking second: ap1 eu2 -us ux2 | Complete: ap2 eu2 -us ux2 | . | Complete: ap2 eu2 us2 ux2
			after    | Progressing rest: ap2 eu2 -us ux2 | Complete: ap2 eu2 -us ux2 | . | Complete: ap2 eu2 us2 ux2
			rollback | RollingBack rest: ap1 eu1 -us ux1 | RolledBack: ap1 eu1 -us ux1 | . | RolledBack: ap1 eu1 us1 ux1
		`,
	},
	"joins": {
		row:   "joins",
		begin: func(m *midway) { m.in.Facts.Clusters = append(m.in.Facts.Clusters, cluster("uy")) },
		want: `
			before   | Progressing first: ap1 eu2 us1 ux1 uy1 | Complete: ap2 eu2 us2 ux2 uy2 | .
			approval | WaitingForApproval second: ap1 eu2 us1 ux1 uy1 | Complete: ap2 eu2 us2 ux2 uy2 | .
			moving   | Progressing second: ap1 eu2 us2 ux2 uy2 | Complete: ap2 eu2 us2 ux2 uy2 | .
			soaking  | Progressing second: ap1 eu2 us2 ux2 uy2 | Complete: ap2 eu2 us2 ux2 uy2 | .
			after    | Progressing rest: ap2 eu2 us2 ux2 uy2 | Complete: ap2 eu2 us2 ux2 uy2 | .
			rollback | RollingBack rest: ap1 eu1 us1 ux1 uy1 | RolledBack: ap1 eu1 us1 ux1 uy1 | .
		`,
	},
	"is cordoned": {
		row:   "is suspended or cordoned",
		begin: func(m *midway) { m.us(func(c *hubv1.MemberCluster) { c.Spec.Unschedulable = true }) },
		end:   func(m *midway) { m.us() },
		want: `
			before   | Progressing first: ap1 eu2 us1 ux1 | WaitingForClusters second: ap1 eu2 us1 ux2 | . | Complete: ap2 eu2 us2 ux2
			approval | WaitingForApproval second: ap1 eu2 us1 ux1 | WaitingForClusters second: ap1 eu2 us1 ux2 | . | Complete: ap2 eu2 us2 ux2
			moving   | Progressing second: ap1 eu2 us2 ux2 | Complete: ap2 eu2 us2 ux2 | . | .
			soaking  | Soaking second: ap1 eu2 us2 ux2 | Complete: ap2 eu2 us2 ux2 | . | .
			after    | Progressing rest: ap2 eu2 us2 ux2 | Complete: ap2 eu2 us2 ux2 | . | .
			rollback | RollingBack rest: ap1 eu1 us1 ux1 | RolledBack: ap1 eu1 us1 ux1 | . | .
		`,
	},
	"is suspended": {
		row:   "is suspended or cordoned",
		begin: func(m *midway) { m.policy.Spec.Suspend.Clusters = []string{"us"}; m.silence(false) },
		end:   func(m *midway) { m.policy.Spec.Suspend.Clusters = nil; clear(m.stale) },
		want: `
			before   | Progressing first: ap1 eu2 us1 ux1 | WaitingForClusters second: ap1 eu2 us1 ux2 | . | Complete: ap2 eu2 us2 ux2
			approval | WaitingForApproval second: ap1 eu2 us1 ux1 | WaitingForClusters second: ap1 eu2 us1 ux2 | . | Complete: ap2 eu2 us2 ux2
			moving   | Progressing second: ap1 eu2 us2 ux2 | WaitingForClusters second: ap1 eu2 us2 ux2 | . | Complete: ap2 eu2 us2 ux2
			soaking  | Soaking second: ap1 eu2 us2 ux2 | Complete: ap2 eu2 us2 ux2 | . | .
			after    | Progressing rest: ap2 eu2 us2 ux2 | Complete: ap2 eu2 us2 ux2 | . | .
			rollback | RollingBack rest: ap1 eu1 us1 ux1 | RolledBack: ap1 eu1 us1 ux1 | . | .
		`,
	},
	"is held by its admin": {
		row:   "is held by its admin (`hanse.dev/pause`)",
		begin: func(m *midway) { m.paused["us"] = true; m.say() },
		end:   func(m *midway) { m.paused["us"] = false },
		says:  "an admin of us has paused the copy there",
		want: `
			before   | WaitingForApproval second: ap1 eu2 us1 ux1 | Progressing second: ap1 eu2 us2 ux2 | . | Complete: ap2 eu2 us2 ux2
			approval | WaitingForApproval second: ap1 eu2 us1 ux1 | Progressing second: ap1 eu2 us2 ux2 | . | Complete: ap2 eu2 us2 ux2
			moving   | Progressing second: ap1 eu2 us2 ux2 | . | . | Complete: ap2 eu2 us2 ux2
			soaking  | Soaking second: ap1 eu2 us2 ux2 | Complete: ap2 eu2 us2 ux2 | . | .
			after    | Complete: ap2 eu2 us2 ux2 | . | . | .
			rollback | RollingBack rest: ap1 eu1 us1 ux1 | . | . | RolledBack: ap1 eu1 us1 ux1
		`,
	},
	"the object changes again": {
		row:   "a second change of the object",
		begin: func(m *midway) { m.edit("newer") },
		want: `
			before   | Progressing first: ap1 eu3 us1 ux1 | Complete: ap3 eu3 us3 ux3 | .
			approval | Progressing first: ap1 eu3 us1 ux1 | Complete: ap3 eu3 us3 ux3 | .
			moving   | Progressing first: ap1 eu3 us2 ux2 | Complete: ap3 eu3 us3 ux3 | .
			soaking  | Progressing first: ap1 eu3 us2 ux2 | Complete: ap3 eu3 us3 ux3 | .
			after    | Progressing first: ap2 eu3 us2 ux2 | Complete: ap3 eu3 us3 ux3 | .
			rollback | Progressing first: ap1 eu3 us1 ux1 | Complete: ap3 eu3 us3 ux3 | .
		`,
	},
	"reports the state from before the change": {
		row:   "its status is older than the change",
		begin: func(m *midway) { m.silence(true) },
		end:   func(m *midway) { clear(m.stale) },
		says:  "us failed: not healthy within 900 s: the cluster has not reported revision 2",
		want: `
			before   | Progressing first: ap1 eu2 us1 ux1 | Progressing second: ap1 eu2 us2 ux2 | Failed second: ap1 eu2 us2 ux2 | Complete: ap2 eu2 us2 ux2
			approval | WaitingForApproval second: ap1 eu2 us1 ux1 | Progressing second: ap1 eu2 us2 ux2 | Failed second: ap1 eu2 us2 ux2 | Complete: ap2 eu2 us2 ux2
			moving   | Progressing second: ap1 eu2 us2 ux2 | . | Failed second: ap1 eu2 us2 ux2 | Complete: ap2 eu2 us2 ux2
			soaking  | Progressing second: ap1 eu2 us2 ux2 | . | Failed second: ap1 eu2 us2 ux2 | Complete: ap2 eu2 us2 ux2
			after    | Progressing rest: ap2 eu2 us2 ux2 | Complete: ap2 eu2 us2 ux2 | . | .
			rollback | RollingBack rest: ap1 eu1 us1 ux1 | . | RolledBack: ap1 eu1 us1 ux1 | .
		`,
	},
}

func TestWhatHappensToAClusterInEachPhaseOfAChange(t *testing.T) {
	for name, event := range waveEvents {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, phase := range phases {
				m := newMidway(t, event.replaces).begin(phase)
				event.begin(m)
				m.decide()
				states := []string{m.quiet()}
				m.goOn()
				states = append(states, m.quiet())
				m.later(15 * time.Minute)
				m.goOn()
				states = append(states, m.quiet())
				if says := m.binding.Spec.Rollout.Message; phase == "moving" && !strings.Contains(says, event.says) {
					t.Errorf("15 minutes later, the message is %q, want %q", says, event.says)
				}
				if event.end != nil {
					event.end(m)
					m.decide()
					m.goOn()
					states = append(states, m.quiet())
				}
				for i := len(states) - 1; i > 0; i-- {
					if states[i] == states[i-1] {
						states[i] = "."
					}
				}
				got = append(got, fmt.Sprintf("%-8s | %s", phase, strings.Join(states, " | ")))
			}
			var want []string
			for line := range strings.Lines(strings.TrimSpace(event.want)) {
				want = append(want, strings.TrimSpace(line))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the states (-want +got):\n%s\n%s", diff, strings.Join(got, "\n"))
			}
		})
	}
}

func TestEachEventOfARolloutIsInTheTableOfRolloutMd(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "rollout.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| the cluster |")
	table, _, _ = strings.Cut(table, "\n\n")
	var got, want []string
	for line := range strings.Lines(table) {
		if title, _, found := strings.Cut(strings.TrimPrefix(line, "| "), " |"); found && strings.HasPrefix(line, "| ") {
			got = append(got, title)
		}
	}
	for _, event := range waveEvents {
		want = append(want, event.row)
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(slices.Compact(want), got); diff != "" {
		t.Errorf("the rows of the table (-tested +guide):\n%s", diff)
	}
}
