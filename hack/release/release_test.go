package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// committed is the time of the commit in these tests.
var committed = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func mustVersion(t *testing.T, tag string) Version {
	t.Helper()
	v, err := ParseVersion(tag)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// onRepository returns a release of this repository that uses the real helm. The test is skipped if helm is not
// installed.
func onRepository(t *testing.T) *release {
	t.Helper()
	helm := os.Getenv("HANSE_HELM")
	if helm == "" {
		t.Skip("HANSE_HELM is not set: make test-modules sets it")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return &release{version: mustVersion(t, "v0.7.0-rc.1"), root: root, out: t.TempDir(), helm: helm, registry: "ghcr.io/hanse-dev"}
}

// wantError fails the test unless the error contains the text. If the text is empty, there must be no error.
func wantError(t *testing.T, err error, text string) {
	t.Helper()
	switch {
	case text == "" && err != nil:
		t.Fatalf("unexpected error: %v", err)
	case text != "" && err == nil:
		t.Fatalf("no error, want one with %q", text)
	case text != "" && !strings.Contains(err.Error(), text):
		t.Fatalf("error %q, want one with %q", err, text)
	}
}

func TestCheck(t *testing.T) {
	tests := map[string]struct {
		changelog  string
		dirty      bool
		allowDirty bool
		wantError  string
	}{
		"a clean tree with a section for the version is released":   {changelog: "## [0.1.0]\n\n- New\n"},
		"a changed tree is refused":                                 {changelog: "## [0.1.0]\n\n- New\n", dirty: true, wantError: "not committed"},
		"a changed tree is released for a trial":                    {changelog: "## [0.1.0]\n\n- New\n", dirty: true, allowDirty: true},
		"a changelog without the section is refused, with its name": {changelog: "# Changelog\n", wantError: "CHANGELOG.md: no section"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			git := func(args ...string) {
				t.Helper()
				cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", root, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("git %v: %v: %s", args, err, out)
				}
			}
			git("init", "--quiet")
			if err := writeFiles(root, []file{{"CHANGELOG.md", 0o644, []byte(tt.changelog)}}); err != nil {
				t.Fatal(err)
			}
			git("add", ".")
			git("commit", "--quiet", "--message", "Begin")
			if tt.dirty {
				if err := writeFiles(root, []file{{"new.txt", 0o644, nil}}); err != nil {
					t.Fatal(err)
				}
			}
			err := check(t.Context(), &release{version: mustVersion(t, "v0.1.0"), root: root, allowDirty: tt.allowDirty})
			wantError(t, err, tt.wantError)
		})
	}
}

func TestParseVersion(t *testing.T) {
	tests := map[string]struct {
		tag, wantPlain, wantError string
	}{
		"a version of three numbers is taken":           {tag: "v1.2.3", wantPlain: "1.2.3"},
		"a version of a candidate is taken":             {tag: "v0.1.0-rc.1", wantPlain: "0.1.0-rc.1"},
		"a version without v is refused":                {tag: "1.2.3", wantError: `version "1.2.3" does not begin with v`},
		"a version of two numbers is refused":           {tag: "v1.2", wantError: "pass VERSION=vX.Y.Z"},
		"the hash of a commit is refused":               {tag: "5d30937-dirty", wantError: "does not begin with v"},
		"build metadata is refused, for tags of images": {tag: "v1.2.3+abc", wantError: "build metadata"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			v, err := ParseVersion(tt.tag)
			wantError(t, err, tt.wantError)
			if err == nil && (v.Plain() != tt.wantPlain || v.Tag() != tt.tag) {
				t.Errorf("tag %q and version %q, want %q and %q", v.Tag(), v.Plain(), tt.tag, tt.wantPlain)
			}
		})
	}
}

func TestCutNotes(t *testing.T) {
	const changelog = `# Changelog

Text.

## [Unreleased]

### Added

- Later

## [0.2.0] - 2026-02-01

### Added

- Second

## [0.1.0] - 2026-01-01

- First

[0.1.0]: https://example.com
`
	tests := map[string]struct {
		changelog, version, want, wantSection, wantError string
	}{
		"the section of the version ends at the next one":           {changelog, "v0.2.0", "### Added\n\n- Second\n", "0.2.0", ""},
		"the last section ends before the targets of links":         {changelog, "v0.1.0", "- First\n", "0.1.0", ""},
		"a version without a section gets the unreleased changes":   {changelog, "v0.3.0", "### Added\n\n- Later\n", "Unreleased", ""},
		"a candidate does not get the section of the final version": {changelog, "v0.2.0-rc.1", "### Added\n\n- Later\n", "Unreleased", ""},
		"a changelog without both is an error":                      {"# Changelog\n", "v0.3.0", "", "", "no section is named [0.3.0] or [Unreleased]"},
		"an empty section is an error":                              {"## [0.3.0]\n\n## [0.2.0]\n- a\n", "v0.3.0", "", "", "section [0.3.0] is empty"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			notes, section, err := CutNotes(tt.changelog, mustVersion(t, tt.version))
			wantError(t, err, tt.wantError)
			if notes != tt.want || section != tt.wantSection {
				t.Errorf("notes %q of section %q, want %q of %q", notes, section, tt.want, tt.wantSection)
			}
		})
	}
}
