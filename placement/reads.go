package placement

import (
	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/cel"
)

// Reads returns the facts of clusters that the expressions, spread constraints and scores of a spec read. It does not
// return what label selectors and the division of replicas read. It ignores expressions that cannot be compiled.
func Reads(spec *hubv1.PlacementSpec) []cel.Reading {
	out := expressionReads(spec.Clusters.Expression)
	if spec.Spread == nil {
		return out
	}
	for _, t := range spec.Spread.TopologySpreadConstraints {
		out = append(out, cel.Reading{Variable: varLabels, Key: t.TopologyKey})
	}
	for _, p := range spec.Spread.Preferences {
		out = append(out, expressionReads(p.Expression)...)
	}
	for _, s := range spec.Spread.Scores {
		if s.Name == hubv1.ScoreAvailableCapacity {
			out = append(out, cel.Reading{Variable: varAllocatable}, cel.Reading{Variable: varCapacity})
		}
	}
	return out
}

func expressionReads(text string) []cel.Reading {
	if text == "" {
		return nil
	}
	e, err := compileExpression(text)
	if err != nil {
		return nil
	}
	return e.Reads()
}
