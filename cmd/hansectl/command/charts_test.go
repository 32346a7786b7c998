package command

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hanse-dev/hanse/test/apiserver"
	"github.com/hanse-dev/hanse/test/charts"
)

func TestTheWayToTheHubIsGrantedInItsNamespaceAlone(t *testing.T) {
	values := map[string]any{"view": map[string]any{"enabled": true, "groups": []string{"system:authenticated"}}}
	granted, bound := map[string][]rbacv1.PolicyRule{}, []string{}
	for _, o := range charts.Render(t, "hanse-hub/templates/view.yaml", values) {
		var role rbacv1.ClusterRole // a Role has its rules in the same field
		var binding rbacv1.RoleBinding
		switch o.GetKind() {
		case "ClusterRole", "Role":
			convert(t, o, &role)
			granted[o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()] = role.Rules
		case "RoleBinding", "ClusterRoleBinding":
			convert(t, o, &binding)
			bound = append(bound, fmt.Sprintf("%s: %s %s to %s",
				o.GetNamespace(), binding.RoleRef.Kind, binding.RoleRef.Name, binding.Subjects[0].Name))
		}
	}
	if diff := cmp.Diff([]string{"hanse-system: Role hanse-view to system:authenticated"}, bound); diff != "" {
		t.Errorf("bindings (-want +chart):\n%s", diff)
	}
	want := map[string][]rbacv1.PolicyRule{
		"ClusterRole /hanse-prune": {
			{APIGroups: []string{"hanse.dev"}, Resources: []string{"memberclusters"}, Verbs: []string{"list", "view", "prune"}},
		},
		"ClusterRole /hanse-read": {
			{APIGroups: []string{"hanse.dev"}, Resources: []string{"memberclusters"}, Verbs: []string{"list", "view", "read"}},
			{APIGroups: []string{"hanse.dev"}, Resources: []string{"resourcebindings"}, Verbs: []string{"view", "read"}},
		},
		"Role hanse-system/hanse-view": {
			{
				APIGroups: []string{""}, Resources: []string{"services/proxy"},
				ResourceNames: []string{viewService}, Verbs: []string{"create"},
			},
			{
				APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"},
				ResourceNames: []string{hubName}, Verbs: []string{"get"},
			},
		},
	}
	if diff := cmp.Diff(want, granted); diff != "" {
		t.Errorf("roles (-want +chart):\n%s", diff)
	}
}

func TestTheRolesOfUsersAreForNamespacesAndAggregated(t *testing.T) {
	// The role for users of namespaces may contain only these rights. It must not let viewers read or create a value of a
	// Secret. Only hanse-override, which no role includes, may let a user change what members get.
	allowed := map[string]map[string][]string{
		"view": {
			"placements": {"get", "list", "watch"}, "bundles": {"get", "list", "watch"}, "resourcebindings": {"get", "list", "watch", "view"},
			"memberclusters": {"view"}, "namespaces": {"get"},
		},
		"edit":  authorRights("rollout-pause", "rollout-undo"),
		"admin": authorRights("rollout-approve", "rollout-pause", "rollout-skip", "rollout-promote", "rollout-undo"),
		"override": {
			"overridepolicies": {"get", "list", "watch", "create", "update", "patch", "delete"}, "placements": {"override"},
		},
	}
	for _, aggregate := range []bool{true, false} {
		values := map[string]any{"userRoles": map[string]any{"aggregate": aggregate}}
		objects := charts.Render(t, "hanse-hub/templates/user-roles.yaml", values)
		for _, o := range objects {
			var role rbacv1.ClusterRole
			convert(t, o, &role)
			to := strings.TrimPrefix(role.Name, "hanse-")
			aggregated := map[string]string{}
			maps.Copy(aggregated, role.Labels)
			maps.DeleteFunc(aggregated, func(key, _ string) bool { return !strings.HasPrefix(key, "rbac.authorization.k8s.io/") })
			want := map[string]string{}
			if aggregate && to != "override" {
				want["rbac.authorization.k8s.io/aggregate-to-"+to] = "true"
			}
			if diff := cmp.Diff(want, aggregated); diff != "" {
				t.Errorf("%s: labels of aggregation (-want +chart):\n%s", role.Name, diff)
			}
			rights := map[string][]string{}
			for _, r := range role.Rules {
				for _, resource := range r.Resources {
					rights[resource] = append(rights[resource], r.Verbs...)
				}
			}
			if diff := cmp.Diff(allowed[to], rights); diff != "" {
				t.Errorf("%s (-want +chart):\n%s", role.Name, diff)
			}
		}
		if len(objects) != len(allowed) {
			t.Errorf("the chart has %d roles, want %d", len(objects), len(allowed))
		}
	}
}

func TestTheRoleOfTheConsoleReadsWhatIsHansesAlone(t *testing.T) {
	var kinds []string
	for _, o := range charts.Render(t, "hanse-hub/templates/console.yaml", map[string]any{"console": map[string]any{"enabled": true}}) {
		if o.GetKind() != "ClusterRole" {
			continue
		}
		var role rbacv1.ClusterRole
		convert(t, o, &role)
		for _, r := range role.Rules {
			if r.APIGroups[0] != "hanse.dev" && !slices.Equal(r.Resources, []string{"namespaces"}) {
				t.Errorf("it is about %v of %v", r.Resources, r.APIGroups)
			}
			for _, verb := range r.Verbs {
				if !slices.Contains([]string{"get", "list", "watch", "view"}, verb) {
					t.Errorf("it has the verb %s on %v", verb, r.Resources)
				}
			}
			kinds = append(kinds, r.Resources...)
		}
	}
	files, err := filepath.Glob(filepath.Join(apiserver.Root(), "charts", "hanse-hub", "files", "crds", "hanse.dev_*.yaml"))
	must(t, err)
	if len(files) == 0 {
		t.Error("no definition of Hanse is found")
	}
	for _, file := range files {
		kind := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "hanse.dev_"), ".yaml")
		if !slices.Contains(kinds, kind) {
			t.Errorf("it lacks %s", kind)
		}
	}
}

func authorRights(steering ...string) map[string][]string {
	write := []string{"get", "list", "watch", "create", "update", "patch", "delete"}
	return map[string][]string{
		"placements": slices.Concat(write, steering), "overridepolicies": {"get", "list", "watch"}, "bundles": write,
		"resourcebindings": {"get", "list", "watch", "view"}, "namespaces": {"get"},
	}
}

func convert(t *testing.T, from *unstructured.Unstructured, to any) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, to); err != nil {
		t.Fatal(err)
	}
}
