package rollout

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// clock returns a time of the day of the story.
func clock(text string) metav1.Time {
	at, err := time.Parse("15:04:05", text)
	if err != nil {
		panic(err)
	}
	return metav1.NewTime(time.Date(2026, 11, 26, at.Hour(), at.Minute(), at.Second(), 0, time.UTC))
}

func TestParseRequests(t *testing.T) {
	long := strings.Repeat("w", maxName+1)
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        Requests
		errs        []string
	}{
		"a placement without annotations asks for nothing": {},
		"times are read in any time zone, and equal items are one": {
			annotations: map[string]string{hubv1.RolloutApproveAnnotation: "asia@2026-11-26T10:00:00Z, asia@2026-11-26T18:00:00+08:00,rest@2026-11-26T09:00:00Z,"},
			want:        Requests{Approvals: []hubv1.RolloutRequest{{Wave: "asia", Time: clock("10:00:00")}, {Wave: "rest", Time: clock("09:00:00")}}},
		},
		"a bad item of a list leaves the others": {
			annotations: map[string]string{hubv1.RolloutSkipAnnotation: "a@yesterday,b@2026-11-26T10:00:00Z,@2026-11-26T10:00:00Z"},
			want:        Requests{Skips: []hubv1.RolloutRequest{{Cluster: "b", Time: clock("10:00:00")}}},
			errs: []string{
				`annotation hanse.dev/rollout-skip: "a@yesterday" is not a name, @ and an RFC 3339 time`,
				`annotation hanse.dev/rollout-skip: "@2026-11-26T10:00:00Z" is not a name, @ and an RFC 3339 time`,
			},
		},
		"a wave is skipped by wave/ and its name": {
			annotations: map[string]string{hubv1.RolloutSkipAnnotation: "wave/asia@2026-11-26T10:00:00Z"},
			want:        Requests{Skips: []hubv1.RolloutRequest{{Wave: "asia", Time: clock("10:00:00")}}},
		},
		"a promotion has a time and a reason": {
			annotations: map[string]string{hubv1.RolloutPromoteAnnotation: " 2026-11-26T10:00:00Z  CVE-2026-1 is in use"},
			want:        Requests{Promotion: &hubv1.RolloutRequest{Time: clock("10:00:00"), Reason: "CVE-2026-1 is in use"}},
		},
		"a promotion without a reason is refused": {
			annotations: map[string]string{hubv1.RolloutPromoteAnnotation: "2026-11-26T10:00:00Z"},
			errs:        []string{"annotation hanse.dev/rollout-promote: a reason must follow the time"},
		},
		"a promotion without a time is refused": {
			annotations: map[string]string{hubv1.RolloutPromoteAnnotation: "CVE-2026-1"},
			errs:        []string{`annotation hanse.dev/rollout-promote: "CVE-2026-1" is not an RFC 3339 time`},
		},
		"true is a pause and no error": {annotations: map[string]string{hubv1.RolloutPauseAnnotation: "true"}},
		"another value than true and false is refused": {
			annotations: map[string]string{hubv1.RolloutPauseAnnotation: "yes"},
			errs:        []string{`annotation hanse.dev/rollout-pause: "yes" is neither "true" nor "false"`},
		},
		"a name and a time that a status cannot hold are refused": {
			annotations: map[string]string{
				hubv1.RolloutApproveAnnotation: long + "@2026-11-26T10:00:00Z",
				hubv1.RolloutSkipAnnotation:    "wave/@2026-11-26T10:00:00Z",
				hubv1.RolloutPromoteAnnotation: "0001-01-01T00:00:00Z because",
			},
			errs: []string{
				`annotation hanse.dev/rollout-approve: "` + long + `@2026-11-26T10:00:00Z" is not a name, @ and an RFC 3339 time`,
				`annotation hanse.dev/rollout-skip: "wave/@2026-11-26T10:00:00Z" is not a name, @ and an RFC 3339 time`,
				`annotation hanse.dev/rollout-promote: "0001-01-01T00:00:00Z" is not an RFC 3339 time`,
			},
		},
	} {
		got, errs := ParseRequests(tc.annotations)
		var texts []string
		for _, err := range errs {
			texts = append(texts, err.Error())
		}
		if diff := cmp.Diff(tc.errs, texts); diff != "" {
			t.Errorf("%s: errors (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestARequestIsJudgedOnce(t *testing.T) {
	const toCome = "annotation hanse.dev/rollout-approve: 2026-11-26T13:00:00Z: the time was in the future when the hub read the annotation: " +
		"write the time at which the change began, or use hansectl rollout"
	ten := func(r hubv1.RolloutRequest) []hubv1.RolloutRequest {
		r.Time = clock("10:00:00")
		return []hubv1.RolloutRequest{r}
	}
	binding := func(phase hubv1.RolloutPhase, began string, revisions ...int64) hubv1.BindingObject {
		b := &hubv1.ResourceBinding{}
		b.Spec.Rollout = &hubv1.BindingRollout{Revision: 2, Newest: 2, Phase: phase, Began: clock(began)}
		for _, r := range revisions {
			b.Spec.Clusters = append(b.Spec.Clusters, hubv1.BindingTarget{State: hubv1.TargetPresent, Revision: r})
		}
		return b
	}
	asia := ten(hubv1.RolloutRequest{Wave: "asia", By: "kim"})
	refused := []hubv1.RolloutRequest{{Wave: "asia", Time: clock("13:00:00"), By: "lee", Refused: true}}
	for name, tc := range map[string]struct {
		annotation string
		before     []hubv1.RolloutRequest
		objects    []hubv1.BindingObject
		now        string
		want       []hubv1.RolloutRequest
		errs       []string
	}{
		"a new request is recorded with its user": {
			annotation: "asia@2026-11-26T10:00:00Z", now: "12:00:00", want: ten(hubv1.RolloutRequest{Wave: "asia", By: "lee"}),
		},
		"a recorded request keeps its user": {
			annotation: "asia@2026-11-26T10:00:00Z", before: asia, now: "12:00:00", want: asia,
		},
		"a request with a time to come is refused": {
			annotation: "asia@2026-11-26T13:00:00Z", now: "12:59:59", want: refused, errs: []string{toCome},
		},
		"a refused request stays refused when its time has come": {
			annotation: "asia@2026-11-26T13:00:00Z", before: refused, now: "14:00:00", want: refused, errs: []string{toCome},
		},
		"a refused request that is removed is forgotten": {before: refused, now: "14:00:00"},
		"the start of a change is no time to come, if the clock of the hub is behind": {
			annotation: "asia@2026-11-26T13:00:00Z", now: "12:59:00", objects: []hubv1.BindingObject{binding(hubv1.RolloutProgressing, "13:00:00")},
			want: []hubv1.RolloutRequest{{Wave: "asia", Time: clock("13:00:00"), By: "lee"}},
		},
		"a removed request stays while its change is in progress": {
			before: asia, now: "12:00:00", objects: []hubv1.BindingObject{binding(hubv1.RolloutWaitingForApproval, "10:00:00")}, want: asia,
		},
		"a removed request stays while its change lacks a cluster": {
			before: asia, now: "12:00:00", objects: []hubv1.BindingObject{binding(hubv1.RolloutComplete, "09:00:00", 2, 1)}, want: asia,
		},
		"a removed request is forgotten when its change is on all clusters": {
			before: asia, now: "12:00:00", objects: []hubv1.BindingObject{binding(hubv1.RolloutComplete, "09:00:00", 2, 2)},
		},
		"a removed request does not stay for a later change": {
			before: asia, now: "12:00:00", objects: []hubv1.BindingObject{binding(hubv1.RolloutWaitingForApproval, "10:00:01", 1)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, errs := ParseRequests(map[string]string{hubv1.RolloutApproveAnnotation: tc.annotation})
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			got, errs := r.Record(&hubv1.PlacementRollout{Approvals: tc.before}, "lee", tc.objects, clock(tc.now).Time)
			var texts []string
			for _, err := range errs {
				texts = append(texts, err.Error())
			}
			if diff := cmp.Diff(tc.errs, texts); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, got.Approvals); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
			again, _ := r.Record(&hubv1.PlacementRollout{Approvals: got.Approvals}, "park", tc.objects, clock(tc.now).Time)
			if !slices.Equal(got.Approvals, again.Approvals) {
				t.Errorf("a second look changes the records from %v to %v", got.Approvals, again.Approvals)
			}
		})
	}
}

func TestVerbsOfAPlacement(t *testing.T) {
	p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		hubv1.RolloutPauseAnnotation: "true", hubv1.RolloutApproveAnnotation: "asia@2026-11-26T12:00:00Z",
	}}}
	if v := VerbsOf(p); !v.Pause || !v.Approved("asia").IsZero() {
		t.Errorf("without records a pause counts, and an approval does not: %+v", v)
	}
	p.Status.Rollout = &hubv1.PlacementRollout{
		Approvals: []hubv1.RolloutRequest{{Wave: "asia", Time: clock("11:00:00")}, {Wave: "asia", Time: clock("10:00:00")}, {Wave: "rest", Time: clock("13:00:00"), Refused: true}},
		Skips:     []hubv1.RolloutRequest{{Wave: "canary", Time: clock("10:00:00")}, {Cluster: "eu", Time: clock("09:00:00")}},
		Promotion: &hubv1.RolloutRequest{Reason: "CVE", Time: clock("13:00:00"), Refused: true},
	}
	v := VerbsOf(p)
	for name, times := range map[string][2]time.Time{
		"the latest approval of a wave counts": {v.Approved("asia"), clock("11:00:00").Time},
		"a refused approval does not count":    {v.Approved("rest"), time.Time{}},
		"a wave is skipped":                    {v.SkippedWave("canary"), clock("10:00:00").Time},
		"a cluster is skipped":                 {v.Skipped("eu"), clock("09:00:00").Time},
		"a refused promotion does not count":   {v.Promote, time.Time{}},
		"the latest request is known":          {v.latest(), clock("11:00:00").Time},
	} {
		if got, want := times[0], times[1]; !got.Equal(want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
