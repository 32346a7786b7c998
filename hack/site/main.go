// Command site checks the pages that hugo has built from docs/: each link to the site itself must lead to a file and a
// heading. hack/doccheck checks the links of the Markdown files.
package main

import (
	"errors"
	"fmt"
	"html"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: site FOLDER")
		os.Exit(2)
	}
	faults, err := Check(os.DirFS(os.Args[1]))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	for _, f := range faults {
		fmt.Fprintln(os.Stderr, f)
	}
	if len(faults) > 0 {
		os.Exit(1)
	}
}

var (
	reference = regexp.MustCompile(`<(?:a|link|script|img)\b[^>]*?\s(?:href|src)="([^"]*)"`)
	named     = regexp.MustCompile(`<[^>]*\sid="?([^\s">]+)`)
)

// page is what the check needs of a page of HTML.
type page struct {
	references []string
	ids        map[string]bool
}

// Check returns a line for each link that leads nowhere. It is an error if the site has no pages.
func Check(site fs.FS) ([]string, error) {
	pages := map[string]page{}
	err := fs.WalkDir(site, ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".html" {
			return err
		}
		text, err := fs.ReadFile(site, name)
		pages[name] = read(string(text))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the site: %w", err)
	}
	if len(pages) == 0 {
		return nil, errors.New("the folder has no pages")
	}
	var faults []string
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		for _, r := range pages[name].references {
			if what := fault(site, pages, name, r); what != "" {
				faults = append(faults, fmt.Sprintf("%s: %s: %s", name, r, what))
			}
		}
	}
	return faults, nil
}

func read(text string) page {
	p := page{ids: map[string]bool{}}
	for _, m := range reference.FindAllStringSubmatch(text, -1) {
		p.references = append(p.references, html.UnescapeString(m[1]))
	}
	for _, m := range named.FindAllStringSubmatch(text, -1) {
		p.ids[html.UnescapeString(m[1])] = true
	}
	return p
}

// fault says what is wrong with a link of the page, or returns an empty text.
func fault(site fs.FS, pages map[string]page, from, link string) string {
	to, err := url.Parse(link)
	if err != nil {
		return "not a URL"
	}
	if to.Scheme != "" || to.Host != "" {
		return ""
	}
	name := from
	if to.Path != "" {
		name = path.Join("/", path.Dir(from), to.Path)[1:]
		if path.IsAbs(to.Path) {
			name = path.Clean(to.Path)[1:]
		}
		if path.Ext(name) == "" {
			name = path.Join(name, "index.html")
		}
	}
	if _, err := fs.Stat(site, name); err != nil {
		return "no such file"
	}
	if to.Fragment != "" && !pages[name].ids[to.Fragment] {
		return "no such heading"
	}
	return ""
}
