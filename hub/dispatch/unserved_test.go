package dispatch

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

func TestFieldsThatAClusterLacksAreNamed(t *testing.T) {
	long := ".spec" + strings.Repeat(".deep", 100)
	manifest := &unstructured.Unstructured{Object: map[string]any{"kind": strings.Repeat("K", 63)}}
	tests := map[string]struct {
		paths []string
		want  string
	}{
		"one":                               {paths: []string{".spec.a"}, want: "no .spec.a: bring"},
		"three":                             {paths: []string{".a", ".b", ".c"}, want: "no .a, .b, .c: bring"},
		"of more than three how many":       {paths: []string{".a", ".b", ".c", ".d", ".e"}, want: "no .a, .b, .c and 2 more: bring"},
		"of a long path the end":            {paths: []string{long}, want: ".deep.deep: bring"},
		"of many long paths all, if barely": {paths: []string{long, long, long, long}, want: " and 1 more"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := notServed(manifest, tt.paths)
			if !strings.Contains(o.Message, tt.want) {
				t.Errorf("got %q, want %q in it", o.Message, tt.want)
			}
			if i := strings.Index(o.Message, tt.want) + len(tt.want); len([]rune(o.Message[:i])) > 256 {
				t.Errorf("%q is cut off in the row", tt.want)
			}
			if o.Applied != metav1.ConditionFalse || o.Reason != hubv1.ReasonFieldsNotServed || o.Retry != member.RetrySlowly {
				t.Errorf("got %+v", o)
			}
		})
	}
}

func TestWhatWasDroppedShowsInTheOutcome(t *testing.T) {
	const text = "without what the cluster's definition does not have: .a"
	tests := map[string]struct {
		reason, message, wantReason, want string
	}{
		"applied":                  {reason: hubv1.ReasonApplied, wantReason: hubv1.ReasonFieldsDropped, want: text},
		"applied with a note":      {reason: hubv1.ReasonAutoscaled, message: "note", wantReason: hubv1.ReasonFieldsDropped, want: text},
		"in sync when compared":    {reason: hubv1.ReasonInSync, message: "same", wantReason: hubv1.ReasonInSync, want: "same; " + text},
		"different when compared":  {reason: hubv1.ReasonDiffers, message: "other", wantReason: hubv1.ReasonDiffers, want: "other; " + text},
		"refused for other reason": {reason: hubv1.ReasonForbidden, message: "no", wantReason: hubv1.ReasonForbidden, want: "no"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := member.Outcome{Reason: tt.reason, Message: tt.message}
			if got := dropped(in, []string{".a"}); got.Reason != tt.wantReason || got.Message != tt.want {
				t.Errorf("got %s %q, want %s %q", got.Reason, got.Message, tt.wantReason, tt.want)
			}
			if got := dropped(in, nil); got.Reason != tt.reason || got.Message != tt.message {
				t.Errorf("without a dropped field, got %s %q", got.Reason, got.Message)
			}
		})
	}
}
