//go:build race

package overrides

// underRace is true if the race detector is on. The detector needs time and memory, so that limits of both are tested
// only without it.
const underRace = true
