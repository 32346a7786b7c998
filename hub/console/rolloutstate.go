package console

import (
	"fmt"
	"strings"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view"
)

// resultState returns the display of a rollout's result.
func resultState(r view.RolloutResult) state {
	switch r {
	case view.RolloutDone:
		return state{"ok", "done"}
	case view.RolloutBroken:
		return state{"down", "failed"}
	}
	return state{"run", "running"}
}

// rolloutState returns the display of the rollouts of a placement together: whom they wait for, or their result.
func rolloutState(r view.PlacementRollout) state {
	if r.Result == view.RolloutRuns && r.Rollout != nil && waits[r.Rollout.Phase] {
		return waveState(r.Rollout.Phase)
	}
	return resultState(r.Result)
}

// waits has the phases in which a rollout waits for a person.
var waits = map[hubv1.RolloutPhase]bool{hubv1.RolloutWaitingForApproval: true, hubv1.RolloutPaused: true, hubv1.RolloutWaitingForClusters: true}

// waveState returns the display of the state of a wave, or of the phase of an object.
func waveState(s any) state {
	word, phase := spaced(fmt.Sprint(s)), hubv1.RolloutPhase(fmt.Sprint(s))
	switch {
	case phase == hubv1.RolloutComplete, phase == hubv1.RolloutPhase(view.WavePassed):
		return state{"ok", word}
	case phase == hubv1.RolloutFailed, phase == hubv1.RolloutRolledBack, phase == hubv1.RolloutRollingBack:
		return state{"down", word}
	case phase == hubv1.RolloutPhase(view.WavePending):
		return state{"todo", "not begun"}
	case waits[phase]:
		return state{"held", word}
	}
	return state{"run", word}
}

// waveClusterState returns the display of the state of a cluster in a wave.
func waveClusterState(s view.WaveClusterState) state {
	word := strings.ToLower(string(s))
	switch s {
	case view.WaveClusterPassing:
		return state{"ok", word}
	case view.WaveClusterDegraded:
		return state{"bad", word}
	case view.WaveClusterUnknown:
		return state{"unknown", word}
	case view.WaveClusterWaiting:
		return state{"todo", word}
	}
	return state{"run", word}
}

// healthState returns the display of the health of a copy.
func healthState(h hubv1.Health) state {
	word := strings.ToLower(string(h))
	switch h {
	case hubv1.HealthHealthy:
		return state{"ok", word}
	case hubv1.HealthDegraded:
		return state{"bad", word}
	case hubv1.HealthProgressing:
		return state{"run", word}
	}
	return state{"unknown", "unknown"}
}

// spaced returns the words of a name in CamelCase, such as "waiting for approval".
func spaced(name string) string {
	var out strings.Builder
	for i, r := range name {
		if i > 0 && r >= 'A' && r <= 'Z' {
			out.WriteByte(' ')
		}
		out.WriteRune(r)
	}
	return strings.ToLower(out.String())
}
