package overrides

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Validate returns all errors in the spec of an override policy that can be found without an object. The errors contain
// no value of a patch.
func Validate(spec *hubv1.OverridePolicySpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	selectors := path.Child("resourceSelectors")
	errs = append(errs, validateCount(len(spec.ResourceSelectors), maxSelectors, selectors)...)
	for i := range min(len(spec.ResourceSelectors), maxSelectors) {
		errs = append(errs, validateSelector(&spec.ResourceSelectors[i], selectors.Index(i))...)
	}
	rules := path.Child("rules")
	errs = append(errs, validateCount(len(spec.Rules), maxRules, rules)...)
	names := sets.New[string]()
	for i := range min(len(spec.Rules), maxRules) {
		rule := &spec.Rules[i]
		if names.Has(rule.Name) {
			errs = append(errs, field.Duplicate(rules.Index(i).Child("name"), printable(rule.Name)))
		}
		names.Insert(rule.Name)
		errs = append(errs, validateRule(rule, rules.Index(i))...)
	}
	return errs
}

func validateCount(n, limit int, path *field.Path) field.ErrorList {
	switch {
	case n == 0:
		return field.ErrorList{field.Required(path, "at least one")}
	case n > limit:
		return field.ErrorList{field.TooMany(path, n, limit)}
	}
	return nil
}

func validateSelector(s *hubv1.ResourceSelector, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.Kind == "" {
		errs = append(errs, field.Required(path.Child("kind"), `a kind, or "*" for every kind of a group`))
	}
	if s.Kind == "*" && s.APIGroup == "" {
		errs = append(errs, field.Invalid(path.Child("kind"), s.Kind, "needs an apiGroup other than the core group"))
	}
	if s.Name != "" && (s.LabelSelector != nil || s.Kind == "*") {
		errs = append(errs, field.Invalid(path.Child("name"), printable(s.Name), `cannot be combined with labelSelector or kind "*"`))
	}
	return append(errs, validateLabelSelector(s.LabelSelector, path.Child("labelSelector"))...)
}

func validateLabelSelector(s *metav1.LabelSelector, path *field.Path) field.ErrorList {
	if _, err := metav1.LabelSelectorAsSelector(s); err != nil {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, printable(err.Error()))}
	}
	return nil
}

func validateRule(rule *hubv1.OverrideRule, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, message := range validation.IsDNS1123Label(rule.Name) {
		errs = append(errs, field.Invalid(path.Child("name"), printable(rule.Name), message))
	}
	if rule.Priority < -maxPriority || rule.Priority > maxPriority {
		errs = append(errs, field.Invalid(path.Child("priority"), rule.Priority, fmt.Sprintf("must be from %d to %d", -maxPriority, maxPriority)))
	}
	errs = append(errs, ValidateClusters(rule.Clusters, path.Child("clusters"))...)
	_, faults := compile(rule)
	for i := range faults {
		errs = append(errs, faults[i].at(path))
	}
	return errs
}

// ValidateClusters returns the errors in the cluster selection of a rule, or of a wave of a rollout. If c is nil, all
// clusters are selected, and there is no error.
func ValidateClusters(c *hubv1.RuleClusters, path *field.Path) field.ErrorList {
	if c == nil {
		return nil
	}
	var errs field.ErrorList
	if len(c.Names) > maxNames {
		errs = append(errs, field.TooMany(path.Child("names"), len(c.Names), maxNames))
	}
	errs = append(errs, validateLabelSelector(c.LabelSelector, path.Child("labelSelector"))...)
	if c.Expression != "" {
		if _, err := targetExpressions().CompileBool(c.Expression); err != nil {
			errs = append(errs, field.Invalid(path.Child("expression"), field.OmitValueType{}, printable(err.Error())))
		}
	}
	return errs
}

// at converts a fault, the error type of this package, to an error about a field of the policy.
func (f *fault) at(path *field.Path) *field.Error {
	if f.field != "" {
		path = path.Child(f.field)
	}
	if f.index >= 0 {
		path = path.Index(f.index)
	}
	if f.leaf != "" {
		path = path.Child(f.leaf)
	}
	detail := f.message
	if f.path != "" {
		detail = f.path + " " + detail
	}
	return field.Invalid(path, field.OmitValueType{}, detail)
}
