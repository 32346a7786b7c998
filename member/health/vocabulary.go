package health

import (
	_ "embed" // of the vocabulary
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

//go:embed vocabulary.yaml
var vocabularyText []byte

// vocabulary has the meanings of the words of statuses. It is data: see vocabulary.yaml.
type vocabulary struct {
	Conditions []conditionTypes `json:"conditions"`
	Kinds      []kindWords      `json:"kinds"`
	Reasons    struct {
		Failing      sourced `json:"failing"`
		Harmless     sourced `json:"harmless"`
		Waiting      sourced `json:"waiting"`
		Settled      sourced `json:"settled"`
		PodsNotReady sourced `json:"podsNotReady"`
	} `json:"reasons"`
	Words []rankedWords `json:"words"`

	exact map[string]typeMeaning // of types without a *
	ranks map[string]int         // of words, by their index in Words
}

type conditionTypes struct {
	Types   []string `json:"types"`
	Says    role     `json:"says"`
	Refuses bool     `json:"refuses,omitempty"`
	Folds   Polarity `json:"folds,omitempty"`
	Source  string   `json:"source,omitempty"`
}

type kindWords struct {
	Group      string                `json:"group"`
	Kind       string                `json:"kind,omitempty"`
	Conditions []conditionTypes      `json:"conditions,omitempty"`
	Words      map[string][][]string `json:"words,omitempty"`
	// Means has, for a field of the status, the words of each health. Both judging and merging read it.
	Means  map[string]map[hubv1.Health][]string `json:"means,omitempty"`
	Source string                               `json:"source,omitempty"`
}

// healths are the keys that Means may have, the best first.
var healths = []hubv1.Health{hubv1.HealthHealthy, hubv1.HealthProgressing, hubv1.HealthDegraded}

// ranked are the words of a field, the best first; nil if the kind has none of its own.
func (k kindWords) ranked(field string) [][]string {
	if k.Words[field] != nil {
		return k.Words[field]
	}
	var out [][]string
	for _, h := range healths {
		if words := k.Means[field][h]; len(words) > 0 {
			out = append(out, words)
		}
	}
	return out
}

type sourced struct {
	Words  []string `json:"words"`
	Source string   `json:"source"`
}

type rankedWords struct {
	Says   hubv1.Health `json:"says"`
	Words  []string     `json:"words"`
	Source string       `json:"source"`
}

// role of a type of condition.
type role string

const (
	roleUnread   role = "" // the vocabulary does not have it
	roleFailure  role = "Failure"
	roleWhole    role = "Whole"
	rolePart     role = "Part"
	roleUnderway role = "Underway"
	roleAttempt  role = "Attempt"
	roleEnded    role = "Ended"
	roleNotice   role = "Notice"
	roleNothing  role = "Nothing"
)

// roles are the values that the field says of an entry may have.
var roles = []role{roleFailure, roleWhole, rolePart, roleUnderway, roleAttempt, roleEnded, roleNotice, roleNothing}

// stopped is what a word says of an object that stands still: whether it should, its spec tells.
const stopped hubv1.Health = "Stopped"

// Polarity says which value of a condition is good.
type Polarity string

// Polarities. A condition of neither has no worst value.
const (
	Neither       Polarity = "Neither"
	GoodWhenTrue  Polarity = "GoodWhenTrue"
	GoodWhenFalse Polarity = "GoodWhenFalse"
)

var polarities = []Polarity{Neither, GoodWhenTrue, GoodWhenFalse}

// typeMeaning is what the vocabulary says of one type of condition, and where in it: types that come first are shown
// first.
type typeMeaning struct {
	says    role
	refuses bool
	folds   Polarity
	order   int
}

// words is the vocabulary that the program was built with.
var words = mustRead(vocabularyText)

// mustRead panics on a text that no test can have passed.
func mustRead(text []byte) *vocabulary {
	v, err := readVocabulary(text)
	if err != nil {
		panic(err)
	}
	return v
}

func readVocabulary(text []byte) (*vocabulary, error) {
	v := &vocabulary{exact: map[string]typeMeaning{}, ranks: map[string]int{}}
	if err := yaml.UnmarshalStrict(text, v); err != nil {
		return nil, fmt.Errorf("reading the vocabulary of statuses: %w", err)
	}
	order := 0
	for _, entry := range v.Conditions {
		for _, kind := range entry.Types {
			if order++; strings.Contains(kind, "*") {
				continue
			}
			if _, twice := v.exact[kind]; twice {
				return nil, fmt.Errorf("reading the vocabulary of statuses: condition %s is there twice", kind)
			}
			v.exact[kind] = entry.meaning(order)
		}
	}
	for i, line := range v.Words {
		for _, word := range line.Words {
			if _, twice := v.ranks[word]; twice || letters(word) != word {
				return nil, fmt.Errorf("reading the vocabulary of statuses: the word %q is there twice, or is not of lower-case letters alone", word)
			}
			v.ranks[word] = i
		}
	}
	return v, nil
}

func (c conditionTypes) meaning(order int) typeMeaning {
	return typeMeaning{says: c.Says, refuses: c.Refuses, folds: c.folds(), order: order}
}

func (c conditionTypes) folds() Polarity {
	if c.Folds != "" {
		return c.Folds
	}
	switch c.Says {
	case roleWhole, rolePart:
		return GoodWhenTrue
	case roleFailure, roleUnderway, roleAttempt, roleNotice:
		return GoodWhenFalse
	}
	return Neither
}

func (c conditionTypes) has(kind string) bool {
	return slices.ContainsFunc(c.Types, func(pattern string) bool {
		if end, ok := strings.CutPrefix(pattern, "*"); ok {
			return strings.HasSuffix(kind, end)
		}
		if begin, ok := strings.CutSuffix(pattern, "*"); ok {
			return strings.HasPrefix(kind, begin)
		}
		return pattern == kind
	})
}

// condition is the meaning of a type of condition of a kind.
func (v *vocabulary) condition(gk schema.GroupKind, kind string) typeMeaning {
	for _, k := range v.Kinds {
		if k.Group != gk.Group || k.Kind != "" && k.Kind != gk.Kind {
			continue
		}
		for _, c := range k.Conditions {
			if c.has(kind) {
				return c.meaning(v.exact[kind].order)
			}
		}
	}
	if m, ok := v.exact[kind]; ok {
		return m
	}
	for _, c := range v.Conditions {
		if c.has(kind) {
			return c.meaning(math.MaxInt)
		}
	}
	return typeMeaning{says: roleUnread, folds: Neither, order: math.MaxInt}
}

// PolarityOf says which value of a condition of a kind is good.
func PolarityOf(gk schema.GroupKind, condition string) Polarity {
	return words.condition(gk, condition).folds
}

// WordRank orders words of phases, states and healths, whatever their case: the best is 0. ok is false for a word that
// is not known.
func WordRank(word string) (rank int, ok bool) {
	rank, ok = words.ranks[letters(word)]
	return rank, ok
}

// WordsOf are the words of a field of a kind's status, the best first, where the kind has its own; nil if it has none.
func WordsOf(gk schema.GroupKind, field string) [][]string {
	for _, k := range words.Kinds {
		if k.Group != gk.Group || k.Kind != gk.Kind {
			continue
		}
		if ranked := k.ranked(field); ranked != nil {
			return ranked
		}
	}
	return nil
}

// meanings are the fields of a kind's status whose words have a health of their own, with the health of each word.
func (v *vocabulary) meanings(gk schema.GroupKind) map[string]map[string]hubv1.Health {
	var out map[string]map[string]hubv1.Health
	for _, k := range slices.Backward(v.Kinds) { // the first one counts
		if k.Group != gk.Group || k.Kind != gk.Kind {
			continue
		}
		for field, means := range k.Means {
			if out == nil {
				out = map[string]map[string]hubv1.Health{}
			}
			out[field] = map[string]hubv1.Health{}
			for h, words := range means {
				for _, word := range words {
					out[field][word] = h
				}
			}
		}
	}
	return out
}

// wordSays is the health of a word; empty if it is not known.
func wordSays(word string) hubv1.Health {
	if i, ok := words.ranks[word]; ok {
		return words.Words[i].Says
	}
	return ""
}
