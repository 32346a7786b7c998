package operatorrights_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/hanse-dev/hanse/cmd/hansectl/operatorrights"
)

func TestMergedRulesGrantNothingMore(t *testing.T) {
	rule := func(resource string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, ResourceNames: names, Verbs: []string{"get"}}
	}
	both := rule("configmaps", "a", "b")
	both.Resources = append(both.Resources, "secrets")
	for name, c := range map[string]struct{ rules, want []rbacv1.PolicyRule }{
		"rules of the same names are merged":       {[]rbacv1.PolicyRule{rule("secrets", "b", "a"), rule("configmaps", "a", "b")}, []rbacv1.PolicyRule{both}},
		"a name that contains a comma stays whole": {[]rbacv1.PolicyRule{rule("secrets", "a,b")}, []rbacv1.PolicyRule{rule("secrets", "a,b")}},
		"a name with a comma is not two names":     {[]rbacv1.PolicyRule{rule("configmaps", "a,b"), rule("secrets", "a", "b")}, []rbacv1.PolicyRule{rule("secrets", "a", "b"), rule("configmaps", "a,b")}},
		"the empty name is not every name":         {[]rbacv1.PolicyRule{rule("secrets", "")}, []rbacv1.PolicyRule{rule("secrets", "")}},
		"a rule without names stays beside it":     {[]rbacv1.PolicyRule{rule("secrets", ""), rule("secrets")}, []rbacv1.PolicyRule{rule("secrets"), rule("secrets", "")}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, operatorrights.MergeRules(c.rules), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
