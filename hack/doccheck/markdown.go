package main

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

type link struct {
	line   int
	target string
}

type document struct {
	links   []link
	anchors map[string]bool
	wide    []int // numbers of the lines that are too long
}

var (
	inlineLink = regexp.MustCompile(`\]\(<?([^)\s>]+)>?(?:\s+"[^"]*")?\)`)
	namedLink  = regexp.MustCompile(`^\s{0,3}\[[^\]]+\]:\s*(\S+)`)
	inlineCode = regexp.MustCompile("`[^`]*`")
	heading    = regexp.MustCompile(`^#{1,6}\s+(.*?)\s*#*$`)
	linkText   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	namedID    = regexp.MustCompile(`<a\s+(?:id|name)="([^"]+)"`)
)

// parse finds the links, anchors and wide lines of a Markdown text. It ignores blocks of code.
func parse(text string) document {
	doc := document{anchors: map[string]bool{}}
	seen := map[string]int{}
	fence := ""
	for i, line := range strings.Split(text, "\n") {
		if mark := fenceMark(line); mark != "" && (fence == "" || strings.HasPrefix(mark, fence)) {
			if fence == "" {
				fence = mark
			} else {
				fence = ""
			}
			continue
		}
		if fence != "" {
			continue
		}
		if tooWide(line) {
			doc.wide = append(doc.wide, i+1)
		}
		if m := heading.FindStringSubmatch(line); m != nil {
			doc.anchors[unique(anchor(m[1]), seen)] = true
		}
		for _, m := range namedID.FindAllStringSubmatch(line, -1) {
			doc.anchors[m[1]] = true
		}
		plain := inlineCode.ReplaceAllString(line, "")
		for _, m := range append(inlineLink.FindAllStringSubmatch(plain, -1), namedLink.FindAllStringSubmatch(plain, -1)...) {
			doc.links = append(doc.links, link{line: i + 1, target: m[1]})
		}
	}
	return doc
}

// fenceMark returns the backticks or tildes with which this line opens or closes a block of code. It returns an empty
// text for any other line.
func fenceMark(line string) string {
	trimmed := strings.TrimLeft(line, " \t")
	for _, char := range []string{"`", "~"} {
		if rest := strings.TrimLeft(trimmed, char); len(trimmed)-len(rest) >= 3 {
			return trimmed[:len(trimmed)-len(rest)]
		}
	}
	return ""
}

// anchor returns the anchor that a Git forge creates for a heading: in lower case, without punctuation, with hyphens
// for spaces.
func anchor(title string) string {
	title = linkText.ReplaceAllString(title, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, title)
}

// unique adds a number to the anchors of the second and later headings with the same text.
func unique(anchor string, seen map[string]int) string {
	n := seen[anchor]
	seen[anchor]++
	if n == 0 {
		return anchor
	}
	return anchor + "-" + strconv.Itoa(n)
}
