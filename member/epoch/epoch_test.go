package epoch

import (
	"strings"
	"testing"
)

func epochs(t *testing.T, lines ...string) Epochs {
	t.Helper()
	l, ok := ParseEpochs(strings.Join(lines, "\n"))
	if !ok {
		t.Fatalf("reading %q", lines)
	}
	return l
}

func TestNewer(t *testing.T) {
	known := []string{"10-a", "11-b", "12-c"}
	for name, test := range map[string]struct {
		mark        string
		decision    string // of the copy; the hub has decision b;8
		generation  int64
		accepted    string
		otherObject bool
		noEpochs    bool
		held        bool
		want        bool
	}{
		"a copy of the same decision is not newer":                                             {mark: "5;11-b", decision: "b;8", generation: 5},
		"a copy of an earlier decision is not newer":                                           {mark: "5;11-b", decision: "b;7", generation: 5},
		"a copy of a later decision is newer":                                                  {mark: "5;11-b", decision: "b;9", generation: 5, want: true},
		"a later decision is newer also for an object that was created again":                  {mark: "5;11-b", decision: "b;9", generation: 5, otherObject: true, want: true},
		"a later decision is newer also without a list of epochs":                              {mark: "5;11-b", decision: "b;9", generation: 5, noEpochs: true, want: true},
		"decisions on a binding that was made anew start at 1":                                 {mark: "5;11-b", decision: "old;900", generation: 5},
		"a decision that cannot be read is no decision":                                        {mark: "5;11-b", decision: "b;nine", generation: 5},
		"a decision without a mark is no mark":                                                 {decision: "b;9", generation: 5},
		"a later decision of an old epoch is not newer":                                        {mark: "5;9-z", decision: "b;9", generation: 5},
		"an accepted mark is not newer, whatever its decision":                                 {mark: "5;11-b", decision: "b;9", generation: 5, accepted: "5;11-b"},
		"a copy that was found newer stays so":                                                 {mark: "5;11-b", decision: "b;7", generation: 6, held: true, want: true},
		"an accepted one does not":                                                             {mark: "5;11-b", decision: "b;7", generation: 6, held: true, accepted: "5;11-b"},
		"nor does one whose epoch became old":                                                  {mark: "5;9-z", decision: "b;7", generation: 6, held: true},
		"nor does one without a mark":                                                          {generation: 6, held: true},
		"a copy of a known epoch and the same generation is not newer":                         {mark: "5;11-b", generation: 5},
		"a copy of an older generation is not newer":                                           {mark: "4;12-c", generation: 5},
		"a copy of a higher generation of the same object is newer":                            {mark: "6;12-c", generation: 5, want: true},
		"generations of two objects are not compared":                                          {mark: "6;12-c", generation: 5, otherObject: true},
		"an epoch with the sequence of a known one and another random part is newer":           {mark: "5;12-x", generation: 5, want: true},
		"an epoch above the last one is newer":                                                 {mark: "5;13-d", generation: 5, want: true},
		"an epoch far above the last one is newer":                                             {mark: "5;9223372036854775807-d", generation: 5, want: true},
		"a foreign epoch is newer also for another object":                                     {mark: "1;13-d", generation: 5, otherObject: true, want: true},
		"an epoch that left the list is old, whatever the generation":                          {mark: "9;9-z", generation: 5},
		"a copy without a mark is not newer":                                                   {mark: "", generation: 5},
		"a mark that cannot be read is no mark":                                                {mark: "seven;13-d", generation: 5},
		"an accepted mark is not newer":                                                        {mark: "6;13-d", generation: 5, accepted: "6;13-d"},
		"one of several accepted marks is not newer":                                           {mark: "6;13-d", generation: 5, accepted: "7;13-e, 6;13-d"},
		"another mark than the accepted one is newer":                                          {mark: "7;13-d", generation: 5, accepted: "6;13-d", want: true},
		"without a list of epochs only the generation tells":                                   {mark: "5;13-d", generation: 5, noEpochs: true},
		"without a list of epochs a higher generation is newer":                                {mark: "6;13-d", generation: 5, noEpochs: true, want: true},
		"a kind without generations is newer by its epoch":                                     {mark: "0;13-d", want: true},
		"a kind without generations is not newer within a known epoch, where nothing tells it": {mark: "0;12-c"},
	} {
		t.Run(name, func(t *testing.T) {
			s := State{Mark: Mark{Generation: test.generation, Decision: Decision{"b", 8}}, Accepted: test.accepted, Held: test.held}
			if !test.noEpochs {
				s.Epochs = epochs(t, known...)
			}
			if got := s.Newer(ReadMark(test.mark, test.decision), !test.otherObject); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestARestoredHubTellsTheEpochsThatItForgot(t *testing.T) {
	backup := Epochs{}.Append("a", 100, 1000).Append("b", 0, 1000)
	lost := backup
	var forgotten []Epoch
	for _, random := range []string{"l1", "l2", "l3"} {
		lost = lost.Append(random, 0, 1000)
		last, _ := lost.Last()
		forgotten = append(forgotten, last)
	}
	restored := backup
	for step, random := range []string{"", "r1", "r2", "r3", "r4", "r5"} {
		if random != "" {
			restored = restored.Append(random, 0, 1000)
		}
		for _, e := range forgotten {
			if !restored.Foreign(e) {
				t.Errorf("after %d epochs of the restored hub, %s is not foreign", step, e)
			}
		}
		for _, e := range restored.all {
			if restored.Foreign(e) {
				t.Errorf("%s is in the list and foreign", e)
			}
		}
	}
	accepted := restored.Restart("n", 50)
	for _, e := range append(forgotten, restored.all...) {
		if accepted.Foreign(e) {
			t.Errorf("%s is foreign after all were accepted", e)
		}
	}
}

func TestTheOldestEpochsLeaveTheList(t *testing.T) {
	l := Epochs{}
	for range 5 {
		l = l.Append("a", 7, 3)
	}
	if got, want := l.String(), "9-a\n10-a\n11-a\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAppendLeavesTheListAsItWas(t *testing.T) {
	l := epochs(t, "1-a", "2-b")
	one, two := l.Append("x", 0, 9), l.Append("y", 0, 9)
	if one.String() != "1-a\n2-b\n3-x\n" || two.String() != "1-a\n2-b\n3-y\n" || l.Len() != 2 {
		t.Errorf("got %q, %q and %q", one, two, l)
	}
}

func TestParseEpochsRefusesWhatItDidNotWrite(t *testing.T) {
	for _, text := range []string{"1-a\n3-b", "2-a\n1-b", "a-1", "1", "1-", "-1-a", "01-a", "1-A", "1-aaaaaaaaaaaaaaaaa"} {
		if _, ok := ParseEpochs(text); ok {
			t.Errorf("%q was read", text)
		}
	}
}

func FuzzParseMark(f *testing.F) {
	for _, text := range []string{"", "7;1764028800-3f9c01ab", "0;0-a", ";", "1;1-a;2", "-1;1-a", "1;1-é", strings.Repeat("1", 70)} {
		f.Add(text, "10-a 11-b", text)
	}
	f.Fuzz(func(t *testing.T, text, list, accepted string) {
		m := ParseMark(text)
		if m != (Mark{}) && m.String() != text {
			t.Errorf("%q was read as %q", text, m)
		}
		if ParseMark(m.String()) != m {
			t.Errorf("%q is not read again", m)
		}
		l, ok := ParseEpochs(list)
		if again, read := ParseEpochs(l.String()); ok && (!read || again.String() != l.String()) {
			t.Errorf("%q is not read again", l)
		}
		s := State{Mark: Mark{Generation: 5}, Epochs: l, Accepted: accepted}
		if s.Newer(m, true) && accepted == text {
			t.Errorf("%q is newer although it was accepted", text)
		}
		if s.Newer(m, false) && !s.Newer(m, true) {
			t.Errorf("%q is newer for another object alone", text)
		}
	})
}

func TestWithoutADecisionOfTheHubNoneIsCompared(t *testing.T) {
	s := State{Mark: Mark{Generation: 5}, Epochs: epochs(t, "10-a")}
	for _, decision := range []string{"b;9", ";9", ""} {
		if s.Newer(ReadMark("5;10-a", decision), true) {
			t.Errorf("%q is newer", decision)
		}
	}
}

func FuzzParseDecision(f *testing.F) {
	for _, text := range []string{"", "0c5a7f9e-6f0e-4a52-9a3b-2f1a5c1f6d11;12", "b;", ";1", "b;-1", "b;1;2", "é;1", strings.Repeat("1", 70)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d := ParseDecision(text)
		if d != (Decision{}) && d.String() != text {
			t.Errorf("%q was read as %q", text, d)
		}
		if ParseDecision(d.String()) != d || len(d.String()) > 64 {
			t.Errorf("%q is not read again", d)
		}
	})
}
