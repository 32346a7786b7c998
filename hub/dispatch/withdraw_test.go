package dispatch

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

// watchedMember has one observed copy, and records the intent of each withdrawal.
type watchedMember struct {
	*fakeMember
	shown         *member.Observation
	found, synced bool
	withdrawn     []member.WithdrawIntent
}

// Observation implements member.Cluster.
func (m *watchedMember) Observation(schema.GroupVersionKind, types.NamespacedName) (o member.Observation, found, synced bool) {
	return *m.shown, m.found, m.synced
}

// Withdraw implements member.Cluster.
func (m *watchedMember) Withdraw(_ context.Context, in member.WithdrawIntent) member.Outcome {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.withdrawn = append(m.withdrawn, in)
	return member.Outcome{Applied: metav1.ConditionTrue, Reason: hubv1.ReasonWithdrawn, Wrote: true}
}

func deletedEverywhere(b *hubv1.ResourceBinding) {
	for i := range b.Spec.Clusters {
		b.Spec.Clusters[i].State = hubv1.TargetAbsent
		b.Spec.Clusters[i].Absent = &hubv1.Absence{Reason: hubv1.ReasonObjectDeleted, UID: b.Spec.ObjectRef.UID, Policy: hubv1.RemovalDelete}
	}
	b.Generation++
}

func TestAWithdrawalKnowsWhatTheWatchShows(t *testing.T) {
	shown := &member.Observation{CopyState: member.CopyState{UID: "copy", ResourceVersion: "7", Hash: "h"}}
	tests := map[string]struct {
		found, synced bool
		want          *member.Observation
	}{
		"of a kind that is synced":                  {found: true, synced: true, want: shown},
		"unless the first list has not come":        {found: true},
		"unless it shows no copy":                   {synced: true},
		"unless nothing is known of the kind there": {},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m := &watchedMember{fakeMember: takes("eu"), shown: shown, found: tc.found, synced: tc.synced}
			w := newWorld(t, m.fakeMember)
			b := w.add(kind, "w")
			deletedEverywhere(b)
			q, err := newQueue("eu", w.dispatcher.opts, w.dispatcher.fresh, w.dispatcher.renderings)
			if err != nil {
				t.Fatal(err)
			}
			r := &run{queue: q, key: client.ObjectKeyFromObject(b), binding: b, target: &b.Spec.Clusters[0], cluster: m}
			if err := r.gather(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.withdraw(t.Context())
			if len(m.withdrawn) != 1 || !cmp.Equal(tc.want, m.withdrawn[0].Seen) {
				t.Errorf("got %+v, want it to know of %+v", m.withdrawn, tc.want)
			}
		})
	}
}

// asked counts the uncached reads of each binding.
type asked struct {
	client.Reader
	mu    sync.Mutex
	times map[types.NamespacedName]int
}

// Get implements client.Reader.
func (a *asked) Get(ctx context.Context, key client.ObjectKey, into client.Object, o ...client.GetOption) error {
	a.mu.Lock()
	a.times[key]++
	a.mu.Unlock()
	return a.Reader.Get(ctx, key, into, o...)
}

func TestTheMembersOfABindingShareOneUncachedReadOfIt(t *testing.T) {
	const members, objects = 10, 20
	var all []*fakeMember
	for i := range members {
		all = append(all, takes(fmt.Sprint("m", i)))
	}
	w := newWorld(t, all...)
	reads := &asked{Reader: w, times: map[types.NamespacedName]int{}}
	w.dispatcher.fresh.reader = reads
	var runs []*run
	for i := range objects {
		b := w.add(kind, fmt.Sprint("w", i))
		deletedEverywhere(b)
		for c := range b.Spec.Clusters {
			target := &b.Spec.Clusters[c]
			q, err := newQueue(target.Name, w.dispatcher.opts, w.dispatcher.fresh, w.dispatcher.renderings)
			if err != nil {
				t.Fatal(err)
			}
			m := &watchedMember{fakeMember: w.members[target.Name], shown: &member.Observation{}}
			runs = append(runs, &run{queue: q, key: client.ObjectKeyFromObject(b), binding: b, target: target, cluster: m})
		}
	}
	for of := range slices.Chunk(runs, members) { // all members of one binding work at the same time
		var atWork sync.WaitGroup
		for _, r := range of {
			atWork.Go(func() {
				if err := r.gather(t.Context()); err != nil {
					t.Error(err)
				}
				if o, known := r.withdraw(t.Context()); !known || o.Reason != hubv1.ReasonWithdrawn {
					t.Errorf("%+v", o)
				}
			})
		}
		atWork.Wait()
	}
	for key, times := range reads.times {
		if times != 1 {
			t.Errorf("%s was read %d times, want once", key, times)
		}
	}
	if len(reads.times) != objects {
		t.Errorf("%d bindings were read, want %d", len(reads.times), objects)
	}
}

func TestAnObjectOfABundleLeavesAfterThoseThatNeedIt(t *testing.T) {
	role := schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}
	definition := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	orphaned := func(b *hubv1.ResourceBinding) {
		deletedEverywhere(b)
		b.Spec.Clusters[0].Absent.Policy = hubv1.RemovalOrphan
	}
	tests := map[string]struct {
		gvk         schema.GroupVersionKind
		leaves      func(*hubv1.ResourceBinding)
		other       schema.GroupVersionKind
		otherLeaves func(*hubv1.ResourceBinding) // nil: the other object stays
		waits       string
	}{
		"a role after a workload":                            {gvk: role, other: deployment, otherLeaves: deletedEverywhere, waits: "Deployment.apps ns/other"},
		"a definition after a role":                          {gvk: definition, other: role, otherLeaves: deletedEverywhere, waits: "ClusterRole.rbac.authorization.k8s.io ns/other"},
		"a role after a webhook configuration":               {gvk: role, other: webhooks, otherLeaves: deletedEverywhere, waits: "ValidatingWebhookConfiguration.admissionregistration.k8s.io ns/other"},
		"a role not after a definition":                      {gvk: role, other: definition, otherLeaves: deletedEverywhere},
		"a workload after none":                              {gvk: deployment, other: webhooks, otherLeaves: deletedEverywhere},
		"a definition not after a workload that stays":       {gvk: definition, other: deployment},
		"a definition not after a workload that is orphaned": {gvk: definition, other: deployment, otherLeaves: orphaned},
		"an orphaned definition after none":                  {gvk: definition, leaves: orphaned, other: deployment, otherLeaves: deletedEverywhere},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m := &watchedMember{fakeMember: takes("eu"), shown: &member.Observation{}}
			w := newWorld(t, m.fakeMember)
			bundled(w, tc.other, "other")
			bundled(w, tc.gvk, "this")
			key := func(gvk schema.GroupVersionKind, name string) types.NamespacedName {
				return hubv1.ObjectIdentity{Group: gvk.Group, Kind: gvk.Kind, Namespace: "ns", Name: name}.BindingKey()
			}
			if tc.otherLeaves != nil {
				tc.otherLeaves(w.bindings[key(tc.other, "other")])
			}
			if tc.leaves == nil {
				tc.leaves = deletedEverywhere
			}
			b := w.bindings[key(tc.gvk, "this")]
			tc.leaves(b)
			q, err := newQueue("eu", w.dispatcher.opts, w.dispatcher.fresh, w.dispatcher.renderings)
			if err != nil {
				t.Fatal(err)
			}
			withdraw := func(b *hubv1.ResourceBinding) member.Outcome {
				r := &run{queue: q, key: client.ObjectKeyFromObject(b), binding: b, target: &b.Spec.Clusters[0], cluster: m}
				if err := r.gather(t.Context()); err != nil {
					t.Fatal(err)
				}
				o, _ := r.withdraw(t.Context())
				return o
			}
			if tc.waits != "" {
				want := member.Outcome{
					Applied: metav1.ConditionFalse, Reason: hubv1.ReasonDeleting, Retry: member.RetrySoon,
					Message: "waits until " + tc.waits + " of the same bundle has left the cluster",
				}
				if diff := cmp.Diff(want, withdraw(b)); diff != "" || len(m.withdrawn) > 0 {
					t.Errorf("%d withdrawals, (-want +got):\n%s", len(m.withdrawn), diff)
				}
				withdraw(w.bindings[key(tc.other, "other")])
			}
			if o := withdraw(b); o.Reason != hubv1.ReasonWithdrawn {
				t.Errorf("it has %s: %s", o.Reason, o.Message)
			}
		})
	}
}
