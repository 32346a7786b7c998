package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/membership/shard"
	"github.com/hanse-dev/hanse/test/fleet"
)

// crew is three hub replicas, each of which works on one member. The first replica leads at the start.
type crew struct {
	identities []string // the identity with index i works on member i
	processes  map[string]*fleet.HubProcess
	args       []string // additional flags of each replica
}

// TestThreeReplicasShareTheMembers removes each replica in another way while it creates and changes objects: one is
// killed, one is paused and resumed, and one is asked to end. No copy may be missing, created twice or deleted, and
// every row must match its copy.
func TestThreeReplicasShareTheMembers(t *testing.T) {
	ctx := t.Context()
	ns := namespace(t)
	placeWidgets(t, ns)
	c := newCrew(t)
	const objects = 100
	load := &load{namespace: ns}

	t.Run("a fan-out costs one write more for each further replica", func(t *testing.T) {
		eventually(t, time.Minute, func() error { return settled(ctx) })
		before := writes(t)
		load.create(t, objects/2)
		eventually(t, time.Minute, func() error { return load.arrived(ctx) })
		eventually(t, time.Minute, func() error { return settled(ctx) })
		perObject := (writes(t) - before) / (objects / 2)
		t.Logf("%.2f writes on the hub for each object beyond the user's own", perObject-1)
		if perObject-1 > 4+2 {
			t.Errorf("%.2f writes on the hub for each object beyond the user's own, want at most 4 and one for each further replica", perObject-1)
		}
	})
	t.Run("one that is killed is replaced", func(t *testing.T) {
		uids := memberUIDs(ctx, t, ns)
		victim := c.identities[0] // the leader, while it sends objects to the members
		load.create(t, objects/4)
		must(t, c.processes[victim].Kill())
		begin := time.Now()
		load.create(t, objects/4)
		load.update(t)
		eventually(t, 30*time.Second, func() error { return c.taken(ctx, 0) })
		t.Logf("its member was taken after %s", time.Since(begin).Round(100*time.Millisecond))
		eventually(t, time.Minute, func() error { return load.arrived(ctx) })
		sameCopies(t, uids, memberUIDs(ctx, t, ns))
		c.start(t, victim)
		eventually(t, normal, func() error { return c.inPlace(ctx) })
	})
	t.Run("one that is stopped is replaced, and resumed it writes nothing old", func(t *testing.T) {
		uids := memberUIDs(ctx, t, ns)
		i := c.another(t, 0, c.leader(t))
		victim := c.processes[c.identities[i]]
		load.update(t)
		must(t, victim.Signal(syscall.SIGSTOP))
		begin := time.Now()
		load.update(t)
		eventually(t, 30*time.Second, func() error { return c.taken(ctx, i) })
		t.Logf("its member was taken after %s", time.Since(begin).Round(100*time.Millisecond))
		eventually(t, time.Minute, func() error { return load.arrived(ctx) })
		before := load.generations(t)
		must(t, victim.Signal(syscall.SIGCONT))
		eventually(t, normal, func() error { return ended(victim) })
		if !strings.Contains(victim.LogTail(), shard.ErrLapsed.Error()) {
			t.Errorf("it does not say why it ended: %s", victim.LogTail())
		}
		c.start(t, c.identities[i]) // like a kubelet that restarts the container
		eventually(t, normal, func() error { return c.inPlace(ctx) })
		load.create(t, 1) // this proves that the hub works; an idle hub would write nothing either
		eventually(t, normal, func() error { return load.arrived(ctx) })
		now := load.generations(t)
		for name, generation := range before {
			if now[name] != generation {
				t.Errorf("%s was written when the replica was resumed: generation %d is now %d", name, generation, now[name])
			}
		}
		sameCopies(t, uids, memberUIDs(ctx, t, ns))
	})
	t.Run("one that is asked to end hands over at once", func(t *testing.T) {
		i := c.leader(t)
		victim := c.processes[c.identities[i]]
		load.update(t)
		begin := time.Now()
		must(t, victim.Signal(syscall.SIGTERM))
		eventually(t, normal, func() error { return c.taken(ctx, i) })
		took := time.Since(begin)
		t.Logf("its member was taken after %s", took.Round(10*time.Millisecond))
		if took > 5*time.Second { // 2 s on an idle machine, and a reserve for a busy one
			t.Errorf("taking over took %s", took)
		}
		must(t, victim.Stop())
		load.create(t, 1)
		eventually(t, normal, func() error { return load.arrived(ctx) })
		t.Logf("an object that was made after it arrived everywhere after %s", time.Since(begin).Round(10*time.Millisecond))
		c.start(t, c.identities[i])
		eventually(t, normal, func() error { return c.inPlace(ctx) })
	})
	t.Run("a withdrawal is confirmed to the leader by the others", func(t *testing.T) {
		w := widget(ns, load.names[0])
		must(t, suite.Hub.Delete(ctx, w))
		eventually(t, normal, func() error { return noBinding(ctx, w) })
		for _, m := range members {
			must(t, goneFrom(ctx, m, w))
		}
		load.names = load.names[1:]
	})
	t.Run("a restart of all writes nothing", func(t *testing.T) {
		eventually(t, time.Minute, func() error { return load.arrived(ctx) })
		eventually(t, time.Minute, func() error { return settled(ctx) })
		copies, bindings := memberVersions(ctx, t, ns), load.bindings(t)
		since := time.Now()
		before, err := suite.HubWrites(ctx)
		must(t, err)
		for _, identity := range c.identities {
			must(t, c.processes[identity].Stop())
		}
		for _, identity := range c.identities {
			c.start(t, identity)
		}
		eventually(t, normal, func() error { return c.inPlace(ctx) })
		eventually(t, time.Minute, func() error { return settled(ctx) })
		after, err := suite.HubWrites(ctx)
		must(t, err)
		for resource, n := range after {
			if more := beyondSights(resource, n-before[resource], time.Since(since)); more > 0 && !isApart(resource) {
				t.Errorf("a restart with nothing to do wrote %s %v times on the hub: %v", resource, more, hubWritesOf(t, resource, since))
			}
		}
		if diff := cmp.Diff(bindings, load.bindings(t)); diff != "" {
			t.Errorf("bindings: %.2000s", diff)
		}
		if !maps.Equal(copies, memberVersions(ctx, t, ns)) {
			t.Error("a restart with nothing to do wrote on members")
		}
	})
}

// newCrew replaces the suite's hub with three replicas until the test ends.
func newCrew(t *testing.T, args ...string) *crew {
	t.Helper()
	c := &crew{identities: spread(), processes: map[string]*fleet.HubProcess{}, args: args}
	t.Cleanup(func() {
		for _, h := range c.processes {
			_ = h.Signal(syscall.SIGCONT)
			_ = h.Stop()
		}
		h, err := suite.StartHub(context.WithoutCancel(t.Context()), "hub-a")
		if err != nil {
			t.Error(err)
			return
		}
		suite.hub = h
	})
	must(t, suite.hub.Stop())
	for _, identity := range c.identities {
		c.start(t, identity)
		if suite.hub == c.processes[c.identities[0]] {
			eventually(t, normal, func() error { return leads(t.Context()) })
		}
	}
	eventually(t, normal, func() error { return c.inPlace(t.Context()) })
	for _, m := range members {
		eventually(t, normal, func() error { return memberReady(t.Context(), m) })
	}
	return c
}

// spread returns an identity for each replica, so that the sharding assigns member i to replica i.
func spread() []string {
	for try := 0; ; try++ {
		var identities []string
		for i := range members {
			identities = append(identities, fmt.Sprintf("replica-%d-%d", try, i))
		}
		fits := true
		for i, m := range members {
			fits = fits && shard.Owner(m, identities) == identities[i]
		}
		if fits {
			return identities
		}
	}
}

func (c *crew) start(t *testing.T, identity string) {
	t.Helper()
	h, err := suite.StartHub(t.Context(), identity, append([]string{"--identity", identity}, c.args...)...)
	if h != nil {
		c.processes[identity] = h
		if identity == c.identities[0] {
			suite.hub = h
		}
	}
	must(t, err)
}

// holder returns the identity of the replica that holds the Lease of a member.
func (c *crew) holder(ctx context.Context, member string) (string, error) {
	var fence coordinationv1.Lease
	if err := suite.Hub.Get(ctx, types.NamespacedName{Namespace: hubv1.SystemNamespace, Name: "hanse-member-" + member}, &fence); err != nil {
		return "", err
	}
	term := ptr.Deref(fence.Spec.HolderIdentity, "")
	return term[:max(0, strings.LastIndex(term, "-"))], nil
}

// ended returns nil if the process has ended.
func ended(h *fleet.HubProcess) error {
	if !h.Ended() {
		return errors.New("the process is still there")
	}
	return nil
}

// leader waits for a leading replica and returns its index.
func (c *crew) leader(t *testing.T) (leader int) {
	t.Helper()
	eventually(t, normal, func() error {
		for i, identity := range c.identities {
			if h := c.processes[identity]; !h.Ended() && isLeading(t.Context(), h) == nil {
				leader = i
				return nil
			}
		}
		return errors.New("no replica leads")
	})
	return leader
}

// another returns the first index of a replica that is not in not.
func (c *crew) another(t *testing.T, not ...int) int {
	t.Helper()
	for i := range c.identities {
		if !slices.Contains(not, i) {
			return i
		}
	}
	t.Fatal("there is no other replica")
	return 0
}

// taken returns nil if another replica than i holds the member of replica i.
func (c *crew) taken(ctx context.Context, i int) error {
	holder, err := c.holder(ctx, members[i])
	if err == nil && (holder == "" || holder == c.identities[i]) {
		err = fmt.Errorf("%s is still held by %q", members[i], holder)
	}
	return err
}

// inPlace returns nil if every replica holds its own member.
func (c *crew) inPlace(ctx context.Context) error {
	for i, m := range members {
		holder, err := c.holder(ctx, m)
		if err != nil {
			return err
		}
		if holder != c.identities[i] {
			return fmt.Errorf("%s is held by %q, want %s", m, holder, c.identities[i])
		}
	}
	return nil
}

// load is the objects that a test has created.
type load struct {
	namespace string
	names     []string
	replicas  int64
}

func (l *load) create(t *testing.T, n int) {
	t.Helper()
	for range n {
		w := widget(l.namespace, fmt.Sprintf("w-%03d", len(l.names)))
		if l.replicas > 0 {
			must(t, unstructured.SetNestedField(w.Object, l.replicas, "spec", "replicas"))
		}
		must(t, suite.Hub.Create(t.Context(), w))
		l.names = append(l.names, w.GetName())
	}
}

// update changes spec of every object.
func (l *load) update(t *testing.T) {
	t.Helper()
	l.replicas = max(3, l.replicas) + 1
	for _, name := range l.names {
		must(t, suite.Hub.Patch(t.Context(), widget(l.namespace, name), client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, l.replicas))))
	}
}

// arrived returns nil if every member has an up-to-date copy of every object and no other copies, and every row is up
// to date.
func (l *load) arrived(ctx context.Context) error {
	var list hubv1.ResourceBindingList
	if err := suite.Hub.List(ctx, &list, client.InNamespace(l.namespace)); err != nil {
		return err
	}
	var templates unstructured.UnstructuredList
	templates.SetGroupVersionKind(widgetKind)
	if err := suite.Hub.List(ctx, &templates, client.InNamespace(l.namespace)); err != nil {
		return err
	}
	want := map[string]*unstructured.Unstructured{}
	for i := range templates.Items {
		want[templates.Items[i].GetName()] = &templates.Items[i]
	}
	if len(list.Items) != len(l.names) || len(want) != len(l.names) {
		return fmt.Errorf("%d bindings of %d objects, want %d", len(list.Items), len(want), len(l.names))
	}
	for _, m := range members {
		copies, err := widgetsOn(ctx, m, l.namespace)
		if err != nil {
			return err
		}
		if len(copies) != len(l.names) {
			return fmt.Errorf("%s has %d widgets, want %d", m, len(copies), len(l.names))
		}
		uids := map[string]types.UID{}
		for i := range copies {
			if got, wanted := replicasOf(&copies[i]), replicasOf(want[copies[i].GetName()]); got != wanted {
				return fmt.Errorf("%s on %s has spec.replicas %d, want %d", copies[i].GetName(), m, got, wanted)
			}
			uids[copies[i].GetName()] = copies[i].GetUID()
		}
		for i := range list.Items {
			name := list.Items[i].Spec.ObjectRef.Name
			row := list.Items[i].Status.Row(m)
			if row == nil || row.Applied != metav1.ConditionTrue || row.Generation != want[name].GetGeneration() || row.UID != uids[name] {
				return fmt.Errorf("the row of %s on %s is %+v, want generation %d and uid %s", name, m, row, want[name].GetGeneration(), uids[name])
			}
		}
	}
	for _, b := range list.Items {
		if s := b.Status.Summary; s.Desired != int32(len(members)) || s.Applied != s.Desired || b.Status.ObservedGeneration != b.Generation {
			return fmt.Errorf("the binding of %s says %+v of generation %d", b.Spec.ObjectRef.Name, s, b.Status.ObservedGeneration)
		}
	}
	return nil
}

func replicasOf(w *unstructured.Unstructured) int64 {
	if w == nil {
		return -1
	}
	n, _, _ := unstructured.NestedInt64(w.Object, "spec", "replicas")
	return n
}

// generations returns metadata.generation of every copy.
func (l *load) generations(t *testing.T) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	for _, m := range members {
		copies, err := widgetsOn(t.Context(), m, l.namespace)
		must(t, err)
		for i := range copies {
			out[m+"/"+copies[i].GetName()] = copies[i].GetGeneration()
		}
	}
	return out
}

// bindings returns the status of every binding by name.
func (l *load) bindings(t *testing.T) map[string]hubv1.BindingStatus {
	t.Helper()
	var list hubv1.ResourceBindingList
	must(t, suite.Hub.List(t.Context(), &list, client.InNamespace(l.namespace)))
	out := map[string]hubv1.BindingStatus{}
	for _, b := range list.Items {
		out[b.Name] = b.Status
	}
	return out
}

// writes returns the number of writes to the hub's etcd so far. It leaves out Leases, Events and MemberClusters, which
// the hub also writes while nothing changes.
func writes(t *testing.T) float64 {
	t.Helper()
	all, err := suite.HubWrites(t.Context())
	must(t, err)
	var sum float64
	for resource, n := range all {
		if !isApart(resource) && resource != "memberclusters.hanse.dev" {
			sum += n
		}
	}
	return sum
}
