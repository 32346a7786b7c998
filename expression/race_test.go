//go:build race

package expression

// underRace is true with the race detector. The detector takes time and memory, so limits of both are tested without
// it.
const underRace = true
