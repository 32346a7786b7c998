package rollout

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

var beganAt = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// steered returns a placement with one object for each of the phases. The last wave of the placement needs an approval.
// The changes of the objects began an hour apart, the first one at noon.
func steered(phases ...hubv1.RolloutPhase) Steering {
	p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u"}}
	p.Spec.Rollout = &hubv1.RolloutPolicy{Waves: []hubv1.RolloutWave{{Name: "asia"}, {Name: "rest", Approval: hubv1.ApprovalManual}}}
	s := Steering{Placement: p, Named: "placement/web"}
	for i, phase := range phases {
		b := &hubv1.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: string(phase), UID: types.UID(phase)}}
		b.Spec.Clusters = []hubv1.BindingTarget{{Name: "ap-se-1"}, {Name: "cn-sha-1"}}
		b.Spec.Rollout = &hubv1.BindingRollout{Revision: 7, Newest: 7, Phase: phase, Began: metav1.NewTime(beganAt.Add(time.Duration(i) * time.Hour))}
		s.Objects = append(s.Objects, b)
	}
	return s
}

func TestARequestIsForTheChangesInProgress(t *testing.T) {
	const moving, waiting, done, back = hubv1.RolloutProgressing, hubv1.RolloutWaitingForApproval, hubv1.RolloutComplete, hubv1.RolloutRolledBack
	approve := func(s Steering) (Request, error) { return s.Approve("rest") }
	skip := func(s Steering) (Request, error) { return s.Skip("cn-sha-1") }
	promote := func(s Steering) (Request, error) { return s.Promote(" CVE-1\n now ") }
	for name, tc := range map[string]struct {
		steering Steering
		request  func(Steering) (Request, error)
		before   map[string]string
		want     string // value of the annotation
		refused  string
	}{
		"an approval has the time of the latest change":   {steered(moving, waiting, done), approve, nil, "rest@2026-03-01T13:00:00Z", ""},
		"an approval keeps others of the same changes":    {steered(waiting), approve, map[string]string{hubv1.RolloutApproveAnnotation: "asia@2026-03-01T12:00:00Z,rest@2026-03-01T12:00:00Z"}, "asia@2026-03-01T12:00:00Z,rest@2026-03-01T12:00:00Z", ""},
		"an approval drops those of changes that ended":   {steered(waiting), approve, map[string]string{hubv1.RolloutApproveAnnotation: "asia@2026-03-01T11:59:59Z, broken"}, "rest@2026-03-01T12:00:00Z", ""},
		"an approval of an unknown wave is refused":       {steered(waiting), func(s Steering) (Request, error) { return s.Approve("europe") }, nil, "", `placement/web has no wave "europe": its waves are asia, rest`},
		"an approval that no wave waits for is refused":   {steered(waiting), func(s Steering) (Request, error) { return s.Approve("asia") }, nil, "", "wave asia of placement/web waits for no approval"},
		"an approval without a change is refused":         {steered(done, back), approve, nil, "", "placement/web: no object of the placement is changing"},
		"a cluster is skipped for the changes":            {steered(moving), skip, nil, "cn-sha-1@2026-03-01T12:00:00Z", ""},
		"a cluster that no object goes to is not skipped": {steered(moving), func(s Steering) (Request, error) { return s.Skip("eu-fra-1") }, nil, "", `no object of placement/web goes to cluster "eu-fra-1": its clusters are ap-se-1, cn-sha-1`},
		"no cluster is skipped without a change":          {steered(done), skip, nil, "", "no object of the placement is changing"},
		"a promotion has its reason on one line":          {steered(moving), promote, nil, "2026-03-01T12:00:00Z CVE-1 now", ""},
		"a promotion includes what was rolled back":       {steered(back), promote, nil, "2026-03-01T12:00:00Z CVE-1 now", ""},
		"a promotion without a change is refused":         {steered(done), promote, nil, "", "no object of the placement is changing"},
		"a promotion without a reason is refused":         {steered(moving), func(s Steering) (Request, error) { return s.Promote(" \n") }, nil, "", "the reason is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := tc.request(tc.steering)
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) {
					t.Fatalf("error %v, want %q", err, tc.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for key, value := range tc.before {
				got[key] = value
			}
			r.Change(got)
			var value string
			for _, v := range got {
				value = v
			}
			if len(got) != 1 || value != tc.want {
				t.Errorf("the annotations are %v, want %q", got, tc.want)
			}
			if r.Clusters != 2 || r.Objects == 0 {
				t.Errorf("%d objects, %d clusters", r.Objects, r.Clusters)
			}
		})
	}
}

func TestAStateIsOfTheChangesAndNotOfTheirProgress(t *testing.T) {
	const moving, waiting = hubv1.RolloutProgressing, hubv1.RolloutWaitingForApproval
	state := steered(moving).State()
	later := steered(moving)
	r := later.Objects[0].BindingSpec().Rollout
	r.Phase, r.Wave = waiting, "rest"
	if later.State() != state {
		t.Error("progress of a change is another state")
	}
	turned := steered(moving, waiting)
	turned.Objects[0], turned.Objects[1] = turned.Objects[1], turned.Objects[0]
	if turned.State() != steered(moving, waiting).State() {
		t.Error("the order of the objects counts")
	}
	for name, change := range map[string]func(*Steering){
		"a newer revision":             func(s *Steering) { s.Objects[0].BindingSpec().Rollout.Revision++ },
		"a change that began later":    func(s *Steering) { s.Objects[0].BindingSpec().Rollout.Began = metav1.NewTime(beganAt.Add(time.Second)) },
		"another object that changes":  func(s *Steering) { s.Objects = steered(moving, waiting).Objects },
		"an ended change":              func(s *Steering) { s.Objects[0].BindingSpec().Rollout.Phase = hubv1.RolloutComplete },
		"another policy":               func(s *Steering) { s.Placement.SetGeneration(2) },
		"a pause":                      func(s *Steering) { s.Placement.SetAnnotations(map[string]string{hubv1.RolloutPauseAnnotation: "true"}) },
		"a placement of the same name": func(s *Steering) { s.Placement.SetUID("other") },
	} {
		s := steered(moving)
		if change(&s); s.State() == state {
			t.Errorf("%s is the same state", name)
		}
	}
}

func TestAnUndoReturnsToAStoredRevision(t *testing.T) {
	spec := &hubv1.BindingSpec{Rollout: &hubv1.BindingRollout{Revision: 7, Newest: 7}, Revisions: []hubv1.ObjectRevision{{Number: 4, Passed: true}, {Number: 6, Passed: true}, {Number: 7, Passed: true}}}
	for to, want := range map[int64]int64{0: 6, 4: 4, 7: 7} {
		if got, err := UndoTo(spec, to); err != nil || got != want {
			t.Errorf("to %d: %d, %v, want %d", to, got, err, want)
		}
	}
	if _, err := UndoTo(spec, 5); err == nil || !strings.Contains(err.Error(), "revision 5 is gone: the hub stores revisions 4, 6 and 7 (current)") {
		t.Errorf("to a revision that is not stored: %v", err)
	}
	all := spec.Revisions
	for _, tc := range []struct {
		revisions []hubv1.ObjectRevision
		want      string
	}{
		{[]hubv1.ObjectRevision{{Number: 6}, {Number: 7}}, "no other revision has passed on all clusters: choose one with --to-revision; the hub stores revisions 6 and 7 (current)"},
		{all[2:], "no other revision has passed on all clusters: the hub stores only revision 7 (current)"},
		{nil, "no other revision has passed on all clusters: the hub stores no revision"},
	} {
		spec.Revisions = tc.revisions
		if _, err := UndoTo(spec, 0); !errors.Is(err, ErrNothingPassed) || err.Error() != tc.want {
			t.Errorf("with %d revisions: %v, want %s", len(tc.revisions), err, tc.want)
		}
	}
	spec.Revisions = all[2:]
	if !Undone(spec, 7) || Undone(spec, 6) {
		t.Error("clusters that get revision 7 have returned to 7 alone")
	}
	if spec.Rollout.Failed = 7; Undone(spec, 7) {
		t.Error("a failed revision can be tried again")
	}
	annotations := map[string]string{}
	Undo(6, beganAt)(annotations)
	if got := annotations[hubv1.RolloutUndoAnnotation]; got != "6@2026-03-01T12:00:00Z" {
		t.Errorf("the annotation is %q", got)
	}
}
