package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const released = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lamps.example.com}
spec:
  group: example.com
  names: {kind: Lamp, listKind: LampList, plural: lamps, singular: lamp}
  scope: Namespaced
  versions:
  - name: v1alpha1
    served: true
    storage: true
    selectableFields: [{jsonPath: .spec.colour}]
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [colour]
            x-kubernetes-validations: [{rule: self.colour != 'none', message: set a colour}]
            properties:
              colour: {type: string, maxLength: 63, description: Its colour.}
              mode: {type: string, enum: [Full, Half]}
              hours: {type: array, x-kubernetes-list-type: atomic, items: {type: integer}}
          status:
            type: object
`

func TestIncompatibleChangesAreFound(t *testing.T) {
	const spec = "lamps.example.com v1alpha1 ^.spec"
	for name, tc := range map[string]struct {
		change   []string // replacements for strings.NewReplacer
		accepted string
		want     string // the beginning of the only fault; empty if there must be none
	}{
		"the same definition":              {},
		"a new optional field":             {change: []string{"mode: {", "size: {type: integer}\n              mode: {"}},
		"a new value of an enum":           {change: []string{"[Full, Half]", "[Full, Half, Dimmed]"}},
		"another description":              {change: []string{"Its colour.", "The colour of its light."}},
		"a higher limit":                   {change: []string{"maxLength: 63", "maxLength: 253"}},
		"another message of a rule":        {change: []string{"set a colour", "a lamp has a colour"}},
		"a rule was removed":               {change: []string{"            x-kubernetes-validations: [{rule: self.colour != 'none', message: set a colour}]\n", ""}},
		"a field was removed":              {change: []string{"              mode: {type: string, enum: [Full, Half]}\n", ""}, want: spec + ".mode: the field was removed"},
		"another type of a field":          {change: []string{"colour: {type: string, maxLength: 63,", "colour: {type: integer,"}, want: spec + ".colour"},
		"a lower limit":                    {change: []string{"maxLength: 63", "maxLength: 10"}, want: spec + ".colour maxLength"},
		"a new required field":             {change: []string{"[colour]", "[colour, mode]"}, want: spec + " required"},
		"a value of an enum was removed":   {change: []string{"[Full, Half]", "[Full]"}, want: spec + ".mode enum"},
		"a new default":                    {change: []string{"enum: [Full, Half]", "enum: [Full, Half], default: Full"}, want: spec + ".mode default"},
		"a new rule":                       {change: []string{"message: set a colour}", "message: set a colour}, {rule: has(self.mode)}"}, want: spec + " unhandled"},
		"a new rule on entries of a list":  {change: []string{"items: {type: integer}", "items: {type: integer, x-kubernetes-validations: [{rule: self < 24}]}"}, want: spec + ".hours.items unhandled"},
		"a list that is merged otherwise":  {change: []string{"type: atomic", "type: set"}, want: spec + ".hours unhandled"},
		"another scope":                    {change: []string{"scope: Namespaced", "scope: Cluster"}, want: "lamps.example.com scope"},
		"no status subresource":            {change: []string{"    subresources: {status: {}}\n", ""}, want: "lamps.example.com v1alpha1: the subresource status"},
		"a field that cannot be selected":  {change: []string{"    selectableFields: [{jsonPath: .spec.colour}]\n", ""}, want: "lamps.example.com v1alpha1 selectableFields"},
		"a version that is not served":     {change: []string{"served: true", "served: false"}, want: "lamps.example.com v1alpha1: the version"},
		"a definition with another name":   {change: []string{"name: lamps.", "name: lights."}, want: "lamps.example.com: the definition"},
		"an accepted change":               {change: []string{"maxLength: 63", "maxLength: 10"}, accepted: spec + ".colour maxLength # no colour is longer\n"},
		"an accepted change that is none":  {accepted: spec + ".colour maxLength # no colour is longer\n", want: spec + ".colour maxLength: is accepted"},
		"a comment among accepted changes": {accepted: "# Colours.\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			after := strings.NewReplacer(tc.change...).Replace(released)
			if after == released && tc.change != nil {
				t.Fatal("the change changes nothing")
			}
			faults, err := Check(write(t, folder, "old/lamps.yaml", released), write(t, folder, "new/lamps.yaml", after),
				filepath.Join(write(t, folder, "accepted", tc.accepted), "accepted"))
			if err != nil {
				t.Fatal(err)
			}
			if tc.want == "" && len(faults) > 0 || tc.want != "" && (len(faults) != 1 || !strings.HasPrefix(faults[0].String(), tc.want)) {
				t.Errorf("got %v, want one that begins with %q", faults, tc.want)
			}
		})
	}
}

func TestAnAcceptedChangeNeedsItsReason(t *testing.T) {
	folder := t.TempDir()
	crds := write(t, folder, "crds/lamps.yaml", released)
	accepted := filepath.Join(write(t, folder, "accepted", "lamps.example.com scope\n"), "accepted")
	if _, err := Check(crds, crds, accepted); err == nil || !strings.Contains(err.Error(), "has no reason") {
		t.Errorf("got the error %v", err)
	}
}

func TestAnEmptyFolderIsNoRelease(t *testing.T) {
	folder := t.TempDir()
	accepted := filepath.Join(write(t, folder, "accepted", ""), "accepted")
	if _, err := Check(t.TempDir(), write(t, folder, "crds/lamps.yaml", released), accepted); err == nil {
		t.Error("a folder without definitions is accepted")
	}
}

// write writes a file and returns its folder.
func write(t *testing.T, root, name, text string) string {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(path)
}
