package main

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	programs := []string{"-lab", "lab", "-bin", "bin", "-helm", "helm"}
	tests := map[string]struct {
		args             []string
		objects, members int
		bad              bool
	}{
		"a profile has its sizes":                     {args: []string{"-profile", "wide"}, objects: 150, members: 10},
		"sizes can be given":                          {args: []string{"-objects", "7", "-members", "2"}, objects: 7, members: 2},
		"memory needs members to compare":             {args: []string{"-profile", "memory", "-members", "1"}, bad: true},
		"isolation needs a good member":               {args: []string{"-profile", "isolation", "-members", "3"}, bad: true},
		"a profile that is not there is refused":      {args: []string{"-profile", "huge"}, bad: true},
		"an argument that is not a flag is refused":   {args: []string{"small"}, bad: true},
		"a number of objects below one is refused":    {args: []string{"-objects", "-1"}, bad: true},
		"a program that is given as empty is refused": {args: []string{"-lab", ""}, bad: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o, err := parse(append(programs[:len(programs):len(programs)], tt.args...))
			if (err != nil) != tt.bad {
				t.Fatalf("error is %v", err)
			}
			if !tt.bad && (o.objects != tt.objects || o.members != tt.members) {
				t.Errorf("%d objects to %d members, want %d to %d", o.objects, o.members, tt.objects, tt.members)
			}
		})
	}
}

func TestTwoBenchmarksDoNotRunAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a second benchmark starts beside the first, or is not told what holds it up: %v", err)
	}
	unlock()
	if unlock, err = lock(path); err != nil {
		t.Fatalf("after the first has ended: %v", err)
	}
	unlock()
}
