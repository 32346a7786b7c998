// Package operatorrights computes the rights that the hub needs on a member to install the operator of a chart.
package operatorrights

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/chart"
	"github.com/hanse-dev/hanse/bundles/manifest"
	"github.com/hanse-dev/hanse/member/credential"
	"github.com/hanse-dev/hanse/member/system"
	"github.com/hanse-dev/hanse/view"
)

// RolePrefix is the prefix of the name of each role that gives the hub the rules of an operator. The chart hanse-member
// uses the same prefix.
const RolePrefix = "hanse-operator-"

// Rights are the rights with which the hub can install a chart on a member. They are the output of the command operator
// rbac.
type Rights struct {
	Chart   string `json:"chart"`
	Version string `json:"version"`
	// Values are values for the chart hanse-member. With them, the chart gives the hub the rights to install the
	// operator's chart.
	Values MemberValues `json:"values"`
	// Manifests is a v1 List for a member without the chart hanse-member. It has roles with the rules in Values.Operators,
	// and their bindings.
	Manifests RoleList `json:"manifests"`
	Warnings  []string `json:"warnings,omitempty"`
}

// MemberValues are those values of the chart hanse-member that concern operators.
type MemberValues struct {
	GrantedKinds []GrantedKinds  `json:"grantedKinds"`
	Operators    []OperatorRules `json:"operators,omitempty"`
}

// OperatorRules are the rules in the roles of the operator's chart. The hub needs them itself, because the member's API
// server refuses a role with rules that its writer does not have. Rules for all resources or groups are left out.
type OperatorRules struct {
	Name string `json:"name"`
	// Rules of ClusterRoles.
	Rules []rbacv1.PolicyRule `json:"rules,omitempty"`
	// NamespacedRules are the rules of Roles, by namespace.
	NamespacedRules map[string][]rbacv1.PolicyRule `json:"namespacedRules,omitempty"`
}

// GrantedKinds are resources of API groups that the hub may write.
type GrantedKinds struct {
	APIGroups []string `json:"apiGroups"`
	Resources []string `json:"resources"`
}

// RoleList is a v1 List for kubectl apply.
type RoleList struct {
	APIVersion string           `json:"apiVersion"`
	Kind       string           `json:"kind"`
	Items      []map[string]any `json:"items"`
}

// Of returns the rights that the hub needs for a rendered chart.
func Of(rendered chart.Rendered) (Rights, error) {
	out := Rights{Chart: rendered.Name, Version: rendered.Version, Values: MemberValues{GrantedKinds: []GrantedKinds{}},
		Manifests: RoleList{APIVersion: "v1", Kind: "List", Items: []map[string]any{}}}
	objects := slices.Concat(rendered.Definitions, rendered.Objects)
	for _, h := range rendered.Hooks {
		if !h.Test && !h.Ignored {
			objects = append(objects, h.Object)
		}
	}
	var w warnings
	out.Values.GrantedKinds = grantedKinds(objects, &w)
	rules, err := roleRules(objects, &w)
	if err != nil {
		return Rights{}, err
	}
	operator := OperatorRules{Name: rendered.Name, NamespacedRules: map[string][]rbacv1.PolicyRule{}}
	for _, namespace := range slices.Sorted(maps.Keys(rules)) {
		merged := MergeRules(slices.DeleteFunc(rules[namespace], Unbounded))
		if namespace == "" {
			operator.Rules = merged
		} else if len(merged) > 0 {
			operator.NamespacedRules[namespace] = merged
		}
		items, err := roleFor(RolePrefix+rendered.Name, namespace, merged)
		if err != nil {
			return Rights{}, err
		}
		out.Manifests.Items = append(out.Manifests.Items, items...)
	}
	if len(operator.Rules)+len(operator.NamespacedRules) > 0 {
		out.Values.Operators = []OperatorRules{operator}
	}
	slices.Sort(w.texts)
	out.Warnings = slices.Compact(w.texts)
	return out, nil
}

// Write writes the values as YAML.
func (r Rights) Write(w io.Writer, _ time.Time) {
	text, err := yaml.Marshal(r.Values)
	if err != nil { // cannot fail: the values are JSON types
		panic(err)
	}
	fmt.Fprintf(w, "# Chart %s %s: merge these values into the values of the chart hanse-member on each member.\n", view.Printable(r.Chart), view.Printable(r.Version))
	_, _ = w.Write(text)
}

type warnings struct{ texts []string }

func (w *warnings) add(object *unstructured.Unstructured, format string, args ...any) {
	name := object.GetName()
	if namespace := object.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	w.texts = append(w.texts, fmt.Sprintf("%s %s ", object.GetKind(), name)+fmt.Sprintf(format, args...))
}

// grantedKinds returns the kinds of the chart's objects. It leaves out namespaces, because the chart hanse-member
// already lets the hub create namespaces.
func grantedKinds(objects []*unstructured.Unstructured, w *warnings) []GrantedKinds {
	plurals := map[schema.GroupKind]string{}
	for _, o := range objects {
		if gk, _, ok := manifest.DefinedKind(o); ok {
			plurals[gk], _, _ = unstructured.NestedString(o.Object, "spec", "names", "plural")
		}
	}
	resources := map[string]map[string]bool{}
	for _, o := range objects {
		gvk := o.GroupVersionKind()
		if gvk.GroupKind() == (schema.GroupKind{Kind: "Namespace"}) {
			if hubv1.IsSystemNamespace(o.GetName()) {
				w.add(o, "is a system namespace: Hanse writes nothing there")
			}
			continue
		}
		if err := system.Refused(o, true); err != nil {
			w.add(o, "is refused, so look for a value of the chart that changes it: %v", err)
		}
		resource, known := plurals[gvk.GroupKind()]
		if !known {
			plural, _ := meta.UnsafeGuessKindToResource(gvk)
			resource = plural.Resource
			if _, known := chart.Namespaced(gvk.GroupKind()); !known && !view.Extends(gvk.GroupKind()) {
				w.add(o, "has a kind that the chart does not define: the resource %q is a guess", resource)
			}
		}
		if resources[gvk.Group] == nil {
			resources[gvk.Group] = map[string]bool{}
		}
		resources[gvk.Group][resource] = true
	}
	out := []GrantedKinds{}
	for _, group := range slices.Sorted(maps.Keys(resources)) {
		out = append(out, GrantedKinds{APIGroups: []string{group}, Resources: slices.Sorted(maps.Keys(resources[group]))})
	}
	return out
}

// roleRules returns the rules in the chart's roles, by namespace. Rules of ClusterRoles have the empty namespace. It
// adds warnings about rights that make their holder an admin, and about bindings to roles that are not in the chart.
func roleRules(objects []*unstructured.Unstructured, w *warnings) (map[string][]rbacv1.PolicyRule, error) {
	out := map[string][]rbacv1.PolicyRule{}
	roles := map[string]bool{}
	for _, o := range ofRBAC(objects, "ClusterRole", "Role") {
		var role rbacv1.ClusterRole // a Role has its rules in the same field
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
			return nil, fmt.Errorf("reading %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		roles[o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()] = true
		if system.Refused(o, true) != nil {
			continue // the hub never writes it
		}
		out[o.GetNamespace()] = append(out[o.GetNamespace()], role.Rules...)
		if o.GetNamespace() == system.Namespace {
			out[system.Namespace] = append(out[system.Namespace], system.Use(o.GetName()))
		}
		for _, rule := range role.Rules {
			if Unbounded(rule) {
				w.add(o, "has a rule for all resources or groups, which is left out: only an admin of the member can give the hub that rule")
			}
		}
		if role.AggregationRule != nil {
			w.add(o, "aggregates other roles: only a cluster-admin can write it, so the member's admin does")
		}
	}
	for _, o := range ofRBAC(objects, "ClusterRoleBinding", "RoleBinding") {
		kind, _, _ := unstructured.NestedString(o.Object, "roleRef", "kind")
		name, _, _ := unstructured.NestedString(o.Object, "roleRef", "name")
		namespace := ""
		if kind == "Role" {
			namespace = o.GetNamespace()
		}
		switch {
		case system.Refused(o, true) != nil: // the hub never writes it
		case system.RoleOf(o) == system.AuthenticationReader:
			out[system.Namespace] = append(out[system.Namespace], system.Use(system.AuthenticationReader), system.ReadAuthentication)
		case kind == "ClusterRole" && name == "cluster-admin":
			w.add(o, "names cluster-admin: the hub can write it only if the hub is cluster-admin, too")
		case !roles[kind+" "+namespace+"/"+name]:
			w.add(o, "names %s %s, which the chart does not have: let the hub bind it, or give the hub its rules", kind, name)
		}
	}
	return out, nil
}

func ofRBAC(objects []*unstructured.Unstructured, kinds ...string) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, o := range objects {
		if o.GroupVersionKind().Group == rbacv1.GroupName && slices.Contains(kinds, o.GetKind()) {
			out = append(out, o)
		}
	}
	return out
}

// Unbounded reports whether a rule has a wildcard in its groups or resources, or applies to all URLs. Its verbs may be
// "*".
func Unbounded(rule rbacv1.PolicyRule) bool {
	return slices.ContainsFunc(slices.Concat(rule.APIGroups, rule.Resources), func(s string) bool { return strings.Contains(s, "*") }) ||
		slices.ContainsFunc(rule.NonResourceURLs, func(url string) bool { return url == "*" || url == "/*" })
}

// ruleKey identifies the resource or the URL that a rule is about. names has the resourceNames in quotes, because a
// name may contain any character, or be empty. An empty name means requests without a name, and no names mean all
// objects.
type ruleKey struct{ group, resource, names, url string }

// MergeRules returns the rules without repetitions, sorted. Resources of one group with equal verbs share one rule.
func MergeRules(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	verbs, named := map[ruleKey]map[string]bool{}, map[string][]string{}
	add := func(key ruleKey, of []string) {
		if verbs[key] == nil {
			verbs[key] = map[string]bool{}
		}
		for _, verb := range of {
			verbs[key][verb] = true
		}
	}
	for _, rule := range rules {
		sorted := slices.Sorted(slices.Values(rule.ResourceNames))
		names := quoted(sorted)
		named[names] = sorted
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				add(ruleKey{group: group, resource: resource, names: names}, rule.Verbs)
			}
		}
		for _, url := range rule.NonResourceURLs {
			add(ruleKey{url: url}, rule.Verbs)
		}
	}
	keys := slices.SortedFunc(maps.Keys(verbs), func(a, b ruleKey) int {
		return cmp.Or(cmp.Compare(a.url, b.url), cmp.Compare(a.group, b.group), cmp.Compare(a.names, b.names), cmp.Compare(a.resource, b.resource))
	})
	var out []rbacv1.PolicyRule
	for _, key := range keys {
		out = addRule(out, key, named[key.names], slices.Sorted(maps.Keys(verbs[key])))
	}
	return out
}

func quoted(names []string) string {
	var out []string
	for _, name := range names {
		out = append(out, strconv.Quote(name))
	}
	return strings.Join(out, ",")
}

// addRule adds the resource of key to a rule with the same group, names and verbs. If there is no such rule, it adds a
// new rule.
func addRule(rules []rbacv1.PolicyRule, key ruleKey, names, verbs []string) []rbacv1.PolicyRule {
	if key.url != "" {
		return append(rules, rbacv1.PolicyRule{NonResourceURLs: []string{key.url}, Verbs: verbs})
	}
	i := slices.IndexFunc(rules, func(r rbacv1.PolicyRule) bool {
		return slices.Equal(r.APIGroups, []string{key.group}) && slices.Equal(r.ResourceNames, names) && slices.Equal(r.Verbs, verbs)
	})
	if i >= 0 {
		rules[i].Resources = append(rules[i].Resources, key.resource)
		return rules
	}
	return append(rules, rbacv1.PolicyRule{APIGroups: []string{key.group}, Resources: []string{key.resource}, ResourceNames: names, Verbs: verbs})
}

// roleFor returns a role with the rules, and its binding to the hub's ServiceAccount on members. An empty namespace
// means all namespaces.
func roleFor(name, namespace string, rules []rbacv1.PolicyRule) ([]map[string]any, error) {
	if len(rules) == 0 {
		return nil, nil
	}
	role, binding := "ClusterRole", "ClusterRoleBinding"
	if namespace != "" {
		role, binding = "Role", "RoleBinding"
	}
	named := metav1.ObjectMeta{Name: name, Namespace: namespace}
	version := rbacv1.SchemeGroupVersion.String()
	var out []map[string]any
	for _, object := range []any{
		&rbacv1.Role{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: role}, ObjectMeta: named, Rules: rules},
		&rbacv1.RoleBinding{
			TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: binding}, ObjectMeta: named,
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: role, Name: name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: hubv1.SystemNamespace, Name: credential.Account}},
		},
	} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return nil, fmt.Errorf("writing %s: %w", name, err)
		}
		out = append(out, content)
	}
	return out, nil
}
