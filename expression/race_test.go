//go:build race

package expression

// underRace is true with the race detector, which takes time and memory of its own: bounds of both are measured without
// it.
const underRace = true
