package sbom_test

import (
	"bytes"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/distribution/reference"
	"github.com/google/go-cmp/cmp"
	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdxlib"

	"github.com/hanse-dev/hanse/hack/image/sbom"
)

var (
	sum    = strings.Repeat("ab", 32)
	digest = "sha256:" + strings.Repeat("0f", 32)
)

func img(t *testing.T, binaries ...sbom.Binary) sbom.Image {
	t.Helper()
	named, err := reference.ParseNamed("ghcr.io/hanse-dev/hanse-hub:0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	return sbom.Image{
		Name:     named.(reference.NamedTagged),
		Digest:   digest,
		License:  "Apache-2.0",
		Created:  time.Unix(1700000000, 0),
		Roots:    debug.Module{Path: "golang.org/x/crypto/x509roots/fallback", Version: "v0.1.0", Sum: h1(1)},
		Binaries: binaries,
	}
}

// h1 returns a checksum in the form of go.sum.
func h1(b byte) string {
	return "h1:" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, 32))
}

// write writes the document of an image, and returns it parsed and as text.
func write(t *testing.T, img sbom.Image) (*spdx.Document, []byte) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "image.spdx.json")
	if err := sbom.Write(file, img); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	document, err := json.Read(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	if err := spdxlib.ValidateDocument(document); err != nil {
		t.Fatal(err)
	}
	ids := map[common.ElementID]bool{}
	for _, p := range document.Packages {
		if ids[p.PackageSPDXIdentifier] {
			t.Errorf("two packages are called %s", p.PackageSPDXIdentifier)
		}
		ids[p.PackageSPDXIdentifier] = true
	}
	return document, content
}

// packages returns the checksums of the packages in a document, by name and version.
func packages(document *spdx.Document) map[string]string {
	found := map[string]string{}
	for _, p := range document.Packages {
		checksum := ""
		for _, c := range p.PackageChecksums {
			checksum += string(c.Algorithm) + ":" + c.Value
		}
		found[p.PackageName+"@"+p.PackageVersion] = checksum
	}
	return found
}

func TestEveryModuleOfABinaryIsListed(t *testing.T) {
	command := filepath.Join(t.TempDir(), "image")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", command, "../cmd/image")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building a binary: %v\n%s", err, out)
	}
	recorded, err := buildinfo.ReadFile(command)
	if err != nil {
		t.Fatal(err)
	}
	if len(recorded.Deps) == 0 {
		t.Fatal("the binary has no modules")
	}
	binary, err := sbom.ReadBinary("linux/amd64", command)
	if err != nil {
		t.Fatal(err)
	}
	document, _ := write(t, img(t, binary))
	found := packages(document)
	for _, dependency := range recorded.Deps {
		want, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(dependency.Sum, "h1:"))
		if err != nil {
			t.Fatal(err)
		}
		got, ok := found[dependency.Path+"@"+dependency.Version]
		if !ok || got != "SHA256:"+hex.EncodeToString(want) {
			t.Errorf("module %s %s is listed: %t, with checksum %s", dependency.Path, dependency.Version, ok, got)
		}
	}
	if _, ok := found["stdlib@"+strings.TrimPrefix(recorded.GoVersion, "go")]; !ok {
		t.Errorf("%s is not listed", recorded.GoVersion)
	}
}

func TestADocumentNamesTheImageAndWhatIsInIt(t *testing.T) {
	build := func(deps ...*debug.Module) *debug.BuildInfo {
		return &debug.BuildInfo{
			GoVersion: "go1.26.8 X:jsonv2",
			Path:      "github.com/hanse-dev/hanse/cmd/hanse-hub",
			Main:      debug.Module{Path: "github.com/hanse-dev/hanse", Version: "(devel)"},
			Deps:      deps,
		}
	}
	document, _ := write(t, img(t,
		sbom.Binary{Platform: "linux/amd64", Checksum: sum, Build: build(
			&debug.Module{Path: "example.com/both", Version: "v1.0.0+incompatible", Sum: h1(2)},
			&debug.Module{Path: "example.com/old", Version: "v1.0.0", Sum: h1(3), Replace: &debug.Module{
				Path: "example.com/new", Version: "v2.0.0", Sum: h1(4)}},
		)},
		sbom.Binary{Platform: "linux/arm64", Checksum: sum, Build: build(
			&debug.Module{Path: "example.com/both", Version: "v1.0.0+incompatible", Sum: h1(2)},
			&debug.Module{Path: "example.com/here", Version: "v1.0.0", Replace: &debug.Module{Path: "../here"}},
		)},
	))

	if diff := cmp.Diff(map[string]string{
		"ghcr.io/hanse-dev/hanse-hub@0.1.0":             "SHA256:" + strings.Repeat("0f", 32),
		"hanse-hub@0.1.0":                               "SHA256:" + sum,
		"github.com/hanse-dev/hanse@0.1.0":              "",
		"stdlib@1.26.8":                                 "",
		"golang.org/x/crypto/x509roots/fallback@v0.1.0": "SHA256:" + strings.Repeat("01", 32),
		"example.com/both@v1.0.0+incompatible":          "SHA256:" + strings.Repeat("02", 32),
		"example.com/new@v2.0.0":                        "SHA256:" + strings.Repeat("04", 32),
		"example.com/here@v1.0.0":                       "",
	}, packages(document)); diff != "" {
		t.Errorf("packages (-want +got):\n%s", diff)
	}

	names := map[common.ElementID]string{"DOCUMENT": "document"}
	urls := map[string]string{}
	for _, p := range document.Packages {
		names[p.PackageSPDXIdentifier] = strings.TrimSpace(p.PackageName + " " + p.PackageSummary)
		for _, external := range p.PackageExternalReferences {
			urls[p.PackageName] = external.Locator
		}
	}
	var relationships []string
	for _, r := range document.Relationships {
		relationships = append(relationships, names[r.RefA.ElementRefID]+" "+r.Relationship+" "+names[r.RefB.ElementRefID])
	}
	const amd64, arm64 = "hanse-hub binary for linux/amd64", "hanse-hub binary for linux/arm64"
	if diff := cmp.Diff([]string{
		"document DESCRIBES ghcr.io/hanse-dev/hanse-hub",
		"ghcr.io/hanse-dev/hanse-hub CONTAINS golang.org/x/crypto/x509roots/fallback",
		"ghcr.io/hanse-dev/hanse-hub CONTAINS " + amd64,
		amd64 + " DEPENDS_ON github.com/hanse-dev/hanse",
		amd64 + " DEPENDS_ON stdlib",
		amd64 + " DEPENDS_ON example.com/both",
		amd64 + " DEPENDS_ON example.com/new",
		"ghcr.io/hanse-dev/hanse-hub CONTAINS " + arm64,
		arm64 + " DEPENDS_ON github.com/hanse-dev/hanse",
		arm64 + " DEPENDS_ON stdlib",
		arm64 + " DEPENDS_ON example.com/both",
		arm64 + " DEPENDS_ON example.com/here",
	}, relationships); diff != "" {
		t.Errorf("relationships (-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{
		"ghcr.io/hanse-dev/hanse-hub": "pkg:oci/hanse-hub@" + digest + "?repository_url=ghcr.io%2Fhanse-dev%2Fhanse-hub&tag=0.1.0",
		"github.com/hanse-dev/hanse":  "pkg:golang/github.com/hanse-dev/hanse@0.1.0",
		"stdlib":                      "pkg:golang/stdlib@1.26.8",
		"example.com/both":            "pkg:golang/example.com/both@v1.0.0%2Bincompatible",
	} {
		if urls[name] != want {
			t.Errorf("the package URL of %s is %s, want %s", name, urls[name], want)
		}
	}
	if got := document.CreationInfo.Created; got != "2023-11-14T22:13:20Z" {
		t.Errorf("the document says it was created at %s", got)
	}
	if !strings.HasSuffix(document.DocumentNamespace, "/ghcr.io/hanse-dev/hanse-hub@"+digest) {
		t.Errorf("the namespace %s is not unique to the image", document.DocumentNamespace)
	}
}

func TestDocumentsAreReproducible(t *testing.T) {
	binary := sbom.Binary{Platform: "linux/amd64", Checksum: sum, Build: &debug.BuildInfo{GoVersion: "go1.26.8", Deps: []*debug.Module{
		{Path: "example.com/a", Version: "v1.0.0", Sum: h1(1)},
		{Path: "example.com/b", Version: "v1.0.0", Sum: h1(2)},
		{Path: "example.com/c", Version: "v1.0.0", Sum: h1(3)},
	}}}
	_, first := write(t, img(t, binary))
	_, second := write(t, img(t, binary))
	if !bytes.Equal(first, second) {
		t.Errorf("two documents of one image differ:\n%s", cmp.Diff(string(first), string(second)))
	}
}

func TestBadInputIsNamedAndWritesNothing(t *testing.T) {
	tests := map[string]struct {
		change func(*sbom.Image)
		want   string
	}{
		"a digest that is none": {
			change: func(i *sbom.Image) { i.Digest = "0.1.0" }, want: `digest "0.1.0" is not a SHA-256 digest`,
		},
		"a checksum that is none": {
			change: func(i *sbom.Image) {
				i.Binaries = []sbom.Binary{{Platform: "linux/amd64", Build: &debug.BuildInfo{
					Deps: []*debug.Module{{Path: "example.com/a", Version: "v1.0.0", Sum: "h1:!"}},
				}}}
			},
			want: `binary for linux/amd64: checksum "h1:!" of module example.com/a`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			image := img(t)
			test.change(&image)
			err := sbom.Write(filepath.Join(folder, "image.spdx.json"), image)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want one with %q", err, test.want)
			}
			if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
				t.Errorf("the folder holds %v, %v", left, err)
			}
		})
	}
	t.Run("a file that Go did not build", func(t *testing.T) {
		_, err := sbom.ReadBinary("linux/amd64", "sbom_test.go")
		if err == nil || !strings.Contains(err.Error(), "binary sbom_test.go for linux/amd64") {
			t.Errorf("the error is %v", err)
		}
	})
}
