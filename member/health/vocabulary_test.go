package health

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestEveryEntryOfTheVocabularyNamesItsSource(t *testing.T) {
	for _, c := range words.Conditions {
		if c.Source == "" || c.Says == roleUnread || len(c.Types) == 0 {
			t.Errorf("%+v lacks types, what they say, or their source", c)
		}
	}
	for _, k := range words.Kinds {
		if k.Source == "" || k.Group == "" || len(k.Conditions)+len(k.Words)+len(k.Means) == 0 && k.Generation == "" {
			t.Errorf("%+v lacks a group, something that is said of it, or its source", k)
		}
	}
	for _, w := range words.Words {
		if w.Source == "" {
			t.Errorf("%v have no source", w.Words)
		}
		switch w.Says {
		case hubv1.HealthHealthy, hubv1.HealthProgressing, hubv1.HealthDegraded, stopped:
		default:
			t.Errorf("%v say %q", w.Words, w.Says)
		}
	}
	for _, r := range []sourced{words.Reasons.Failing, words.Reasons.Harmless, words.Reasons.Waiting, words.Reasons.Settled, words.Reasons.Resting, words.Reasons.PodsNotReady} {
		if r.Source == "" || len(r.Words) == 0 {
			t.Errorf("%v have no source", r.Words)
		}
	}
}

func TestAVocabularyThatContradictsItselfIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"a condition that is there twice": "conditions: [{types: [Ready], says: Whole}, {types: [Ready], says: Part}]",
		"a word that is there twice":      "words: [{says: Healthy, words: [up]}, {says: Degraded, words: [up]}]",
		"a word with capital letters":     "words: [{says: Healthy, words: [Up]}]",
		"a field that is not known":       "colours: [blue]",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := readVocabulary([]byte(text)); err == nil {
				t.Error("it is read")
			}
		})
	}
}

func TestHealthAndMergingSayTheSameOfACondition(t *testing.T) {
	of := schema.GroupKind{Group: "example.com", Kind: "Widget"}
	for kind, want := range map[string]Polarity{
		"Ready": GoodWhenTrue, "DatabaseReady": GoodWhenTrue, "Stalled": GoodWhenFalse, "MemoryPressure": GoodWhenFalse, "BackupFailed": GoodWhenFalse,
		"Restarting": GoodWhenFalse, "Progressing": Neither, "NoWarnings": Neither, "Unready": Neither, "Colour": Neither,
	} {
		if got := PolarityOf(of, kind); got != want {
			t.Errorf("%s is %s, want %s", kind, got, want)
		}
	}
}
