package command

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hanse-dev/hanse/test/charts"
)

func TestJoinGrantsWhatTheMemberChartGrants(t *testing.T) {
	for name, create := range map[string]bool{"with namespaces on demand": true, "without namespaces on demand": false} {
		t.Run(name, func(t *testing.T) {
			objects := charts.Render(t, "hanse-member/templates/clusterrole.yaml", map[string]any{
				"createNamespaces": create, "listWorkloads": create,
				"grantedKinds": []any{map[string]any{"apiGroups": []string{"apps"}, "resources": []string{"deployments", "statefulsets"}}},
			})
			var role rbacv1.ClusterRole
			var binding rbacv1.ClusterRoleBinding
			convert(t, objects[0], &role)
			convert(t, objects[1], &binding)
			g := grants{kinds: []kindGrant{{"apps", "deployments"}, {"apps", "statefulsets"}}, createNamespaces: create, listWorkloads: create}
			if diff := cmp.Diff(role.Rules, g.rules()); diff != "" {
				t.Errorf("rules (-chart +join):\n%s", diff)
			}
			if role.Name != accountName || binding.Name != accountName || binding.Subjects[0].Name != accountName {
				t.Errorf("names differ: %s, %s, %s", role.Name, binding.Name, binding.Subjects[0].Name)
			}
		})
	}
}

func TestJoinLetsTheHubRenewItsTokenAsTheMemberChartDoes(t *testing.T) {
	objects := charts.Render(t, "hanse-member/templates/token.yaml", nil)
	var role rbacv1.Role
	var binding rbacv1.RoleBinding
	convert(t, objects[0], &role)
	convert(t, objects[1], &binding)
	if diff := cmp.Diff(role.Rules, tokenRules()); diff != "" {
		t.Errorf("rules (-chart +join):\n%s", diff)
	}
	if role.Name != accountName || binding.Name != accountName || binding.RoleRef.Name != accountName || binding.Subjects[0].Name != accountName {
		t.Errorf("names differ: %s, %s, %s", role.Name, binding.Name, binding.Subjects[0].Name)
	}
}

func TestTheWayToTheHubIsGrantedInItsNamespaceAlone(t *testing.T) {
	granted := map[string][]rbacv1.PolicyRule{}
	for _, o := range charts.Render(t, "hanse-hub/templates/view.yaml", map[string]any{"view": map[string]any{"enabled": true}}) {
		var role rbacv1.ClusterRole // a Role has rules, too
		switch o.GetKind() {
		case "ClusterRole", "Role":
			convert(t, o, &role)
			granted[o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()] = role.Rules
		}
	}
	want := map[string][]rbacv1.PolicyRule{
		"ClusterRole /hanse-prune": {{APIGroups: []string{"hanse.dev"}, Resources: []string{"memberclusters"}, Verbs: []string{"list", "view", "prune"}}},
		"ClusterRole /hanse-view":  {{APIGroups: []string{"hanse.dev"}, Resources: []string{"memberclusters"}, Verbs: []string{"view"}}},
		"Role hanse-system/hanse-view": {
			{APIGroups: []string{""}, Resources: []string{"services/proxy"}, ResourceNames: []string{viewService}, Verbs: []string{"create"}},
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{hubName}, Verbs: []string{"get"}},
		},
	}
	if diff := cmp.Diff(want, granted); diff != "" {
		t.Errorf("roles (-want +chart):\n%s", diff)
	}
}

func convert(t *testing.T, from *unstructured.Unstructured, to any) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, to); err != nil {
		t.Fatal(err)
	}
}
