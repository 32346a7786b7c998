package command

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	embedded "github.com/hanse-dev/hanse/charts"
	"github.com/hanse-dev/hanse/cmd/hansectl/operatorrights"
	"github.com/hanse-dev/hanse/test/charts"
)

// These tests use a fake client: tests with a real API server show what the hub may do with the same objects.

func memberWithoutServer(objects ...client.Object) *memberCluster {
	objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "widgets"}})
	return &memberCluster{Client: fake.NewClientBuilder().WithObjects(objects...).Build()}
}

// kindsOnMember returns the objects on a member of all kinds that join writes.
func kindsOnMember(t *testing.T, m client.Client) []unstructured.Unstructured {
	t.Helper()
	var out []unstructured.Unstructured
	for _, kind := range writeOrder {
		version := map[string]string{"ValidatingAdmissionPolicy": "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding": "admissionregistration.k8s.io/v1", "ServiceAccount": "v1"}[kind]
		list := &unstructured.UnstructuredList{}
		list.SetKind(kind + "List")
		list.SetAPIVersion(version)
		if version == "" {
			list.SetAPIVersion(rbacv1.SchemeGroupVersion.String())
		}
		must(t, m.List(t.Context(), list))
		out = append(out, list.Items...)
	}
	return out
}

// roleAfter returns the rules of the hub's ClusterRole after a change.
func roleAfter(t *testing.T, change grantChange, before []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	t.Helper()
	objects, err := change.objects(t.Context(), before)
	must(t, err)
	rules, err := rulesOf(hubRole(objects))
	must(t, err)
	return rules
}

// roleWith returns the rules that the chart puts into the hub's ClusterRole.
func roleWith(t *testing.T, v memberValues) []rbacv1.PolicyRule {
	t.Helper()
	objects, err := v.render(t.Context())
	must(t, err)
	rules, err := rulesOf(hubRole(objects))
	must(t, err)
	return rules
}

func TestJoinGrantsWhatTheMemberChartGrants(t *testing.T) {
	rule := func(group, resource, verb string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}}
	}
	for name, c := range map[string]struct {
		change grantChange
		values map[string]any
	}{
		"a new member has the defaults of the chart": {},
		"kinds": {
			grantChange{add: []kindGrant{{"apps", "deployments"}, {"", "configmaps"}, {"apps", "statefulsets"}, {"apps", "deployments"}}},
			map[string]any{"grantedKinds": []any{
				map[string]any{"apiGroups": []any{"apps"}, "resources": []any{"deployments", "statefulsets"}},
				map[string]any{"apiGroups": []any{""}, "resources": []any{"configmaps"}},
			}},
		},
		"the opposite of each flag": {
			grantChange{optional: map[string]bool{"createNamespaces": false, "listWorkloads": true, "listEvents": true, "readLogs": true}},
			map[string]any{"createNamespaces": false, "listWorkloads": true, "listEvents": true, "readLogs": true},
		},
		"a policy that lets the hub adopt": {grantChange{policy: policyAdopt}, map[string]any{"admissionPolicy": map[string]any{"adoption": true}}},
		"no policy":                        {grantChange{policy: policyOff}, map[string]any{"admissionPolicy": map[string]any{"enabled": false}}},
		"an operator": {
			grantChange{operators: operatorGrants{kinds: []kindGrant{{"example.com", "widgets"}}, operators: []operatorrights.OperatorRules{{
				Name: "widgets", Rules: []rbacv1.PolicyRule{rule("", "nodes", "list")},
				NamespacedRules: map[string][]rbacv1.PolicyRule{"widgets": {rule("", "pods", "list")}},
			}}}},
			map[string]any{
				"grantedKinds": []any{map[string]any{"apiGroups": []any{"example.com"}, "resources": []any{"widgets"}}},
				"operators": []any{map[string]any{
					"name":            "widgets",
					"rules":           []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"nodes"}, "verbs": []any{"list"}}},
					"namespacedRules": map[string]any{"widgets": []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"list"}}}},
				}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := memberWithoutServer()
			_, err := c.change.set(t.Context(), io.Discard, m)
			must(t, err)
			content := func(o *unstructured.Unstructured) map[string]any {
				out := map[string]any{}
				for _, field := range []string{"rules", "roleRef", "subjects", "automountServiceAccountToken", "spec"} {
					out[field] = o.Object[field]
				}
				return out
			}
			want, got := map[string]any{}, map[string]any{}
			for _, o := range charts.Install(t, "hanse-member", c.values) {
				want[o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()] = content(o)
			}
			for _, o := range kindsOnMember(t, m) {
				got[o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()] = content(&o)
				if diff := cmp.Diff(ourLabels(), o.GetLabels()); diff != "" {
					t.Errorf("labels of %s (-want +got):\n%s", o.GetName(), diff)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("objects (-chart +join):\n%s", diff)
			}
		})
	}
}

func TestEachFlagOfJoinSetsAValueThatAddsRules(t *testing.T) {
	chart, err := rulesOfChart()
	must(t, err)
	for _, right := range optionalRights {
		if len(chart.optional[right.value]) == 0 {
			t.Errorf("--%s sets %s, which adds no rule", right.flag, right.value)
		}
	}
	if len(chart.always) == 0 || !slices.Contains(chart.verbs, "delete") {
		t.Errorf("it has the rules %v, and a granted kind the verbs %v", chart.always, chart.verbs)
	}
}

func TestAChangeOfGrantsKeepsTheOthers(t *testing.T) {
	foreign := rbacv1.PolicyRule{APIGroups: []string{"example.org"}, Resources: []string{"others"}, Verbs: []string{"get"}}
	everything := rbacv1.PolicyRule{APIGroups: []string{"example.org"}, Resources: []string{"*"}, Verbs: roleWith(t, memberValues{kinds: []kindGrant{{"", "configmaps"}}})[3].Verbs}
	with := func(workloads, namespaces bool, kinds ...kindGrant) []rbacv1.PolicyRule {
		return roleWith(t, memberValues{kinds: kinds, optional: map[string]bool{"listWorkloads": workloads, "createNamespaces": namespaces}})
	}
	configmaps, deployments := kindGrant{"", "configmaps"}, kindGrant{"apps", "deployments"}
	written := func(group string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: everything.Verbs}
	}
	urls := rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: everything.Verbs}
	known, err := rulesOfChart()
	must(t, err)
	workloads := known.optional["listWorkloads"]
	cut := append(with(false, false), workloads[:2]...)
	before := append(with(false, true, configmaps, deployments), foreign, everything)
	for name, tc := range map[string]struct {
		before []rbacv1.PolicyRule
		change grantChange
		want   []rbacv1.PolicyRule
	}{
		"an emptied role gets what each member grants": {nil, grantChange{}, with(false, false)},
		"nothing changes":                       {before, grantChange{}, before},
		"a part of the workloads stays a part":  {cut, grantChange{}, cut},
		"a part of the workloads is completed":  {cut, grantChange{optional: map[string]bool{"listWorkloads": true}}, with(true, false)},
		"a part of the workloads is taken away": {cut, grantChange{optional: map[string]bool{"listWorkloads": false}}, with(false, false)},
		"one is taken away from a rule that also names a subresource": {
			append(with(false, true), written("apps", "deployments", "deployments/scale", "statefulsets")), grantChange{remove: []kindGrant{deployments}},
			append(with(false, true, kindGrant{"apps", "statefulsets"}), written("apps", "deployments/scale")),
		},
		"a rule without kinds stays": {append(with(false, true), urls), grantChange{}, append(with(false, true), urls)},
		"a kind with a hyphen stays, and another is added": {
			with(false, true, kindGrant{"example.com", "my-widgets"}), grantChange{add: []kindGrant{{"k8s.cni.cncf.io", "network-attachment-definitions"}}},
			with(false, true, kindGrant{"example.com", "my-widgets"}, kindGrant{"k8s.cni.cncf.io", "network-attachment-definitions"}),
		},
		"one is added": {
			before, grantChange{add: []kindGrant{{"apps", "statefulsets"}}},
			append(with(false, true, configmaps, deployments, kindGrant{"apps", "statefulsets"}), foreign, everything),
		},
		"one is taken away, without its group": {
			before, grantChange{remove: []kindGrant{{"", "deployments"}}}, append(with(false, true, configmaps), foreign, everything),
		},
		"other rights change alone": {
			before, grantChange{optional: map[string]bool{"createNamespaces": false, "listWorkloads": true}},
			append(with(true, false, configmaps, deployments), foreign, everything),
		},
		"a rule that an earlier version lacked is added": {before[1:], grantChange{}, before},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, roleAfter(t, tc.change, tc.before)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAKindThatAnotherRuleGrantsIsNotTakenAway(t *testing.T) {
	for name, tc := range map[string]struct {
		rule   rbacv1.PolicyRule
		kind   kindGrant
		stands bool
	}{
		"other verbs":                     {rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "update"}}, kindGrant{"apps", "deployments"}, true},
		"without its group":               {rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"*"}}, kindGrant{"", "deployments"}, true},
		"all kinds of its group":          {rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"*"}, Verbs: []string{"delete"}}, kindGrant{"apps", "deployments"}, true},
		"the kind in all groups":          {rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"deployments"}, Verbs: []string{"patch"}}, kindGrant{"apps", "deployments"}, true},
		"all kinds of another group":      {rbacv1.PolicyRule{APIGroups: []string{"batch"}, Resources: []string{"*"}, Verbs: []string{"delete"}}, kindGrant{"apps", "deployments"}, false},
		"its subresource":                 {rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments/scale"}, Verbs: []string{"patch"}}, kindGrant{"apps", "deployments"}, false},
		"a rule with which the hub reads": {rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "list", "watch"}}, kindGrant{"apps", "deployments"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := grantChange{remove: []kindGrant{tc.kind}}.objects(t.Context(), []rbacv1.PolicyRule{tc.rule})
			if !tc.stands {
				must(t, err)
				return
			}
			refused(t, err, "--ungrant "+tc.kind.String()+": ClusterRole hanse of the member has a rule that join did not write ("+ruleText(tc.rule)+")")
		})
	}
}

func TestJoinChecksKindsAsTheMemberChart(t *testing.T) {
	text, err := fs.ReadFile(embedded.Member(), "values.schema.json")
	must(t, err)
	type pattern struct {
		Items struct {
			Pattern string `json:"pattern"`
		} `json:"items"`
	}
	var schema struct {
		Properties struct {
			GrantedKinds struct {
				AllOf []struct {
					Ref string `json:"$ref"`
				} `json:"allOf"`
			} `json:"grantedKinds"`
		} `json:"properties"`
		Defs map[string]struct {
			Items struct {
				Properties struct {
					APIGroups pattern `json:"apiGroups"`
					Resources pattern `json:"resources"`
				} `json:"properties"`
			} `json:"items"`
		} `json:"$defs"`
	}
	must(t, json.Unmarshal(text, &schema))
	of := schema.Defs[strings.TrimPrefix(schema.Properties.GrantedKinds.AllOf[0].Ref, "#/$defs/")].Items.Properties
	if diff := cmp.Diff([]string{of.APIGroups.Items.Pattern, of.Resources.Items.Pattern}, []string{group.String(), resource.String()}); diff != "" {
		t.Errorf("patterns of groups and resources (-chart +join):\n%s", diff)
	}
}

func TestJoinNamesEachFlagThatCannotChangeTheMemberChart(t *testing.T) {
	var g grantFlags
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	g.addTo(flags)
	flags.VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(strings.FieldsFunc(errManaged.Error(), func(r rune) bool { return r == ' ' || r == ',' }), "--"+f.Name) {
			t.Errorf("%q lacks --%s", errManaged, f.Name)
		}
	})
}

func TestJoinAgainChangesWhatIsGivenAlone(t *testing.T) {
	ctx := t.Context()
	m := memberWithoutServer()
	set := func(c grantChange) string {
		t.Helper()
		var out bytes.Buffer
		_, err := c.set(ctx, &out, m)
		must(t, err)
		return out.String()
	}
	widgets := func(resource string) operatorGrants {
		rule := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{"get"}}
		return operatorGrants{operators: []operatorrights.OperatorRules{{
			Name: "widgets", Rules: []rbacv1.PolicyRule{rule}, NamespacedRules: map[string][]rbacv1.PolicyRule{"widgets": {rule}},
		}}}
	}
	first := set(grantChange{add: []kindGrant{{"", "configmaps"}}, operators: widgets("pods"), policy: policyAdopt})
	wants(t, first, "validatingadmissionpolicy/hanse-member-hub created", "clusterrole/hanse                  created\n", "+ configmaps\n",
		"grants configmaps\n", "role/hanse                         created", "rolebinding/hanse-operator-widgets created")
	before := kindsOnMember(t, m)

	t.Run("without flags nothing changes", func(t *testing.T) {
		if out := set(grantChange{}); strings.Contains(out, "created") || strings.Contains(out, "updated") {
			t.Errorf("something was changed:\n%s", out)
		}
		if diff := cmp.Diff(before, kindsOnMember(t, m)); diff != "" {
			t.Errorf("(-before +after):\n%s", diff)
		}
	})
	t.Run("rules of a later chart of the operator are added", func(t *testing.T) {
		wants(t, set(grantChange{operators: widgets("services")}), "+ get on services\n", "clusterrole/hanse-operator-widgets updated", "clusterrole/hanse                  unchanged")
		var role rbacv1.Role
		must(t, m.Get(ctx, client.ObjectKey{Namespace: "widgets", Name: "hanse-operator-widgets"}, &role))
		if diff := cmp.Diff([]string{"pods", "services"}, role.Rules[0].Resources); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("rights that the hub lost are granted again", func(t *testing.T) {
		role := &rbacv1.Role{}
		must(t, m.Get(ctx, client.ObjectKey{Namespace: "hanse-system", Name: accountName}, role))
		rules := role.Rules
		role.Rules = nil
		must(t, m.Update(ctx, role))
		wants(t, set(grantChange{}), "role/hanse                         updated")
		must(t, m.Get(ctx, client.ObjectKeyFromObject(role), role))
		if diff := cmp.Diff(rules, role.Rules); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("a role that an admin emptied stays so when the token is replaced", func(t *testing.T) {
		role := &rbacv1.ClusterRole{}
		must(t, m.Get(ctx, client.ObjectKey{Name: accountName}, role))
		role.Rules = nil
		must(t, m.Update(ctx, role))
		wants(t, set(grantChange{keepRules: true}), "clusterrole/hanse                  unchanged")
		must(t, m.Get(ctx, client.ObjectKeyFromObject(role), role))
		if len(role.Rules) > 0 {
			t.Errorf("it has the rules %v", role.Rules)
		}
	})
	t.Run("it then gets and names what each member grants", func(t *testing.T) {
		out := set(grantChange{})
		wants(t, out, "clusterrole/hanse                  updated", "+ get, watch on namespaces\n", "+ list on nodes\n", "+ get, list, watch on apiextensions.k8s.io/customresourcedefinitions\n", "grants no kind yet")
		role := &rbacv1.ClusterRole{}
		must(t, m.Get(ctx, client.ObjectKey{Name: accountName}, role))
		if diff := cmp.Diff(roleWith(t, memberValues{}), role.Rules); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("rights that are given are named", func(t *testing.T) {
		wants(t, set(grantChange{optional: map[string]bool{"readLogs": true}}), "+ get on pods/log\n")
	})
	t.Run("an operator and the policy are taken away", func(t *testing.T) {
		wants(t, set(grantChange{ungrantedOperators: []string{"widgets"}, policy: policyOff}), "validatingadmissionpolicybinding/hanse-member-hub deleted",
			"rolebinding/hanse-operator-widgets deleted", "clusterrole/hanse-operator-widgets deleted")
		all, err := madeOnEach(ctx, func(o *unstructured.Unstructured) bool { return !isPolicy(o) })
		must(t, err)
		if left := kindsOnMember(t, m); len(left) != len(all) {
			t.Errorf("%d objects are left, want %d", len(left), len(all))
		}
	})
	t.Run("unjoin knows all that is left", func(t *testing.T) {
		all, err := madeOnEach(ctx, nil)
		must(t, err)
		for _, made := range all {
			must(t, made.remove(ctx, io.Discard, m))
		}
		if left := kindsOnMember(t, m); len(left) > 0 {
			t.Errorf("%s %s is left", left[0].GetKind(), left[0].GetName())
		}
	})
}
