package rollup

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hanse-dev/hanse/member/health"
)

const unknownWord = "Unknown"

// severity has a rank for each word that a field may have, for example for each phase. The best word has the lowest
// rank.
type severity struct {
	rank    func(word string) (int, bool)
	unknown string // the word for Unknown; empty if the field has none
}

// severities has the ranks of the words that package health knows for all kinds.
var severities = severity{rank: health.WordRank, unknown: unknownWord}

// ranks returns the severity for lines of words, with the best line first. All words of a line have the same rank. If
// the lines have the word Unknown, an unreachable cluster counts as this word. Without the word, the field is left out
// while a cluster is unreachable.
func ranks(lines [][]string) severity {
	rank := map[string]int{}
	var s severity
	for i, line := range lines {
		for _, word := range line {
			rank[word] = i
			if strings.EqualFold(word, unknownWord) {
				s.unknown = word
			}
		}
	}
	s.rank = func(word string) (int, bool) {
		r, ok := rank[word]
		return r, ok
	}
	return s
}

// severityOf returns the ranks of the words that a field may have, from the best word to the worst. It returns false if
// the hub does not know the rank of each word.
func severityOf(kind schema.GroupKind, name string, n *node) (severity, bool) {
	if lines := health.WordsOf(kind, name); lines != nil {
		return ranks(lines), true
	}
	if name == "health" || len(n.enum) == 0 {
		return severity{}, false
	}
	s := severities
	for _, word := range n.enum {
		if _, ok := s.rank(word); !ok && word != "" {
			return severity{}, false
		}
		if strings.EqualFold(word, unknownWord) {
			s.unknown = word
		}
	}
	return s, true
}

// worstOf returns the worst of the words that a field of a kind has on members. A word whose rank the hub does not know
// counts as the word Unknown. The rank of the best words is 0. ok is false if two unknown words are the worst, or if
// the hub knows no word.
func worstOf(kind schema.GroupKind, name string, words map[string]bool) (worst string, rank int, ok bool) {
	s := severities
	if lines := health.WordsOf(kind, name); lines != nil {
		s = ranks(lines)
	}
	unread, _ := s.rank(unknownWord)
	known, tied, most := false, false, 0
	for _, word := range slices.Sorted(maps.Keys(words)) {
		rank, read := s.rank(word)
		if !read {
			rank = unread
		}
		switch known = known || read; {
		case worst == "" || rank > most:
			worst, most, tied = word, rank, false
		case rank == most && !read:
			tied = true
		}
	}
	return worst, most, known && !tied
}

// worst returns the worst of the words. Among words of the same rank, it returns the first in alphabetical order. It
// returns false if the rank of a word is not known, or if there is no word.
func (s severity) worst(words map[string]bool) (string, bool) {
	out, most := "", 0
	for _, word := range slices.Sorted(maps.Keys(words)) {
		rank, ok := s.rank(word)
		if !ok {
			return "", false
		}
		if out == "" || rank > most {
			out, most = word, rank
		}
	}
	return out, out != ""
}
