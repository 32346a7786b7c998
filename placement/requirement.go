package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// requirements parses a label selector: matchLabels sorted by key, followed by matchExpressions in their order. The
// text of an error starts with the field in the selector, such as .matchExpressions[0].
func requirements(s *metav1.LabelSelector) ([]requirement, error) {
	if s == nil {
		return nil, nil
	}
	var out []requirement
	for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		r, err := require(key, metav1.LabelSelectorOpIn, s.MatchLabels[key])
		if err != nil {
			return nil, fmt.Errorf(".matchLabels[%s]: %w", key, err)
		}
		out = append(out, r)
	}
	for i, e := range s.MatchExpressions {
		r, err := require(e.Key, e.Operator, e.Values...)
		if err != nil {
			return nil, fmt.Errorf(".matchExpressions[%d]: %w", i, err)
		}
		out = append(out, r)
	}
	return out, nil
}

func require(key string, op metav1.LabelSelectorOperator, values ...string) (requirement, error) {
	one := metav1.LabelSelectorRequirement{Key: key, Operator: op, Values: values}
	sel, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{one}})
	return requirement{LabelSelectorRequirement: one, selector: sel}, err
}

// failing returns why the labels in set do not meet all requirements. The text is empty if the labels meet all
// requirements.
func failing(rs []requirement, set map[string]string) string {
	for _, r := range rs {
		if why := r.fails(set); why != "" {
			return why
		}
	}
	return ""
}

// requirement is one line of a label selector. The values keep the order in which a user wrote them, because messages
// show the values.
type requirement struct {
	metav1.LabelSelectorRequirement
	selector labels.Selector
}

// fails returns why the labels in set do not meet the requirement. The text is empty if the labels meet the
// requirement.
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

// list returns at most five of the values as text, so that a long list does not fill a message.
func list(values []string) string {
	const shown = 5
	if len(values) <= shown {
		return "[" + strings.Join(values, " ") + "]"
	}
	return fmt.Sprintf("[%s and %d more]", strings.Join(values[:shown], " "), len(values)-shown)
}
