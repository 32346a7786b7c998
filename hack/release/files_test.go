package main

import (
	"archive/zip"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestArchivesAreReproducible(t *testing.T) {
	files := []file{{"hansectl", 0o755, []byte("binary")}, {"LICENSE", 0o644, []byte("text")}}
	for _, name := range []string{"a.tar.gz", "a.zip", "a.tar"} {
		t.Run("two archives "+name+" of equal files are equal", func(t *testing.T) {
			var sums []string
			for range 2 {
				path := filepath.Join(t.TempDir(), name)
				if err := writeArchive(path, files, committed); err != nil {
					t.Fatal(err)
				}
				digest, err := sum(path)
				if err != nil {
					t.Fatal(err)
				}
				sums = append(sums, digest)
			}
			if sums[0] != sums[1] {
				t.Errorf("the checksums differ: %v", sums)
			}
		})
	}
}

func TestArchivesKeepNamesAndModes(t *testing.T) {
	files := []file{{"hansectl", 0o755, []byte("binary")}, {"LICENSE", 0o644, []byte("text")}}
	t.Run("in a tar archive", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "a.tar.gz")
		if err := writeArchive(path, files, committed); err != nil {
			t.Fatal(err)
		}
		got, err := readTar(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(files, got, cmp.AllowUnexported(file{})); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("in a zip archive", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "a.zip")
		if err := writeArchive(path, files, committed); err != nil {
			t.Fatal(err)
		}
		archive, err := zip.OpenReader(path)
		if err != nil {
			t.Fatal(err)
		}
		defer archive.Close()
		var got []file
		for _, f := range archive.File {
			in, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			data, err := io.ReadAll(in)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, file{f.Name, int64(f.Mode().Perm()), data})
		}
		if diff := cmp.Diff(files, got, cmp.AllowUnexported(file{})); diff != "" {
			t.Error(diff)
		}
	})
}

func TestKrewManifest(t *testing.T) {
	r := &release{version: mustVersion(t, "v0.1.0"), out: t.TempDir()}
	var archives []archive
	for i, p := range platforms {
		archives = append(archives, archive{p, p.archive(r.version), fmt.Sprintf("%064d", i)})
	}
	if err := r.writeKrewManifest(archives); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(r.out, "hanse.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var got krewPlugin
	if err := yaml.UnmarshalStrict(data, &got); err != nil {
		t.Fatal(err)
	}
	if got.Metadata.Name != "hanse" || got.Spec.Version != "v0.1.0" {
		t.Errorf("plugin %s %s, want hanse v0.1.0", got.Metadata.Name, got.Spec.Version)
	}
	const downloads = "https://github.com/hanse-dev/hanse/releases/download/v0.1.0/"
	wanted := map[string]string{
		"linux/amd64":   "hansectl " + downloads + "hansectl_v0.1.0_linux_amd64.tar.gz",
		"linux/arm64":   "hansectl " + downloads + "hansectl_v0.1.0_linux_arm64.tar.gz",
		"darwin/amd64":  "hansectl " + downloads + "hansectl_v0.1.0_darwin_amd64.tar.gz",
		"darwin/arm64":  "hansectl " + downloads + "hansectl_v0.1.0_darwin_arm64.tar.gz",
		"windows/amd64": "hansectl.exe " + downloads + "hansectl_v0.1.0_windows_amd64.zip",
	}
	found := map[string]string{}
	for i, p := range got.Spec.Platforms {
		labels := p.Selector.MatchLabels
		found[labels["os"]+"/"+labels["arch"]] = p.Bin + " " + p.URI
		if p.SHA256 != archives[i].sha256 {
			t.Errorf("platform %v has the checksum %s, want %s", labels, p.SHA256, archives[i].sha256)
		}
	}
	if diff := cmp.Diff(wanted, found); diff != "" {
		t.Error(diff)
	}
}

func TestSums(t *testing.T) {
	folder := t.TempDir()
	err := writeFiles(folder, []file{
		{"hanse.yaml", 0o644, []byte("a")}, {"hansectl.zip", 0o644, []byte("b")},
		{"notes.md", 0o644, []byte("c")}, {"hanse-hub-bundle.tar", 0o644, []byte("d")}, {"bundle/bundle.Dockerfile", 0o644, []byte("e")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := writeSums(folder); err != nil {
		t.Fatal(err)
	}
	t.Run("sha256sum accepts the file, until a byte changes", func(t *testing.T) {
		verify := func() ([]byte, error) {
			cmd := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "SHA256SUMS")
			cmd.Dir = folder
			return cmd.CombinedOutput()
		}
		if out, err := verify(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if err := os.WriteFile(filepath.Join(folder, "hanse.yaml"), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := verify(); err == nil {
			t.Errorf("a changed file is accepted: %s", out)
		}
	})
	t.Run("only files of the release on GitHub are named", func(t *testing.T) {
		data, err := os.ReadFile(filepath.Join(folder, "SHA256SUMS"))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for line := range strings.Lines(string(data)) {
			names = append(names, strings.Fields(line)[1])
		}
		if diff := cmp.Diff([]string{"hanse.yaml", "hansectl.zip"}, names); diff != "" {
			t.Error(diff)
		}
	})
}

func TestCopySBOMs(t *testing.T) {
	tests := map[string]struct {
		images    []string
		wantError string
	}{
		"the SBOM of each image is a file of the release": {images: []string{"hanse-hub.tar", "hanse-hub.spdx.json"}},
		"an image without an SBOM is an error":            {images: []string{"hanse-hub.tar"}, wantError: "SBOM of image hanse-hub"},
		"no image is an error that names the command":     {wantError: "run make images"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := &release{root: t.TempDir(), out: t.TempDir()}
			for _, image := range tt.images {
				if err := writeFiles(r.images(), []file{{image, 0o644, nil}}); err != nil {
					t.Fatal(err)
				}
			}
			err := r.copySBOMs()
			wantError(t, err, tt.wantError)
			if err != nil {
				return
			}
			if _, err := os.Stat(filepath.Join(r.out, "hanse-hub.spdx.json")); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestPackageChart(t *testing.T) {
	r := onRepository(t)
	for _, chart := range charts {
		t.Run("chart "+chart+" has the version of the release, and that of the images", func(t *testing.T) {
			path, err := r.packageChart(t.Context(), chart, t.TempDir(), committed)
			if err != nil {
				t.Fatal(err)
			}
			files, err := readTar(path)
			if err != nil {
				t.Fatal(err)
			}
			var got struct{ Name, Version, AppVersion string }
			for _, f := range files {
				if f.name == chart+"/Chart.yaml" {
					if err := yaml.Unmarshal(f.data, &got); err != nil {
						t.Fatal(err)
					}
				}
			}
			want := struct{ Name, Version, AppVersion string }{chart, "0.7.0-rc.1", "0.7.0-rc.1"}
			if got != want {
				t.Errorf("Chart.yaml has %+v, want %+v", got, want)
			}
		})
	}
	t.Run("a later checkout of the same commit packages the same bytes", func(t *testing.T) {
		root := t.TempDir()
		if err := os.CopyFS(filepath.Join(root, "charts"), os.DirFS(filepath.Join(r.root, "charts"))); err != nil {
			t.Fatal(err)
		}
		copied := *r
		copied.root = root
		later := time.Now().Add(time.Hour)
		if err := os.Chtimes(filepath.Join(root, "charts", hubChart, "values.yaml"), later, later); err != nil {
			t.Fatal(err)
		}
		var sums []string
		for _, r := range []*release{r, &copied} {
			path, err := r.packageChart(t.Context(), hubChart, t.TempDir(), committed)
			if err != nil {
				t.Fatal(err)
			}
			digest, err := sum(path)
			if err != nil {
				t.Fatal(err)
			}
			sums = append(sums, digest)
		}
		if sums[0] != sums[1] {
			t.Errorf("the checksums differ: %v", sums)
		}
	})
}
