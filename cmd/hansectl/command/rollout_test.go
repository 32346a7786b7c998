package command

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view"
)

// began is the time at which the rollout of the test began, by the clock of the hub.
var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// rolling creates a ConfigMap at its second revision, with a placement that has two waves.
func rolling(t *testing.T) (*hubv1.Placement, *corev1.ConfigMap, *hubv1.ResourceBinding) {
	t.Helper()
	fresh(t)
	aHubRan(t, time.Now())
	object, binding := settings(t)
	p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "all"}}
	p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{Kind: "ConfigMap"}}
	p.Spec.Clusters.LabelSelector = &metav1.LabelSelector{}
	p.Spec.Rollout = &hubv1.RolloutPolicy{Waves: []hubv1.RolloutWave{
		{Name: "asia", Clusters: &hubv1.RuleClusters{Names: []string{"ap-se-1"}}}, {Name: "rest", Approval: hubv1.ApprovalManual},
	}}
	apply(t, onHub, p)
	for _, name := range []string{"ap-se-1", "cn-sha-1"} {
		apply(t, onHub, &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: hubv1.MemberClusterSpec{
			Connection:        hubv1.Connection{Type: hubv1.ConnectionDirect, Direct: &hubv1.DirectConnection{KubeconfigSecretRef: hubv1.SecretKeyRef{Name: name}}},
			AllowedNamespaces: hubv1.AllowedNamespaces{From: hubv1.NamespacesFromAll},
		}})
	}
	at := metav1.NewTime(began)
	binding.Spec.PlacementRef.UID = p.UID
	binding.Spec.Revisions = []hubv1.ObjectRevision{
		{Number: 4, Template: "t4", Policies: "p", Time: at, Passed: true}, {Number: 6, Template: "t6", Policies: "p", Time: at, Passed: true},
		{Number: 7, Template: "t7", Policies: "p", Time: at},
	}
	binding.Spec.Rollout = &hubv1.BindingRollout{Revision: 7, Newest: 7, Wave: "rest", Phase: hubv1.RolloutWaitingForApproval, Since: at, Began: at, Passed: 6}
	binding.Spec.Clusters[0].Revision, binding.Spec.Clusters[1].Revision = 7, 6
	apply(t, onHub, binding)
	binding.Status.Clusters = []hubv1.ClusterRow{
		{Name: "ap-se-1", Revision: 7, Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy, PassingSince: &at},
		{Name: "cn-sha-1", Revision: 6, Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy, PassingSince: &at},
	}
	must(t, onHub.Status().Update(t.Context(), binding))
	return p, object, binding
}

// annotation returns the current value of an object's annotation.
func annotation(t *testing.T, o client.Object, name string) string {
	t.Helper()
	must(t, onHub.Get(t.Context(), client.ObjectKeyFromObject(o), o))
	return o.GetAnnotations()[name]
}

// setPhase acts as the hub: it sets the phase of a rollout.
func setPhase(t *testing.T, b *hubv1.ResourceBinding, phase hubv1.RolloutPhase) {
	t.Helper()
	must(t, onHub.Get(t.Context(), client.ObjectKeyFromObject(b), b))
	b.Spec.Rollout.Phase = phase
	if phase == hubv1.RolloutComplete || phase == hubv1.RolloutRolledBack {
		b.Spec.Rollout.Wave = ""
	}
	must(t, onHub.Update(t.Context(), b))
}

func TestRolloutStatusShowsWavesAndExitsAsKubectlDoes(t *testing.T) {
	_, _, binding := rolling(t)
	must(t, report(t.Context(), "ap-se-1", metav1.ConditionTrue, hubv1.ReasonConnected, "id"))
	must(t, report(t.Context(), "cn-sha-1", metav1.ConditionUnknown, hubv1.ReasonUnreachable, "other"))
	out, err := hansectl(t, "rollout", "status", "configmap", "settings", "-n", "shop")
	must(t, err)
	wants(t, out, "ConfigMap shop/settings   Placement/all   revision 6 -> 7", "rest, WaitingForApproval",
		"ap-se-1    asia   7          7       Healthy    ", "cn-sha-1   rest   6          6       Healthy?   ", "asia 1/1   rest 0/1", "Waiting for wave rest: 0 of 1 clusters have revision 7")
	out, err = hansectl(t, "rollout", "status", "cm/settings", "-n", "shop", "-o", "json")
	must(t, err)
	var r view.Rollout
	must(t, json.Unmarshal([]byte(out), &r))
	if r.Result != view.RolloutRuns || len(r.Clusters) != 2 || r.Clusters[0].Wave != "asia" {
		t.Errorf("got %+v", r)
	}
	_, err = hansectl(t, "rollout", "status", "cm/settings", "-n", "shop", "--watch", "--timeout", "1ns")
	refused(t, err, "timed out", "Waiting for wave rest")
	exits(t, err, 1)

	setPhase(t, binding, hubv1.RolloutFailed)
	out, err = hansectl(t, "rollout", "status", "cm/settings", "-n", "shop", "--watch")
	refused(t, err, "the rollout has failed: Revision 7 of ConfigMap shop/settings failed in wave rest")
	exits(t, err, 1)
	wants(t, out, "Revision 7 of ConfigMap shop/settings failed")

	setPhase(t, binding, hubv1.RolloutComplete)
	out, err = hansectl(t, "rollout", "status", "cm/settings", "-n", "shop", "--watch")
	must(t, err)
	wants(t, out, "ConfigMap shop/settings successfully rolled out: revision 7 on 2 clusters")

	_, err = hansectl(t, "rollout", "status", "cm/settings", "--watch", "-o", "json")
	exits(t, err, 2)
	_, err = hansectl(t, "rollout", "status", "cm", "other", "-n", "shop")
	refused(t, err, "the hub has no ConfigMap shop/other")
}

func TestRolloutStatusOfAPlacementShowsObjectsThatMove(t *testing.T) {
	p, _, _ := rolling(t)
	p.Status.Rollout = &hubv1.PlacementRollout{Wave: "rest", Phase: hubv1.RolloutWaitingForApproval, Objects: hubv1.RolloutObjects{Moving: 1, Passed: 3}}
	must(t, onHub.Status().Update(t.Context(), p))
	out, err := hansectl(t, "rollout", "status", "placement", "all", "-n", "shop")
	must(t, err)
	wants(t, out, "Placement shop/all   moving 1   passed 3   failing 0   pending 0", "ConfigMap shop/settings   7          7        rest   WaitingForApproval",
		"Waiting for wave rest: 3 of 4 objects have their newest revision on all clusters")
	p.Status.Rollout.Stopped = &hubv1.RolloutStop{Object: "ConfigMap shop/settings", Revision: 7, Since: metav1.NewTime(began)}
	must(t, onHub.Status().Update(t.Context(), p))
	_, err = hansectl(t, "rollout", "status", "placement/all", "-n", "shop", "--watch")
	refused(t, err, "Revision 7 of ConfigMap shop/settings failed, which stops the placement")
	exits(t, err, 1)
}

func TestAnObjectWithoutARolloutSaysWhy(t *testing.T) {
	p, _, binding := rolling(t)
	must(t, onHub.Get(t.Context(), client.ObjectKeyFromObject(binding), binding))
	binding.Spec.Rollout, binding.Spec.Revisions = nil, nil
	must(t, onHub.Update(t.Context(), binding))
	_, err := hansectl(t, "rollout", "history", "cm/settings", "-n", "shop")
	refused(t, err, "ConfigMap shop/settings has no revision yet")
	must(t, onHub.Get(t.Context(), client.ObjectKeyFromObject(p), p))
	p.Spec.Rollout = nil
	must(t, onHub.Update(t.Context(), p))
	_, err = hansectl(t, "rollout", "status", "cm/settings", "-n", "shop")
	refused(t, err, "Placement shop/all sets no spec.rollout")
	_, err = hansectl(t, "rollout", "pause", "all", "-n", "shop")
	refused(t, err, "Placement shop/all has no rollout")
	_, err = hansectl(t, "rollout", "pause", "deployment/web", "-n", "shop")
	refused(t, err, "want NAME, placement/NAME or clusterplacement/NAME")
	exits(t, err, 2)
}

func TestUndoReturnsToARevisionThatIsStored(t *testing.T) {
	_, object, _ := rolling(t)
	out, err := hansectl(t, "rollout", "history", "cm", "settings", "-n", "shop")
	must(t, err)
	wants(t, out, "REVISION   GENERATION   FIRST SEEN             PASSED   WHERE", "6          -            2026-03-01T12:00:00Z   yes      cn-sha-1")

	_, err = hansectl(t, "rollout", "undo", "cm/settings", "-n", "shop", "--to-revision", "5")
	refused(t, err, "revision 5 is gone: the hub stores revisions 4, 6 and 7")
	if got := annotation(t, object, hubv1.RolloutUndoAnnotation); got != "" {
		t.Errorf("the annotation is %q after a refusal", got)
	}
	out, err = hansectl(t, "rollout", "undo", "cm/settings", "-n", "shop")
	must(t, err)
	wants(t, out, "the hub object still has revision 7: correct it in Git, or the next change starts from there", "configmap/settings", "returns to revision 6, wave by wave, without soak and approvals")
	if got := annotation(t, object, hubv1.RolloutUndoAnnotation); !strings.HasPrefix(got, "6@20") {
		t.Errorf("the annotation is %q, want 6 and a time", got)
	}
	out, err = hansectl(t, "rollout", "undo", "cm/settings", "-n", "shop", "--to-revision", "7")
	must(t, err)
	wants(t, out, "the clusters get revision 7 already")
	_, err = hansectl(t, "rollout", "undo", "cm/settings", "-n", "shop", "--to-revision", "0")
	exits(t, err, 2)
}

func TestAnUndoOfAnOperatorNamesTheVersionsThatClustersStore(t *testing.T) {
	_, _, binding := rolling(t)
	o := &hubv1.FederatedOperator{ObjectMeta: metav1.ObjectMeta{Name: "gears"}}
	o.Spec.Chart = &hubv1.OperatorChart{Archive: &hubv1.ArchiveSource{ConfigMap: "gears-chart"}, Namespace: "shop"}
	apply(t, onHub, o)
	of := hubv1.ReferenceTo(o)
	must(t, onHub.Get(t.Context(), client.ObjectKeyFromObject(binding), binding))
	binding.Spec.ObjectRef.Bundle = &of
	must(t, onHub.Update(t.Context(), binding))
	id := hubv1.ObjectIdentity{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "gears.example.com"}
	definition := &hubv1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: id.BindingKey().Name}}
	definition.Spec.ObjectRef = hubv1.ObjectReference{APIVersion: "apiextensions.k8s.io/v1", Kind: id.Kind, Name: id.Name, UID: o.UID, Bundle: &of}
	apply(t, onHub, definition)
	definition.Status.Clusters = []hubv1.ClusterRow{
		{Name: "ap-se-1", Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy, Observed: &runtime.RawExtension{Raw: []byte(`{"/storedVersions":["v1","v2"]}`)}},
		{Name: "cn-sha-1", Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy, Observed: &runtime.RawExtension{Raw: []byte(`{"/storedVersions":["v1"]}`)}},
	}
	must(t, onHub.Status().Update(t.Context(), definition))
	const stored = "a version at which clusters store objects (UndoBlocked): gears.example.com has v1 on ap-se-1, cn-sha-1, v2 on ap-se-1"
	_, err := hansectl(t, "rollout", "undo", "cm/settings", "-n", "shop")
	refused(t, err, "ConfigMap shop/settings is an object of FederatedOperator gears", "return to the earlier content of FederatedOperator gears", stored)
	_, err = hansectl(t, "rollout", "undo", "federatedoperator", "gears")
	refused(t, err, "FederatedOperator.hanse.dev gears has no revisions: return to its earlier content", stored)
}

func TestARolloutIsPausedAndResumed(t *testing.T) {
	p, _, _ := rolling(t)
	p.Annotations = map[string]string{hubv1.ChangedByAnnotation: "another-user"}
	must(t, onHub.Update(t.Context(), p))
	out, err := hansectl(t, "rollout", "pause", "all", "-n", "shop")
	must(t, err)
	wants(t, out, "placement/all", "paused: no more clusters begin to change")
	if got := annotation(t, p, hubv1.ChangedByAnnotation); got != "" {
		t.Errorf("no webhook runs, and the author is %q", got)
	}
	if got := annotation(t, p, hubv1.RolloutPauseAnnotation); got != "true" {
		t.Errorf("the annotation is %q", got)
	}
	_, err = hansectl(t, "rollout", "resume", "placement/all", "-n", "shop")
	must(t, err)
	if got := annotation(t, p, hubv1.RolloutPauseAnnotation); got != "" {
		t.Errorf("the annotation is %q", got)
	}
	out, err = hansectl(t, "rollout", "resume", "placement/all", "-n", "shop")
	must(t, err)
	wants(t, out, "is not paused")
}

func TestApprovalsAndSkipsAreForTheChangesInProgress(t *testing.T) {
	p, _, binding := rolling(t)
	p.Annotations = map[string]string{hubv1.RolloutApproveAnnotation: "old@2026-02-01T00:00:00Z, other@2026-03-01T12:00:00Z,broken"}
	must(t, onHub.Update(t.Context(), p))

	_, err := hansectl(t, "rollout", "approve", "all", "europe", "-n", "shop")
	refused(t, err, `placement/all has no wave "europe": its waves are asia, rest`)
	_, err = hansectl(t, "rollout", "approve", "all", "asia", "-n", "shop")
	refused(t, err, "wave asia of placement/all waits for no approval")
	out, err := hansectl(t, "rollout", "approve", "all", "rest", "-n", "shop")
	must(t, err)
	wants(t, out, "wave rest is approved for the changes of 1 object")
	if got, want := annotation(t, p, hubv1.RolloutApproveAnnotation), "other@2026-03-01T12:00:00Z,rest@2026-03-01T12:00:00Z"; got != want {
		t.Errorf("the approvals are %q, want %q", got, want)
	}

	_, err = hansectl(t, "rollout", "skip", "all", "eu-fra-1", "-n", "shop")
	refused(t, err, `no object of placement/all goes to cluster "eu-fra-1": its clusters are ap-se-1, cn-sha-1`)
	_, err = hansectl(t, "rollout", "skip", "all", "cn-sha-1", "-n", "shop")
	must(t, err)
	if got, want := annotation(t, p, hubv1.RolloutSkipAnnotation), "cn-sha-1@2026-03-01T12:00:00Z"; got != want {
		t.Errorf("the skips are %q, want %q", got, want)
	}
	_, err = hansectl(t, "rollout", "skip", "all", "-n", "shop")
	refused(t, err, "CLUSTER is missing")
	_, err = hansectl(t, "rollout", "skip", "all", "cn-sha-1", "--wave", "rest", "-n", "shop")
	refused(t, err, `unexpected argument "cn-sha-1" beside --wave`)
	_, err = hansectl(t, "rollout", "skip", "all", "--wave", "europe", "-n", "shop")
	refused(t, err, `placement/all has no wave "europe": its waves are asia, rest`)
	out, err = hansectl(t, "rollout", "skip", "all", "--wave", "rest", "-n", "shop")
	must(t, err)
	wants(t, out, "wave rest is skipped for the changes of 1 object")
	if got, want := annotation(t, p, hubv1.RolloutSkipAnnotation), "cn-sha-1@2026-03-01T12:00:00Z,wave/rest@2026-03-01T12:00:00Z"; got != want {
		t.Errorf("the skips are %q, want %q", got, want)
	}

	setPhase(t, binding, hubv1.RolloutRolledBack)
	_, err = hansectl(t, "rollout", "approve", "all", "rest", "-n", "shop")
	refused(t, err, "placement/all: no object of the placement is changing")
	_, err = hansectl(t, "rollout", "promote", "all", "-n", "shop", "--full", "--reason", "CVE-1")
	refused(t, err, "not a terminal: pass --yes to confirm")
	_, err = hansectl(t, "rollout", "promote", "all", "-n", "shop", "--full")
	refused(t, err, "--reason is missing")
	_, err = hansectl(t, "rollout", "promote", "all", "-n", "shop", "--reason", "CVE-1")
	refused(t, err, "--full is missing")
	_, err = hansectl(t, "rollout", "promote", "all", "-n", "shop", "--full", "--reason", " CVE-1\n now ", "--yes")
	must(t, err)
	if got, want := annotation(t, p, hubv1.RolloutPromoteAnnotation), "2026-03-01T12:00:00Z CVE-1 now"; got != want {
		t.Errorf("the promotion is %q, want %q", got, want)
	}
}

func TestStatusAndExplainTellOfTheRollout(t *testing.T) {
	rolling(t)
	out, err := hansectl(t, "status", "cm/settings", "-n", "shop")
	must(t, err)
	wants(t, out, "REV", "6/7", "Rollout:   revision 7, wave rest, WaitingForApproval")
	out, err = hansectl(t, "explain", "cm", "settings", "-n", "shop")
	must(t, err)
	wants(t, out, "Rollout:   revision 7, wave rest, WaitingForApproval")
}

func TestCordonAndSuspendSayWhichWaveWaits(t *testing.T) {
	rolling(t)
	const waits = "placement/all -n shop: wave rest waits for cn-sha-1 now: to leave the cluster out, use hansectl rollout skip all cn-sha-1 -n shop"
	for _, command := range [][]string{{"cordon", "cn-sha-1"}, {"suspend", "placement/all", "-n", "shop", "--cluster", "cn-sha-1"}} {
		out, err := hansectl(t, command...)
		must(t, err)
		wants(t, out, waits)
	}
	out, err := hansectl(t, "cordon", "ap-se-1")
	must(t, err)
	if strings.Contains(out, "wave") {
		t.Errorf("a wave that has passed waits:\n%s", out)
	}
}

func TestProblemsListAWaveThatWaitsForAUser(t *testing.T) {
	rolling(t)
	out, err := hansectl(t, "problems", "-n", "shop")
	must(t, err)
	wants(t, out, "\nWhat needs you\nSTATE ", "wave rest of Placement shop/all", "WaitingForApproval")
}

func TestWavesAreCompleted(t *testing.T) {
	rolling(t)
	out, err := run(t, "__complete", "--kubeconfig", onHub.kubeconfig, "--cache-dir", t.TempDir(), "-n", "shop", "rollout", "approve", "all", "")
	must(t, err)
	wants(t, out, "rest\n")
	if strings.Contains(out, "asia") {
		t.Errorf("a wave that waits for no approval is offered:\n%s", out)
	}
}
