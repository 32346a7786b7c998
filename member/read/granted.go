package read

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// Rules are the hub's rights in one namespace of a member, including its cluster-wide rights. The zero value means that
// the rights are not known completely. Every request may then be allowed.
type Rules struct{ rules []any }

var selfReviews = schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "selfsubjectrulesreviews"}

// In asks the member, with a SelfSubjectRulesReview, for the hub's rights in a namespace.
func In(ctx context.Context, client dynamic.Interface, namespace string) (Rules, error) {
	status, err := review(ctx, client, namespace)
	if err != nil {
		return Rules{}, err
	}
	found, _, _ := unstructured.NestedSlice(status, "resourceRules")
	if incomplete, _, _ := unstructured.NestedBool(status, "incomplete"); incomplete {
		return Rules{}, nil
	}
	return Rules{found}, nil
}

// Rights returns the hub's rights in a namespace as a text, which is equal for equal rights. An empty namespace stands
// for the cluster-wide rights.
func Rights(ctx context.Context, client dynamic.Interface, namespace string) (string, error) {
	status, err := review(ctx, client, cmp.Or(namespace, metav1.NamespaceDefault))
	if err != nil {
		return "", err
	}
	found, _, _ := unstructured.NestedSlice(status, "resourceRules")
	var rules []string
	for _, rule := range found { // the server lists them in any order
		text, err := json.Marshal(rule)
		if err != nil {
			return "", fmt.Errorf("writing a rule of the hub as JSON: %w", err)
		}
		rules = append(rules, string(text))
	}
	slices.Sort(rules)
	return strings.Join(slices.Compact(rules), "\n"), nil
}

// review asks the API server for the hub's rights in a namespace.
func review(ctx context.Context, client dynamic.Interface, namespace string) (status map[string]any, err error) {
	question := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": selfReviews.GroupVersion().String(), "kind": "SelfSubjectRulesReview", "spec": map[string]any{"namespace": namespace},
	}}
	answer, err := client.Resource(selfReviews).Create(ctx, question, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("asking what the hub may do in namespace %s of the cluster: %w", namespace, err)
	}
	status, _, _ = unstructured.NestedMap(answer.Object, "status")
	return status, nil
}

// Allow reports whether the rules allow all these verbs on all objects of a resource. It also returns true if the rules
// are not known.
func (r Rules) Allow(resource schema.GroupResource, verbs ...string) bool {
	return r.rules == nil || !slices.ContainsFunc(verbs, func(verb string) bool {
		return !slices.ContainsFunc(r.rules, func(rule any) bool {
			return forAll(rule, verb) && has(rule, "apiGroups", resource.Group) && has(rule, "resources", resource.Resource)
		})
	})
}

// Groups returns the API groups in which the rules allow the verb. all is true if they may allow it in every group.
func (r Rules) Groups(verb string) (groups []string, all bool) {
	for _, rule := range r.rules {
		if !forAll(rule, verb) {
			continue
		}
		for _, group := range texts(rule, "apiGroups") {
			all = all || group == "*"
			groups = append(groups, group)
		}
	}
	slices.Sort(groups)
	return slices.Compact(groups), all || r.rules == nil
}

// forAll reports whether the rule allows the verb without a restriction to named objects.
func forAll(rule any, verb string) bool {
	fields, _ := rule.(map[string]any)
	_, named := fields["resourceNames"]
	return !named && has(rule, "verbs", verb)
}

func has(rule any, field, value string) bool {
	values := texts(rule, field)
	return slices.Contains(values, value) || slices.Contains(values, "*")
}

func texts(rule any, field string) []string {
	fields, _ := rule.(map[string]any)
	values, _, _ := unstructured.NestedStringSlice(fields, field)
	return values
}
