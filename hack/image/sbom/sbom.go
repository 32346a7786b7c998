// Package sbom lists the contents of an image as an SPDX 2.3 document: the modules that Go recorded in its binaries,
// the Go release that compiled them, and the bundle of certificates.
//
// Equal images give equal documents. The document's name contains the image's digest, and its time is that of the
// image.
package sbom

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/distribution/reference"
	"github.com/google/renameio/v2"
	"github.com/package-url/packageurl-go"
	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
)

// Image is the image whose contents are listed.
type Image struct {
	// Name is the full name of the image with a tag.
	Name reference.NamedTagged
	// Digest is the digest of the image's index, such as sha256:....
	Digest string
	// License is the SPDX expression for the image and for the main module of its binaries.
	License string
	// Created is the time of the image.
	Created time.Time
	// Roots is the module with the certificates in the image.
	Roots debug.Module
	// Binaries are the binaries of all platforms.
	Binaries []Binary
}

// Binary is a Go binary for one platform.
type Binary struct {
	// Platform is a system and an architecture, such as linux/amd64.
	Platform string
	// Checksum is the SHA-256 sum of the file, in hexadecimal digits.
	Checksum string
	// Build is the build information that Go recorded in the file.
	Build *debug.BuildInfo
}

// ReadBinary reads the modules of a Go binary.
func ReadBinary(platform, file string) (Binary, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return Binary{}, fmt.Errorf("reading the binary for %s: %w", platform, err)
	}
	build, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		return Binary{}, fmt.Errorf("reading the modules of binary %s for %s: %w", file, platform, err)
	}
	sum := sha256.Sum256(content)
	return Binary{Platform: platform, Checksum: hex.EncodeToString(sum[:]), Build: build}, nil
}

// Write writes the document of an image to a file. If Write fails, the file stays unchanged.
func Write(file string, img Image) error {
	document, err := newDocument(img)
	if err != nil {
		return fmt.Errorf("listing the contents of image %s: %w", img.Name, err)
	}
	var out bytes.Buffer
	if err := json.Write(document, &out, json.Indent("  "), json.EscapeHTML(false)); err != nil {
		return fmt.Errorf("encoding the contents of image %s: %w", img.Name, err)
	}
	if err := renameio.WriteFile(file, out.Bytes(), 0o644); err != nil {
		return fmt.Errorf("writing the contents of image %s to %s: %w", img.Name, file, err)
	}
	return nil
}

const documentID = "DOCUMENT"

func newDocument(img Image) (*v2_3.Document, error) {
	list := list{packages: map[common.ElementID]*v2_3.Package{}}
	image, err := imagePackage(img)
	if err != nil {
		return nil, err
	}
	list.relate(documentID, common.TypeRelationshipDescribe, image)
	roots, err := modulePackage(img.Roots)
	if err != nil {
		return nil, err
	}
	list.relate(image.PackageSPDXIdentifier, common.TypeRelationshipContains, roots)
	for _, binary := range img.Binaries {
		if err := list.addBinary(img, image.PackageSPDXIdentifier, binary); err != nil {
			return nil, fmt.Errorf("binary for %s: %w", binary.Platform, err)
		}
	}
	return &v2_3.Document{
		SPDXVersion:       v2_3.Version,
		DataLicense:       v2_3.DataLicense,
		SPDXIdentifier:    documentID,
		DocumentName:      img.Name.String(),
		DocumentNamespace: "https://github.com/hanse-dev/hanse/spdx/" + img.Name.Name() + "@" + img.Digest,
		DocumentComment:   "The SHA256 checksum of a Go module is the h1 sum of go.sum, in hexadecimal digits.",
		CreationInfo: &v2_3.CreationInfo{
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "github.com/hanse-dev/hanse/hack/image"}},
			Created:  img.Created.UTC().Format(time.RFC3339),
		},
		Packages: slices.SortedFunc(maps.Values(list.packages), func(a, b *v2_3.Package) int {
			return cmp.Compare(a.PackageSPDXIdentifier, b.PackageSPDXIdentifier)
		}),
		Relationships: list.relationships,
	}, nil
}

// list collects the SPDX packages of a document and their relationships. A module in the binaries of two platforms is
// one package with one relationship to each binary.
type list struct {
	packages      map[common.ElementID]*v2_3.Package
	relationships []*v2_3.Relationship
}

func (l *list) relate(from common.ElementID, how string, to *v2_3.Package) {
	l.packages[to.PackageSPDXIdentifier] = to
	l.relationships = append(l.relationships, &v2_3.Relationship{
		RefA:         common.DocElementID{ElementRefID: from},
		RefB:         common.DocElementID{ElementRefID: to.PackageSPDXIdentifier},
		Relationship: how,
	})
}

func (l *list) addBinary(img Image, image common.ElementID, binary Binary) error {
	file := newPackage("binary/"+binary.Platform, path.Base(binary.Build.Path), img.Name.Tag(), "APPLICATION")
	file.PackageSummary = "binary for " + binary.Platform
	file.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: binary.Checksum}}
	file.PackageLicenseDeclared = img.License
	l.relate(image, common.TypeRelationshipContains, file)

	// Go records no version for the main module, unless the binary was built from the module cache.
	main := binary.Build.Main
	if main.Version == "" || main.Version == "(devel)" {
		main.Version = img.Name.Tag()
	}
	stdlib := debug.Module{Path: "stdlib", Version: goVersion(binary.Build.GoVersion)}
	modules := []debug.Module{main, stdlib}
	for _, dependency := range binary.Build.Deps {
		modules = append(modules, used(*dependency))
	}
	for i, module := range modules {
		p, err := modulePackage(module)
		if err != nil {
			return err
		}
		if i == 0 {
			p.PackageLicenseDeclared = img.License
		}
		l.relate(file.PackageSPDXIdentifier, common.TypeRelationshipDependsOn, p)
	}
	return nil
}

// used returns the module whose code is in the binary, which may be a replacement. A replacement by a local folder has
// no version and no checksum.
func used(module debug.Module) debug.Module {
	if module.Replace == nil {
		return module
	}
	if module.Replace.Version == "" {
		return debug.Module{Path: module.Path, Version: module.Version}
	}
	return *module.Replace
}

// goVersion returns the version of Go's standard library in the form that scanners use: 1.26.8 for "go1.26.8 X:jsonv2".
func goVersion(recorded string) string {
	release, _, _ := strings.Cut(strings.TrimPrefix(recorded, "go"), " ")
	return release
}

func imagePackage(img Image) (*v2_3.Package, error) {
	algorithm, sum, ok := strings.Cut(img.Digest, ":")
	if !ok || algorithm != "sha256" {
		return nil, fmt.Errorf("digest %q is not a SHA-256 digest", img.Digest)
	}
	p := newPackage("image", img.Name.Name(), img.Name.Tag(), "CONTAINER")
	p.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: sum}}
	p.PackageLicenseDeclared = img.License
	setURL(p, packageurl.NewPackageURL("oci", "", path.Base(img.Name.Name()), img.Digest, packageurl.QualifiersFromMap(
		map[string]string{"repository_url": img.Name.Name(), "tag": img.Name.Tag()}), ""))
	return p, nil
}

func modulePackage(module debug.Module) (*v2_3.Package, error) {
	p := newPackage("module/"+module.Path+"/"+module.Version, module.Path, module.Version, "LIBRARY")
	if module.Sum != "" {
		sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(module.Sum, "h1:"))
		if err != nil {
			return nil, fmt.Errorf("checksum %q of module %s: %w", module.Sum, module.Path, err)
		}
		p.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: hex.EncodeToString(sum)}}
	}
	namespace, name := path.Split(module.Path)
	setURL(p, packageurl.NewPackageURL("golang", strings.TrimSuffix(namespace, "/"), name, module.Version, nil, ""))
	return p, nil
}

func newPackage(id, name, version, purpose string) *v2_3.Package {
	return &v2_3.Package{
		PackageSPDXIdentifier:     elementID(id),
		PackageName:               name,
		PackageVersion:            version,
		PackageDownloadLocation:   "NOASSERTION",
		PackageLicenseConcluded:   "NOASSERTION",
		PackageLicenseDeclared:    "NOASSERTION",
		PackageCopyrightText:      "NOASSERTION",
		PrimaryPackagePurpose:     purpose,
		IsFilesAnalyzedTagPresent: true,
	}
}

func setURL(p *v2_3.Package, url *packageurl.PackageURL) {
	p.PackageExternalReferences = []*v2_3.PackageExternalReference{{
		Category: common.CategoryPackageManager,
		RefType:  common.TypePackageManagerPURL,
		Locator:  url.ToString(),
	}}
}

// elementID converts a text to a valid ID. Different texts give different IDs. SPDX allows letters, digits, dots and
// hyphens. A hyphen, and any other byte, is written as a hyphen with two hexadecimal digits.
func elementID(text string) common.ElementID {
	var id strings.Builder
	for _, b := range []byte(text) {
		switch {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9', b == '.':
			id.WriteByte(b)
		default:
			fmt.Fprintf(&id, "-%02x", b)
		}
	}
	return common.ElementID(id.String())
}
