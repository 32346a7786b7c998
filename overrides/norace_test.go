//go:build !race

package overrides

const underRace = false
