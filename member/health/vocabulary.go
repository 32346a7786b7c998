package health

import (
	_ "embed" // for the vocabulary
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

// vocabulary has the meanings of condition types, phases and other words in a status. The data is in vocabulary.yaml.
type vocabulary struct {
	Conditions []conditionTypes `json:"conditions"`
	Kinds      []kindWords      `json:"kinds"`
	Reasons    struct {
		Failing      sourced `json:"failing"`
		Harmless     sourced `json:"harmless"`
		Waiting      sourced `json:"waiting"`
		Settled      sourced `json:"settled"`
		Resting      sourced `json:"resting"`
		PodsNotReady sourced `json:"podsNotReady"`
	} `json:"reasons"`
	Words []rankedWords `json:"words"`

	exact map[string]typeMeaning // meanings of condition types without a *, by type
	ranks map[string]int         // index in Words of each word
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
	// Means has the words that mean each health, by field of the status. Both the judgement of health and the merging of
	// statuses use it.
	Means map[string]map[hubv1.Health][]string `json:"means,omitempty"`
	// Idle has words, by field of the status. While the field has one of them, the other words of the object say nothing.
	Idle map[string][]string `json:"idle,omitempty"`
	// Generation is the path of the observed generation in the status, if it is not status.observedGeneration. Its parts
	// are separated by dots; a * stands for each item of a list or field of an object.
	Generation string `json:"generation,omitempty"`
	Source     string `json:"source,omitempty"`
}

// healths are the health values for which vocabulary.yaml may list words, from best to worst.
var healths = []hubv1.Health{hubv1.HealthHealthy, hubv1.HealthProgressing, hubv1.HealthDegraded}

// ranked returns the words of a field, from best to worst. It returns nil if the kind defines no words for the field.
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

// role says what a condition type tells about an object.
type role string

const (
	roleUnread   role = "" // the type is not in the vocabulary
	roleFailure  role = "Failure"
	roleWhole    role = "Whole"
	rolePart     role = "Part"
	roleUnderway role = "Underway"
	roleAttempt  role = "Attempt"
	roleEnded    role = "Ended"
	roleNotice   role = "Notice"
	roleNothing  role = "Nothing"
)

// roles are the valid values of the field `says` in vocabulary.yaml.
var roles = []role{roleFailure, roleWhole, rolePart, roleUnderway, roleAttempt, roleEnded, roleNotice, roleNothing}

// stopped is the meaning of a word for an object that does not run. Such an object is healthy only if its spec says
// that it shall not run.
const stopped hubv1.Health = "Stopped"

// Polarity is the good status of a condition type: True, False, or neither of them.
type Polarity string

// These are the polarities of conditions. If a condition has the polarity Neither, no status of it is better or worse
// than another.
const (
	Neither       Polarity = "Neither"
	GoodWhenTrue  Polarity = "GoodWhenTrue"
	GoodWhenFalse Polarity = "GoodWhenFalse"
)

var polarities = []Polarity{Neither, GoodWhenTrue, GoodWhenFalse}

// typeMeaning is what a condition type tells about an object. order is the position of the type in vocabulary.yaml. The
// conditions of an object are read in this order, but those that report failures first.
type typeMeaning struct {
	role    role
	refuses bool
	folds   Polarity
	order   int
}

// words is the vocabulary in use: it says what words in a status, such as Ready or Failed, mean.
var words = mustRead(vocabularyText)

// mustRead parses the built-in text. It panics on an error. This cannot happen in a released program, because the text
// is compiled in and every test would fail.
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
	return typeMeaning{role: c.Says, refuses: c.Refuses, folds: c.folds(), order: order}
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

// condition returns the meaning of a condition type for objects of a kind.
func (v *vocabulary) condition(gk schema.GroupKind, kind string) typeMeaning {
	for _, k := range v.Kinds {
		if k.Group != gk.Group || k.Kind != "" && k.Kind != gk.Kind {
			continue
		}
		for _, c := range k.Conditions {
			if c.has(kind) {
				order := math.MaxInt
				if m, ok := v.exact[kind]; ok {
					order = m.order
				}
				return c.meaning(order)
			}
		}
	}
	if m, ok := v.exact[kind]; ok {
		return m
	}
	negative := negated(kind)
	for _, c := range v.Conditions {
		if negative && c.Says != roleNothing {
			c.Types = slices.DeleteFunc(slices.Clone(c.Types), func(pattern string) bool { return !strings.Contains(pattern, "Not") })
		}
		if c.has(kind) {
			return c.meaning(math.MaxInt)
		}
	}
	return conditionTypes{Says: v.roleByWords(kind)}.meaning(math.MaxInt)
}

// negated reports whether a condition type denies its last word, as NoConflicts and PodsNotExpired do.
func negated(kind string) bool {
	parts := wordsIn(kind)
	return len(parts) > 1 && (parts[0] == "no" || parts[0] == "non" || parts[len(parts)-2] == "not")
}

// roleByWords returns what a condition type says by the words in its name. The words are those of phases:
// CertificateExpired and NotConnected name a failure, ReplacingNodes and Starting tell that something is being done.
func (v *vocabulary) roleByWords(kind string) role {
	parts := wordsIn(kind)
	if len(parts) == 0 || kind[0] < 'A' || kind[0] > 'Z' { // a type that is not in CamelCase may be the name of a past state
		return roleUnread
	}
	healthOf := func(word string) hubv1.Health {
		if i, ok := v.ranks[word]; ok {
			return v.Words[i].Says
		}
		return ""
	}
	first, last := parts[0], parts[len(parts)-1]
	switch {
	case negated(kind):
		if healthOf(last) == hubv1.HealthHealthy {
			return roleFailure
		}
		return roleUnread
	case healthOf(last) == hubv1.HealthDegraded:
		return roleFailure
	case healthOf(last) == hubv1.HealthProgressing && strings.HasSuffix(last, "ing"):
		return roleUnderway
	case healthOf(first) == hubv1.HealthProgressing && strings.HasSuffix(first, "ing") && !strings.HasSuffix(last, "ed"):
		return roleUnderway
	}
	return roleUnread
}

// PolarityOf returns the polarity of a type of condition for objects of a kind.
func PolarityOf(gk schema.GroupKind, condition string) Polarity {
	return words.condition(gk, condition).folds
}

// WordRank returns the position of a word among the known phases, states and healths. The best word has 0. WordRank
// ignores case. ok is false for an unknown word.
func WordRank(word string) (rank int, ok bool) {
	rank, ok = words.ranks[letters(word)]
	return rank, ok
}

// WordsOf returns the words that a kind defines for a field of its status, from best to worst. It returns nil if the
// kind defines none.
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

// meanings returns what the words in a kind's status mean. For each status field for which the kind defines words, it
// has the health of each word.
func (v *vocabulary) meanings(gk schema.GroupKind) map[string]map[string]hubv1.Health {
	var out map[string]map[string]hubv1.Health
	for _, k := range slices.Backward(v.Kinds) { // backward, so that the first meaning in the vocabulary has precedence
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

// isIdle reports whether a field of an object of the kind has a word with which the other words say nothing.
func (v *vocabulary) isIdle(gk schema.GroupKind, field string, word any) bool {
	text, _ := word.(string)
	return slices.ContainsFunc(v.Kinds, func(k kindWords) bool {
		return k.Group == gk.Group && k.Kind == gk.Kind && slices.Contains(k.Idle[field], text)
	})
}

// generationPath returns the path of the observed generation in the status of a kind. It returns nil if the kind has it
// in status.observedGeneration.
func (v *vocabulary) generationPath(gk schema.GroupKind) []string {
	for _, k := range v.Kinds {
		if k.Group == gk.Group && k.Kind == gk.Kind && k.Generation != "" {
			return strings.Split(k.Generation, ".")
		}
	}
	return nil
}

// healthOfWord returns the health that a word means. The result is empty if vocabulary.yaml lacks the word.
func healthOfWord(word string) hubv1.Health {
	if i, ok := words.ranks[word]; ok {
		return words.Words[i].Says
	}
	return ""
}
