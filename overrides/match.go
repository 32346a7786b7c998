package overrides

import (
	"errors"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Cluster has the facts of a member that rules can read.
type Cluster struct {
	Name string
	// Labels are MemberCluster.SelectableLabels.
	Labels map[string]string
	// Annotations are the annotations of the MemberCluster, without those of Hanse and the configuration that kubectl
	// apply records.
	Annotations map[string]string
	// Version is the Kubernetes version of the cluster, such as v1.36.0. It is empty if the version is not known.
	Version string
	// Capacity is the capacity of all nodes of the cluster together.
	Capacity corev1.ResourceList
	// Operators are the operators on the cluster. They must be nil for an object that belongs to an operator. A rule could
	// read the version of the operator and change its image, and each such change would trigger the next one.
	Operators []hubv1.OperatorFact
}

// ClusterOf returns the facts of a MemberCluster that rules can read.
func ClusterOf(c *hubv1.MemberCluster) Cluster {
	return Cluster{
		Name: c.Name, Labels: c.SelectableLabels(), Annotations: ReadableAnnotations(c.Annotations), Version: c.Status.Version.Kubernetes, Capacity: c.Status.Capacity, Operators: c.Status.Operators,
	}
}

// ReadableAnnotations returns the annotations of a MemberCluster that rules can read. Hanse's own annotations often
// change without a user. The configuration that kubectl apply records contains the whole MemberCluster.
func ReadableAnnotations(all map[string]string) map[string]string {
	hidden := func(key, _ string) bool {
		return key == corev1.LastAppliedConfigAnnotation || strings.HasPrefix(key, hubv1.Prefix)
	}
	for key := range all {
		if hidden(key, "") {
			shown := maps.Clone(all)
			maps.DeleteFunc(shown, hidden)
			return shown
		}
	}
	return all
}

// Matching returns the policies that select the object and whose scope contains it, in the given order. The error joins
// one *InvalidError for each policy with unreadable selectors. The result never contains such policies. No policy
// selects an object in a system namespace: the hub has checked such an object as its operator has it.
func Matching(policies []hubv1.OverridePolicyObject, object hubv1.SelectableObject) ([]hubv1.OverridePolicyObject, error) {
	if hubv1.IsSystemNamespace(object.Namespace) {
		return nil, nil
	}
	var matching []hubv1.OverridePolicyObject
	var invalid []error
	for _, p := range policies {
		ok, err := hubv1.InScope(p.GetNamespace(), p.SelectedNamespaces(), object)
		if ok {
			var s hubv1.Specificity
			s, err = hubv1.Match(p.OverrideSpec().ResourceSelectors, object)
			ok = s != hubv1.MatchesNot
		}
		switch {
		case err != nil:
			invalid = append(invalid, &InvalidError{Policy: RefOf(p), Message: printable(err.Error()) + ": correct the selector"})
		case ok:
			matching = append(matching, p)
		}
	}
	return matching, errors.Join(invalid...)
}

// Selects reports whether the rule selects the cluster. The cluster must match each field that is set in rule.Clusters:
// the names, the label selector and the expression. If rule.Clusters is nil, the rule selects every cluster.
func Selects(rule *hubv1.OverrideRule, cluster Cluster) (bool, error) {
	ok, f := newEvaluation(cluster, nil).selects(rule)
	if f != nil {
		return false, errors.New(f.message)
	}
	return ok, nil
}
