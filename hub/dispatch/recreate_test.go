package dispatch

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

func TestRecreation(t *testing.T) {
	tests := map[string]struct {
		policy         hubv1.Recreate
		held, finished bool
		want           string
	}{
		"a copy that was never there is made, Always":             {policy: hubv1.RecreateAlways},
		"a copy that was never there is made, UntilCompleted":     {policy: hubv1.RecreateUntilCompleted},
		"a copy that was never there is made, Never":              {policy: hubv1.RecreateNever},
		"what finished in an earlier form runs in the new one":    {policy: hubv1.RecreateUntilCompleted, finished: true},
		"a copy that vanished is made again, Always":              {policy: hubv1.RecreateAlways, held: true},
		"one that had finished as well":                           {policy: hubv1.RecreateAlways, held: true, finished: true},
		"a copy that vanished at work is made again":              {policy: hubv1.RecreateUntilCompleted, held: true},
		"one that had finished is not":                            {policy: hubv1.RecreateUntilCompleted, held: true, finished: true, want: hubv1.ReasonCompleted},
		"a copy that vanished stays away, Never":                  {policy: hubv1.RecreateNever, held: true, want: hubv1.ReasonNotRecreated},
		"one that had finished stays away for the same reason":    {policy: hubv1.RecreateNever, held: true, finished: true, want: hubv1.ReasonNotRecreated},
		"a policy that this hub does not know is UntilCompleted":  {policy: "Later", held: true, finished: true, want: hubv1.ReasonCompleted},
		"a policy that this hub does not know makes what is gone": {policy: "Later", held: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := recreation(tc.policy, tc.held, tc.finished); got != tc.want {
				t.Errorf("reason is %q, want %q", got, tc.want)
			}
		})
	}
}

// keeping is a cluster that records which copies must not be created.
type keeping struct {
	*fakeCluster
	keepAway bool
}

func (c *keeping) Apply(ctx context.Context, in member.ApplyIntent) member.Outcome {
	c.keepAway = in.KeepAway
	return c.fakeCluster.Apply(ctx, in)
}

// TestACopyThatVanished uses a Job whose copy is not on the cluster. The cases differ in the state of the copy that
// this process or the row recorded.
func TestACopyThatVanished(t *testing.T) {
	job := gvk("batch", "Job")
	complete := []byte(`{"conditions":[{"status":"True","type":"Complete"}],"succeeded":1}`)
	held := member.Outcome{Applied: metav1.ConditionTrue, CopyState: member.CopyState{UID: "u", ResourceVersion: "20", Digest: "d", Hash: "h"}}
	row := func(reason string, observed []byte) *hubv1.ClusterRow {
		r := &hubv1.ClusterRow{Name: "eu", UID: "u", Digest: "d", Hash: "h", Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy, Reason: reason}
		if observed != nil {
			r.Observed = &runtime.RawExtension{Raw: observed}
		}
		return r
	}
	tests := map[string]struct {
		policy      hubv1.Recreate
		last        *member.Outcome
		vanished    []byte // status of the copy in the last event before its deletion
		row         *hubv1.ClusterRow
		stale       bool // the row belongs to an earlier decision
		withdrawing bool
		unsynced    bool

		want     string // reason in the outcome; empty: the copy is written again
		keepAway bool
	}{
		"a job that was complete when it went":             {last: &held, vanished: complete, want: hubv1.ReasonCompleted},
		"a job that was at work when it went":              {last: &held, vanished: []byte(`{"active":1}`)},
		"a job that went while no hub ran":                 {row: row("", complete), want: hubv1.ReasonCompleted},
		"a job that was known to be done before a restart": {row: row(hubv1.ReasonCompleted, complete), want: hubv1.ReasonCompleted},
		"a job whose row was cut short":                    {row: row(hubv1.ReasonCompleted, nil), want: hubv1.ReasonCompleted},
		"a job that was withdrawn and is wanted again":     {last: &held, vanished: complete, withdrawing: true},
		"a job whose list is awaited is asked for":         {row: row("", complete), unsynced: true, keepAway: true},
		"Never, and this process held it":                  {policy: hubv1.RecreateNever, last: &held, want: hubv1.ReasonNotRecreated},
		"Never, and the row says that it was held":         {policy: hubv1.RecreateNever, row: row("", nil), want: hubv1.ReasonNotRecreated},
		"Never, and it went while it was being deleted":    {policy: hubv1.RecreateNever, row: row(hubv1.ReasonDeleting, nil), want: hubv1.ReasonNotRecreated},
		"Never, and a withdrawal was decided before":       {policy: hubv1.RecreateNever, row: row(hubv1.ReasonDeleting, nil), stale: true},
		"Never, and it was never there":                    {policy: hubv1.RecreateNever},
		"Always":                                           {policy: hubv1.RecreateAlways, last: &held, vanished: complete},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := &keeping{fakeCluster: &fakeCluster{synced: !tc.unsynced, answer: member.Outcome{Applied: metav1.ConditionTrue, Reason: hubv1.ReasonApplied}}}
			r := newRun(c, 0)
			p := &hubv1.Placement{}
			p.Spec.Apply.Recreate = tc.policy
			r.in.placement = p
			r.binding.SetGeneration(7)
			r.binding.BindingStatus().ObservedGeneration = 7
			if tc.stale {
				r.binding.BindingStatus().ObservedGeneration = 6
			}
			if tc.row != nil {
				r.binding.BindingStatus().Clusters = []hubv1.ClusterRow{*tc.row}
			}
			w := &wanted{manifest: &unstructured.Unstructured{}, digest: "d", record: record{gvk: job, withdrawing: tc.withdrawing}}
			switch {
			case tc.last != nil:
				w.record.last = *tc.last
				w.confirmed, w.confirmedDigest, w.confirmedUID = tc.last.Hash, tc.last.Digest, tc.last.UID
			case tc.row != nil:
				w.confirmed, w.confirmedDigest, w.confirmedUID = tc.row.Hash, tc.row.Digest, tc.row.UID
			}
			if tc.vanished != nil {
				r.queue.gate = newGate("eu", 1, r.queue.opts.Clock)
				t.Cleanup(r.queue.gate.ShutDown)
				d := &Dispatcher{queues: map[string]*queue{"eu": r.queue}}
				d.Vanished("eu", r.key, member.Observation{GVK: job, CopyState: member.CopyState{UID: "u", Digest: "d"}, Observed: tc.vanished, Assessment: member.Assessment{Health: hubv1.HealthProgressing}, Deleting: true})
			}
			o := r.writeUnlessGone(t.Context(), w, true)
			if tc.want == "" {
				if c.applies != 1 || c.keepAway != tc.keepAway || o.Reason != hubv1.ReasonApplied {
					t.Errorf("%d writes, keep away %v, outcome %+v", c.applies, c.keepAway, o)
				}
				return
			}
			if c.applies != 0 || o.Reason != tc.want || o.UID != "u" || o.Digest != "d" || (o.Applied == metav1.ConditionTrue) != (tc.want == hubv1.ReasonCompleted) {
				t.Errorf("%d writes, outcome %+v, want %s", c.applies, o, tc.want)
			}
			if tc.want == hubv1.ReasonCompleted {
				if diff := cmp.Diff(hubv1.HealthHealthy, o.Last.Health); diff != "" {
					t.Errorf("health (-want +got):\n%s", diff)
				}
			}
		})
	}
}
