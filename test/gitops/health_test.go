// Package gitops tests the examples for Argo CD and Flux in docs/examples/gitops.
package gitops

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/cel-go/cel"
	"github.com/google/go-cmp/cmp"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

var examples = filepath.Join("..", "..", "docs", "examples", "gitops")

// verdicts are the results of the tools for one object. Flux is empty if Flux has no expression for the kind. "Waits"
// means that an expression returned an error: Flux evaluates it again until the timeout.
type verdicts struct{ Argo, KStatus, Flux string }

const (
	healthy, progressing, degraded, suspended, unknown = "Healthy", "Progressing", "Degraded", "Suspended", "Unknown"
	current, inProgress, failed, waits                 = "Current", "InProgress", "Failed", "Waits"
)

// reading is an object of generation 2. It has a part of the spec, the generation that the hub has observed, and
// conditions. A condition has the form "TYPE=STATUS REASON", followed by "@1" if its generation is 1.
type reading struct {
	kind       string
	spec       string
	observed   int
	phase      string // phase in status.rollout
	conditions []string
	want       verdicts
}

func TestTheExamplesReadEveryStateAsTheToolsShould(t *testing.T) {
	scripts, expressions := argoScripts(t), fluxExpressions(t)
	tests := map[string]reading{
		"a placement that the hub has not seen": {
			kind: "Placement", observed: -1, want: verdicts{progressing, inProgress, inProgress},
		},
		"a placement whose last change the hub has not seen": {
			kind: "Placement", observed: 1, conditions: placed("True HealthyEverywhere", "True AppliedEverywhere", "True HealthyEverywhere"),
			want: verdicts{progressing, inProgress, inProgress},
		},
		"a placement whose kinds are not listed yet": {
			kind: "Placement", observed: 2, conditions: []string{"Ready=Unknown Pending"}, want: verdicts{progressing, inProgress, inProgress},
		},
		"a placement that is healthy everywhere": {
			kind: "Placement", observed: 2, conditions: placed("True HealthyEverywhere", "True AppliedEverywhere", "True HealthyEverywhere"),
			want: verdicts{healthy, current, current},
		},
		"a placement that no object follows": {
			kind: "ClusterPlacement", observed: 2, conditions: placed("True NothingSelected", "Unknown NothingSelected", "Unknown NothingSelected"),
			want: verdicts{healthy, current, ""},
		},
		"a placement that is not applied on a cluster": {
			kind: "Placement", observed: 2, conditions: placed("False FailedOnSome", "False FailedOnSome", "Unknown UnknownOnSome"),
			want: verdicts{degraded, inProgress, inProgress},
		},
		"a placement whose copies are degraded": {
			kind: "Placement", observed: 2, conditions: placed("False DegradedOnSome", "True AppliedEverywhere", "False DegradedOnSome"),
			want: verdicts{degraded, inProgress, inProgress},
		},
		"a placement whose copies are starting": {
			kind: "Placement", observed: 2, conditions: placed("False ProgressingOnSome", "True AppliedEverywhere", "False ProgressingOnSome"),
			want: verdicts{progressing, inProgress, inProgress},
		},
		"a placement with a cluster that does not answer": {
			kind: "Placement", observed: 2, conditions: placed("Unknown PartiallyUnknown", "Unknown PartiallyUnknown", "Unknown PartiallyUnknown"),
			want: verdicts{unknown, inProgress, inProgress},
		},
		"a placement that has not been reported on": {
			kind: "Placement", observed: 2, conditions: placed("Unknown NotYetReported", "Unknown NotYetReported", "Unknown NotYetReported"),
			want: verdicts{progressing, inProgress, inProgress},
		},
		"a placement that the hub refuses": {
			kind: "Placement", observed: 2, conditions: []string{"Accepted=False Invalid", "Ready=False Invalid"},
			want: verdicts{degraded, inProgress, failed},
		},
		"a suspended placement that has something to write": {
			kind: "Placement", spec: "suspend: {dispatching: true}", observed: 2,
			conditions: placed("False FailedOnSome", "False FailedOnSome", "True HealthyEverywhere"), want: verdicts{suspended, inProgress, inProgress},
		},
		"a placement that suspends some clusters": {
			kind: "Placement", spec: "suspend: {clusterSelector: {}}", observed: 2,
			conditions: placed("False FailedOnSome", "False FailedOnSome", "Unknown UnknownOnSome"), want: verdicts{suspended, inProgress, inProgress},
		},
		"a placement that suspends some clusters while copies on others are degraded": {
			kind: "Placement", spec: "suspend: {clusters: [eu]}", observed: 2,
			conditions: placed("False FailedOnSome", "False FailedOnSome", "False DegradedOnSome"), want: verdicts{degraded, inProgress, inProgress},
		},
		"an empty list of suspended clusters suspends none": {
			kind: "Placement", spec: "suspend: {clusters: []}", observed: 2,
			conditions: placed("False FailedOnSome", "False FailedOnSome", "Unknown UnknownOnSome"), want: verdicts{degraded, inProgress, inProgress},
		},
		"a suspended placement with nothing to write": {
			kind: "Placement", spec: "suspend: {dispatching: true}", observed: 2,
			conditions: placed("True HealthyEverywhere", "True AppliedEverywhere", "True HealthyEverywhere"), want: verdicts{healthy, current, current},
		},
		"a placement whose removals wait for a confirmation": {
			kind: "Placement", observed: 2,
			conditions: append(placed("False TooManyRemovals", "True AppliedEverywhere", "True HealthyEverywhere"), "RemovalHeld=True TooManyRemovals"),
			want:       verdicts{suspended, inProgress, inProgress},
		},
		"a placement whose objects change in waves": {
			kind: "Placement", observed: 2, phase: "Progressing",
			conditions: append(placed("False RolloutMoving", "True AppliedEverywhere", "True HealthyEverywhere"), "RolledOut=False RolloutMoving"),
			want:       verdicts{progressing, inProgress, inProgress},
		},
		"a placement with a wave that waits for its approval": {
			kind: "Placement", observed: 2, phase: "WaitingForApproval",
			conditions: append(placed("False RolloutMoving", "True AppliedEverywhere", "True HealthyEverywhere"), "RolledOut=False RolloutMoving"),
			want:       verdicts{suspended, inProgress, inProgress},
		},
		"a placement whose rollouts have no baseline yet": {
			kind: "Placement", observed: 2, phase: "Complete",
			conditions: append(placed("False BaselinePending", "True AppliedEverywhere", "True HealthyEverywhere"), "RolledOut=False BaselinePending"),
			want:       verdicts{progressing, inProgress, inProgress},
		},
		"a placement whose change was rolled back": {
			kind: "Placement", observed: 2, phase: "RolledBack",
			conditions: append(placed("False RolloutFailed", "True AppliedEverywhere", "True HealthyEverywhere"), "RolledOut=False RolloutFailed"),
			want:       verdicts{degraded, inProgress, inProgress},
		},

		"an override policy that the hub has not seen": {kind: "OverridePolicy", observed: -1, want: verdicts{progressing, inProgress, inProgress}},
		"an override policy that is followed": {
			kind: "OverridePolicy", observed: 2, conditions: []string{"Accepted=True Accepted", "Conflicted=False NoConflict", "Ready=True Accepted"},
			want: verdicts{healthy, current, current},
		},
		"an override policy that the hub refuses": {
			kind: "OverridePolicy", observed: 2, conditions: []string{"Accepted=False OverrideInvalid", "Conflicted=False NoConflict", "Ready=False OverrideInvalid"},
			want: verdicts{degraded, inProgress, failed},
		},
		"an override policy in conflict with another one": {
			kind: "ClusterOverridePolicy", observed: 2, conditions: []string{"Accepted=True Accepted", "Conflicted=True OverrideClash", "Ready=False OverrideClash"},
			want: verdicts{degraded, inProgress, ""},
		},

		"a cluster that the hub has not seen": {kind: "MemberCluster", observed: -1, want: verdicts{progressing, inProgress, ""}},
		"a cluster that is being connected":   {kind: "MemberCluster", observed: 2, conditions: []string{"Ready=Unknown Connecting"}, want: verdicts{progressing, inProgress, ""}},
		"a cluster that is connected":         {kind: "MemberCluster", observed: 2, conditions: []string{"Ready=True Connected"}, want: verdicts{healthy, current, ""}},
		"a cluster that does not answer":      {kind: "MemberCluster", observed: 2, conditions: []string{"Ready=False ClusterUnreachable"}, want: verdicts{degraded, inProgress, ""}},

		"a custom resource without a status": {kind: "Prometheus", want: verdicts{progressing, current, waits}},
		"a custom resource with conditions of its operator alone": {
			kind: "Prometheus", conditions: []string{"Available=True Up"}, want: verdicts{progressing, current, inProgress},
		},
		"a custom resource that is healthy on every cluster": {
			kind: "Prometheus", conditions: []string{"hanse.dev/Healthy=True HealthyEverywhere"}, want: verdicts{healthy, current, current},
		},
		"a custom resource whose last change is not everywhere": {
			kind: "Prometheus", conditions: []string{"hanse.dev/Healthy=True HealthyEverywhere @1"}, want: verdicts{progressing, current, inProgress},
		},
		"a custom resource that is degraded on a cluster": {
			kind: "Prometheus", conditions: []string{"hanse.dev/Healthy=False DegradedOnSome"}, want: verdicts{degraded, current, inProgress},
		},
		"a custom resource that starts on a cluster": {
			kind: "Prometheus", conditions: []string{"hanse.dev/Healthy=False ProgressingOnSome"}, want: verdicts{progressing, current, inProgress},
		},
		"a custom resource on a cluster that does not answer": {
			kind: "Prometheus", conditions: []string{"hanse.dev/Healthy=Unknown PartiallyUnknown"}, want: verdicts{unknown, current, inProgress},
		},
		"a custom resource that no cluster has reported on": {
			kind: "Prometheus", conditions: []string{"hanse.dev/Healthy=Unknown UnknownOnSome"}, want: verdicts{progressing, current, inProgress},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			obj := tc.object(t)
			read, err := status.Compute(obj)
			if err != nil {
				t.Fatal(err)
			}
			got := verdicts{Argo: argoHealth(t, scripts, obj), KStatus: read.Status.String()}
			if e, ok := expressions[tc.kind]; ok {
				got.Flux = e.verdict(t, obj)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// placed returns the conditions of an accepted placement with the given statuses of Ready, Applied and Healthy.
func placed(ready, applied, healthy string) []string {
	return []string{"Accepted=True Accepted", "Scheduled=True Scheduled", "Applied=" + applied, "Healthy=" + healthy, "Ready=" + ready}
}

func (r reading) object(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	if r.spec != "" {
		spec := map[string]any{}
		if err := yaml.Unmarshal([]byte(r.spec), &spec); err != nil {
			t.Fatal(err)
		}
		obj.Object["spec"] = spec
	}
	obj.SetAPIVersion("hanse.dev/v1alpha1")
	if r.kind == "Prometheus" {
		obj.SetAPIVersion("monitoring.coreos.com/v1")
	}
	obj.SetKind(r.kind)
	obj.SetName("web")
	obj.SetGeneration(2)
	state := map[string]any{}
	if r.observed != 0 {
		state["observedGeneration"] = int64(r.observed)
	}
	conditions := []any{}
	for _, text := range r.conditions {
		c := map[string]any{"observedGeneration": int64(2), "message": "2 of 2"}
		kind, rest, _ := strings.Cut(text, "=")
		words := strings.Fields(rest)
		c["type"], c["status"], c["reason"] = kind, words[0], words[1]
		if len(words) == 3 {
			c["observedGeneration"] = int64(1)
		}
		conditions = append(conditions, c)
	}
	if len(conditions) > 0 {
		state["conditions"] = conditions
	}
	if r.phase != "" {
		state["rollout"] = map[string]any{"phase": r.phase}
	}
	if len(state) > 0 {
		obj.Object["status"] = state
	}
	return obj
}

// argoScripts returns the scripts in argocd-cm.yaml by group_Kind, which is the key that Argo CD uses.
func argoScripts(t *testing.T) map[string]string {
	t.Helper()
	var config struct {
		Data map[string]string `json:"data"`
	}
	read(t, "argocd-cm.yaml", &config)
	const prefix = "resource.customizations.health."
	scripts := map[string]string{}
	for key, script := range config.Data {
		if kind, ok := strings.CutPrefix(key, prefix); ok {
			scripts[kind] = script
		}
	}
	return scripts
}

// argoHealth runs the script for an object in a Lua VM with the libraries that Argo CD opens. The library for strings
// is not among them.
func argoHealth(t *testing.T, scripts map[string]string, obj *unstructured.Unstructured) string {
	t.Helper()
	gvk := obj.GroupVersionKind()
	script, ok := scripts[gvk.Group+"_"+gvk.Kind]
	if !ok {
		t.Fatalf("no script for %s", gvk)
	}
	vm := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer vm.Close()
	for name, open := range map[string]lua.LGFunction{lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		if err := vm.CallByParam(lua.P{Fn: vm.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	vm.SetContext(ctx)
	vm.SetGlobal("obj", luaValue(vm, obj.Object))
	if err := vm.DoString(script); err != nil {
		t.Fatal(err)
	}
	health, ok := vm.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the script returns a %s", vm.Get(-1).Type())
	}
	if message, ok := health.RawGetString("message").(lua.LString); !ok || message == "" {
		t.Error("the script has no message")
	}
	return health.RawGetString("status").String()
}

func luaValue(vm *lua.LState, value any) lua.LValue {
	switch v := value.(type) {
	case bool:
		return lua.LBool(v)
	case string:
		return lua.LString(v)
	case int64:
		return lua.LNumber(v)
	case []any:
		list := vm.NewTable()
		for _, item := range v {
			list.Append(luaValue(vm, item))
		}
		return list
	case map[string]any:
		table := vm.NewTable()
		for key, item := range v {
			table.RawSetString(key, luaValue(vm, item))
		}
		return table
	}
	return lua.LNil
}

// fluxCheck is an entry of Flux's healthCheckExprs.
type fluxCheck struct {
	Kind    string `json:"kind"`
	Failed  string `json:"failed"`
	Current string `json:"current"`
}

func fluxExpressions(t *testing.T) map[string]fluxCheck {
	t.Helper()
	var kustomization struct {
		Spec struct {
			HealthCheckExprs []fluxCheck `json:"healthCheckExprs"`
		} `json:"spec"`
	}
	read(t, "flux.yaml", &kustomization)
	checks := map[string]fluxCheck{}
	for _, c := range kustomization.Spec.HealthCheckExprs {
		checks[c.Kind] = c
	}
	return checks
}

// verdict evaluates the expressions in the order of Flux: first whether the status is outdated, then whether it failed,
// then whether it is current.
func (c fluxCheck) verdict(t *testing.T, obj *unstructured.Unstructured) string {
	t.Helper()
	if observed, found, _ := unstructured.NestedInt64(obj.Object, "status", "observedGeneration"); found && observed != obj.GetGeneration() {
		return inProgress
	}
	for _, e := range []struct{ text, means string }{{c.Failed, failed}, {c.Current, current}} {
		if e.text == "" {
			continue
		}
		yes, err := evaluate(t, e.text, obj.Object)
		switch {
		case err != nil:
			return waits
		case yes:
			return e.means
		}
	}
	return inProgress
}

// evaluate evaluates an expression without types of fields, as Flux does.
func evaluate(t *testing.T, text string, object map[string]any) (bool, error) {
	t.Helper()
	env, err := cel.NewEnv(cel.CrossTypeNumericComparisons(true), cel.OptionalTypes())
	if err != nil {
		t.Fatal(err)
	}
	parsed, issues := env.Parse(text)
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	program, err := env.Program(parsed)
	if err != nil {
		t.Fatal(err)
	}
	value, _, err := program.ContextEval(t.Context(), object)
	if err != nil {
		return false, fmt.Errorf("evaluating: %w", err)
	}
	yes, ok := value.Value().(bool)
	if !ok {
		t.Fatalf("%s gives a %s", text, value.Type())
	}
	return yes, nil
}

func read(t *testing.T, name string, into any) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(examples, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(content, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}
