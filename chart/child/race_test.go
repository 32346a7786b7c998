//go:build race

package child

// underRace is true with the race detector, which takes time and memory of its own: limits of both are tested without
// it.
const underRace = true
