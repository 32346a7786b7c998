package view

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAMistypedWordIsAnsweredWithTheNamesThatItMayMean(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		word  string
		names []string
		want  []string
	}{
		"a letter too many":                       {"placements", []string{"placement"}, []string{"placement"}},
		"a letter too few":                        {"deploymnt", []string{"deployment"}, []string{"deployment"}},
		"two letters that changed places":         {"cofnigmap", []string{"configmap"}, []string{"configmap"}},
		"the most similar name first":             {"confgmap", []string{"configmaps", "configmap"}, []string{"configmap", "configmaps"}},
		"names of equal distance by name":         {"eu-fra-9", []string{"eu-fra-3", "eu-fra-1", "eu-fra-2", "eu-fra-4"}, []string{"eu-fra-1", "eu-fra-2", "eu-fra-3"}},
		"a name that is there twice, once":        {"evnts", []string{"events", "events"}, []string{"events"}},
		"more than two letters that differ":       {"promthes", []string{"prometheuses"}, []string{}},
		"a short word that differs in one letter": {"pod", []string{"nod", "cod", "node"}, []string{"cod", "nod"}},
		"a word that is like no name":             {"spaceship", []string{"configmap"}, []string{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Similar(tc.word, tc.names)
			if diff := cmp.Diff(tc.want, append([]string{}, got...)); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
		})
	}
}
