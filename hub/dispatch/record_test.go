package dispatch

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

func TestAPackedRecordKeepsAllFields(t *testing.T) {
	t.Parallel()
	want := record{
		last: member.Outcome{
			Applied: metav1.ConditionTrue, Reason: hubv1.ReasonCompleted, Message: "m", Changed: "c",
			CopyState: member.CopyState{UID: "u", ResourceVersion: "7", Generation: 2, Hash: "h", Digest: "d", Adopted: true},
			HubState:  member.HubState{HubGeneration: 3, HubRevision: 9, HubContent: 4, HubVersion: "v1"},
			Last:      &member.Observation{Name: "n"}, Orphaned: &hubv1.OrphanedCopy{UID: "u"}, Retry: member.RetryAfter, After: time.Minute,
		},
		confirmedAt: time.Unix(1, 0), gvk: schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "K"},
		withdrawn: &hubv1.Absence{UID: "x"}, withdrawing: true, yielded: true,
	}
	// The test sets every field, so that pack cannot lose a new field without a failure.
	set := func(v reflect.Value) {
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				t.Errorf("the test does not set %s.%s", v.Type(), v.Type().Field(i).Name)
			}
		}
	}
	set(reflect.ValueOf(want))
	full := want.last
	full.Wrote, full.Drifted, full.Newer = true, []member.FieldDrift{{}}, member.Newer{SameObject: true}
	set(reflect.ValueOf(full))
	if diff := cmp.Diff(want, want.pack().unpack(), cmp.AllowUnexported(record{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(record{}, packed{}.unpack(), cmp.AllowUnexported(record{})); diff != "" {
		t.Errorf("of nothing (-want +got):\n%s", diff)
	}
}

func TestOurOwnWriteThatComesBackChangesNothing(t *testing.T) {
	last := member.Outcome{Applied: metav1.ConditionTrue, CopyState: member.CopyState{UID: "u", ResourceVersion: "7", Hash: "h", Digest: "d"}}
	seen := member.Observation{CopyState: member.CopyState{UID: "u", ResourceVersion: "7", Hash: "h", Digest: "d"}}
	tests := map[string]struct {
		last func(*member.Outcome)
		seen func(*member.Observation)
		want bool
	}{
		"the write itself":                 {want: true},
		"a later version":                  {seen: func(o *member.Observation) { o.ResourceVersion = "8" }},
		"another object of the name":       {seen: func(o *member.Observation) { o.UID = "v" }},
		"other content":                    {seen: func(o *member.Observation) { o.Hash = "i" }},
		"other marks":                      {seen: func(o *member.Observation) { o.Digest = "e" }},
		"an object that is being deleted":  {seen: func(o *member.Observation) { o.Deleting = true }},
		"a write that failed":              {last: func(o *member.Outcome) { o.Applied = metav1.ConditionFalse }},
		"nothing was written to this time": {last: func(o *member.Outcome) { *o = member.Outcome{} }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m, o := record{last: last}, seen
			if tc.last != nil {
				tc.last(&m.last)
			}
			if tc.seen != nil {
				tc.seen(&o)
			}
			if got := m.wrote(o); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
