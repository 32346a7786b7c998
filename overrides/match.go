package overrides

import (
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Cluster is what rules see of a member.
type Cluster struct {
	Name string
	// Labels are MemberCluster.SelectableLabels.
	Labels map[string]string
}

// Matching returns the policies that are in scope of the object and select it, in the order given. The error joins one
// *InvalidError for each policy whose selectors cannot be read; the policies returned with it are those that can.
func Matching(policies []hubv1.OverridePolicyObject, object hubv1.SelectableObject) ([]hubv1.OverridePolicyObject, error) {
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

// Selects says whether the rule applies in the cluster: everything that its clusters name must hold, and no clusters means all.
func Selects(rule *hubv1.OverrideRule, cluster Cluster) (bool, error) {
	c := rule.Clusters
	if c == nil {
		return true, nil
	}
	// The selector is read even if the names say no, so that a faulty rule is one in every cluster.
	if c.LabelSelector != nil {
		sel, err := metav1.LabelSelectorAsSelector(c.LabelSelector)
		if err != nil {
			return false, err
		}
		if !sel.Matches(labels.Set(cluster.Labels)) {
			return false, nil
		}
	}
	return len(c.Names) == 0 || slices.Contains(c.Names, cluster.Name), nil
}
