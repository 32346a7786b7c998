package overrides

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/cel"
)

// Reads returns the facts of clusters that a rule reads in its selection of clusters and in its values. It ignores
// expressions that cannot be compiled.
func Reads(rule *hubv1.OverrideRule) []cel.Reading {
	out := ChoiceReads(rule.Clusters)
	for _, text := range valuesOf(rule) {
		x, _ := compileValue(text)
		if x == nil {
			continue
		}
		for _, r := range x.Reads() {
			if fact, ok := strings.CutPrefix(r.Variable, ofCluster); ok {
				out = append(out, cel.Reading{Variable: fact, Key: r.Key})
			}
		}
	}
	return out
}

// ChoiceReads returns the facts of clusters that a selection of clusters reads.
func ChoiceReads(c *hubv1.RuleClusters) []cel.Reading {
	if c == nil {
		return nil
	}
	out := SelectorReads(c.LabelSelector)
	if t, f := readTarget(c); f == nil && t.expression != nil {
		out = append(out, t.expression.Reads()...)
	}
	return out
}

// ReadsOperators reports whether a selection of clusters reads their operators.
func ReadsOperators(c *hubv1.RuleClusters) bool {
	return slices.ContainsFunc(ChoiceReads(c), func(r cel.Reading) bool { return r.Variable == "operators" })
}

// SelectorReads returns the labels of clusters that a label selector reads.
func SelectorReads(s *metav1.LabelSelector) []cel.Reading {
	if s == nil {
		return nil
	}
	var out []cel.Reading
	for key := range s.MatchLabels {
		out = append(out, cel.Reading{Variable: "labels", Key: key})
	}
	for _, e := range s.MatchExpressions {
		out = append(out, cel.Reading{Variable: "labels", Key: e.Key})
	}
	return out
}
