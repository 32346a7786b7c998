package console

import (
	"slices"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view"
)

// step is the state of one wave in a row of signs.
type step struct{ Class, Label string }

// trackOf returns the states of a placement's waves, as far as the placement's status tells them.
func trackOf(p hubv1.PlacementObject) []step {
	waves, of := p.PlacementSpec().Rollout.Waves, view.PlacementRolloutOf(p, nil)
	current := -1
	if of.Rollout != nil {
		current = slices.IndexFunc(waves, func(w hubv1.RolloutWave) bool { return w.Name == of.Rollout.Wave })
	}
	var out []step
	for i, w := range waves {
		is := state{"todo", "not begun"}
		switch {
		case of.Result == view.RolloutDone, i < current:
			is = state{"ok", "passed"}
		case i == current:
			is = waveState(of.Rollout.Phase)
		}
		out = append(out, step{is.Class, w.Name + ": " + is.Word})
	}
	return out
}

// rolloutRowOf returns the row of a placement in a table of rollouts.
func rolloutRowOf(p hubv1.PlacementObject) rolloutRow {
	return rolloutRow{view.PlacementRolloutOf(p, nil), rolloutPath(p.GetNamespace(), p.GetName()), trackOf(p)}
}
