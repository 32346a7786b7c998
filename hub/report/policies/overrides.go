package policies

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/overrides"
)

// overridePolicies writes the status of OverridePolicies and ClusterOverridePolicies.
type overridePolicies struct{ Options }

func newOverridePolicy(key types.NamespacedName) hubv1.OverridePolicyObject {
	if key.Namespace == "" {
		return &hubv1.ClusterOverridePolicy{}
	}
	return &hubv1.OverridePolicy{}
}

func (p *overridePolicies) update(ctx context.Context, key types.NamespacedName) (again time.Duration, err error) {
	policy := newOverridePolicy(key)
	if err := p.Client.Get(ctx, key, policy); err != nil {
		return 0, unlessGone(err, policy, key)
	}
	before := policy.DeepCopyObject().(client.Object)
	status := policy.OverrideStatus()
	was := *status.DeepCopy()

	accepted := acceptOverrides(policy)
	var selected []hubv1.BindingObject
	if accepted.Status == metav1.ConditionTrue {
		if selected, err = p.selected(ctx, policy); err != nil {
			return 0, err
		}
	}
	clusters, err := p.clusters(ctx)
	if err != nil {
		return 0, err
	}
	status.ObservedGeneration = policy.GetGeneration()
	status.Rules = rules(policy, selected, clusters)
	// The policy is reported as not accepted if some copies cannot be written with it. The other copies are still written
	// with it: the condition only informs the author of the policy.
	if message := objects(policy, selected, hubv1.ReasonOverrideInvalid, hubv1.ReasonFieldsNotServed); message != "" {
		accepted = notAccepted(hubv1.ReasonOverrideInvalid, "%s", message)
	}
	conflict := conflicted(policy, selected)
	set(&status.Conditions, policy.GetGeneration(), accepted)
	set(&status.Conditions, policy.GetGeneration(), conflict)
	set(&status.Conditions, policy.GetGeneration(), overridesReady(accepted, conflict))
	if equality.Semantic.DeepEqual(was, *status) {
		return 0, nil
	}
	_, err = write(ctx, p.Client, before, policy)
	return 0, err
}

func acceptOverrides(policy hubv1.OverridePolicyObject) metav1.Condition {
	_, err := metav1.LabelSelectorAsSelector(policy.SelectedNamespaces())
	if err != nil {
		err = fmt.Errorf("spec.namespaceSelector: %w", err)
	} else if errs := overrides.Validate(policy.OverrideSpec(), field.NewPath("spec")); len(errs) > 0 {
		err = errs.ToAggregate()
	}
	if err != nil {
		return notAccepted(hubv1.ReasonInvalid, "%s", err)
	}
	return metav1.Condition{Type: hubv1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: hubv1.ReasonAccepted}
}

// selected returns the bindings of the objects that the policy selects.
func (p *overridePolicies) selected(ctx context.Context, policy hubv1.OverridePolicyObject) ([]hubv1.BindingObject, error) {
	all, err := bindings(ctx, p.Client, policy.GetNamespace())
	if err != nil {
		return nil, err
	}
	var out []hubv1.BindingObject
	for _, b := range all {
		if !concerns(policy, b) || b.GetDeletionTimestamp() != nil {
			continue
		}
		object := hubv1.SelectableObject{ObjectIdentity: hubv1.ObjectOf(b)}
		if template, ok := p.Templates.Head(object.ObjectIdentity); ok {
			object = hubv1.Selectable(object.ObjectIdentity, template, nil)
		}
		if object.NamespaceLabels, err = p.namespaceLabels(ctx, b.GetNamespace()); err != nil {
			return nil, err
		}
		matching, err := overrides.Matching([]hubv1.OverridePolicyObject{policy}, object)
		if err != nil {
			return nil, fmt.Errorf("matching %s: %w", object.ObjectIdentity, err)
		}
		if len(matching) > 0 {
			out = append(out, b)
		}
	}
	return out, nil
}

func (p *overridePolicies) namespaceLabels(ctx context.Context, name string) (map[string]string, error) {
	if name == "" {
		return nil, nil
	}
	var ns corev1.Namespace
	if err := p.Client.Get(ctx, types.NamespacedName{Name: name}, &ns); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading Namespace %s: %w", name, err)
	}
	return ns.Labels, nil
}

// clusters returns all clusters by name, with the data that the rules of override policies can read.
func (p *overridePolicies) clusters(ctx context.Context) (map[string]overrides.Cluster, error) {
	now, err := p.Clusters.Current(ctx)
	if err != nil {
		return nil, err
	}
	out := make(map[string]overrides.Cluster, len(now.Clusters))
	for _, c := range now.Clusters {
		out[c.Name] = overrides.ClusterOf(c)
	}
	return out, nil
}

// rules returns two numbers for each rule. The first is the number of objects that the policy selects. The second is
// the number of clusters that the rule selects and that have a copy of such an object. If the rule excludes clusters,
// all clusters that it selects count, because they have no copies.
func rules(policy hubv1.OverridePolicyObject, selected []hubv1.BindingObject, clusters map[string]overrides.Cluster) []hubv1.RuleStatus {
	holding := map[string]bool{}
	for _, b := range selected {
		for _, t := range b.BindingSpec().Clusters {
			if t.State == hubv1.TargetPresent {
				holding[t.Name] = true
			}
		}
	}
	spec := policy.OverrideSpec()
	out := make([]hubv1.RuleStatus, 0, len(spec.Rules))
	for i := range spec.Rules {
		rule := &spec.Rules[i]
		among := maps.Keys(holding)
		if rule.Exclude { // excluded clusters have no copies
			among = maps.Keys(clusters)
		}
		matching := 0
		for name := range among {
			cluster, known := clusters[name]
			if !known {
				cluster.Name = name
			}
			if ok, err := overrides.Selects(rule, cluster); err == nil && ok {
				matching++
			}
		}
		out = append(out, hubv1.RuleStatus{
			Name: rule.Name, Rank: overrides.Rank(policy, rule), Objects: int32(len(selected)), Clusters: int32(matching),
		})
	}
	return out
}

// conflicted returns the condition Conflicted. It is True if copies were not written because this policy and another
// policy set different values.
func conflicted(policy hubv1.OverridePolicyObject, selected []hubv1.BindingObject) metav1.Condition {
	message := objects(policy, selected, hubv1.ReasonOverrideConflict)
	if message == "" {
		return metav1.Condition{Type: hubv1.ConditionConflicted, Status: metav1.ConditionFalse, Reason: hubv1.ReasonNoConflict}
	}
	return metav1.Condition{Type: hubv1.ConditionConflicted, Status: metav1.ConditionTrue, Reason: hubv1.ReasonOverrideClash, Message: message}
}

// objects returns a message about the objects of which a copy was not written because of the policy. It considers only
// rows of bindings with one of the given reasons. If there are no such objects, the message is empty.
func objects(policy hubv1.OverridePolicyObject, selected []hubv1.BindingObject, reasons ...string) string {
	ref := overrides.RefOf(policy).String()
	var named []string
	message := ""
	for _, b := range selected {
		for _, row := range b.BindingStatus().Clusters {
			if !slices.Contains(reasons, row.Reason) || !names(row.Message, ref) {
				continue
			}
			named = append(named, nameOf(b))
			if message == "" {
				message = fmt.Sprintf("cluster %s: %s", row.Name, row.Message)
			}
			break
		}
	}
	if len(named) == 0 {
		return ""
	}
	return cut(someOf(named, len(selected)) + "; " + message)
}

// names reports whether a message contains ref, the policy's name, as a whole name. A longer name that only begins with
// ref does not count.
func names(message, ref string) bool {
	for {
		i := strings.Index(message, ref)
		if i < 0 {
			return false
		}
		starts := i == 0 || message[i-1] == ' '
		message = message[i+len(ref):]
		if starts && strings.HasPrefix(message, ", ") {
			return true
		}
	}
}

// concerns reports whether a policy may select a binding's object. It compares only the namespace, group and kind, and
// not the labels.
func concerns(p hubv1.OverridePolicyObject, b hubv1.BindingObject) bool {
	if p.GetNamespace() != "" && p.GetNamespace() != b.GetNamespace() {
		return false
	}
	id := hubv1.ObjectOf(b)
	for _, s := range p.OverrideSpec().ResourceSelectors {
		if s.APIGroup == id.Group && (s.Kind == "*" || s.Kind == id.Kind) {
			return true
		}
	}
	return false
}
