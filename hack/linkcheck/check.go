package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"strings"
)

// A Broken link, and what is wrong with it.
type Broken struct {
	File   string
	Line   int
	Target string
	Reason string
}

func (b Broken) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", b.File, b.Line, b.Target, b.Reason)
}

// Check returns the broken relative links of every Markdown file in a tree. Hidden folders and testdata are passed over.
func Check(tree fs.FS) ([]Broken, error) {
	var broken []Broken
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
		for _, link := range parse(string(text)).links {
			reason, err := follow(tree, name, link.target)
			if err != nil {
				return err
			}
			if reason != "" {
				broken = append(broken, Broken{File: name, Line: link.line, Target: link.target, Reason: reason})
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("checking links: %w", err)
	}
	return broken, nil
}

// follow returns why a link in a file leads nowhere, or nothing if it leads somewhere.
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
