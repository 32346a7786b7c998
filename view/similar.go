package view

import (
	"cmp"
	"slices"
)

const (
	// maxTypos is the maximum number of letters by which the typed word and a suggested name may differ.
	maxTypos = 2
	// maxSimilar is the maximum number of suggested names.
	maxSimilar = 3
)

// Similar returns the names that a mistyped word may mean, the most similar name first. Fewer than half of the letters
// of the word may differ.
func Similar(word string, names []string) []string {
	var found []string
	typos := map[string]int{}
	for _, name := range names {
		n := distance(word, name)
		if _, known := typos[name]; !known && n <= maxTypos && 2*n < len(word) {
			typos[name], found = n, append(found, name)
		}
	}
	slices.SortFunc(found, func(a, b string) int { return cmp.Or(cmp.Compare(typos[a], typos[b]), cmp.Compare(a, b)) })
	return found[:min(len(found), maxSimilar)]
}

// distance returns the number of letters to add, remove or replace to turn one word into the other (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
