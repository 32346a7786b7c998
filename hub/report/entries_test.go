package report

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

func appliedAt(generation int64) member.Outcome {
	return member.Outcome{Applied: metav1.ConditionTrue, Reason: hubv1.ReasonApplied, HubState: member.HubState{HubGeneration: generation, HubContent: uint64(generation)}, CopyState: member.CopyState{Digest: "d"}}
}

func refusedBy(reason string) member.Outcome {
	return member.Outcome{Applied: metav1.ConditionFalse, Reason: reason}
}

func bindingOf(generation int64, targets ...hubv1.BindingTarget) *hubv1.ResourceBinding {
	b := &hubv1.ResourceBinding{}
	b.Namespace, b.Name = "default", "o"
	b.UID, b.Generation, b.Spec.ObjectRef.UID, b.Spec.Clusters = "b", generation, "o", targets
	return b
}

func present(name string) hubv1.BindingTarget {
	return hubv1.BindingTarget{Name: name, State: hubv1.TargetPresent}
}

func absent(name string) hubv1.BindingTarget {
	return hubv1.BindingTarget{Name: name, State: hubv1.TargetAbsent, Absent: &hubv1.Absence{Reason: hubv1.ReasonNotSelected, UID: "o"}}
}

func TestRecordTellsHowMuchAnOutcomeMatters(t *testing.T) {
	type outcome struct {
		cluster string
		member.Outcome
	}
	drifted := appliedAt(1)
	drifted.Wrote, drifted.Drifted = true, []member.FieldDrift{{Path: ".spec.replicas", Manager: "kubectl"}}
	tests := map[string]struct {
		targets []hubv1.BindingTarget
		away    map[string]bool
		holds   func(string) bool // unset: true for all clusters
		before  []outcome
		last    outcome
		want    urgency
		news    bool
	}{
		"the first of three can wait": {
			targets: []hubv1.BindingTarget{present("a"), present("b"), present("c")},
			last:    outcome{"a", appliedAt(1)}, want: result, news: true,
		},
		"the last one ends the wait": {
			targets: []hubv1.BindingTarget{present("a"), present("b")},
			before:  []outcome{{"a", appliedAt(1)}}, last: outcome{"b", appliedAt(1)}, want: lastResult, news: true,
		},
		"a cluster that is away is not waited for": {
			targets: []hubv1.BindingTarget{present("a"), present("b")}, away: map[string]bool{"b": true},
			last: outcome{"a", appliedAt(1)}, want: lastResult, news: true,
		},
		"a failure does not wait": {
			targets: []hubv1.BindingTarget{present("a"), present("b")},
			last:    outcome{"a", refusedBy(hubv1.ReasonForbidden)}, want: failure, news: true,
		},
		"the same failure again is no news": {
			targets: []hubv1.BindingTarget{present("a"), present("b")},
			before:  []outcome{{"a", refusedBy(hubv1.ReasonForbidden)}}, last: outcome{"a", refusedBy(hubv1.ReasonForbidden)}, want: result, news: false,
		},
		"what is suspended has not failed": {
			targets: []hubv1.BindingTarget{present("a"), present("b")},
			last:    outcome{"a", refusedBy(hubv1.ReasonSuspended)}, want: result, news: true,
		},
		"a new generation on the first cluster can wait for the others": {
			targets: []hubv1.BindingTarget{present("a"), present("b")},
			before:  []outcome{{"a", appliedAt(1)}, {"b", appliedAt(1)}}, last: outcome{"a", appliedAt(2)}, want: result, news: true,
		},
		"a new generation on the last cluster ends the wait": {
			targets: []hubv1.BindingTarget{present("a"), present("b")},
			before:  []outcome{{"a", appliedAt(1)}, {"b", appliedAt(1)}, {"a", appliedAt(2)}}, last: outcome{"b", appliedAt(2)}, want: lastResult, news: true,
		},
		"a withdrawal that is under way is waited for": {
			targets: []hubv1.BindingTarget{present("a"), absent("b")},
			before:  []outcome{{"b", refusedBy(hubv1.ReasonDeleting)}}, last: outcome{"a", appliedAt(1)}, want: result, news: true,
		},
		"the first of two withdrawals that are all there is waits for the other": {
			targets: []hubv1.BindingTarget{absent("a"), absent("b")},
			last:    outcome{"a", refusedBy(hubv1.ReasonWithdrawn)}, want: whenIdle, news: true,
		},
		"the last withdrawal ends the wait": {
			targets: []hubv1.BindingTarget{absent("a"), absent("b")},
			before:  []outcome{{"a", refusedBy(hubv1.ReasonWithdrawn)}}, last: outcome{"b", refusedBy(hubv1.ReasonWithdrawn)}, want: lastResult, news: true,
		},
		"a withdrawal that fails does not wait": {
			targets: []hubv1.BindingTarget{absent("a"), absent("b")},
			last:    outcome{"a", refusedBy(hubv1.ReasonForbidden)}, want: failure, news: true,
		},
		"a withdrawal that is done completes": {
			targets: []hubv1.BindingTarget{present("a"), absent("b")},
			before:  []outcome{{"a", appliedAt(1)}}, last: outcome{"b", refusedBy(hubv1.ReasonWithdrawn)}, want: lastResult, news: true,
		},
		"a cluster that reports to another replica is not waited for": {
			targets: []hubv1.BindingTarget{present("a"), present("b")},
			holds:   func(cluster string) bool { return cluster == "a" }, last: outcome{"a", appliedAt(1)}, want: lastResult, news: true,
		},
		"a correction is news although the row stays": {
			targets: []hubv1.BindingTarget{present("a")},
			before:  []outcome{{"a", appliedAt(1)}}, last: outcome{"a", drifted}, want: result, news: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.holds == nil {
				tc.holds = func(string) bool { return true }
			}
			e := &entry{}
			e.adopt(bindingOf(1, tc.targets...))
			for _, o := range tc.before {
				e.record(o.cluster, o.Outcome, tc.away, tc.holds)
			}
			got, news := e.record(tc.last.cluster, tc.last.Outcome, tc.away, tc.holds)
			if got != tc.want || news != tc.news {
				t.Errorf("urgency %d, news %v; want %d, %v", got, news, tc.want, tc.news)
			}
		})
	}
}

func TestAdoptDropsOutcomesOfAnEarlierDecision(t *testing.T) {
	again := bindingOf(2, present("a"), present("b"))
	again.Spec.ObjectRef.UID = "another"
	tests := map[string]struct {
		next *hubv1.ResourceBinding
		want []string // clusters with an outcome
	}{
		"the same decision keeps them":                   {bindingOf(1, present("a"), present("b")), []string{"a", "b"}},
		"a cluster that joins changes nothing":           {bindingOf(2, present("a"), present("b"), present("c")), []string{"a", "b"}},
		"a cluster that is to lose the object":           {bindingOf(2, present("a"), absent("b")), []string{"a"}},
		"one that others take the place of has it still": {bindingOf(2, present("a"), hubv1.BindingTarget{Name: "b", State: hubv1.TargetEvicting}), []string{"a", "b"}},
		"a cluster that is gone":                         {bindingOf(2, present("a")), []string{"a"}},
		"another object under the same name has none":    {again, nil},
		"an event that is late changes nothing":          {bindingOf(0, absent("a")), []string{"a", "b"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e := &entry{}
			e.adopt(bindingOf(1, present("a"), present("b")))
			e.record("a", appliedAt(1), nil, func(string) bool { return true })
			e.record("b", appliedAt(1), nil, func(string) bool { return true })
			e.adopt(tc.next)
			for _, cluster := range tc.want {
				if _, ok := e.results.outcomes[cluster]; !ok {
					t.Errorf("the outcome of %s is gone", cluster)
				}
			}
			if len(e.results.outcomes) != len(tc.want) {
				t.Errorf("%d outcomes are left, want %d", len(e.results.outcomes), len(tc.want))
			}
		})
	}
}

func TestOutdated(t *testing.T) {
	tests := map[string]struct {
		cached, written, refused string
		want                     bool
	}{
		"a binding that this process never wrote":       {cached: "5"},
		"one that is older than the last write":         {cached: "5", written: "7", want: true},
		"the last write itself":                         {cached: "7", written: "7"},
		"one that a write was refused for":              {cached: "5", refused: "5", want: true},
		"the change that made the server refuse it":     {cached: "6", refused: "5"},
		"versions of another server cannot be compared": {cached: "x", written: "7"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e := &entry{last: lastWrite{written: tc.written, refused: tc.refused}}
			b := &hubv1.ResourceBinding{}
			b.ResourceVersion = tc.cached
			if got := e.outdated(b); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestChangesOnSeveralClustersMeetInOneWrite(t *testing.T) {
	all := func(string) bool { return true }
	tests := map[string]struct {
		applied []string
		away    map[string]bool
		holds   func(string) bool
		moved   []string
		want    urgency
	}{
		"the first of three waits for the others":  {applied: []string{"a", "b", "c"}, moved: []string{"a"}, want: result},
		"so does the second":                       {applied: []string{"a", "b", "c"}, moved: []string{"a", "b"}, want: result},
		"the same one twice is not the second":     {applied: []string{"a", "b", "c"}, moved: []string{"a", "a"}, want: result},
		"the third ends the wait":                  {applied: []string{"a", "b", "c"}, moved: []string{"a", "b", "c"}, want: lastResult},
		"a cluster that is away is not waited for": {applied: []string{"a", "b"}, away: map[string]bool{"c": true}, moved: []string{"a", "b"}, want: lastResult},
		"nor is one that reports to another replica": {
			applied: []string{"a", "b", "c"}, holds: func(c string) bool { return c != "c" }, moved: []string{"a", "b"}, want: lastResult,
		},
		"while copies are being written, what comes of that ends the wait": {applied: []string{"a", "b"}, moved: []string{"a", "b", "c"}, want: result},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.holds == nil {
				tc.holds = all
			}
			var e entry
			e.adopt(bindingOf(1, present("a"), present("b"), present("c")))
			for _, c := range tc.applied {
				e.record(c, appliedAt(1), tc.away, tc.holds)
			}
			var got urgency
			for _, c := range tc.moved {
				got = e.change(c, tc.away, tc.holds)
			}
			if got != tc.want {
				t.Errorf("urgency %d, want %d", got, tc.want)
			}
		})
	}
}
