package overrides

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPartsOfAnImage(t *testing.T) {
	a, b := "sha256:"+strings.Repeat("a", 64), "sha256:"+strings.Repeat("b", 64)
	tests := map[string]struct {
		image string
		parts imageParts
		want  string // empty: the image is invalid
	}{
		"a tag in place of none":                                  {"nginx", imageParts{tag: "2"}, "nginx:2"},
		"a tag in place of another":                               {"x/y:1", imageParts{tag: "2"}, "x/y:2"},
		"a tag takes a digest away":                               {"x/y:1@" + a, imageParts{tag: "2"}, "x/y:2"},
		"a digest takes a tag away":                               {"x/y:1", imageParts{digest: b}, "x/y@" + b},
		"a tag and a digest":                                      {"x/y:1@" + a, imageParts{tag: "2", digest: b}, "x/y:2@" + b},
		"a registry keeps tag and digest":                         {"quay.io/x/y:1@" + a, imageParts{registry: "r.io"}, "r.io/x/y:1@" + a},
		"a registry for an image of docker.io":                    {"x/y", imageParts{registry: "r.io"}, "r.io/x/y"},
		"a registry for one that is in library":                   {"nginx:1", imageParts{registry: "r.io:5000"}, "r.io:5000/library/nginx:1"},
		"a registry for docker.io by its full name":               {"docker.io/library/nginx:1", imageParts{registry: "r.io"}, "r.io/library/nginx:1"},
		"a registry for docker.io by its old name":                {"index.docker.io/x/y:1", imageParts{registry: "r.io"}, "r.io/x/y:1"},
		"a registry with a port":                                  {"localhost:5000/x:1", imageParts{registry: "localhost"}, "localhost/x:1"},
		"a registry is not a host without a dot":                  {"team/x", imageParts{registry: "r.io"}, "r.io/team/x"},
		"a repository keeps the registry":                         {"quay.io/x/y:1", imageParts{repository: "z"}, "quay.io/z:1"},
		"a repository without a registry":                         {"nginx:1", imageParts{repository: "x/y"}, "x/y:1"},
		"a repository that looks like a registry":                 {"nginx:1", imageParts{repository: "a.b/c"}, "docker.io/a.b/c:1"},
		"an image by its digest alone keeps it":                   {"nginx@" + a, imageParts{repository: "x"}, "x@" + a},
		"all parts in place of what cannot be read":               {"${IMAGE}", imageParts{registry: "r.io", repository: "x", tag: "1"}, "r.io/x:1"},
		"some parts in place of what cannot be read":              {"${IMAGE}", imageParts{registry: "r.io", tag: "1"}, ""},
		"an empty image":                                          {"", imageParts{tag: "1"}, ""},
		"an image in capitals":                                    {"NGINX", imageParts{tag: "1"}, ""},
		"an image with a space":                                   {"nginx :1", imageParts{tag: "1"}, ""},
		"a name of 64 hexadecimal digits, which looks like an ID": {strings.Repeat("a", 64), imageParts{tag: "1"}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, message := tc.parts.of(tc.image)
			if got != tc.want || (message == "") != (tc.want != "") {
				t.Errorf("%q (%s), want %q", got, message, tc.want)
			}
			if again, _ := tc.parts.of(got); tc.want != "" && again != got {
				t.Errorf("and then %q", again)
			}
		})
	}
}

func TestPartsThatNoImageCanHave(t *testing.T) {
	tests := map[string]struct {
		parts imageParts
		leaf  string
	}{
		"a host without a dot":         {imageParts{registry: "mirror"}, "registry"},
		"a registry with a path":       {imageParts{registry: "r.io/x"}, "registry"},
		"a registry with a scheme":     {imageParts{registry: "https://r.io"}, "registry"},
		"a registry with a bad port":   {imageParts{registry: "r.io:x"}, "registry"},
		"docker.io by its old name":    {imageParts{registry: "index.docker.io"}, "registry"},
		"a repository in capitals":     {imageParts{repository: "X"}, "repository"},
		"a repository with a tag":      {imageParts{repository: "x:1"}, "repository"},
		"a repository with a slash":    {imageParts{repository: "/x"}, "repository"},
		"a tag with a slash":           {imageParts{tag: "a/b"}, "tag"},
		"a tag with a digest":          {imageParts{tag: "1@sha256:" + strings.Repeat("a", 64)}, "tag"},
		"a digest that is too short":   {imageParts{digest: "sha256:abc"}, "digest"},
		"a digest without algorithm":   {imageParts{digest: strings.Repeat("a", 64)}, "digest"},
		"a digest that nobody can use": {imageParts{digest: "md5:" + strings.Repeat("a", 32)}, "digest"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			leaf, message := tc.parts.malformed()
			if diff := cmp.Diff(tc.leaf, leaf); diff != "" || message == "" {
				t.Errorf("-want +got:\n%s%s", diff, message)
			}
		})
	}
}
