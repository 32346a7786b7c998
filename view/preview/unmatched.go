package preview

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// selection is a selection of clusters in a policy.
type selection struct {
	where    string // what of the policy selects, such as "rule large: "; empty for the placement itself
	names    []string
	selector *metav1.LabelSelector
}

// UnmatchedPlacement returns a text for each name and each label in the selections of a placement and of its waves that
// no cluster has. Each text lists what the clusters have instead. none is "no cluster", or a narrower text for a user
// who sees only some clusters.
func UnmatchedPlacement(p hubv1.PlacementObject, clusters []*hubv1.MemberCluster, none string) []string {
	spec := p.PlacementSpec()
	in := []selection{{"", slices.Concat(spec.Clusters.Names, spec.Clusters.ExcludedNames), spec.Clusters.LabelSelector}}
	if spec.Rollout != nil {
		for _, w := range spec.Rollout.Waves {
			in = append(in, ofRule("wave "+w.Name+": ", w.Clusters))
		}
	}
	return unmatched(in, clusters, none)
}

// UnmatchedOverrides returns the same texts for the rules of an override policy.
func UnmatchedOverrides(p hubv1.OverridePolicyObject, clusters []*hubv1.MemberCluster, none string) []string {
	var in []selection
	for _, rule := range p.OverrideSpec().Rules {
		in = append(in, ofRule("rule "+rule.Name+": ", rule.Clusters))
	}
	return unmatched(in, clusters, none)
}

func ofRule(where string, c *hubv1.RuleClusters) selection {
	if c == nil {
		return selection{}
	}
	return selection{where, c.Names, c.LabelSelector}
}

func unmatched(in []selection, clusters []*hubv1.MemberCluster, none string) []string {
	var names []string
	values := map[string]map[string]bool{} // by the keys of labels
	for _, c := range clusters {
		names = append(names, c.Name)
		for key, value := range c.SelectableLabels() {
			if values[key] == nil {
				values[key] = map[string]bool{}
			}
			values[key][value] = true
		}
	}
	var out []string
	for _, s := range in {
		for _, name := range s.names {
			if !slices.Contains(names, name) {
				out = append(out, fmt.Sprintf("%s%s is named %s: %s", s.where, none, name, ThereAreLike(name, names)))
			}
		}
		for _, l := range labelsOf(s.selector) {
			known := slices.Collect(maps.Keys(values[l.key]))
			switch {
			case len(known) == 0:
				out = append(out, fmt.Sprintf("%s%s has the label %s", s.where, none, l.key))
			case l.value != nil && !values[l.key][*l.value]:
				out = append(out, fmt.Sprintf("%s%s has %s=%s: %s", s.where, none, l.key, *l.value, ThereAreLike(*l.value, known)))
			}
		}
	}
	return out
}

// wantedLabel is a label that a selector wants clusters to have. value is nil if any value will do.
type wantedLabel struct {
	key   string
	value *string
}

func labelsOf(s *metav1.LabelSelector) []wantedLabel {
	if s == nil {
		return nil
	}
	var out []wantedLabel
	for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		value := s.MatchLabels[key]
		out = append(out, wantedLabel{key, &value})
	}
	for _, e := range s.MatchExpressions {
		switch e.Operator {
		case metav1.LabelSelectorOpExists:
			out = append(out, wantedLabel{key: e.Key})
		case metav1.LabelSelectorOpIn:
			for i := range e.Values {
				out = append(out, wantedLabel{e.Key, &e.Values[i]})
			}
		}
	}
	return out
}

// ThereAreLike returns a list of existing names as ThereAre does. If there are many, it names those that begin like the
// wanted name.
func ThereAreLike(wanted string, names []string) string {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	if len(names) <= maxThere {
		return ThereAre(names)
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(sameStart(wanted, b), sameStart(wanted, a)) })
	return fmt.Sprintf("%s and %d more", ThereAre(names[:maxThere]), len(names)-maxThere)
}

// sameStart returns the number of bytes with which both texts begin.
func sameStart(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}
