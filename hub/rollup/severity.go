package rollup

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hanse-dev/hanse/member/health"
)

const unknownWord = "Unknown"

// severity ranks the words of one field, from the best to the worst.
type severity struct {
	rank    func(word string) (int, bool)
	unknown string // the word for Unknown, empty if there is none
}

// severities ranks the words of the built-in vocabulary.
var severities = severity{rank: health.WordRank, unknown: unknownWord}

// ranks gives each word that a kind defines its rank. The value of an unreachable cluster is the word Unknown, in the
// kind's spelling. If the kind has no such word, the field is left out.
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

// severityOf returns the severity of a field. It returns false if the meaning of its words is unknown.
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

// worst returns the worst of some words. Of equally bad words it returns the first one by name. It returns false if a
// word is not known.
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
