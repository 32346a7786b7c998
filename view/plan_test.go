package view

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hanse-dev/hanse/view/preview"
)

func TestAllEntriesOfAPlanAreShownIfTheUserAsks(t *testing.T) {
	var p preview.Plan
	for i := range maxPlanItems + 5 {
		o := preview.Object{Kind: "ConfigMap", Namespace: "shop", Name: fmt.Sprintf("a-%d", i)}
		for range 2 { // two objects with the same change share an entry
			p.Creations = append(p.Creations, preview.Creation{Object: o, Clusters: []string{fmt.Sprintf("eu-%d", i)}})
		}
	}
	for _, tc := range []struct {
		all     bool
		entries int
		rest    string
	}{{false, maxPlanItems, "and 5 more entries: hansectl plan --all lists them"}, {true, 2 * (maxPlanItems + 5), ""}} {
		plan := Plan{Plan: p, All: tc.all}
		s := plan.Sections()[0]
		if len(s.Items) != tc.entries || s.Rest != tc.rest {
			t.Errorf("all %t: %d entries, %q", tc.all, len(s.Items), s.Rest)
		}
		var text strings.Builder
		plan.Write(&text, time.Time{})
		if !strings.Contains(text.String(), tc.rest) {
			t.Errorf("the text lacks %q:\n%s", tc.rest, text.String())
		}
	}
}

func TestTheDiffOfAPlanIsColoredOnATerminalAndFencedInMarkdown(t *testing.T) {
	group := preview.Group{
		Clusters: []string{"eu-1", "eu-2"}, Fields: []preview.Field{{Path: "/data/a", Before: "1", After: "```"}},
		Before: map[string]any{"data": map[string]any{"a": "1"}}, After: map[string]any{"data": map[string]any{"a": "```"}},
	}
	p := preview.Plan{Changes: []preview.Change{
		{Object: preview.Object{Kind: "ConfigMap", Namespace: "shop", Name: "a"}, Groups: []preview.Group{group}},
		{Object: preview.Object{Kind: "Secret", Namespace: "shop", Name: "b"}, Groups: []preview.Group{{Clusters: []string{"eu-1"}, Fields: group.Fields}}},
	}}
	if err := AddDiffs(&p); err != nil {
		t.Fatal(err)
	}
	if p.Changes[1].Groups[0].Diff != "" {
		t.Errorf("a Secret has a diff: %s", p.Changes[1].Groups[0].Diff)
	}
	var text, markdown strings.Builder
	Plan{Plan: p, Colours: true}.Write(&text, time.Time{})
	for _, want := range []string{red + "-  a: \"1\"" + plain, "with the change, the same on eu-1, eu-2"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, text.String())
		}
	}
	Plan{Plan: p}.WriteMarkdown(&markdown)
	if !strings.Contains(markdown.String(), "\n  ````diff\n  --- eu-1/ConfigMap/shop/a\tnow\n") {
		t.Errorf("the markdown is\n%s", markdown.String())
	}
}

func TestLongValuesOfAPlanShowTheirDifference(t *testing.T) {
	for name, tc := range map[string]struct {
		before, after any
		want          string
	}{
		"short values are whole":            {5, 6, "/spec/a: 5 -> 6"},
		"a value that was not set":          {nil, "a", `/spec/a: (none) -> "a"`},
		"a long value that differs at once": {"a" + strings.Repeat("x", 50), "b", `/spec/a: "a` + strings.Repeat("x", 37) + `… -> "b"`},
		"the tag of an image": {
			"registry.example.com/rotor-operator:1.0.0", "registry.example.com/rotor-operator:1.1.0",
			`/spec/a: …otor-operator:1.0.0" -> …otor-operator:1.1.0"`,
		},
		"a text that only becomes longer": {strings.Repeat("x", 50), strings.Repeat("x", 51), `/spec/a: …` + strings.Repeat("x", 16) + `" -> …` + strings.Repeat("x", 17) + `"`},
		"letters of two bytes stay whole": {strings.Repeat("ä", 30) + "b", strings.Repeat("ä", 30) + "c", `/spec/a: …` + strings.Repeat("ä", 8) + `b" -> …` + strings.Repeat("ä", 8) + `c"`},
	} {
		if got := fieldText(preview.Field{Path: "/spec/a", Before: tc.before, After: tc.after}); got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}
