package placement

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// selection is a ClusterSelection whose label selector was read.
type selection struct {
	names, excludedNames []string
	requirements         []requirement
	tolerations          []corev1.Toleration
}

func compile(s hubv1.ClusterSelection) (selection, error) {
	out := selection{names: s.Names, excludedNames: s.ExcludedNames, tolerations: s.Tolerations}
	if len(s.Names) == 0 && s.LabelSelector == nil {
		// The CRD refuses this. Taken as "no cluster" it would withdraw the object everywhere.
		return selection{}, errors.New("reading spec.clusters: neither names nor labelSelector is set")
	}
	if s.LabelSelector == nil {
		return out, nil
	}
	for _, key := range slices.Sorted(maps.Keys(s.LabelSelector.MatchLabels)) {
		if err := out.require(key, metav1.LabelSelectorOpIn, s.LabelSelector.MatchLabels[key]); err != nil {
			return selection{}, fmt.Errorf("reading spec.clusters.labelSelector.matchLabels[%s]: %w", key, err)
		}
	}
	for i, e := range s.LabelSelector.MatchExpressions {
		if err := out.require(e.Key, e.Operator, e.Values...); err != nil {
			return selection{}, fmt.Errorf("reading spec.clusters.labelSelector.matchExpressions[%d]: %w", i, err)
		}
	}
	return out, nil
}

func (s *selection) require(key string, op metav1.LabelSelectorOperator, values ...string) error {
	one := metav1.LabelSelectorRequirement{Key: key, Operator: op, Values: values}
	sel, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{one}})
	if err != nil {
		return err
	}
	s.requirements = append(s.requirements, requirement{LabelSelectorRequirement: one, selector: sel})
	return nil
}

// requirement is one line of a label selector; values keep the order in which they were written, for messages.
type requirement struct {
	metav1.LabelSelectorRequirement
	selector labels.Selector
}

// fails says why the labels do not meet the requirement; empty if they do.
func (r requirement) fails(set map[string]string) string {
	if r.selector.Matches(labels.Set(set)) {
		return ""
	}
	value, found := set[r.Key]
	switch {
	case r.Operator == metav1.LabelSelectorOpDoesNotExist:
		return fmt.Sprintf("%s is set to %q", subject(r.Key), value)
	case r.Operator == metav1.LabelSelectorOpNotIn:
		return fmt.Sprintf("%s %s is in %s", subject(r.Key), value, list(r.Values))
	case r.Operator == metav1.LabelSelectorOpExists:
		return fmt.Sprintf("%s is not set", subject(r.Key))
	case !found:
		return fmt.Sprintf("%s is not set, wanted one of %s", subject(r.Key), list(r.Values))
	}
	return fmt.Sprintf("%s %s is not in %s", subject(r.Key), value, list(r.Values))
}

func subject(key string) string {
	switch key {
	case hubv1.RegionLabel:
		return "region"
	case hubv1.ZoneLabel:
		return "zone"
	}
	return "label " + key
}

// list shows at most five values, so that a long list of names does not fill a message.
func list(values []string) string {
	const shown = 5
	if len(values) <= shown {
		return "[" + strings.Join(values, " ") + "]"
	}
	return fmt.Sprintf("[%s and %d more]", strings.Join(values[:shown], " "), len(values)-shown)
}
