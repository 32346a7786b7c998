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

func TestAMemoryIsKeptWhole(t *testing.T) {
	t.Parallel()
	want := memory{
		last: member.Outcome{
			Applied: metav1.ConditionTrue, Reason: hubv1.ReasonCompleted, Message: "m", UID: "u", ResourceVersion: "7", Generation: 2, Hash: "h",
			Digest: "d", HubGeneration: 3, Last: &member.Observation{Name: "n"}, Retry: member.RetryAfter, After: time.Minute,
		},
		told: time.Unix(1, 0), gvk: schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "K"}, waits: time.Unix(2, 0),
		withdrawn: &hubv1.Absence{UID: "x"}, taken: true,
	}
	// A field that is new in one of them must not be lost by and by.
	set := func(v reflect.Value) {
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				t.Errorf("the test does not set %s.%s", v.Type(), v.Type().Field(i).Name)
			}
		}
	}
	set(reflect.ValueOf(want))
	full := want.last
	full.Wrote, full.Drifted = true, []member.FieldDrift{{}}
	set(reflect.ValueOf(full))
	if diff := cmp.Diff(want, want.pack().memory(), cmp.AllowUnexported(memory{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(memory{}, (*kept)(nil).memory(), cmp.AllowUnexported(memory{})); diff != "" {
		t.Errorf("of nothing (-want +got):\n%s", diff)
	}
}
