//go:build !race

package expression

const underRace = false
