package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"strings"
)

// Fault is a broken link or a wide line in a Markdown file.
type Fault struct {
	File string
	Line int
	What string
}

func (f Fault) String() string {
	return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.What)
}

// Check returns the broken relative links and the wide lines of every Markdown file in a tree. It skips hidden folders
// and testdata.
func Check(tree fs.FS) ([]Fault, error) {
	var faults []Fault
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata") {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".md" {
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		doc := parse(string(text))
		for _, line := range doc.wide {
			faults = append(faults, Fault{File: name, Line: line, What: fmt.Sprintf("wider than %d columns", maxColumns)})
		}
		for _, link := range doc.links {
			reason, err := follow(tree, name, link.target)
			if err != nil {
				return err
			}
			if reason != "" {
				faults = append(faults, Fault{File: name, Line: link.line, What: link.target + ": " + reason})
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("checking Markdown files: %w", err)
	}
	return faults, nil
}

// follow returns why a link in a file is broken. The text is empty if the link is valid.
func follow(tree fs.FS, from, target string) (string, error) {
	u, err := url.Parse(target)
	if err != nil {
		return "not a valid link", nil //nolint:nilerr // a link that cannot be read is a finding, not a failure of the check
	}
	if u.Scheme != "" || u.Host != "" {
		return "", nil
	}
	to := from
	if u.Path != "" {
		to = path.Join(path.Dir(from), u.Path)
	}
	if strings.HasPrefix(u.Path, "/") || !fs.ValidPath(to) {
		return "leaves the repository", nil
	}
	info, err := fs.Stat(tree, to)
	if errors.Is(err, fs.ErrNotExist) {
		return "no such file", nil
	}
	if err != nil {
		return "", err
	}
	if u.Fragment == "" || info.IsDir() || path.Ext(to) != ".md" {
		return "", nil
	}
	text, err := fs.ReadFile(tree, to)
	if err != nil {
		return "", err
	}
	if !parse(string(text)).anchors[u.Fragment] {
		return "no such heading", nil
	}
	return "", nil
}
