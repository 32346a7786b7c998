package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/membership/shard"
	"github.com/hanse-dev/hanse/member/epoch"
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
	out = pruner.says(0, []string{ns + "/made", "newer than the hub"}, append([]string{"prune", "--dry-run"}, members...)...)
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
	pruner.says(0, []string{"No copy is unclaimed"}, "prune", "--dry-run", shanghai)
}

// TestARestoreInMidRolloutHoldsTheClustersThatAWaveReachedSince copies the hub's etcd while a change waits for the
// approval of its second wave. The change then reaches all clusters within the same epoch, and the copy is restored.
func TestARestoreInMidRolloutHoldsTheClustersThatAWaveReachedSince(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	behindEurope := []string{singapore, shanghai}
	web := deployment(ns, "restored-web")
	var spec hubv1.PlacementSpec
	must(t, yaml.UnmarshalStrict([]byte(europeFirst), &spec))
	p := place(t, ns, "staged", deployments, spec)
	must(t, suite.Hub.Create(ctx, web))
	t.Cleanup(func() { _ = suite.Hub.Delete(context.WithoutCancel(ctx), web.DeepCopy()) })
	for _, name := range members {
		eventually(t, time.Minute, func() error { return imageOn(ctx, name, web, "example.org/web:1") })
	}
	eventually(t, time.Minute, func() error { return rolloutIs(ctx, web, hubv1.RolloutComplete, "") })
	setImage(t, web, "example.org/web:2")
	eventually(t, time.Minute, func() error { return rolloutIs(ctx, web, hubv1.RolloutWaitingForApproval, "singapore") })

	lab(t, "pause", "hub", "--component", "etcd")
	backUpHubEtcd(t)
	lab(t, "resume", "hub", "--component", "etcd")
	known := knownEpochs(t)
	approve(t, p)
	eventually(t, 2*time.Minute, func() error { return rolloutIs(ctx, web, hubv1.RolloutComplete, "") })
	for _, name := range behindEurope {
		must(t, imageOn(ctx, name, web, "example.org/web:2"))
		if epoch := markOn(ctx, t, name, web).Epoch; known.Foreign(epoch) {
			t.Logf("the copy on %s is of epoch %s, which is newer than the backup: a slow machine", name, epoch)
		}
	}

	stopHubPlane(t)
	restoreHubEtcd(t)
	startHubPlane(t)
	held := func() {
		t.Helper()
		for _, name := range behindEurope {
			// The Leases in the backup must expire first.
			eventually(t, time.Minute, func() error { return rowIs(ctx, web, name, metav1.ConditionFalse, hubv1.ReasonHubIsOlder) })
			must(t, imageOn(ctx, name, web, "example.org/web:2"))
		}
	}
	held()
	must(t, rowIs(ctx, web, frankfurt, metav1.ConditionTrue, ""))

	// Each further decision of the restored hub raises the generation of the binding. None of them ends the hold.
	for _, image := range []string{"example.org/web:3", "example.org/web:4"} {
		setImage(t, web, image)
		eventually(t, time.Minute, func() error { return imageOn(ctx, frankfurt, web, image) })
		eventually(t, time.Minute, func() error { return rolloutIs(ctx, web, hubv1.RolloutWaitingForApproval, "singapore") })
		held()
	}

	_, err := suite.Hansectl(ctx, "accept-restore", "--yes")
	must(t, err)
	for _, name := range behindEurope {
		eventually(t, normal, func() error { return imageOn(ctx, name, web, "example.org/web:1") })
	}
	approve(t, p)
	eventually(t, 2*time.Minute, func() error { return rolloutIs(ctx, web, hubv1.RolloutComplete, "") })
	for _, name := range members {
		must(t, imageOn(ctx, name, web, "example.org/web:4"))
	}
}

// knownEpochs returns the hub's list of epochs.
func knownEpochs(t *testing.T) epoch.Epochs {
	t.Helper()
	var list corev1.ConfigMap
	must(t, suite.Hub.Get(t.Context(), client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: hubv1.EpochsConfigMap}, &list))
	epochs, ok := epoch.ParseEpochs(list.Data[hubv1.EpochsKey])
	if !ok {
		t.Fatalf("the list of epochs is %q", list.Data)
	}
	return epochs
}

// markOn returns the mark of an object's copy on a member.
func markOn(ctx context.Context, t *testing.T, member string, obj *unstructured.Unstructured) epoch.Mark {
	t.Helper()
	copied, err := on(ctx, member, obj)
	must(t, err)
	a := copied.GetAnnotations()
	return epoch.ReadMark(a[hubv1.SourceAnnotation], a[hubv1.DecisionAnnotation])
}

// TestAProcessEndsWhenItsHubIsRestored restores an old backup of the hub's etcd while the hub process runs. The process
// has caches of a later time. It must write nothing with them, neither to members nor to the restored hub.
func TestAProcessEndsWhenItsHubIsRestored(t *testing.T) {
	ctx := t.Context()
	ns := namespace(t)
	placeWidgets(t, ns)
	edited, removed := widget(ns, "edited"), widget(ns, "removed")
	must(t, suite.Hub.Create(ctx, edited))
	must(t, suite.Hub.Create(ctx, removed))
	eventually(t, time.Minute, func() error { return allApplied(ctx, ns, 2) })
	stopHubPlane(t)
	backUpHubEtcd(t)
	startHubPlane(t)

	must(t, suite.Hub.Patch(ctx, edited, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":7}}`))))
	made := widget(ns, "made")
	must(t, suite.Hub.Create(ctx, made))
	must(t, suite.Hub.Delete(ctx, removed))
	for _, m := range members {
		eventually(t, normal, func() error { return replicasOn(ctx, m, edited, 7) })
		eventually(t, normal, func() error { return replicasOn(ctx, m, made, 3) })
		eventually(t, normal, func() error { return goneFrom(ctx, m, removed) })
	}
	uids, running := memberUIDs(ctx, t, ns), suite.hub

	lab(t, "kill", "hub")
	lab(t, "kill", "hub", "--component", "etcd")
	restoreHubEtcd(t)
	lab(t, "start", "hub", "--component", "etcd")
	lab(t, "start", "hub")
	eventually(t, time.Minute, func() error { return ended(running) })
	// On a busy machine, the API server may need longer to start than the process keeps its Lease, or that of the leader.
	const leaderLost = "leader election lost"
	if log := running.LogTail(); !slices.ContainsFunc([]string{shard.ErrRestored.Error(), shard.ErrLapsed.Error(), leaderLost}, func(reason string) bool { return strings.Contains(log, reason) }) {
		t.Errorf("the process does not say why it ended: %s", log)
	}
	if err := suite.Hub.Get(ctx, client.ObjectKeyFromObject(made), widget(ns, "made")); !apierrors.IsNotFound(err) {
		t.Errorf("the restored hub has an object that was made later: %v", err)
	}
	var bindings hubv1.ResourceBindingList
	must(t, suite.Hub.List(ctx, &bindings, client.InNamespace(ns)))
	for _, b := range bindings.Items {
		if b.Spec.ObjectRef.Name == made.GetName() {
			t.Errorf("the process made binding %s of an object that the restored hub does not have", b.Name)
		}
	}
	sameCopies(t, uids, memberUIDs(ctx, t, ns))

	startHub(t)
	for _, m := range members {
		eventually(t, normal, func() error { return rowIs(ctx, edited, m, metav1.ConditionFalse, hubv1.ReasonHubIsOlder) })
		eventually(t, normal, func() error { return replicasOn(ctx, m, removed, 3) })
		must(t, replicasOn(ctx, m, edited, 7))
		must(t, replicasOn(ctx, m, made, 3))
	}
	_, err := suite.Hansectl(ctx, "accept-restore", "--yes")
	must(t, err)
	eventually(t, normal, func() error { return allApplied(ctx, ns, 2) })
	newPruner(t, ns).says(0, []string{ns + "/made   Removed"}, append([]string{"prune", "--yes"}, members...)...)
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
