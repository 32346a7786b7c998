package rollout

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestParseVerbs(t *testing.T) {
	at := func(text string) time.Time {
		when, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        Verbs
		errs        []string
	}{
		"a placement without annotations asks for nothing": {},
		"the latest time of a name counts": {
			annotations: map[string]string{hubv1.RolloutApproveAnnotation: "asia@2026-11-26T10:00:00Z, asia@2026-11-26T12:00:00+08:00,rest@2026-11-26T09:00:00Z,"},
			want:        Verbs{approved: map[string]time.Time{"asia": at("2026-11-26T10:00:00Z"), "rest": at("2026-11-26T09:00:00Z")}},
		},
		"a bad item of a list leaves the others": {
			annotations: map[string]string{hubv1.RolloutSkipAnnotation: "a@yesterday,b@2026-11-26T10:00:00Z,@2026-11-26T10:00:00Z"},
			want:        Verbs{skipped: map[string]time.Time{"b": at("2026-11-26T10:00:00Z")}},
			errs: []string{
				`annotation hanse.dev/rollout-skip: "a@yesterday" is not a name, @ and an RFC 3339 time`,
				`annotation hanse.dev/rollout-skip: "@2026-11-26T10:00:00Z" is not a name, @ and an RFC 3339 time`,
			},
		},
		"a promotion has a time and a reason": {
			annotations: map[string]string{hubv1.RolloutPromoteAnnotation: " 2026-11-26T10:00:00Z  CVE-2026-1 is in use"},
			want:        Verbs{Promote: at("2026-11-26T10:00:00Z"), Reason: "CVE-2026-1 is in use"},
		},
		"a promotion without a reason is refused": {
			annotations: map[string]string{hubv1.RolloutPromoteAnnotation: "2026-11-26T10:00:00Z"},
			errs:        []string{"annotation hanse.dev/rollout-promote: a reason must follow the time"},
		},
		"a promotion without a time is refused": {
			annotations: map[string]string{hubv1.RolloutPromoteAnnotation: "CVE-2026-1"},
			errs:        []string{`annotation hanse.dev/rollout-promote: "CVE-2026-1" is not an RFC 3339 time`},
		},
		"true pauses": {
			annotations: map[string]string{hubv1.RolloutPauseAnnotation: "true"}, want: Verbs{Pause: true},
		},
		"another value than true and false is refused": {
			annotations: map[string]string{hubv1.RolloutPauseAnnotation: "yes"},
			errs:        []string{`annotation hanse.dev/rollout-pause: "yes" is neither "true" nor "false"`},
		},
	} {
		got, errs := ParseVerbs(tc.annotations)
		var texts []string
		for _, err := range errs {
			texts = append(texts, err.Error())
		}
		if diff := cmp.Diff(tc.errs, texts); diff != "" {
			t.Errorf("%s: errors (-want +got):\n%s", name, diff)
		}
		for _, times := range []*map[string]time.Time{&tc.want.approved, &tc.want.skipped} {
			if *times == nil {
				*times = map[string]time.Time{}
			}
		}
		if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(Verbs{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
