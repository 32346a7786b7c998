package command

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// placed creates a ConfigMap with a placement, and with a binding that is applied on one of two clusters.
func placed(t *testing.T) *hubv1.Placement {
	t.Helper()
	aHubRan(t, time.Now())
	_, binding := settings(t)
	placement := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "all"}}
	placement.Spec.Clusters.LabelSelector = &metav1.LabelSelector{}
	placement.Spec.ResourceSelectors = []hubv1.ResourceSelector{{Kind: "ConfigMap"}}
	apply(t, onHub, placement)
	binding.Spec.PlacementRef.UID = placement.UID
	apply(t, onHub, binding)
	binding.Status = hubv1.BindingStatus{
		Summary: hubv1.BindingSummary{Desired: 2, Applied: 1, Healthy: 1},
		Conditions: []metav1.Condition{
			{Type: hubv1.ConditionScheduled, Status: metav1.ConditionTrue, Reason: hubv1.ReasonScheduled, LastTransitionTime: metav1.Now()},
			{Type: hubv1.ConditionApplied, Status: metav1.ConditionFalse, Reason: hubv1.ReasonFailedOnSome, Message: "cn-sha-1", LastTransitionTime: metav1.Now()},
		},
	}
	must(t, onHub.Status().Update(t.Context(), binding))
	return placement
}

func TestStatusShowsTheObjectsOfANamespaceAndOfAPlacement(t *testing.T) {
	fresh(t)
	placement := placed(t)
	const line = "ConfigMap shop/settings   Placement/all   1/2       1/2       FailedOnSome: cn-sha-1"
	for name, args := range map[string][]string{
		"a namespace": {"-n", "shop"}, "a placement": {"placement/all", "-n", "shop"}, "a placement in two words": {"pl", "all", "-n", "shop"}, "all": {"-A"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := hansectl(t, append([]string{"status"}, args...)...)
			must(t, err)
			wants(t, out, "OBJECT                    PLACEMENT       APPLIED   HEALTHY   WHY", line)
			if got := strings.Contains(out, "Placement shop/all   generation 1   objects 1"); got != strings.Contains(name, "placement") {
				t.Errorf("a summary of the placement is shown: %t:\n%s", got, out)
			}
		})
	}
	t.Run("a namespace without objects says so", func(t *testing.T) {
		out, err := hansectl(t, "status", "-n", "elsewhere")
		must(t, err)
		wants(t, out, "No object follows a placement here")
	})
	t.Run("as names and by a template", func(t *testing.T) {
		out, err := hansectl(t, "status", "-n", "shop", "-o", "name")
		must(t, err)
		wants(t, out, "configmap/settings\n")
		out, err = hansectl(t, "status", "placement/all", "-n", "shop", "-o", "jsonpath={.placement.name} {.objects[*].desired}")
		must(t, err)
		if out != "all 2" {
			t.Errorf("got %q", out)
		}
	})
	t.Run("what has no names cannot be shown by name", func(t *testing.T) {
		_, err := hansectl(t, "problems", "-o", "name")
		refused(t, err, `--output "name": want json, yaml or jsonpath=TEMPLATE`)
		exits(t, err, 2)
	})
	t.Run("a shell completes kinds and names", func(t *testing.T) {
		complete := func(args ...string) string {
			out, err := run(t, append([]string{"__complete", "--kubeconfig", onHub.kubeconfig, "--cache-dir", t.TempDir(), "-n", "shop"}, args...)...)
			must(t, err)
			return out
		}
		wants(t, complete("status", "configm"), "configmaps\n")
		wants(t, complete("explain", "configmap", "se"), "settings\n")
		wants(t, complete("wait", "cm/se"), "cm/settings\n")
		wants(t, complete("suspend", "pl"), "placement/all\n")
		wants(t, complete("wait", "cm/settings", "--for", ""), "healthy\n")
		wants(t, complete("confirm", "placement/"), "placement/all\n")
		wants(t, complete("status", "-n", "sho"), "shop\n")
	})
	t.Run("a mistyped kind is answered with similar ones", func(t *testing.T) {
		for typed, want := range map[string]string{
			"confgimap": "did you mean configmap?", "deploymnt.apps": "did you mean deployment.apps or deployments.apps?", "placment": "did you mean placement",
		} {
			_, err := hansectl(t, "status", typed, "settings", "-n", "shop")
			refused(t, err, "the hub does not serve a kind \""+typed+"\"", want)
		}
		_, err := hansectl(t, "status", "spaceship", "settings", "-n", "shop")
		if err == nil || strings.Contains(err.Error(), "did you mean") {
			t.Errorf("a word that is like no kind is answered with: %v", err)
		}
	})
	t.Run("suspend and resume change what is named", func(t *testing.T) {
		tier := func(operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
			return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: operator, Values: values}}}
		}
		for _, step := range []struct {
			args []string
			says string
			want hubv1.SuspendPolicy
		}{
			{[]string{"suspend"}, "suspended: decisions stay as they are; nothing is written to members", hubv1.SuspendPolicy{Scheduling: true, Dispatching: true}},
			{[]string{"resume", "--scheduling"}, "suspended: nothing is written to members", hubv1.SuspendPolicy{Dispatching: true}},
			{[]string{"suspend", "--cluster", "b,a"}, "suspended: nothing is written to members", hubv1.SuspendPolicy{Dispatching: true, Clusters: []string{"a", "b"}}},
			{[]string{"resume", "--dispatching"}, "suspended: nothing is written to a, b", hubv1.SuspendPolicy{Clusters: []string{"a", "b"}}},
			{[]string{"resume", "--cluster", "b"}, "suspended: nothing is written to a", hubv1.SuspendPolicy{Clusters: []string{"a"}}},
			{[]string{"suspend", "--selector", "tier notin (test)"}, "suspended: nothing is written to a, clusters with tier notin (test)", hubv1.SuspendPolicy{Clusters: []string{"a"}, ClusterSelector: tier("NotIn", "test")}},
			{[]string{"suspend", "--selector", "tier notin (test,early)"}, "suspended: nothing is written to a, clusters with tier notin (early,test)", hubv1.SuspendPolicy{Clusters: []string{"a"}, ClusterSelector: tier("NotIn", "early", "test")}},
			{[]string{"resume", "--selector"}, "suspended: nothing is written to a", hubv1.SuspendPolicy{Clusters: []string{"a"}}},
			{[]string{"suspend", "--selector", "tier"}, "suspended: nothing is written to a, clusters with tier", hubv1.SuspendPolicy{Clusters: []string{"a"}, ClusterSelector: tier("Exists")}},
			{[]string{"resume"}, "not suspended any more", hubv1.SuspendPolicy{}},
		} {
			out, err := hansectl(t, append(step.args, "placement/all", "-n", "shop")...)
			must(t, err)
			wants(t, out, "placement/all                      "+step.says)
			must(t, onHub.Get(t.Context(), client.ObjectKeyFromObject(placement), placement))
			if diff := cmp.Diff(step.want, placement.Spec.Suspend, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("after %v spec.suspend is (-want +got):\n%s", step.args, diff)
			}
		}
		_, err := hansectl(t, "suspend", "placement/none", "-n", "shop")
		refused(t, err, "the hub has no Placement shop/none")
	})
}

func TestWaitEndsWhenAnObjectHasTheWantedState(t *testing.T) {
	t.Parallel()
	rows := func(rows ...hubv1.ClusterRow) hubv1.BindingObject {
		b := &hubv1.ResourceBinding{Status: hubv1.BindingStatus{Clusters: rows}}
		b.Spec.Clusters = []hubv1.BindingTarget{{Name: "a", State: hubv1.TargetPresent}, {Name: "b", State: hubv1.TargetPresent}, {Name: "c", State: hubv1.TargetAbsent}}
		b.Status.Conditions = []metav1.Condition{{Type: hubv1.ConditionScheduled, Status: metav1.ConditionTrue, Reason: hubv1.ReasonScheduled}}
		return b
	}
	row := func(name string, generation int64, health hubv1.Health) hubv1.ClusterRow {
		return hubv1.ClusterRow{Name: name, Applied: metav1.ConditionTrue, Generation: generation, Health: health}
	}
	object := &unstructured.Unstructured{}
	object.SetGeneration(7)
	behind := row("b", 7, hubv1.HealthHealthy)
	behind.Applied, behind.Reason = metav1.ConditionFalse, hubv1.ReasonForbidden
	well := rows(row("a", 7, hubv1.HealthHealthy), row("b", 7, hubv1.HealthHealthy))
	tests := map[string]struct {
		aim     string
		object  *unstructured.Unstructured
		binding hubv1.BindingObject
		state   string
		done    bool
	}{
		"healthy": {aimHealthy, object, well, "healthy on 2 of 2 clusters", true},
		"healthy, and one still gets there": {
			aimHealthy, object, rows(row("a", 7, hubv1.HealthHealthy), row("b", 7, hubv1.HealthProgressing)), "healthy on 1 of 2 clusters; b: Progressing", false,
		},
		"applied, whatever the health": {aimApplied, object, rows(row("a", 7, hubv1.HealthDegraded), row("b", 7, hubv1.HealthUnknown)), "applied on 2 of 2 clusters", true},
		"applied, and one has an older generation": {
			aimApplied, object, rows(row("a", 6, hubv1.HealthHealthy), row("b", 7, hubv1.HealthHealthy)), "applied on 1 of 2 clusters; a: has generation 6, the hub has 7", false,
		},
		"applied, and one refuses":          {aimApplied, object, rows(row("a", 7, hubv1.HealthHealthy), behind), "applied on 1 of 2 clusters; b: Forbidden", false},
		"applied, and one has not reported": {aimApplied, object, rows(row("a", 7, hubv1.HealthHealthy)), "applied on 1 of 2 clusters; b: Pending", false},
		"applied, and nobody has decided":   {aimApplied, object, nil, "no placement selects it, or the hub has not processed it yet", false},
		"applied, and no cluster is chosen": {aimApplied, object, &hubv1.ResourceBinding{}, "no cluster is chosen for it", false},
		"scheduled":                         {aimScheduled, object, well, "Scheduled is True (Scheduled)", true},
		"a condition":                       {"condition=Scheduled=false", object, well, "Scheduled is True (Scheduled)", false},
		"a condition that is not there":     {"condition=Other", object, well, "its binding has no condition Other", false},
		"deleted, and clusters have it":     {aimDeleted, nil, well, "left on 3 clusters", false},
		"deleted, and it is on the hub":     {aimDeleted, object, nil, "the hub object exists and is not being deleted", false},
		"deleted":                           {aimDeleted, nil, nil, "the object and its copies are deleted", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if state, done := reached(tc.aim, tc.object, tc.binding); state != tc.state || done != tc.done {
				t.Errorf("got %q, %t; want %q, %t", state, done, tc.state, tc.done)
			}
		})
	}
}

func TestWaitForAnObjectOfTheHub(t *testing.T) {
	fresh(t)
	placed(t)
	out, err := hansectl(t, "wait", "cm/settings", "-n", "shop", "--for=scheduled")
	must(t, err)
	wants(t, out, "Scheduled is True")
	_, err = hansectl(t, "wait", "cm", "settings", "-n", "shop", "--for=healthy", "--timeout=1s")
	refused(t, err, "waiting for ConfigMap shop/settings to be healthy: timed out after 1s: healthy on 0 of 2 clusters; ap-se-1: Pending")
	exits(t, err, 1)
	_, err = hansectl(t, "wait", "cm/none", "-n", "shop", "--for=applied")
	refused(t, err, "the hub has no ConfigMap shop/none")
}

func TestVersionHasThatOfTheHub(t *testing.T) {
	fresh(t)
	out, err := hansectl(t, "version")
	must(t, err)
	wants(t, out, "hansectl test (go", "hub      unknown: no hub has led yet")
	aHubRan(t, time.Now())
	out, err = hansectl(t, "version")
	must(t, err)
	wants(t, out, "hub      unknown: the Lease of the hub has no label app.kubernetes.io/version")
	lease := &coordinationv1.Lease{}
	must(t, onHub.Get(t.Context(), client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: hubName}, lease))
	lease.Labels = map[string]string{hubv1.VersionLabel: "v0.9.1"}
	must(t, onHub.Update(t.Context(), lease))
	out, err = hansectl(t, "version", "-o", "jsonpath={.hub.version}")
	must(t, err)
	if out != "v0.9.1" {
		t.Errorf("got %q", out)
	}
	flags := []string{"--kubeconfig", onHub.kubeconfig, "--cache-dir", t.TempDir()}
	for version, warns := range map[string]bool{"0.9.2": false, "v0.10.0": false, "v0.11.0": true, "0.7.9": true, "v0.7.0-3-gdeadbee": false} {
		out, err = runVersion(t, version, append([]string{"version"}, flags...)...)
		must(t, err)
		warning := "warning: the hub is v0.9.1, hansectl is " + version + ": more than one minor version apart"
		if strings.Contains(out, warning) != warns || strings.Contains(out, "warning") != warns {
			t.Errorf("hansectl %s warns: want %t, got %s", version, warns, out)
		}
	}
	out, err = runVersion(t, "v0.11.0", append([]string{"problems", "--checks"}, flags...)...)
	must(t, err)
	wants(t, out, "version      Warning   the hub is v0.9.1, hansectl is v0.11.0: more than one minor version apart; do: use hansectl of the hub's version")
	lease.Labels[hubv1.VersionLabel] = "0.9.1_acme.1"
	must(t, onHub.Update(t.Context(), lease))
	out, err = hansectl(t, "version", "-o", "jsonpath={.hub.version}")
	must(t, err)
	if out != "0.9.1+acme.1" {
		t.Errorf("got %q", out)
	}
	out, err = run(t, "version", "--client")
	must(t, err)
	if strings.Contains(out, "hub") {
		t.Errorf("the hub was asked: %s", out)
	}
}
