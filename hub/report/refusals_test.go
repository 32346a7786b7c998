package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
)

func TestAStatusThatTheHubMayNotWriteIsTriedAgain(t *testing.T) {
	t.Parallel()
	key := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "ns", Name: name} }
	reporter := &Reporter{opts: Options{Clock: clock.RealClock{}}, entries: map[types.NamespacedName]*entry{key("first"): {}, key("second"): {}}}
	after := func(name string, forbidden, wrote bool) *run {
		r := &run{reporter: reporter, key: key(name), id: hubv1.ObjectIdentity{Group: "example.com", Kind: "Widget", Namespace: "ns", Name: name}}
		r.object.forbidden, r.out.wrote = forbidden, wrote
		r.noteRefusal(nil)
		return r
	}
	if got := after("first", true, false).object.again; got != pace.ProbeEvery {
		t.Errorf("the first refused object of the kind is tried again after %s, want %s", got, pace.ProbeEvery)
	}
	if got := after("second", true, false).object.again; got != 0 {
		t.Errorf("the second refused object is tried again after %s, want only when the first one is written", got)
	}
	if e := reporter.entries[key("second")]; e.window.open() {
		t.Error("the second object is queued although the right is still missing")
	}
	if diff := cmp.Diff([]string{"ns"}, reporter.Refused()); diff != "" {
		t.Errorf("the namespaces of one refused object of each kind (-want +got):\n%s", diff)
	}
	reporter.TryRefused()
	if first, second := reporter.entries[key("first")], reporter.entries[key("second")]; !first.window.open() || second.window.open() {
		t.Error("after a change of rights, not the first object alone is queued")
	}
	after("first", false, true)
	if e := reporter.entries[key("second")]; !e.window.open() {
		t.Error("the hub got the right, and the second object is not queued")
	}
}
