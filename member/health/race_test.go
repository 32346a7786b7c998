//go:build race

package health

// underRace is true if the race detector is on. The race detector needs time and memory itself, so that limits on both
// are tested without it.
const underRace = true
