package overrides

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/cel"
)

// Differs reports whether a policy may render an object differently after a cluster has changed. This is the case if a
// rule selects the cluster only before or only after the change, or reads a changed fact of the cluster. It returns
// true if a rule cannot be read.
func Differs(policy hubv1.OverridePolicyObject, before, after Cluster) bool {
	return slices.ContainsFunc(policy.OverrideSpec().Rules, func(rule hubv1.OverrideRule) bool { return differs(&rule, before, after) })
}

func differs(rule *hubv1.OverrideRule, before, after Cluster) bool {
	was, f := newEvaluation(before, nil).selects(rule)
	if f != nil {
		return true
	}
	is, f := newEvaluation(after, nil).selects(rule)
	if f != nil || was != is {
		return true
	}
	return is && slices.ContainsFunc(valuesOf(rule), func(text string) bool {
		x, _ := compileValue(text)
		return x == nil || slices.ContainsFunc(x.Reads(), func(r cel.Reading) bool { return readsOther(r, before, after) })
	})
}

// valuesOf returns the expressions over the object and the cluster in a rule: its condition when, and the expressions
// that compute values.
func valuesOf(rule *hubv1.OverrideRule) []string {
	var out []string
	if rule.When != "" {
		out = append(out, rule.When)
	}
	for _, e := range rule.Env {
		for _, v := range e.Set {
			if v.Expression != "" {
				out = append(out, v.Expression)
			}
		}
	}
	for _, p := range rule.Patches {
		if p.Expression != "" {
			out = append(out, p.Expression)
		}
	}
	for _, e := range rule.Edits {
		for _, p := range e.Patches {
			if p.Expression != "" {
				out = append(out, p.Expression)
			}
		}
	}
	return out
}

// readsOther reports whether the data that the expression reads from the cluster differ before and after the change.
func readsOther(r cel.Reading, before, after Cluster) bool {
	switch fact, _ := strings.CutPrefix(r.Variable, ofCluster); fact {
	case "labels":
		return entryDiffers(before.Labels, after.Labels, r.Key)
	case "annotations":
		return entryDiffers(before.Annotations, after.Annotations, r.Key)
	case "region":
		return before.Labels[hubv1.RegionLabel] != after.Labels[hubv1.RegionLabel]
	case "zone":
		return before.Labels[hubv1.ZoneLabel] != after.Labels[hubv1.ZoneLabel]
	case "version":
		return before.Version != after.Version
	case "capacity":
		return capacityDiffers(before.Capacity, after.Capacity, corev1.ResourceName(r.Key))
	case "operators":
		return entryDiffers(byName(before.Operators), byName(after.Operators), r.Key)
	}
	return false // the name never changes, and the object is no fact of the cluster
}

func capacityDiffers(before, after corev1.ResourceList, key corev1.ResourceName) bool {
	// Quantities are compared as text, because an expression may return a quantity as it is written: 1000m and 1 differ.
	written := func(list corev1.ResourceList) map[string]string {
		out := make(map[string]string, len(list))
		for name, q := range list {
			out[string(name)] = q.String()
		}
		return out
	}
	return entryDiffers(written(before), written(after), string(key))
}

func byName(operators []hubv1.OperatorFact) map[string]hubv1.OperatorFact {
	out := make(map[string]hubv1.OperatorFact, len(operators))
	for _, o := range operators {
		out[o.Name] = o
	}
	return out
}

// entryDiffers reports whether the entry with this key differs between two maps. If key is empty, it compares all
// entries.
func entryDiffers[V comparable](before, after map[string]V, key string) bool {
	if key == "" {
		return !maps.Equal(before, after)
	}
	a, had := before[key]
	b, has := after[key]
	return had != has || a != b
}
