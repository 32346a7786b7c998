package command

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/canonical"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/view"
)

// storeList stores a list of objects of a bundle, as the hub does, and returns its digest.
func storeList(t *testing.T, list decide.SetList) string {
	t.Helper()
	packed, err := list.Pack(canonical.Key("key"))
	must(t, err)
	apply(t, onHub, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: decide.SetListSecret(packed.Digest)},
		Type:       hubv1.SetListSecretType, Data: map[string][]byte{decide.ContentKey: packed.Content},
	})
	return packed.Digest
}

// rollingOperator makes the ConfigMap of the test an object of an operator that waits for the approval of its second
// wave. The binding of the ConfigMap shows a rollout that has ended, as those of objects that do not lead do. Revision
// 3 changes the ConfigMap, adds a Secret and removes a Role.
func rollingOperator(t *testing.T) (*hubv1.FederatedOperator, *hubv1.SetRollout, *hubv1.ResourceBinding) {
	t.Helper()
	_, object, binding := rolling(t)
	must(t, onHub.Delete(t.Context(), object))
	o := &hubv1.FederatedOperator{ObjectMeta: metav1.ObjectMeta{Name: "gears"}}
	o.Spec.Manifests = []runtime.RawExtension{{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings","namespace":"shop"}}`)}}
	apply(t, onHub, o)
	at, of := metav1.NewTime(began), hubv1.ReferenceTo(o)
	o.Status.ObservedGeneration = o.Generation
	o.Status.Conditions = []metav1.Condition{{Type: hubv1.ConditionStored, Status: metav1.ConditionTrue, Reason: hubv1.ReasonStored, LastTransitionTime: at}}
	must(t, onHub.Status().Update(t.Context(), o))

	must(t, onHub.Get(t.Context(), client.ObjectKeyFromObject(binding), binding))
	binding.Spec.ObjectRef.Bundle = &of
	binding.Spec.Rollout = &hubv1.BindingRollout{Revision: 7, Newest: 7, Passed: 7, Phase: hubv1.RolloutComplete, Since: at, Began: at}
	must(t, onHub.Update(t.Context(), binding))

	config := hubv1.ObjectOf(binding)
	before := storeList(t, decide.SetList{config: "a", {Group: "rbac.authorization.k8s.io", Kind: "Role", Namespace: "shop", Name: "old"}: "r"})
	after := storeList(t, decide.SetList{config: "b", {Kind: "Secret", Namespace: "shop", Name: "new"}: "s"})
	record := &hubv1.SetRollout{ObjectMeta: metav1.ObjectMeta{Namespace: of.SetRolloutKey(hubv1.SystemNamespace).Namespace, Name: of.SetRolloutKey(hubv1.SystemNamespace).Name}}
	record.Spec = hubv1.SetRolloutSpec{
		Bundle: of, BundleUID: o.UID, Newest: hubv1.SetList{List: after, Time: at}, PlacementRef: binding.Spec.PlacementRef,
		Revisions: []hubv1.SetRevision{{Number: 2, List: before, Time: at, Passed: true}, {Number: 3, List: after, Time: at}},
		Rollout: &hubv1.BindingRollout{
			Revision: 3, Newest: 3, Passed: 2, Wave: "rest", Phase: hubv1.RolloutWaitingForApproval, Since: at, Began: at, Message: "wave rest waits for approval",
		},
		Clusters: []hubv1.SetCluster{{Name: "ap-se-1", Revision: 3, Since: &at}, {Name: "cn-sha-1", Revision: 2}},
	}
	apply(t, onHub, record)
	return o, record, binding
}

func TestRolloutStatusOfAnObjectOfABundleShowsTheRolloutOfTheBundle(t *testing.T) {
	_, record, _ := rollingOperator(t)
	for _, args := range [][]string{{"cm/settings", "-n", "shop"}, {"federatedoperator", "gears"}} {
		out, err := hansectl(t, append([]string{"rollout", "status"}, args...)...)
		must(t, err)
		wants(t, out, "FederatedOperator.hanse.dev gears   Placement/all   revision 2 -> 3", "rest, WaitingForApproval", "ap-se-1    asia   3          3",
			"cn-sha-1   rest   2          2", "Waiting for wave rest: 0 of 1 clusters have revision 3; wave rest waits for approval")
	}
	out, err := hansectl(t, "rollout", "status", "cm/settings", "-n", "shop", "-o", "json")
	must(t, err)
	var r view.Rollout
	must(t, json.Unmarshal([]byte(out), &r))
	if r.Result != view.RolloutRuns || r.Asked != "ConfigMap shop/settings" || r.Object.Kind != hubv1.FederatedOperatorKind {
		t.Errorf("got %+v", r)
	}
	out, err = hansectl(t, "rollout", "history", "cm/settings", "-n", "shop")
	must(t, err)
	wants(t, out, "FederatedOperator.hanse.dev gears   Placement/all   clusters get revision 3", "yes      cn-sha-1", "-        ap-se-1")

	record.Spec.Rollout.Phase, record.Spec.Rollout.Wave, record.Spec.Rollout.Message = hubv1.RolloutRolledBack, "", "revision 3 failed"
	record.Spec.Rollout.Revision, record.Spec.Rollout.RolledBack = 2, 3
	must(t, onHub.Update(t.Context(), record))
	_, err = hansectl(t, "rollout", "status", "cm/settings", "-n", "shop")
	refused(t, err, "the rollout has failed: FederatedOperator.hanse.dev gears was rolled back: revision 3 failed")
	exits(t, err, 1)

	must(t, onHub.Delete(t.Context(), record)) // the objects have rollouts of their own
	_, err = hansectl(t, "rollout", "status", "federatedoperator", "gears")
	refused(t, err, "FederatedOperator.hanse.dev gears has no rollout as a whole")
}

// The binding of an object says that its rollout has ended. Each command says that the bundle waits.
func TestStatusAndProblemsSayThatABundleWaits(t *testing.T) {
	_, _, binding := rollingOperator(t)
	out, err := hansectl(t, "status", "cm/settings", "-n", "shop")
	must(t, err)
	const waits = "FederatedOperator gears: revision 3, wave rest, WaitingForApproval: wave rest waits for approval"
	wants(t, out, waits)

	must(t, onHub.Get(t.Context(), client.ObjectKeyFromObject(binding), binding))
	binding.Annotations = map[string]string{hubv1.SetFollowedAnnotation: "true"}
	binding.Spec.Rollout.Phase, binding.Spec.Rollout.Passed = hubv1.RolloutRolledBack, 6
	must(t, onHub.Update(t.Context(), binding))
	out, err = hansectl(t, "problems")
	must(t, err)
	if strings.Contains(out, hubv1.ReasonRolledBack) { // another object of the bundle shows the rollout
		t.Errorf("an object of the bundle is a problem of its own:\n%s", out)
	}
	binding.Spec.Rollout.RolledBack, binding.Spec.Rollout.Message = 7, "all clusters returned"
	must(t, onHub.Update(t.Context(), binding))
	out, err = hansectl(t, "problems")
	must(t, err)
	wants(t, out, "FederatedOperator gears", "hansectl rollout status FederatedOperator gears")
	out, err = hansectl(t, "rollout", "status", "placement", "all", "-n", "shop")
	must(t, err)
	wants(t, out, "FederatedOperator gears")

	must(t, onHub.Get(t.Context(), client.ObjectKeyFromObject(binding), binding))
	binding.Spec.Rollout.Phase, binding.Spec.Rollout.RolledBack, binding.Spec.Rollout.Message = hubv1.RolloutComplete, 0, ""
	binding.Spec.Clusters = binding.Spec.Clusters[:1] // the revision of the other cluster lacks the object
	must(t, onHub.Update(t.Context(), binding))
	_, err = hansectl(t, "wait", "cm/settings", "-n", "shop", "--for", "applied", "--timeout", "1ns")
	refused(t, err, "cn-sha-1 has revision 2 of the bundle, the newest is 3")
}

func TestAnUndoOfAnObjectOfABundleReturnsTheWholeBundle(t *testing.T) {
	o, record, binding := rollingOperator(t)
	for _, of := range [][]string{{"cm/settings", "-n", "shop"}, {"federatedoperator", "gears"}} {
		out, err := hansectl(t, append([]string{"rollout", "undo"}, of...)...)
		must(t, err)
		wants(t, out, "federatedoperator/gears", "returns to revision 2, wave by wave, without soak and approvals", "the hub object still has revision 3: correct it in Git")
		if got := annotation(t, o, hubv1.RolloutUndoAnnotation); !strings.HasPrefix(got, "2@20") {
			t.Errorf("the annotation is %q, want 2 and a time", got)
		}
		must(t, annotate(t.Context(), onHub, o, func(a map[string]string) { delete(a, hubv1.RolloutUndoAnnotation) }))
	}
	_, err := hansectl(t, "rollout", "undo", "federatedoperator", "gears", "--to-revision", "1")
	refused(t, err, "revision 1 is gone: the hub stores revisions 2 and 3 (current)")
	out, err := hansectl(t, "rollout", "undo", "federatedoperator", "gears", "--to-revision", "3")
	must(t, err)
	wants(t, out, "the clusters get revision 3 already")

	must(t, onHub.Delete(t.Context(), record))
	_, err = hansectl(t, "rollout", "undo", "cm/settings", "-n", "shop")
	refused(t, err, "ConfigMap shop/settings is an object of FederatedOperator gears", "return to the earlier content of FederatedOperator gears")
	if got := annotation(t, binding, hubv1.RolloutUndoAnnotation); got != "" {
		t.Errorf("the annotation is %q", got)
	}
}

func TestAnOperatorShowsWhatEachClusterHoldsAndWhatAnUpgradeBrings(t *testing.T) {
	o, _, binding := rollingOperator(t)
	must(t, onHub.Get(t.Context(), client.ObjectKeyFromObject(binding), binding))
	binding.Status.Clusters[0].Applied, binding.Status.Clusters[0].Health = metav1.ConditionUnknown, hubv1.HealthProgressing
	must(t, onHub.Status().Update(t.Context(), binding))
	workload := hubv1.ObjectIdentity{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "gears"}
	other := &hubv1.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: workload.BindingName()}, Spec: *binding.Spec.DeepCopy()}
	other.Spec.ObjectRef = hubv1.ObjectReference{APIVersion: "apps/v1", Kind: workload.Kind, Name: workload.Name, UID: o.UID, Bundle: binding.Spec.ObjectRef.Bundle}
	apply(t, onHub, other)
	at := metav1.NewTime(began)
	other.Status.Clusters = []hubv1.ClusterRow{
		{Name: "ap-se-1", Revision: 7, Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy, PassingSince: &at},
		{Name: "cn-sha-1", Revision: 6, Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy, PassingSince: &at},
	}
	must(t, onHub.Status().Update(t.Context(), other))
	for _, name := range []string{"ap-se-1", "cn-sha-1"} {
		must(t, report(t.Context(), name, metav1.ConditionTrue, hubv1.ReasonConnected, name))
	}
	out, err := hansectl(t, "operators", "gears")
	must(t, err)
	wants(t, out, "Rollout:   revision 3, wave rest, WaitingForApproval: wave rest waits for approval", "Adds:      1 object: Secret shop/new (revision 2 -> 3)",
		"Changes:   1 object: ConfigMap shop/settings", "Removes:   1 object: Role.rbac.authorization.k8s.io shop/old",
		"CLUSTER    VERSION   REVISION   PHASE      MISSING", "ap-se-1    -         3          Changing   ConfigMap shop/settings", "cn-sha-1   -         2          Waiting    -")
}
