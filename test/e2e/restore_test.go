package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// TestARestoredHubHoldsCopiesThatAreNewer restores the hub's etcd from a copy of its data that is older than the members. In between an object was
// edited, one was placed elsewhere and back, one was made, and one was deleted on the hub and made anew.
func TestARestoredHubHoldsCopiesThatAreNewer(t *testing.T) {
	ctx := t.Context()
	ns := namespace(t)
	placeWidgets(t, ns)
	edited, single, same := widget(ns, "edited"), widget(ns, "single"), widget(ns, "same")
	for _, w := range []client.Object{edited, single, same} {
		must(t, suite.Hub.Create(ctx, w))
	}
	eventually(t, time.Minute, func() error { return allApplied(ctx, ns, 3) }) // objects of the test before may still be withdrawn

	stopHubPlane(t)
	backUpHubEtcd(t)
	startHubPlane(t)

	resize := func(w client.Object, replicas int) {
		must(t, suite.Hub.Patch(ctx, w, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))))
	}
	resize(edited, 7)
	resize(single, 8)
	made := widget(ns, "made")
	must(t, suite.Hub.Create(ctx, made))
	for _, m := range members {
		eventually(t, normal, func() error { return replicasOn(ctx, m, edited, 7) })
		eventually(t, normal, func() error { return replicasOn(ctx, m, single, 8) })
		eventually(t, normal, func() error { return replicasOn(ctx, m, made, 3) })
	}
	uids := memberUIDs(ctx, t, ns)

	stopHubPlane(t)
	restoreHubEtcd(t)
	startHubPlane(t)
	for _, m := range members {
		for _, w := range []string{"edited", "single"} {
			eventually(t, normal, func() error { return rowIs(ctx, widget(ns, w), m, metav1.ConditionFalse, hubv1.ReasonHubIsOlder) })
		}
		must(t, replicasOn(ctx, m, edited, 7))
		must(t, replicasOn(ctx, m, single, 8))
		must(t, rowIs(ctx, same, m, metav1.ConditionTrue, ""))
	}
	sameCopies(t, uids, memberUIDs(ctx, t, ns))
	eventually(t, normal, func() error {
		return bindingCondition(ctx, edited, hubv1.ConditionApplied, metav1.ConditionFalse, hubv1.ReasonHubIsOlder)
	})
	eventually(t, normal, func() error { return warned(ctx, ns, "edited", hubv1.ReasonHubIsOlder) })
	out, err := suite.Hansectl(ctx, "status", "widget", "edited", "-n", ns)
	if !strings.Contains(out, hubv1.AcceptSourceAnnotation+"=") {
		t.Errorf("hansectl status does not say how to go on: %v\n%s", err, out)
	}

	// A withdrawal is held as an apply is.
	must(t, suite.Hub.Delete(ctx, single))
	eventually(t, normal, func() error { return rowIs(ctx, single, shanghai, metav1.ConditionFalse, hubv1.ReasonHubIsOlder) })
	sameCopies(t, uids, memberUIDs(ctx, t, ns))

	// One object is accepted by the marks of its copies.
	marks := map[string]bool{}
	for _, m := range members {
		copied, err := on(ctx, m, edited)
		must(t, err)
		marks[copied.GetAnnotations()[hubv1.SourceAnnotation]] = true
	}
	var all []string
	for mark := range marks {
		all = append(all, mark)
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, hubv1.AcceptSourceAnnotation, strings.Join(all, ","))
	must(t, suite.Hub.Patch(ctx, edited, client.RawPatch(types.MergePatchType, patch)))
	for _, m := range members {
		eventually(t, normal, func() error { return replicasOn(ctx, m, edited, 3) })
		must(t, replicasOn(ctx, m, single, 8))
	}

	// The rest is accepted at once.
	_, err = suite.Hansectl(ctx, "accept-restore", "--yes")
	must(t, err)
	for _, m := range members {
		eventually(t, normal, func() error { return goneFrom(ctx, m, single) })
		eventually(t, normal, func() error { return rowIs(ctx, edited, m, metav1.ConditionTrue, "") })
	}
}

// warned is nil if an object has a Warning with this reason.
func warned(ctx context.Context, ns, name, reason string) error {
	var events eventsv1.EventList
	if err := suite.Hub.List(ctx, &events, client.InNamespace(ns)); err != nil {
		return err
	}
	for _, e := range events.Items {
		if e.Regarding.Name == name && e.Reason == reason && e.Type == "Warning" {
			return nil
		}
	}
	return fmt.Errorf("no warning %s about %s", reason, name)
}

// stopHubPlane ends the hub process, its API server and its etcd, which writes its data first.
func stopHubPlane(t *testing.T) {
	t.Helper()
	must(t, suite.hub.Stop())
	lab(t, "kill", "hub")
	lab(t, "kill", "hub", "--component", "etcd")
}

// startHubPlane starts them again.
func startHubPlane(t *testing.T) {
	t.Helper()
	lab(t, "start", "hub", "--component", "etcd")
	lab(t, "start", "hub")
	must(t, poll(context.WithoutCancel(t.Context()), time.Minute, func() error {
		return suite.Hub.List(context.WithoutCancel(t.Context()), &hubv1.MemberClusterList{})
	}))
	startHub(t)
}

func hubEtcdData() string { return filepath.Join(suite.Dir, "_etcd", "hub", "data") }

func backUpHubEtcd(t *testing.T) {
	t.Helper()
	must(t, os.CopyFS(hubEtcdData()+".backup", os.DirFS(hubEtcdData())))
	t.Cleanup(func() { _ = os.RemoveAll(hubEtcdData() + ".backup") })
}

func restoreHubEtcd(t *testing.T) {
	t.Helper()
	must(t, os.RemoveAll(hubEtcdData()))
	must(t, os.Rename(hubEtcdData()+".backup", hubEtcdData()))
}
