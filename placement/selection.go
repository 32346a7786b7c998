package placement

import (
	"errors"
	"fmt"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// selection is a parsed ClusterSelection. It says which clusters a placement selects.
type selection struct {
	names, excludedNames []string
	requirements         []requirement
	expression           *condition
}

func readSelection(s hubv1.ClusterSelection) (selection, error) {
	out := selection{names: s.Names, excludedNames: s.ExcludedNames}
	if len(s.Names) == 0 && s.LabelSelector == nil && s.Expression == "" {
		// The CRD refuses an empty selection. If the hub read an empty selection as "no cluster", it would withdraw the
		// object everywhere.
		return out, errors.New(": neither names, labelSelector nor expression is set")
	}
	var err error
	if out.requirements, err = requirements(s.LabelSelector); err != nil {
		return out, fmt.Errorf(".labelSelector%w", err)
	}
	if s.Expression != "" {
		if out.expression, err = compileExpression(s.Expression); err != nil {
			return out, fmt.Errorf(".expression: %w", err)
		}
	}
	return out, nil
}
