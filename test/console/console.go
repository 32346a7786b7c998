// Package console finds the shell commands in Markdown pages, so that tests can parse and run them.
package console

import (
	"regexp"
	"strings"
)

var (
	block        = regexp.MustCompile("(?s)```console\n(.*?)```")
	hereDocument = regexp.MustCompile(`<<-?'?(\w+)'?`)
)

// Blocks returns the commands of each code block of a page: the lines that start with "$ ", with their continuation
// lines. If no line of a block starts with "$ ", every line is a command.
func Blocks(page string) []string {
	var blocks []string
	for _, found := range block.FindAllStringSubmatch(page, -1) {
		blocks = append(blocks, commands(found[1]))
	}
	return blocks
}

func commands(text string) string {
	if !strings.HasPrefix(text, "$ ") && !strings.Contains(text, "\n$ ") {
		return text
	}
	var out strings.Builder
	goesOn, end := false, "" // end is the last line of a here-document
	for line := range strings.Lines(text) {
		command, begins := strings.CutPrefix(line, "$ ")
		if !begins && !goesOn {
			continue
		}
		out.WriteString(command)
		if here := hereDocument.FindStringSubmatch(command); here != nil {
			end = here[1]
		} else if strings.TrimSpace(line) == end {
			end = ""
		}
		goesOn = end != "" || strings.HasSuffix(line, "\\\n")
	}
	return out.String()
}
