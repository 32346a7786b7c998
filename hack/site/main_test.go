package main

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestALinkLeadsToAFileAndAHeading(t *testing.T) {
	site := fstest.MapFS{
		"site.css": {},
		"index.html": {Data: []byte(`<link rel="stylesheet" href="/site.css"><h1 id="top">Top</h1>
			<a href="/tasks/place/#change">place</a> <a href="/tasks/place/#gone">gone</a> <a href="/gone/">gone</a>
			<a href="#top">top</a> <a href="#gone">gone</a> <a href="https://example.com/#x">elsewhere</a>`)},
		"tasks/place/index.html": {Data: []byte(`<h2 id="change">Change</h2><a href="../../#top">up</a><img src="/images/a.png">`)},
	}
	want := []string{
		"index.html: /tasks/place/#gone: no such heading",
		"index.html: /gone/: no such file",
		"index.html: #gone: no such heading",
		"tasks/place/index.html: /images/a.png: no such file",
	}
	got, err := Check(site)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

func TestAFolderWithoutPagesIsAnError(t *testing.T) {
	if _, err := Check(fstest.MapFS{"site.css": {}}); err == nil {
		t.Error("no error")
	}
}
