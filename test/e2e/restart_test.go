package e2e

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/fleet"
)

// TestAHubThatIsKilledMidwayConvergesAndThenWritesNothing places 200 objects on 3 members, and kills the hub before all
// copies are applied. After all copies are applied, it restarts the hub once more and counts its writes.
func TestAHubThatIsKilledMidwayConvergesAndThenWritesNothing(t *testing.T) {
	ctx := t.Context()
	const objects = 200
	ns := namespace(t)
	placeWidgets(t, ns)
	for i := range objects {
		must(t, suite.Hub.Create(ctx, widget(ns, fmt.Sprintf("w-%03d", i))))
		if i == objects/2 {
			eventually(t, normal, func() error { return atLeast(ctx, ns, 1) })
			must(t, suite.hub.Kill())
		}
	}
	startHub(t)
	eventually(t, 2*time.Minute, func() error { return allApplied(ctx, ns, objects) })
	for _, m := range members {
		list, err := widgetsOn(ctx, m, ns)
		must(t, err)
		if len(list) != objects {
			t.Errorf("%s has %d widgets, want %d", m, len(list), objects)
		}
	}

	eventually(t, time.Minute, func() error { return settled(ctx) })
	versions := memberVersions(ctx, t, ns)
	must(t, suite.hub.Stop())
	since := time.Now()
	before, err := suite.HubWrites(ctx)
	must(t, err)
	startHub(t)
	eventually(t, time.Minute, func() error { return settled(ctx) })
	after, err := suite.HubWrites(ctx)
	must(t, err)
	for resource, n := range after {
		if more := beyondSights(resource, n-before[resource], time.Since(since)); more > 0 && !isApart(resource) {
			written := hubWritesOf(t, resource, since)
			if others := triesElsewhere(t, ns, since); len(others) > 0 && isEpoch(written) {
				t.Logf("the restarted hub tries again to write copies that members or their owners refuse, so it begins an epoch: %v", others)
				continue
			}
			t.Errorf("a restart with nothing to do wrote %s %v times on the hub: %v", resource, more, written)
		}
	}
	for name, version := range memberVersions(ctx, t, ns) {
		if old, ok := versions[name]; ok && old != version {
			t.Errorf("%s was written again by a restart with nothing to do", name)
		}
	}
	// The hub must still apply a new object. Without this check, a hub that does nothing would pass the test.
	must(t, suite.Hub.Create(ctx, widget(ns, "zz-last")))
	eventually(t, time.Minute, func() error { return allApplied(ctx, ns, objects+1) })

	// The test waits for the withdrawal of its many copies, so that later tests are not slowed down.
	must(t, suite.Hub.DeleteAllOf(ctx, widget(ns, ""), client.InNamespace(ns)))
	eventually(t, 2*time.Minute, func() error { return allApplied(ctx, ns, 0) })
}

// hubWritesOf returns the hub's write requests for a resource, such as configmaps or placements.hanse.dev, to its own
// API server.
func hubWritesOf(t *testing.T, resource string, since time.Time) []string {
	t.Helper()
	plural, _, _ := strings.Cut(resource, ".")
	var out []string
	for _, e := range auditedRequests(t, suite.Hub.AuditLog, func(e auditEvent) bool {
		return e.ObjectRef.Resource == plural && e.StageTimestamp.After(since) && slices.Contains([]string{"create", "update", "patch", "delete"}, e.Verb)
	}) {
		out = append(out, e.Verb+" "+e.RequestURI)
	}
	return out
}

// isEpoch returns true if the only write is that of the ConfigMap with the hub's epochs. An epoch is a period in which
// the hub writes to members. The hub stores a new epoch before its first write after a start.
func isEpoch(written []string) bool {
	return len(written) == 1 && strings.HasSuffix(written[0], "/configmaps/"+hubv1.EpochsConfigMap)
}

// triesElsewhere returns the hub's requests to members for single objects outside a namespace. After a restart, the hub
// tries to write a refused copy again. It reads the object, and may find that another hub or user owns it.
func triesElsewhere(t *testing.T, ns string, since time.Time) []string {
	t.Helper()
	var out []string
	for _, name := range members {
		for _, e := range auditedRequests(t, suite.Members[name].AuditLog, func(e auditEvent) bool {
			return e.ObjectRef.Name != "" && e.ObjectRef.Namespace != ns && e.StageTimestamp.After(since) && slices.Contains([]string{"get", "patch", "delete"}, e.Verb)
		}) {
			out = append(out, fmt.Sprintf("%s %s on %s: %d", e.Verb, e.RequestURI, name, e.ResponseStatus.Code))
		}
	}
	return out
}

// isApart returns true for resources whose writes the test ignores: Leases, Events, and objects that the API server
// writes for itself.
func isApart(resource string) bool {
	return strings.HasPrefix(resource, "leases") || strings.HasPrefix(resource, "events") || strings.HasPrefix(resource, "apiServer")
}

// beyondSights subtracts the regular updates of lastObservedTime from the number of writes of MemberClusters within a
// time. For each MemberCluster, it allows one write in 30 s and one more. For any other resource, it returns writes
// unchanged.
func beyondSights(resource string, writes float64, within time.Duration) float64 {
	if resource != "memberclusters.hanse.dev" {
		return writes
	}
	return max(0, writes-float64(len(members))*(1+math.Floor(within.Seconds()/30)))
}

// settled returns nil if the hub writes nothing during fleet.Quiet. Then it has no work left.
func settled(ctx context.Context) error {
	before, err := suite.HubWrites(ctx)
	if err != nil {
		return err
	}
	timer := time.NewTimer(fleet.Quiet)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	after, err := suite.HubWrites(ctx)
	if err != nil {
		return err
	}
	for resource, n := range after {
		if !isApart(resource) && beyondSights(resource, n-before[resource], fleet.Quiet) != 0 {
			return fmt.Errorf("the hub still writes %s", resource)
		}
	}
	return nil
}

// TestRestartsDeleteNothing restarts the hub 6 times, and in the long form 20 times.
func TestRestartsDeleteNothing(t *testing.T) {
	ctx := t.Context()
	restarts := 6
	if os.Getenv("HANSE_LONG") != "" {
		restarts = 20
	}
	ns := namespace(t)
	placeWidgets(t, ns)
	for i := range 10 {
		must(t, suite.Hub.Create(ctx, widget(ns, fmt.Sprintf("w-%d", i))))
	}
	eventually(t, normal, func() error { return allApplied(ctx, ns, 10) })
	uids := memberUIDs(ctx, t, ns)
	for i := range restarts {
		if i%5 == 0 {
			must(t, suite.hub.Kill()) // the next leader waits until the Lease of the killed process expires
		} else {
			must(t, suite.hub.Stop())
		}
		startHub(t)
		eventually(t, normal, func() error { return leads(ctx) })
		if i%2 == 0 { // after every second restart the hub has a change to apply
			must(t, suite.Hub.Patch(ctx, widget(ns, "w-0"), client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, 10+i))))
			eventually(t, time.Minute, func() error { return replicasOn(ctx, shanghai, widget(ns, "w-0"), int64(10+i)) })
		}
	}
	eventually(t, time.Minute, func() error { return allApplied(ctx, ns, 10) })
	for name, uid := range memberUIDs(ctx, t, ns) {
		if uids[name] != uid {
			t.Errorf("%s was deleted and made again", name)
		}
		delete(uids, name)
	}
	for name := range uids {
		t.Errorf("%s was deleted", name)
	}
}

// leads returns nil if the suite's hub is the leader. Only a leader could delete a copy by mistake.
func leads(ctx context.Context) error { return isLeading(ctx, suite.hub) }

func isLeading(ctx context.Context, h *fleet.HubProcess) error {
	page, err := fleet.Page(ctx, h.Metrics)
	if err != nil {
		return err
	}
	samples, err := fleet.Samples(page, "leader_election_master_status")
	if err != nil {
		return err
	}
	for _, s := range samples {
		if s.Value == 1 {
			return nil
		}
	}
	return errors.New("the hub does not lead yet")
}

// startHub starts the suite's hub again and waits until all members are ready.
func startHub(t *testing.T) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // without cancel, because clean-ups start the hub, too
	h, err := suite.StartHub(ctx, "hub-a")
	if h != nil {
		suite.hub = h
	}
	must(t, err)
	for _, m := range members {
		must(t, poll(ctx, normal, func() error { return memberReady(ctx, m) }))
	}
}

func widgetsOn(ctx context.Context, member, namespace string) ([]unstructured.Unstructured, error) {
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(widgetKind)
	err := suite.Members[member].List(ctx, &list, client.InNamespace(namespace))
	return list.Items, err
}

// atLeast returns nil if a member has at least n Widgets in the namespace.
func atLeast(ctx context.Context, namespace string, n int) error {
	list, err := widgetsOn(ctx, shanghai, namespace)
	if err == nil && len(list) < n {
		err = fmt.Errorf("%d widgets on %s, want %d", len(list), shanghai, n)
	}
	return err
}

// allApplied returns nil if the namespace has n bindings and each one is applied on all members.
func allApplied(ctx context.Context, namespace string, n int) error {
	var list hubv1.ResourceBindingList
	if err := suite.Hub.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return err
	}
	applied := 0
	for _, b := range list.Items {
		if b.Status.Summary.Applied == int32(len(members)) {
			applied++
		}
	}
	if applied != n || len(list.Items) != n {
		return fmt.Errorf("%d of %d bindings are applied everywhere, want %d", applied, len(list.Items), n)
	}
	return nil
}

func memberVersions(ctx context.Context, t *testing.T, namespace string) map[string]string {
	return eachCopy(ctx, t, namespace, func(u metav1.Object) string { return u.GetResourceVersion() })
}

func memberUIDs(ctx context.Context, t *testing.T, namespace string) map[string]string {
	return eachCopy(ctx, t, namespace, func(u metav1.Object) string { return string(u.GetUID()) })
}

func eachCopy(ctx context.Context, t *testing.T, namespace string, f func(metav1.Object) string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, m := range members {
		list, err := widgetsOn(ctx, m, namespace)
		must(t, err)
		for i := range list {
			out[m+"/"+list[i].GetName()] = f(&list[i])
		}
	}
	return out
}

// TestTheHubsAPIServerIsAway stops the hub's API server for longer than the duration of any Lease. The hub process must
// end, because its data may be outdated. A hub process that starts in this time must wait for the API server.
func TestTheHubsAPIServerIsAway(t *testing.T) {
	ctx := t.Context()
	ns := namespace(t)
	placeWidgets(t, ns)
	w := widget(ns, "w")
	must(t, suite.Hub.Create(ctx, w))
	eventually(t, normal, func() error { return allApplied(ctx, ns, 1) })
	uids := memberUIDs(ctx, t, ns)

	start := sync.OnceFunc(func() { lab(t, "start", "hub") })
	t.Cleanup(start)
	lab(t, "kill", "hub")
	eventually(t, time.Minute, func() error { return ended(suite.hub) })
	next, err := suite.RunHub("hub-a")
	must(t, err)
	suite.hub = next
	eventually(t, normal, func() error {
		if !strings.Contains(next.LogTail(), "Waiting for the hub's API server") {
			return fmt.Errorf("it does not say what it waits for: %s", next.LogTail())
		}
		return nil
	})
	start()
	must(t, next.WaitReady(ctx))
	must(t, suite.Hub.Patch(ctx, w, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":5}}`))))
	for _, m := range members {
		// The Leases of the previous process must expire first.
		eventually(t, time.Minute, func() error { return replicasOn(ctx, m, w, 5) })
	}
	eventually(t, normal, func() error { return allApplied(ctx, ns, 1) })
	sameCopies(t, uids, memberUIDs(ctx, t, ns))
}
