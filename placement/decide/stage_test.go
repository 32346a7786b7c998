package decide

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/canonical"
	"github.com/hanse-dev/hanse/placement/rollout"
)

// staged is an object of a placement with three waves: first ("eu"), second ("us") and all other clusters. The test
// decides on the object repeatedly.
type staged struct {
	t       *testing.T
	in      Input
	policy  *hubv1.Placement
	binding *hubv1.ResourceBinding
	stored  map[string]bool
}

func newStaged(t *testing.T, change ...func(*hubv1.Placement)) *staged {
	t.Helper()
	waves := []hubv1.RolloutWave{{Name: "first", Clusters: naming("eu")}, {Name: "second", Clusters: naming("us")}, {Name: "rest"}}
	p := policy("web", func(p *hubv1.Placement) {
		p.Spec.Rollout = &hubv1.RolloutPolicy{
			Waves: waves, SettleSeconds: ptr.To[int32](0), HealthGate: hubv1.RolloutGate{MinObservedSeconds: ptr.To[int32](0)},
		}
	})
	for _, f := range change {
		f(p)
	}
	s := &staged{t: t, policy: p, stored: map[string]bool{}}
	o := template("a")
	o.SetGeneration(1)
	s.in = Input{
		Object: Object{ID: object, Template: o}, Now: now,
		Facts: Facts{Placements: only(p), Clusters: []*hubv1.MemberCluster{cluster("ap"), cluster("eu"), cluster("us")}, NamespaceRead: true},
		Staging: &Staging{
			Key: canonical.Key("key"), Peers: func(Owner) rollout.Peers { return rollout.NewPeers(nil) },
		},
	}
	return s
}

// edit changes the hub object: it sets this value in the spec.
func (s *staged) edit(value string) {
	o := s.in.Object.Template.DeepCopy()
	o.SetGeneration(o.GetGeneration() + 1)
	if err := unstructured.SetNestedField(o.Object, value, "spec", "value"); err != nil {
		s.t.Fatal(err)
	}
	s.in.Object.Template = o
}

// decide decides on the object, stores the payloads and updates the binding, as the leader does.
func (s *staged) decide() Plan {
	s.t.Helper()
	s.in.Now = s.in.Now.Add(time.Second)
	p := Decide(s.in)
	if p.Spec == nil {
		s.t.Fatalf("there is no binding: %+v", p.Status.Scheduled)
	}
	for _, payload := range p.Payloads {
		s.stored[payload.Digest] = true
	}
	for _, r := range p.Spec.Revisions {
		if !s.stored[r.Template] || !s.stored[r.Policies] {
			s.t.Errorf("revision %d names contents that are not stored", r.Number)
		}
	}
	b := bound()
	if s.binding != nil {
		b = s.binding.DeepCopy()
	}
	b.Spec = *p.Spec.DeepCopy()
	s.binding, s.in.Binding = b, b
	return p
}

// report makes each cluster report that it has the revision of its target and is healthy.
func (s *staged) report() {
	rows := s.binding.Status.Clusters[:0:0]
	for _, e := range s.binding.Spec.Clusters {
		row := hubv1.ClusterRow{
			Name: e.Name, Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy, Revision: e.Revision,
			LastTransitionTime: &metav1.Time{Time: s.in.Now}, PassingSince: &metav1.Time{Time: s.in.Now},
		}
		if before := s.binding.Status.Row(e.Name); before != nil && before.Revision == row.Revision {
			row = *before
		}
		rows = append(rows, row)
	}
	s.binding.Status.Clusters, s.binding.Status.ObservedGeneration = rows, s.binding.Generation
}

// is checks the phase, the wave and the revisions of the targets, such as "ap 1, eu 2, us 1".
func (s *staged) is(phase hubv1.RolloutPhase, wave, targets string) {
	s.t.Helper()
	r := s.binding.Spec.Rollout
	if r == nil {
		s.t.Fatalf("there is no rollout")
	}
	var holds []string
	for _, e := range s.binding.Spec.Clusters {
		holds = append(holds, fmt.Sprintf("%s %d", e.Name, e.Revision))
	}
	if got := strings.Join(holds, ", "); r.Phase != phase || r.Wave != wave || got != targets {
		s.t.Fatalf("the rollout is %s %q with %s (%s), want %s %q with %s", r.Phase, r.Wave, got, r.Message, phase, wave, targets)
	}
}

// passBaseline rolls the first revision out to all clusters.
func (s *staged) passBaseline() {
	s.t.Helper()
	s.decide()
	s.is(hubv1.RolloutProgressing, "", "ap 1, eu 1, us 1")
	s.report()
	s.decide()
	s.is(hubv1.RolloutComplete, "", "ap 1, eu 1, us 1")
}

func TestABlockedUndoSaysWhy(t *testing.T) {
	s := newStaged(t)
	s.passBaseline()
	s.edit("new")
	s.decide()
	s.in.Object.Template.SetAnnotations(map[string]string{hubv1.RolloutUndoAnnotation: "1"})
	s.in.Staging.UndoBlocked = "UndoBlocked: a version is missing"
	s.decide()
	s.is(hubv1.RolloutProgressing, "first", "ap 1, eu 2, us 1")
	if got := s.binding.Spec.Rollout.Message; !strings.HasPrefix(got, "UndoBlocked: a version is missing") {
		t.Errorf("the message is %q", got)
	}
	s.in.Staging.UndoBlocked = ""
	s.decide()
	s.is(hubv1.RolloutProgressing, "first", "ap 1, eu 1, us 1")
}

func TestAChangeReachesOneWaveAfterTheOther(t *testing.T) {
	s := newStaged(t)
	s.passBaseline()
	s.edit("new")
	s.decide()
	s.is(hubv1.RolloutProgressing, "first", "ap 1, eu 2, us 1")
	for range 3 { // Decide again: nothing has changed
		before := s.binding.Spec.DeepCopy()
		s.decide()
		if diff := cmp.Diff(before, &s.binding.Spec); diff != "" {
			t.Fatalf("a decision without a change differs:\n%s", diff)
		}
	}
	s.report()
	s.decide()
	s.is(hubv1.RolloutProgressing, "second", "ap 1, eu 2, us 2")
	s.report()
	s.decide()
	s.is(hubv1.RolloutProgressing, "rest", "ap 2, eu 2, us 2")
	s.report()
	p := s.decide()
	s.is(hubv1.RolloutComplete, "", "ap 2, eu 2, us 2")
	if p.Claims.Rollout == nil || !p.Claims.Rollout.Done || p.Claims.Rollout.Object != object.String() {
		t.Errorf("the progress is %+v", p.Claims.Rollout)
	}
}

func TestALostPartIsAPayloadAgainIfTheHubHasItsContent(t *testing.T) {
	s := newStaged(t)
	s.passBaseline()
	s.edit("new")
	s.decide()
	s.is(hubv1.RolloutProgressing, "first", "ap 1, eu 2, us 1")
	lost := map[string]bool{}
	s.in.Staging.Lost = func(digest string) bool { return lost[digest] }
	first, second := s.binding.Spec.Revision(1), s.binding.Spec.Revision(2)
	for name, tc := range map[string]struct{ lost, want []string }{
		"nothing is lost":                            {},
		"the template of the newest revision":        {[]string{second.Template}, []string{second.Template}},
		"its rules, which the first revision shares": {[]string{second.Policies}, []string{second.Policies}},
		"an earlier template, which the hub lacks":   {[]string{first.Template}, nil},
		"all parts": {[]string{first.Template, second.Template, second.Policies}, []string{second.Template, second.Policies}},
	} {
		clear(lost)
		for _, digest := range tc.lost {
			lost[digest] = true
		}
		var got []string
		for _, p := range s.decide().Payloads {
			got = append(got, p.Digest)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// An edit helps clusters whose revision is lost, as the message of their rows says.
func TestAChangeGoesToClustersWhoseRevisionIsLost(t *testing.T) {
	s := newStaged(t)
	s.passBaseline()
	s.edit("new")
	s.decide()
	s.is(hubv1.RolloutProgressing, "first", "ap 1, eu 2, us 1")
	for i := range s.binding.Status.Clusters {
		row := &s.binding.Status.Clusters[i]
		row.Applied, row.Health, row.PassingSince, row.Reason = metav1.ConditionFalse, hubv1.HealthUnknown, nil, hubv1.ReasonRevisionMissing
	}
	s.edit("newer")
	for _, holds := range []string{"ap 1, eu 3, us 1", "ap 1, eu 3, us 3", "ap 3, eu 3, us 3"} {
		s.decide()
		if got := s.binding.Spec.Rollout; got.Phase != hubv1.RolloutProgressing {
			t.Fatalf("the rollout is %+v", got)
		}
		s.is(hubv1.RolloutProgressing, s.binding.Spec.Rollout.Wave, holds)
		row := func(cluster string) *hubv1.ClusterRow { return s.binding.Status.Row(cluster) }
		for _, e := range s.binding.Spec.Clusters {
			if e.Revision == 3 && row(e.Name).Revision != 3 {
				*row(e.Name) = hubv1.ClusterRow{
					Name: e.Name, Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy, Revision: 3,
					LastTransitionTime: &metav1.Time{Time: s.in.Now}, PassingSince: &metav1.Time{Time: s.in.Now},
				}
			}
		}
	}
	s.decide()
	s.is(hubv1.RolloutComplete, "", "ap 3, eu 3, us 3")
}

func TestWhichChangesMakeARevision(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*staged)
		staged bool
	}{
		"a change of the spec":            {func(s *staged) { s.edit("new") }, true},
		"a label that travels":            {func(s *staged) { setLabel(s, "example.org/a") }, true},
		"a rule of a policy":              {func(s *staged) { s.in.Facts.Overrides = these(marking("b")) }, true},
		"the end of a policy":             {func(s *staged) { s.in.Facts.Overrides = nil }, true},
		"a field that is left to members": {func(s *staged) { s.policy.Spec.Apply.MemberOwnedFields = []string{"/spec/value"} }, true},
		"a rule that restarts pods": {func(s *staged) {
			s.policy.Spec.References = []hubv1.ReferenceRule{{Path: "/spec/template", Restart: hubv1.RestartOnChange}}
		}, true},
		"a rule that restarts no pods":   {func(s *staged) { s.policy.Spec.References = []hubv1.ReferenceRule{{Path: "/spec/template"}} }, false},
		"the same policy, written again": {func(s *staged) { s.in.Facts.Overrides = these(marking("a")) }, false},
		"a rule that excludes a cluster no object goes to": {func(s *staged) {
			s.in.Facts.Overrides = append(s.in.Facts.Overrides, excluding(naming("none")))
		}, false},
		"an annotation that does not travel": {func(s *staged) {
			o := s.in.Object.Template.DeepCopy()
			o.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"})
			s.in.Object.Template = o
		}, false},
		"a status": {func(s *staged) {
			o := s.in.Object.Template.DeepCopy()
			o.Object["status"] = map[string]any{"ready": true}
			s.in.Object.Template = o
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStaged(t)
			s.in.Facts.Overrides = these(marking("a"))
			s.passBaseline()
			tc.change(s)
			s.decide()
			if got := s.binding.Spec.Rollout.Newest == 2; got != tc.staged {
				t.Errorf("there is a new revision: %t, want %t", got, tc.staged)
			}
		})
	}
}

// marking returns a policy that sets a label of the object.
func marking(value string) *hubv1.OverridePolicy {
	p := &hubv1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: object.Namespace, Name: "marks"}}
	p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{APIGroup: object.Group, Kind: object.Kind}}
	p.Spec.Rules = []hubv1.OverrideRule{{Name: "mark", Labels: map[string]string{"mark": value}}}
	return p
}

func TestPoliciesThatChangeAfterARollbackGoWithTheOlderTemplate(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*staged){
		"a rule of a policy":              func(s *staged) { s.in.Facts.Overrides = these(marking("b")) },
		"a field that is left to members": func(s *staged) { s.policy.Spec.Apply.MemberOwnedFields = []string{"/spec/value"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStaged(t, func(p *hubv1.Placement) { p.Spec.Rollout.OnFailure = hubv1.FailureRollback })
			s.passBaseline()
			s.edit("bad")
			s.decide()
			s.report()
			eu := s.binding.Status.Row("eu")
			eu.Health, eu.PassingSince = hubv1.HealthDegraded, nil
			s.decide()
			s.is(hubv1.RolloutRollingBack, "first", "ap 1, eu 1, us 1")
			s.report()
			s.decide()
			s.is(hubv1.RolloutRolledBack, "", "ap 1, eu 1, us 1")
			change(s)
			p := s.decide()
			s.is(hubv1.RolloutProgressing, "first", "ap 1, eu 3, us 1")
			first, third := s.binding.Spec.Revision(1), s.binding.Spec.Revision(3)
			if third.Template != first.Template || third.Policies == first.Policies || third.TemplateOf != 1 || third.Generation != 1 {
				t.Errorf("revision 1 is %+v, revision 3 is %+v", first, third)
			}
			if len(p.Payloads) != 1 || p.Payloads[0].Digest != third.Policies {
				t.Errorf("%d parts are stored, want the policies alone", len(p.Payloads))
			}
			if newest := s.binding.Spec.Revision(s.binding.Spec.Rollout.Newest); newest.Number != 4 || newest.Generation != 2 {
				t.Errorf("the newest revision is %+v", newest)
			}
			for range 3 { // Decide again: nothing has changed
				before := s.binding.Spec.DeepCopy()
				if p := s.decide(); cmp.Diff(before, &s.binding.Spec) != "" || len(p.Payloads) != 0 {
					t.Fatalf("a decision without a change differs:\n%s", cmp.Diff(before, &s.binding.Spec))
				}
			}
			for range 3 {
				s.report()
				s.decide()
			}
			s.is(hubv1.RolloutRolledBack, "", "ap 3, eu 3, us 3")
			s.edit("good")
			s.decide()
			s.is(hubv1.RolloutProgressing, "first", "ap 3, eu 5, us 3")
		})
	}
}

func setLabel(s *staged, key string) {
	o := s.in.Object.Template.DeepCopy()
	labels := o.GetLabels()
	labels[key] = "value"
	o.SetLabels(labels)
	s.in.Object.Template = o
}

func TestAReplacementGetsAtLeastTheRevisionOfTheClusterThatItReplaces(t *testing.T) {
	s := newStaged(t, named("eu", "us"), spreading(hubv1.SpreadPolicy{NumberOfClusters: ptr.To[int32](1)}))
	all := s.in.Facts.Clusters
	s.in.Facts.Clusters = all[:2] // without us
	s.decide()
	s.is(hubv1.RolloutProgressing, "", "eu 1")
	s.report()
	s.decide()
	s.edit("new")
	s.decide()
	s.is(hubv1.RolloutProgressing, "first", "eu 2")
	s.in.Facts.Clusters = []*hubv1.MemberCluster{all[0], cluster("eu", drained), all[2]}
	s.decide()
	var us *hubv1.BindingTarget
	if us = s.binding.Spec.Target("us"); us == nil {
		t.Fatalf("nothing replaces the drained cluster: %+v", s.binding.Spec.Clusters)
	}
	if eu := s.binding.Spec.Target("eu"); eu == nil || eu.Revision != 2 || us.Revision != 2 {
		t.Errorf("the entries are %+v", s.binding.Spec.Clusters)
	}
}

func TestOnlyAReplacementGetsTheRevisionOfTheClusterThatLeaves(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		replacements []hubv1.Replacement
		cluster      string
		least        int64
	}{
		"a recorded replacement":                           {[]hubv1.Replacement{{Cluster: "us"}}, "us", 2},
		"a cluster that joins meanwhile":                   {[]hubv1.Replacement{{Cluster: "us"}}, "ap", 0},
		"each new cluster, if no replacement was recorded": {nil, "ap", 2},
	} {
		b := bound()
		b.Spec.Clusters = []hubv1.BindingTarget{{Name: "eu", State: hubv1.TargetEvicting, Revision: 2, Evicting: &hubv1.Eviction{Replacements: tc.replacements}}}
		if got := (input{Input: Input{Binding: b}}).least(tc.cluster, &Plan{Spec: b.Spec.DeepCopy()}); got != tc.least {
			t.Errorf("%s gets at least revision %d, want %d", name, got, tc.least)
		}
	}
}

func TestAnEvictingClusterKeepsItsRevisionListed(t *testing.T) {
	t.Parallel()
	first := hubv1.ObjectRevision{Number: 1, Template: "a", Policies: "p"}
	for name, tc := range map[string]struct {
		after  []hubv1.ObjectRevision
		number int64
		listed int
	}{
		"a revision that is listed stays as it is": {[]hubv1.ObjectRevision{first}, 1, 1},
		"a revision that no other cluster holds":   {[]hubv1.ObjectRevision{{Number: 2, Template: "b", Policies: "p"}}, 1, 2},
		"a revision whose content came back":       {[]hubv1.ObjectRevision{{Number: 3, Template: "a", Policies: "p"}}, 3, 1},
	} {
		b := bound()
		b.Spec.Revisions = []hubv1.ObjectRevision{first}
		spec := &hubv1.BindingSpec{Revisions: tc.after}
		if got := (input{Input: Input{Binding: b}}).carried(spec, 1); got != tc.number || len(spec.Revisions) != tc.listed {
			t.Errorf("%s: number %d with %d listed, want %d with %d", name, got, len(spec.Revisions), tc.number, tc.listed)
		}
	}
}

func TestTheEndOfARolloutPolicyLetsAllClustersHoldTheNewest(t *testing.T) {
	s := newStaged(t)
	s.passBaseline()
	s.edit("new")
	s.decide()
	s.policy.Spec.Rollout = nil
	p := s.decide()
	for _, e := range s.binding.Spec.Clusters {
		if e.Revision != 0 || e.RevisionTime != nil {
			t.Errorf("the entry is %+v", e)
		}
	}
	if p.Spec.Rollout != nil || p.Spec.Revisions != nil || p.Claims.Rollout != nil {
		t.Errorf("the spec is %+v", p.Spec)
	}
}

func TestASimulationKeepsTheRevisions(t *testing.T) {
	s := newStaged(t)
	s.passBaseline()
	s.edit("new")
	s.decide()
	s.in.Staging = nil
	if diff := cmp.Diff(&s.binding.Spec, Decide(s.in).Spec); diff != "" {
		t.Errorf("the simulated spec differs:\n%s", diff)
	}
}

func TestAnObjectThatIsTooLargeForARevisionKeepsWhatItHas(t *testing.T) {
	s := newStaged(t)
	s.passBaseline()
	s.edit(noise(3 << 20))
	p := s.decide()
	s.is(hubv1.RolloutComplete, "", "ap 1, eu 1, us 1")
	if p.Status.Scheduled.Reason != hubv1.ReasonRevisionTooLarge {
		t.Errorf("Scheduled is %+v", p.Status.Scheduled)
	}
}

// noise returns a text of the given size that compression hardly makes smaller.
func noise(size int) string {
	var b strings.Builder
	x := uint64(1)
	for b.Len() < size {
		x = x*6364136223846793005 + 1442695040888963407
		fmt.Fprintf(&b, "%016x", x)
	}
	return b.String()
}

func TestContentsAreReadAsTheyWereStored(t *testing.T) {
	t.Parallel()
	rules := Rules{MemberOwnedFields: []string{"/spec/replicas"}, RestartPaths: []string{"/spec/template"}, Policies: []Policy{
		{Namespace: "ns", Name: "a", Rules: []hubv1.OverrideRule{{Name: "r"}}},
		{Name: "b", Tier: hubv1.TierAdmin, Rules: []hubv1.OverrideRule{{Name: "r"}}},
	}}
	p, err := Pack("digest", rules)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadRules(p.Content)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rules, got.Rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	if len(got.Objects) != 2 || got.Objects[0].GetNamespace() != "ns" || got.Objects[1].OverrideTier() != hubv1.TierAdmin {
		t.Errorf("the policies are %+v", got.Objects)
	}
	if _, err := ReadTemplate([]byte("nonsense")); err == nil {
		t.Error("nonsense is read as a template")
	}
}

// In a large fleet, the hub cuts the statuses from the rows of healthy clusters. A row without a status may therefore
// be older than the change.
func TestACutRowPassesTheGateOnlyAfterAWhile(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		row  hubv1.ClusterRow
		want bool
	}{
		"a kind without a status": {row: hubv1.ClusterRow{LastTransitionTime: &metav1.Time{Time: now}}, want: true},
		"a cut row":               {row: hubv1.ClusterRow{}},
		"a cut row of a status that has a generation": {row: hubv1.ClusterRow{Observed: &runtime.RawExtension{Raw: []byte(`{"observedGeneration":7}`)}}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bound(present("eu"))
			tc.row.Name = "eu"
			b.Status.Clusters = []hubv1.ClusterRow{tc.row}
			in := input{Input: Input{Binding: b, Facts: Facts{Clusters: []*hubv1.MemberCluster{cluster("eu")}}}}
			if got := in.rowFor(rollout.Target{Cluster: "eu"}); got.Observes != tc.want {
				t.Errorf("the row is %+v", got)
			}
		})
	}
}
