package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var (
	heading = regexp.MustCompile(`^## \[([^]]+)\]`)
	// linkTarget matches a line such as [0.1.0]: https://example.com. Lines of this form end the last section.
	linkTarget = regexp.MustCompile(`^\[[^]]+\]: `)
)

const unreleased = "Unreleased"

// CutNotes returns the section of a changelog for the version, with the name of the section. If the version has no
// section, it returns the section of unreleased changes.
func CutNotes(changelog string, version Version) (notes, section string, err error) {
	for _, section := range []string{version.Plain(), unreleased} {
		lines, found := cut(changelog, section)
		if !found {
			continue
		}
		notes := strings.TrimSpace(strings.Join(lines, "\n"))
		if notes == "" {
			return "", "", fmt.Errorf("the section [%s] is empty", section)
		}
		return notes + "\n", section, nil
	}
	return "", "", errors.New("no section is named [" + version.Plain() + "] or [" + unreleased + "]")
}

func cut(changelog, section string) (lines []string, found bool) {
	for line := range strings.Lines(changelog) {
		line = strings.TrimRight(line, "\r\n")
		match := heading.FindStringSubmatch(line)
		switch {
		case match != nil && found, linkTarget.MatchString(line) && found:
			return lines, true
		case match != nil:
			found = match[1] == section
		case found:
			lines = append(lines, line)
		}
	}
	return lines, found
}
