package command

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view/preview"
	"github.com/hanse-dev/hanse/view/wire"
)

const (
	planPolicy = `{apiVersion: hanse.dev/v1alpha1, kind: OverridePolicy, metadata: {name: x}, spec: {resourceSelectors: [{kind: ConfigMap}],
		rules: [{name: all, mergePatch: {data: {mode: dark}}}, {name: one, clusters: {names: [cn-sha-1]}, mergePatch: {data: {region: cn}}}]}}`
	planPlacement = `{apiVersion: hanse.dev/v1alpha1, kind: Placement, metadata: {name: all}, spec: {resourceSelectors: [{kind: ConfigMap, name: settings}], clusters: {names: [ap-se-1]}}}`
)

func planFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.yaml")
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// planHub is a hub with one object on two of three clusters.
func planHub(t *testing.T) {
	t.Helper()
	fresh(t)
	_, binding := settings(t)
	for _, name := range []string{"ap-se-1", "cn-sha-1", "cn-sha-2"} {
		memberOf(t, name, nil)
	}
	placement := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "all"}, Spec: hubv1.PlacementSpec{
		ResourceSelectors: []hubv1.ResourceSelector{{Kind: "ConfigMap", Name: "settings"}},
		Clusters:          hubv1.ClusterSelection{Names: []string{"ap-se-1", "cn-sha-1"}},
	}}
	apply(t, onHub, placement)
	binding.Spec.PlacementRef.UID = placement.UID
	apply(t, onHub, binding)
}

func TestPlanReadsTheHubAndWritesNothing(t *testing.T) {
	planHub(t)
	// The user has exactly the rights that docs/plan.md requires, none of which writes.
	kubeconfig := reader(t, "planner",
		allowed(hubv1.GroupVersion.Group, "list", "memberclusters", "placements", "clusterplacements", "overridepolicies", "clusteroverridepolicies", "bundles", "clusterbundles", "federatedoperators", "resourcebindings"),
		allowed(hubv1.GroupVersion.Group, "get", "resourcebindings"), allowed("", "list", "configmaps"), allowed("", "get", "namespaces", "configmaps"),
	)
	asReader := func(t *testing.T, args ...string) (string, error) {
		t.Helper()
		return runQuietly(t, append(args, "-n", "shop", "--kubeconfig", kubeconfig, "--cache-dir", t.TempDir())...)
	}
	t.Run("a policy", func(t *testing.T) {
		out, err := asReader(t, "plan", "-f", planFile(t, planPolicy), "-o", "json")
		must(t, err)
		want := []preview.Change{{Object: preview.Object{Kind: "ConfigMap", Namespace: "shop", Name: "settings"}, Groups: []preview.Group{
			{Clusters: []string{"ap-se-1"}, Fields: []preview.Field{{Path: "/data", After: map[string]any{"mode": "dark"}}}},
			{Clusters: []string{"cn-sha-1"}, Fields: []preview.Field{{Path: "/data", After: map[string]any{"mode": "dark", "region": "cn"}}}},
		}}}
		if diff := cmp.Diff(want, planOf(t, out).Changes); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("an object that the hub has", func(t *testing.T) {
		out, err := asReader(t, "plan", "-f", planFile(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, annotations: {note: new}}}`), "--summary", "--detailed-exitcode")
		var exit *ExitError
		if !errors.As(err, &exit) || exit.Code != 2 {
			t.Errorf("error %v", err)
		}
		wants(t, out, "Plan: 2 copies changed\n")
	})
	t.Run("a kind that the hub does not serve", func(t *testing.T) {
		file := planFile(t, `{apiVersion: example.com/v1, kind: Nothing, metadata: {name: a}}`)
		_, err := asReader(t, "plan", "-f", file)
		refused(t, err, file+": the hub does not serve example.com/v1 Nothing, and no file has its CustomResourceDefinition")
	})
	t.Run("a stored plan", func(t *testing.T) {
		stored := filepath.Join(t.TempDir(), "plan.json")
		made, err := asReader(t, "plan", "-f", planFile(t, planPlacement), "--out", stored)
		must(t, err)
		wants(t, made, "REMOVED: 1 copy\n", "ConfigMap shop/settings", "cn-sha-1\n", "Plan: 1 copy removed\n")
		shown, err := asReader(t, "plan", "show", stored)
		must(t, err)
		if diff := cmp.Diff(made, shown); diff != "" {
			t.Errorf("the hub is as it was, and the plan is shown as another one (-made +shown):\n%s", diff)
		}
		var c hubv1.Placement
		must(t, onHub.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "all"}, &c))
		c.Spec.Priority = 3
		must(t, onHub.Update(t.Context(), &c))
		memberOf(t, "eu-fra-1", nil)
		shown, err = asReader(t, "plan", "show", stored)
		must(t, err)
		wants(t, shown, "OUTDATED", "MemberCluster eu-fra-1", "created\n", "Placement shop/all", "generation 2, was 1\n", "Plan: 1 copy removed\n")
	})
}

func TestPlanAsksTheMembersIfItIsTold(t *testing.T) {
	planHub(t)
	systemNamespace(t, onHub)
	h := newPlayedHub(t, func(cluster, what string, body []byte) (any, error) {
		var q wire.DiffRequest
		if err := json.Unmarshal(body, &q); err != nil || what != wire.Diff || len(q.Policies) != 1 || q.Object.Name != "settings" {
			t.Errorf("asked %s of %s: %s, %v", what, cluster, body, err)
		}
		if cluster == "cn-sha-1" {
			return nil, errors.New("the cluster is not connected")
		}
		return wire.DiffAnswer{Before: map[string]any{"kind": "ConfigMap"}, After: map[string]any{"kind": "ConfigMap", "data": map[string]any{"mode": "dark"}}}, nil
	})
	token := planFile(t, "token")
	out, err := h.hansectl("plan", "-n", "shop", "-f", planFile(t, planPolicy), "--live", "--token-file", token)
	must(t, err)
	wants(t, out, "ON THE MEMBERS, by a dry run: 1 copy of 2 would change\n", `/data: (none) -> {"mode":"dark"}`, "the cluster is not connected")
	h.took()
	out, err = h.hansectl("plan", "-n", "shop", "-f", planFile(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, annotations: {note: new}}}`), "--live", "--token-file", token)
	must(t, err)
	wants(t, out, changedItself[:60])
	if asked := h.took(); asked != "[]" {
		t.Errorf("asked %s", asked)
	}
}

func TestPlanAsksTheMembersOfNewCopiesWhetherTheyGrantTheKind(t *testing.T) {
	planHub(t)
	h := newPlayedHub(t, func(cluster, what string, _ []byte) (any, error) {
		switch {
		case what != wire.List:
			return nil, errors.New("not asked for")
		case cluster == "cn-sha-1":
			return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errors.New(ungrantedText+": see the values of the chart hanse-member"))
		case cluster == "cn-sha-2":
			return nil, errors.New("the cluster is not connected")
		}
		return wire.ListAnswer{}, nil
	})
	file := planFile(t, `{apiVersion: v1, kind: List, items: [
		{apiVersion: hanse.dev/v1alpha1, kind: Placement, metadata: {name: keys}, spec: {resourceSelectors: [{kind: Secret}], clusters: {labelSelector: {}}}},
		{apiVersion: v1, kind: Secret, metadata: {name: a}}, {apiVersion: v1, kind: Secret, metadata: {name: b}}]}`)
	out, err := h.hansectl("plan", "-n", "shop", "-f", file, "--live", "--token-file", planFile(t, "token"))
	must(t, err)
	wants(t, strings.Join(strings.Fields(out), " "), "CREATED: 6 copies", "PROBLEMS Secret shop/a, Secret shop/b cn-sha-1 Forbidden: the hub may not write Secret there: run hansectl join with --grant",
		"not asked whether members grant all new kinds: the cluster is not connected", "2 problems")
	if asked := h.took(); strings.Count(asked, "list") != 3 {
		t.Errorf("asked %s", asked)
	}
}

func TestPlanNamesTheKindsThatTheHubMayNotRead(t *testing.T) {
	planHub(t)
	apply(t, onHub, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: hubName}})
	reads := func(resource string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{"get", "list", "watch"}}}
	}
	apply(t, onHub, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: federatedRole}, Rules: reads("configmaps")})
	apply(t, onHub, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: federatedRole}, Rules: reads("services")})
	file := planFile(t, `{apiVersion: v1, kind: List, items: [
		{apiVersion: hanse.dev/v1alpha1, kind: Placement, metadata: {name: new, namespace: shop}, spec: {clusters: {labelSelector: {}}, resourceSelectors: [
			{kind: ConfigMap}, {kind: Secret}, {kind: Service}, {apiGroup: apps, kind: Deployment}]}},
		{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: shop}}, {apiVersion: v1, kind: Service, metadata: {name: a, namespace: shop}}]}`)
	for _, args := range [][]string{nil, {"-n", "shop"}} {
		out, err := hansectl(t, append([]string{"plan", "-f", file}, args...)...)
		must(t, err)
		wants(t, strings.Join(strings.Fields(out), " "), "Placement shop/new NotFederated: the hub may not list and watch Secret (resourceSelectors[1]), Deployment.apps (resourceSelectors[3]): ",
			`{apiGroups: [""], resources: [secrets]}, {apiGroups: [apps], resources: [deployments]}`, "Service shop/a", "1 problem")
		if strings.Contains(out, "Secret shop/a") {
			t.Errorf("the plan promises copies of an object that the hub cannot read:\n%s", out)
		}
	}
}

func TestPlanOfFilesNamesTheKindsThatTheHubMayNotRead(t *testing.T) {
	const roles = `
		{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: hanse-hub-federated-kinds}, rules: [
			{apiGroups: [""], resources: [configmaps], verbs: [get, list, watch]}]},
		{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: hanse-hub-federated-kinds, namespace: shop}, rules: [
			{apiGroups: [""], resources: [services], verbs: [get, list, watch]}]},`
	const objects = `
		{apiVersion: hanse.dev/v1alpha1, kind: MemberCluster, metadata: {name: eu}, spec: {allowedNamespaces: {from: All}, connection: {type: Direct, direct: {kubeconfigSecretRef: {name: eu}}}}},
		{apiVersion: hanse.dev/v1alpha1, kind: Placement, metadata: {name: new, namespace: shop}, spec: {clusters: {labelSelector: {}}, resourceSelectors: [
			{kind: ConfigMap}, {kind: Secret}, {kind: Service}, {apiGroup: apps, kind: Deployment}]}},
		{apiVersion: v1, kind: Service, metadata: {name: a, namespace: shop}}`
	const message = "Placement shop/new NotFederated: the hub may not list and watch Secret (resourceSelectors[1]), Deployment.apps (resourceSelectors[3]): "
	with := planFile(t, "{apiVersion: v1, kind: List, items: ["+roles+objects+"]}")
	for name, args := range map[string][]string{"a placement that the hub has": {"--from", with, "-f", planFile(t, "{apiVersion: v1, kind: List, items: ["+objects+"]}")}, "no change": {"--from", with}} {
		out, _, err := planned(t, args...)
		must(t, err)
		if text := strings.Join(strings.Fields(out), " "); !strings.Contains(text, message) {
			t.Errorf("%s: %s", name, out)
		}
	}
	out, _, err := planned(t, "--from", planFile(t, "{apiVersion: v1, kind: List, items: ["+objects+"]}"))
	must(t, err)
	if strings.Contains(out, "NotFederated") {
		t.Errorf("without the roles of the hub, the plan says: %s", out)
	}
}
