package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// TestARestoredHubHoldsCopiesThatAreNewer restores an old backup of the hub's etcd. After the backup, the test edited
// two of three objects and created another one.
func TestARestoredHubHoldsCopiesThatAreNewer(t *testing.T) {
	ctx := t.Context()
	ns := namespace(t)
	placeWidgets(t, ns)
	edited, single, same := widget(ns, "edited"), widget(ns, "single"), widget(ns, "same")
	for _, w := range []client.Object{edited, single, same} {
		must(t, suite.Hub.Create(ctx, w))
	}
	// The hub may still be withdrawing objects of the previous test.
	eventually(t, time.Minute, func() error { return allApplied(ctx, ns, 3) })

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

	// The restored hub has no hub object for the object that was created after the backup. The hub lists its copies as
	// unclaimed, and does not delete them.
	pruner := newPruner(t, ns)
	out = pruner.says(0, []string{ns + "/made", "newer than the hub"}, append([]string{"unclaimed"}, members...)...)
	if n := strings.Count(out, ns+"/"); n != len(members) {
		t.Errorf("%d copies are listed, want those of the object that was made alone:\n%s", n, out)
	}
	pruner.says(1, []string{ns + "/made   Held", "see hansectl accept-restore"}, "prune", shanghai, "--yes")
	must(t, replicasOn(ctx, shanghai, made, 3))

	// The hub does not withdraw a copy that is newer than the backup, just as it does not overwrite such a copy.
	must(t, suite.Hub.Delete(ctx, single))
	eventually(t, normal, func() error { return rowIs(ctx, single, shanghai, metav1.ConditionFalse, hubv1.ReasonHubIsOlder) })
	sameCopies(t, uids, memberUIDs(ctx, t, ns))

	// The annotation accept-source of a hub object accepts the restored version of this object alone. Its value has the
	// source annotations of the copies.
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

	// The command accept-restore accepts the restored versions of all other objects at once.
	_, err = suite.Hansectl(ctx, "accept-restore", "--yes")
	must(t, err)
	for _, m := range members {
		eventually(t, normal, func() error { return goneFrom(ctx, m, single) })
		eventually(t, normal, func() error { return rowIs(ctx, edited, m, metav1.ConditionTrue, "") })
	}

	// The command prune lists copies without a hub object. It deletes them only with --yes.
	pruner.says(1, []string{ns + "/made", "pass --yes to confirm"}, "prune", shanghai)
	must(t, replicasOn(ctx, shanghai, made, 3))
	pruner.says(0, []string{ns + "/made   Removed"}, append([]string{"prune", "--yes"}, members...)...)
	for _, m := range members {
		must(t, goneFrom(ctx, m, made))
		must(t, replicasOn(ctx, m, edited, 3))
	}
	pruner.says(0, []string{"No copy is unclaimed"}, "unclaimed", shanghai)
}

// newPruner creates a user who may list and prune the copies of Widgets in a namespace.
func newPruner(t *testing.T, ns string) viewer {
	t.Helper()
	list := getWidgets
	list.Verbs = []string{"get", "list"}
	v := newViewer(t, ns, "pruner", list)
	account := ns + "-pruner"
	role := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account + "-prunes"}, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: hubv1.SystemNamespace, Name: account}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "hanse-prune"},
	}
	must(t, suite.Hub.Create(t.Context(), role))
	t.Cleanup(func() { _ = suite.Hub.Delete(context.WithoutCancel(t.Context()), role) })
	for _, what := range []authorizationv1.ResourceAttributes{
		{Group: "hanse.dev", Resource: "memberclusters", Name: shanghai, Verb: "prune"},
		{Namespace: ns, Group: widgetKind.Group, Resource: "widgets", Verb: "list"},
	} {
		eventually(t, normal, func() error {
			return mayDo(t.Context(), "system:serviceaccount:"+hubv1.SystemNamespace+":"+account, &what)
		})
	}
	return v
}

// warned returns nil if the object has a Warning Event with this reason.
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

// stopHubPlane ends the hub process, and then kills its API server and its etcd.
func stopHubPlane(t *testing.T) {
	t.Helper()
	must(t, suite.hub.Stop())
	lab(t, "kill", "hub")
	lab(t, "kill", "hub", "--component", "etcd")
}

// startHubPlane starts the etcd, the API server and the hub process again.
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
