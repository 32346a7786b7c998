package view

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestATableFitsATerminalAndShowsHealthInColour(t *testing.T) {
	t.Parallel()
	header, rows := []string{"NAME", "HEALTH", "WHY"}, [][]string{{"a", "Healthy", ""}, {"b", "Degraded?", "Forbidden: no rights"}, {"c", "Other", "short"}, {"d", "Healthy?", ""}}
	for name, tc := range map[string]struct {
		screen Screen
		want   string
	}{
		"cut to the width": {
			Screen{Width: 32},
			"NAME   HEALTH      WHY\na      Healthy     -\nb      Degraded?   Forbidden: n…\nc      Other       short\nd      Healthy?    -\n",
		},
		"in colour": {
			Screen{Colours: true},
			"NAME   HEALTH      WHY\na      \x1b[32mHealthy\x1b[0m     -\nb      \x1b[31mDegraded?\x1b[0m   Forbidden: no rights\nc      Other       short\nd      \x1b[33mHealthy?\x1b[0m    -\n",
		},
		"a narrow terminal has some of each line": {
			Screen{Width: 5},
			"NAME   HEALTH      WHY\na      Healthy     -\nb      Degraded?   Forbidden…\nc      Other       short\nd      Healthy?    -\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var text bytes.Buffer
			tc.screen.Writer = &text
			var copied [][]string
			for _, row := range rows {
				copied = append(copied, append([]string{}, row...))
			}
			table(&tc.screen, append([]string{}, header...), copied)
			if diff := cmp.Diff(tc.want, text.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
