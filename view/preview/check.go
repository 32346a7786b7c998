package preview

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/health"
	"github.com/hanse-dev/hanse/member/rollup"
	"github.com/hanse-dev/hanse/overrides"
	"github.com/hanse-dev/hanse/placement"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/placement/replicas"
	"github.com/hanse-dev/hanse/placement/rollout"
)

// CheckPlacement returns the error of a placement that is invalid for every object. It returns nil for a valid
// placement.
func CheckPlacement(p hubv1.PlacementObject) error {
	if _, err := metav1.LabelSelectorAsSelector(p.SelectedNamespaces()); err != nil {
		return fmt.Errorf("spec.namespaceSelector: %w", err)
	}
	if _, err := placement.Compile(p.PlacementSpec()); err != nil {
		return err
	}
	if err := placement.CheckTolerations(p.PlacementSpec().Clusters.Tolerations); err != nil {
		return err
	}
	if _, err := metav1.LabelSelectorAsSelector(p.PlacementSpec().Suspend.ClusterSelector); err != nil {
		return fmt.Errorf("spec.suspend.clusterSelector: %w", err)
	}
	if _, err := replicas.TermsOf(p.PlacementSpec().Replicas.Way()); err != nil {
		return err
	}
	if text := p.PlacementSpec().StatusAggregation.HealthExpression; text != "" {
		if _, err := health.Compile(text); err != nil {
			return fmt.Errorf("spec.statusAggregation.healthExpression: %w", err)
		}
	}
	if _, err := rollup.NewRules(p.PlacementSpec().StatusAggregation); err != nil {
		return fmt.Errorf("spec.%w", err)
	}
	if policy := p.PlacementSpec().Rollout; policy != nil {
		if errs, _ := CheckRollout(policy); len(errs) > 0 {
			return errs.ToAggregate()
		}
	}
	return readableResources(p.PlacementSpec().ResourceSelectors)
}

// CheckRollout returns the errors of a placement's rollout, and warnings of settings without an effect.
func CheckRollout(policy *hubv1.RolloutPolicy) (errs field.ErrorList, warnings []string) {
	path := field.NewPath("spec", "rollout")
	errs, warnings = rollout.Validate(policy, path)
	for i, w := range policy.Waves {
		clusters := path.Child("waves").Index(i).Child("clusters")
		for _, err := range overrides.ValidateClusters(w.Clusters, clusters) {
			if !slices.ContainsFunc(errs, func(e *field.Error) bool { return strings.HasPrefix(e.Field, err.Field) }) {
				errs = append(errs, err)
			}
		}
		if overrides.ReadsOperators(w.Clusters) {
			errs = append(errs, field.Forbidden(clusters.Child("expression"), "a wave cannot read operators, because a cluster must stay in its wave while an operator changes"))
		}
	}
	return errs, warnings
}

func readableResources(selectors []hubv1.ResourceSelector) error {
	for i, s := range selectors {
		if _, err := metav1.LabelSelectorAsSelector(s.LabelSelector); err != nil {
			return fmt.Errorf("spec.resourceSelectors[%d].labelSelector: %w", i, err)
		}
	}
	return nil
}

// CheckOverrides returns the error of an override policy that is invalid for every object. It returns nil for a valid
// policy.
func CheckOverrides(p hubv1.OverridePolicyObject) error {
	if _, err := metav1.LabelSelectorAsSelector(p.SelectedNamespaces()); err != nil {
		return fmt.Errorf("spec.namespaceSelector: %w", err)
	}
	const maxNamed = 5
	errs := overrides.Validate(p.OverrideSpec(), field.NewPath("spec"))
	var texts []string
	for _, err := range errs[:min(len(errs), maxNamed)] {
		texts = append(texts, err.Error())
	}
	if more := len(errs) - maxNamed; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	if len(texts) == 0 {
		return nil
	}
	return errors.New(strings.Join(texts, "; "))
}

// checkNamespace returns why policies in a namespace have no effect. It is nil if policies in the namespace can have an
// effect.
func checkNamespace(namespace string) error {
	if !hubv1.IsSystemNamespace(namespace) {
		return nil
	}
	return fmt.Errorf("nothing is written in the namespaces kube-* and %s of members: create the policy in another namespace than %s",
		hubv1.SystemNamespace, namespace)
}

// refuse adds to the plan's refusals the policies and objects of the change that admission would refuse.
func (m *maker) refuse() {
	for _, p := range m.after.Placements {
		if !slices.ContainsFunc(m.before.Placements, func(old hubv1.PlacementObject) bool { return samePlacement(old, p) }) {
			m.refusal(ofPlacement(p), checkNamespace(p.GetNamespace()), CheckPlacement(p))
		}
	}
	for _, p := range m.after.Overrides {
		if !slices.ContainsFunc(m.before.Overrides, func(old hubv1.OverridePolicyObject) bool { return sameOverrides(old, p) }) {
			m.refusal(ofOverrides(p), checkNamespace(p.GetNamespace()), CheckOverrides(p))
		}
	}
	for i := range m.after.Objects {
		o := &m.after.Objects[i]
		if j, ok := m.places[o.Identity()]; ok && m.before.Objects[j].Object == o.Object || m.options.Fits == nil {
			continue
		}
		if err := m.options.Fits(o.Object); err != nil {
			m.refusal(objectOf(o.Identity()), errors.New(oneLine(err)))
		}
	}
	slices.SortStableFunc(m.plan.Refusals, func(a, b Refusal) int { return compareObjects(a.Object, b.Object) })
	m.plan.Summary.Refused = len(m.plan.Refusals)
}

// refusal adds an object to the plan's refusals if one of the errors is not nil.
func (m *maker) refusal(o Object, errs ...error) {
	if err := errors.Join(errs...); err != nil {
		m.plan.Refusals = append(m.plan.Refusals, Refusal{Object: o, Message: oneLine(err)})
	}
}

func ofPlacement(p hubv1.PlacementObject) Object {
	o := decide.OwnerOf(decide.ReferenceTo(p))
	return Object{Group: hubv1.GroupVersion.Group, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
}

func ofOverrides(p hubv1.OverridePolicyObject) Object {
	ref := overrides.RefOf(p)
	return Object{Group: hubv1.GroupVersion.Group, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
}

// samePlacement reports whether a and b are the same placement with the same settings. If an update changes no setting
// of a placement, admission does not check the placement again.
func samePlacement(a, b hubv1.PlacementObject) bool {
	return ofPlacement(a) == ofPlacement(b) && equality.Semantic.DeepEqual(a.PlacementSpec(), b.PlacementSpec()) &&
		equality.Semantic.DeepEqual(a.SelectedNamespaces(), b.SelectedNamespaces()) && a.IsEnforced() == b.IsEnforced()
}

func sameOverrides(a, b hubv1.OverridePolicyObject) bool {
	return overrides.RefOf(a) == overrides.RefOf(b) && equality.Semantic.DeepEqual(a.OverrideSpec(), b.OverrideSpec()) &&
		equality.Semantic.DeepEqual(a.SelectedNamespaces(), b.SelectedNamespaces())
}
