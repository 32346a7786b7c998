package health

import (
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Extend adds meanings for kinds to the vocabulary. The added meanings take precedence over the built-in ones. The text
// is YAML or JSON with a field `kinds`, whose items have the same form as in vocabulary.yaml. It must be called before
// the first verdict, because the vocabulary has no lock.
func Extend(text []byte) error {
	var more struct {
		Kinds []kindWords `json:"kinds"`
	}
	if err := yaml.UnmarshalStrict(text, &more); err != nil {
		return fmt.Errorf("reading the status vocabulary: %w", err)
	}
	for i, k := range more.Kinds {
		if err := k.check(); err != nil {
			return fmt.Errorf("reading the status vocabulary: kinds[%d] (%s %s): %w", i, k.Group, k.Kind, err)
		}
	}
	words.Kinds = append(more.Kinds, words.Kinds...)
	return nil
}

// check returns an error about the first invalid field, or nil.
func (k kindWords) check() error {
	switch {
	case k.Group == "":
		return fmt.Errorf("group is missing")
	case k.Kind == "" && (len(k.Words)+len(k.Means) > 0 || k.Generation != ""):
		return fmt.Errorf("kind is missing: words, means and generation belong to one kind")
	case len(k.Conditions)+len(k.Words)+len(k.Means) == 0 && k.Generation == "":
		return fmt.Errorf("conditions, means, words or generation are missing")
	}
	for i, c := range k.Conditions {
		switch {
		case len(c.Types) == 0:
			return fmt.Errorf("conditions[%d].types is missing", i)
		case !slices.Contains(roles, c.Says):
			return fmt.Errorf("conditions[%d].says is %q, want one of %v", i, c.Says, roles)
		case c.Folds != "" && !slices.Contains(polarities, c.Folds):
			return fmt.Errorf("conditions[%d].folds is %q, want one of %v", i, c.Folds, polarities)
		}
	}
	for field, means := range k.Means {
		if k.Words[field] != nil {
			return fmt.Errorf("words and means both have the field %s", field)
		}
		seen := map[string]hubv1.Health{}
		for h, words := range means {
			if !slices.Contains(healths, h) {
				return fmt.Errorf("means.%s has %q, want one of %v", field, h, healths)
			}
			for _, word := range words {
				if other, twice := seen[word]; twice {
					return fmt.Errorf("means.%s has the word %q for %s and for %s", field, word, min(h, other), max(h, other))
				}
				seen[word] = h
			}
		}
	}
	return nil
}
