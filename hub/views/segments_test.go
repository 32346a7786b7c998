package views

import (
	"net/url"
	"path"
	"testing"

	"github.com/hanse-dev/hanse/view/wire"
)

// FuzzACopyToPruneLeadsToNoOtherPath checks that no text of a request changes the structure of the paths that the hub
// builds of it, for requests to the member with the hub's credentials.
func FuzzACopyToPruneLeadsToNoOtherPath(f *testing.F) {
	for _, hostile := range []string{"", "apps", "v1", "..", ".", "../../secrets/x", "a/b", "..%2f..%2fsecrets", "%2e%2e", "/", "a?b", "a#b"} {
		f.Add(hostile, "v1", "shop", "web")
		f.Add("apps", hostile, "shop", "web")
		f.Add("apps", "v1", hostile, "web")
		f.Add("apps", "v1", "shop", hostile)
	}
	f.Fuzz(func(t *testing.T, group, version, namespace, name string) {
		c := wire.ShownCopy{Object: wire.Object{Group: group, Kind: "Deployment", Namespace: namespace, Name: name}, Version: version, UID: "u", ResourceVersion: "1"}
		if checkCopy(c) != nil {
			return
		}
		segments := []string{group, version, namespace, name}
		wanted := 0
		for _, s := range segments {
			if s != "" {
				wanted++
			}
		}
		joined := (&url.URL{Path: "/" + path.Join(segments...)}).EscapedPath()
		read, err := url.Parse("https://member" + joined)
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		for rest := read.Path; rest != "" && rest != "/"; rest = path.Dir(rest) {
			got++
		}
		if got != wanted || read.RawQuery != "" || read.Fragment != "" {
			t.Errorf("%q became %q", segments, joined)
		}
	})
}
