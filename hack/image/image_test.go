package image_test

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"debug/elf"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	roots "golang.org/x/crypto/x509roots/fallback/bundle"

	"github.com/hanse-dev/hanse/hack/image"
)

const ref = "ghcr.io/hanse-dev/hanse-hub:0.1.0"

var created = time.Unix(1700000000, 0)

// built is a folder with a static binary for each architecture. The name of the file is the architecture.
var built string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if built, err = os.MkdirTemp("", "hanse-image-test-"); err != nil {
			panic(err)
		}
		defer os.RemoveAll(built)
		source := filepath.Join(built, "main.go")
		if err := os.WriteFile(source, []byte("package main\n\nfunc main() { println(\"hanse\") }\n"), 0o600); err != nil {
			panic(err)
		}
		for _, arch := range []string{"amd64", "arm64"} {
			build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(built, arch), source)
			build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
			if out, err := build.CombinedOutput(); err != nil {
				panic(string(out))
			}
		}
		return m.Run()
	}())
}

func binaries() []image.Binary {
	return []image.Binary{
		{OS: "linux", Arch: "amd64", Path: filepath.Join(built, "amd64")},
		{OS: "linux", Arch: "arm64", Path: filepath.Join(built, "arm64")},
	}
}

func spec(change ...func(*image.Spec)) image.Spec {
	s := image.Spec{
		Reference:  ref,
		Binaries:   binaries(),
		Entrypoint: "/hanse",
		Labels:     map[string]string{"org.opencontainers.image.title": "hanse-hub"},
		Created:    created,
	}
	for _, c := range change {
		c(&s)
	}
	return s
}

func TestAnArchiveReadBack(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hanse-hub.tar")
	digest, err := image.Write(file, spec())
	if err != nil {
		t.Fatal(err)
	}

	outer := index(t, file)
	if err := validate.Index(outer); err != nil {
		t.Fatalf("the layout is not valid: %v", err)
	}
	named := manifests(t, outer)
	if len(named) != 1 {
		t.Fatalf("the layout names %d images, want 1", len(named))
	}
	if got := named[0].Digest.String(); got != digest {
		t.Errorf("the layout names digest %s, and Write returned %s", got, digest)
	}
	if named[0].Platform != nil {
		t.Errorf("the image has platform %s in the layout: containerd skips it on other machines", named[0].Platform)
	}
	if diff := cmp.Diff(map[string]string{
		"io.containerd.image.name":          ref,
		"org.opencontainers.image.ref.name": "0.1.0",
	}, named[0].Annotations); diff != "" {
		t.Errorf("names of the image (-want +got):\n%s", diff)
	}

	inner, err := outer.ImageIndex(named[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	platforms := manifests(t, inner)
	if len(platforms) != 2 {
		t.Fatalf("the image has %d platforms, want 2", len(platforms))
	}
	for i, arch := range []string{"amd64", "arm64"} {
		t.Run("the image of "+arch, func(t *testing.T) {
			if got := platforms[i].ArtifactType; got != "" {
				t.Errorf("the index has artifact type %s: skopeo drops it and changes the digest", got)
			}
			if got := platforms[i].Platform.String(); got != "linux/"+arch {
				t.Errorf("the index says %s", got)
			}
			img, err := inner.Image(platforms[i].Digest)
			if err != nil {
				t.Fatal(err)
			}
			config, err := img.ConfigFile()
			if err != nil {
				t.Fatal(err)
			}
			if config.OS != "linux" || config.Architecture != arch || !config.Created.Equal(created) {
				t.Errorf("the configuration says %s/%s, created %s", config.OS, config.Architecture, config.Created)
			}
			if diff := cmp.Diff(v1.Config{
				Entrypoint: []string{"/hanse"},
				User:       "65532:65532",
				Labels:     map[string]string{"org.opencontainers.image.title": "hanse-hub"},
				Env:        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
			}, config.Config); diff != "" {
				t.Errorf("the configuration (-want +got):\n%s", diff)
			}
			checkFiles(t, img, arch)
		})
	}
}

func checkFiles(t *testing.T, img v1.Image, arch string) {
	t.Helper()
	content := map[string][]byte{}
	var modes []string
	files := mutate.Extract(img)
	defer files.Close()
	for archive := tar.NewReader(files); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Mode&0o022 != 0 {
			t.Errorf("%s has mode %o: others than root may write it", header.Name, header.Mode)
		}
		if header.Uid != 0 || header.Gid != 0 {
			t.Errorf("%s belongs to %d:%d", header.Name, header.Uid, header.Gid)
		}
		if !header.ModTime.Equal(time.Unix(0, 0)) {
			t.Errorf("%s has a time: %s", header.Name, header.ModTime)
		}
		body, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(header.Name, "/")
		content[name] = body
		modes = append(modes, header.FileInfo().Mode().String()+" "+name)
	}
	if diff := cmp.Diff([]string{
		"-rwxr-xr-x hanse",
		"drwxr-xr-x etc",
		"-rw-r--r-- etc/group",
		"-rw-r--r-- etc/passwd",
		"drwxr-xr-x etc/ssl",
		"drwxr-xr-x etc/ssl/certs",
		"-rw-r--r-- etc/ssl/certs/ca-certificates.crt",
	}, modes); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	binary, err := os.ReadFile(filepath.Join(built, arch))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(content["hanse"], binary) {
		t.Error("/hanse is not the binary")
	}
	if !strings.Contains(string(content["etc/passwd"]), "nonroot:x:65532:65532:") {
		t.Errorf("/etc/passwd has no nonroot: %s", content["etc/passwd"])
	}
	if !strings.Contains(string(content["etc/group"]), "nonroot:x:65532:") {
		t.Errorf("/etc/group has no nonroot: %s", content["etc/group"])
	}
	checkRoots(t, content["etc/ssl/certs/ca-certificates.crt"])
}

// checkRoots fails the test unless the bundle has the authorities that many servers use, has only certificates, and has
// no authority that is trusted under a condition.
func checkRoots(t *testing.T, bundle []byte) {
	t.Helper()
	missing := map[string]bool{"ISRG Root X1": true, "DigiCert Global Root G2": true, "GTS Root R1": true}
	conditional := map[string]bool{}
	for root := range roots.Roots() {
		conditional[string(root.Certificate)] = root.Constraint != nil
	}
	n := 0
	for len(bundle) > 0 {
		block, rest := pem.Decode(bundle)
		if block == nil {
			t.Fatalf("%d bytes after certificate %d are not PEM", len(bundle), n)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatalf("certificate %d: %v", n, err)
		}
		if !certificate.IsCA {
			t.Errorf("%s is no certificate of an authority", certificate.Subject)
		}
		if conditional[string(block.Bytes)] {
			t.Errorf("%s is trusted on a condition, which a file cannot state", certificate.Subject)
		}
		delete(missing, certificate.Subject.CommonName)
		bundle, n = rest, n+1
	}
	if len(missing) > 0 || n < 100 {
		t.Errorf("the bundle has %d certificates and lacks %v", n, missing)
	}
}

func TestImagesAreReproducible(t *testing.T) {
	archive := func(t *testing.T, s image.Spec) (string, []byte) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "image.tar")
		digest, err := image.Write(file, s)
		if err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return digest, content
	}
	digest, content := archive(t, spec())

	t.Run("the same input gives the same archive, in any order of the binaries", func(t *testing.T) {
		gotDigest, got := archive(t, spec(func(s *image.Spec) {
			s.Binaries = []image.Binary{s.Binaries[1], s.Binaries[0]}
		}))
		if gotDigest != digest || !bytes.Equal(got, content) {
			t.Errorf("digests are %s and %s, archives are equal: %t", gotDigest, digest, bytes.Equal(got, content))
		}
	})
	t.Run("binaries that were copied to another folder at another time give the same archive", func(t *testing.T) {
		folder := t.TempDir()
		for _, b := range binaries() {
			content, err := os.ReadFile(b.Path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, b.Arch), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, got := archive(t, spec(func(s *image.Spec) {
			for i, b := range s.Binaries {
				s.Binaries[i].Path = filepath.Join(folder, b.Arch)
			}
		}))
		if !bytes.Equal(got, content) {
			t.Error("the archives differ")
		}
	})
	t.Run("another name gives the same digest in another archive", func(t *testing.T) {
		gotDigest, got := archive(t, spec(func(s *image.Spec) { s.Reference = "registry.example.com/hub:0.2.0" }))
		if gotDigest != digest || bytes.Equal(got, content) {
			t.Errorf("digests are %s and %s, archives are equal: %t", gotDigest, digest, bytes.Equal(got, content))
		}
	})
	t.Run("another label, user, argument, entrypoint or time gives another digest", func(t *testing.T) {
		for _, change := range []func(*image.Spec){
			func(s *image.Spec) { s.Labels = nil },
			func(s *image.Spec) { s.User = "65534:65534" },
			func(s *image.Spec) { s.Args = []string{"--version"} },
			func(s *image.Spec) { s.Entrypoint = "/bin/operator" },
			func(s *image.Spec) { s.Created = created.Add(time.Second) },
		} {
			changed := spec(change)
			if got, _ := archive(t, changed); got == digest {
				t.Errorf("digest %s is the same for %+v", got, changed)
			}
		}
	})
}

func TestAnImageOfOnePlatformWithUserArgumentsAndFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "operator.tar")
	digest, err := image.Write(file, spec(func(s *image.Spec) {
		s.Reference = "quay.io/prometheus-operator/prometheus-operator:v0.88.0"
		s.Binaries = s.Binaries[:1]
		s.Entrypoint = "/usr/bin/operator"
		s.User = "65534:65534"
		s.Args = []string{"--log-level=debug"}
	}))
	if err != nil {
		t.Fatal(err)
	}
	outer := index(t, file)
	hash, err := v1.NewHash(digest)
	if err != nil {
		t.Fatal(err)
	}
	inner, err := outer.ImageIndex(hash)
	if err != nil {
		t.Fatal(err)
	}
	platforms := manifests(t, inner)
	if len(platforms) != 1 {
		t.Fatalf("the image has %d platforms, want 1", len(platforms))
	}
	img, err := inner.Image(platforms[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if got := config.Config; got.User != "65534:65534" ||
		!cmp.Equal(got.Entrypoint, []string{"/usr/bin/operator"}) || !cmp.Equal(got.Cmd, []string{"--log-level=debug"}) {
		t.Errorf("the configuration is %+v", got)
	}
	modes := map[string]fs.FileMode{}
	files := mutate.Extract(img)
	defer files.Close()
	for archive := tar.NewReader(files); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		modes[strings.TrimSuffix(header.Name, "/")] = header.FileInfo().Mode()
	}
	for name, want := range map[string]fs.FileMode{
		"usr": fs.ModeDir | 0o755, "usr/bin": fs.ModeDir | 0o755, "usr/bin/operator": 0o755,
	} {
		if modes[name] != want {
			t.Errorf("/%s has mode %s, want %s", name, modes[name], want)
		}
	}
}

func TestBadInputIsNamedAndWritesNothing(t *testing.T) {
	folder := t.TempDir()
	dynamic := filepath.Join(folder, "dynamic")
	writeDynamic(t, filepath.Join(built, "amd64"), dynamic)
	script := filepath.Join(folder, "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	only := func(b image.Binary) func(*image.Spec) {
		return func(s *image.Spec) { s.Binaries = []image.Binary{b} }
	}
	amd64 := filepath.Join(built, "amd64")

	tests := map[string]struct {
		change func(*image.Spec)
		want   string
	}{
		"a dynamically linked binary": {
			change: only(image.Binary{OS: "linux", Arch: "amd64", Path: dynamic}), want: "dynamically linked",
		},
		"a binary of another architecture": {
			change: only(image.Binary{OS: "linux", Arch: "arm64", Path: amd64}), want: "is not for linux/arm64, but for EM_X86_64",
		},
		"a script": {
			change: only(image.Binary{OS: "linux", Arch: "amd64", Path: script}), want: "not an ELF file",
		},
		"a binary that does not exist": {
			change: only(image.Binary{OS: "linux", Arch: "amd64", Path: filepath.Join(folder, "none")}), want: "no such file",
		},
		"a platform that is not supported": {
			change: only(image.Binary{OS: "linux", Arch: "riscv64", Path: amd64}), want: `platform "linux/riscv64"`,
		},
		"no binary":                     {change: func(s *image.Spec) { s.Binaries = nil }, want: "no binary"},
		"two binaries of one platform":  {change: func(s *image.Spec) { s.Binaries[1] = s.Binaries[0] }, want: "two binaries are for linux/amd64"},
		"a reference without registry":  {change: func(s *image.Spec) { s.Reference = "hanse-hub:0.1.0" }, want: `"hanse-hub:0.1.0"`},
		"a reference without a tag":     {change: func(s *image.Spec) { s.Reference = "ghcr.io/hanse-dev/hanse-hub" }, want: "must have a tag"},
		"a reference with a bad tag":    {change: func(s *image.Spec) { s.Reference = ref + "+build" }, want: "invalid reference format"},
		"a reference with a digest":     {change: func(s *image.Spec) { s.Reference = ref + "@sha256:" + strings.Repeat("0", 64) }, want: "no digest"},
		"an entrypoint that is no path": {change: func(s *image.Spec) { s.Entrypoint = "hanse" }, want: `entrypoint "hanse"`},
		"an entrypoint above the root":  {change: func(s *image.Spec) { s.Entrypoint = "/../hanse" }, want: `entrypoint "/../hanse"`},
		"a user with a name":            {change: func(s *image.Spec) { s.User = "nonroot" }, want: `user "nonroot"`},
		"no time of creation":           {change: func(s *image.Spec) { s.Created = time.Time{} }, want: "time of creation"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			target := t.TempDir()
			file := filepath.Join(target, "image.tar")
			if err := os.WriteFile(file, []byte("the last image"), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := image.Write(file, spec(test.change))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want one with %q", err, test.want)
			}
			if got, err := os.ReadFile(file); err != nil || string(got) != "the last image" {
				t.Errorf("the last image was replaced by %q, %v", got, err)
			}
			if left, err := os.ReadDir(target); err != nil || len(left) != 1 {
				t.Errorf("the folder holds %v, %v", left, err)
			}
		})
	}
}

// writeDynamic copies a static binary and adds the name of an interpreter, which a dynamically linked binary has.
func writeDynamic(t *testing.T, static, dynamic string) {
	t.Helper()
	content, err := os.ReadFile(static)
	if err != nil {
		t.Fatal(err)
	}
	const header = 56 // bytes of a program header of ELF
	for at := binary.LittleEndian.Uint64(content[32:]); int(at) < len(content); at += header {
		if elf.ProgType(binary.LittleEndian.Uint32(content[at:])) == elf.PT_NOTE {
			binary.LittleEndian.PutUint32(content[at:], uint32(elf.PT_INTERP))
			break
		}
	}
	if err := os.WriteFile(dynamic, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// index reads the layout of an archive.
func index(t *testing.T, file string) v1.ImageIndex {
	t.Helper()
	folder := t.TempDir()
	r, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for archive := tar.NewReader(r); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(folder, filepath.FromSlash(header.Name))
		if header.Typeflag == tar.TypeDir {
			err = os.Mkdir(name, 0o755)
		} else {
			var content []byte
			if content, err = io.ReadAll(archive); err == nil {
				err = os.WriteFile(name, content, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	read, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func manifests(t *testing.T, index v1.ImageIndex) []v1.Descriptor {
	t.Helper()
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	return manifest.Manifests
}
