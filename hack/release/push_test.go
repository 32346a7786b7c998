package main

import (
	"encoding/json"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// writeImages writes an OCI archive whose index has these entries.
func writeImages(t *testing.T, path string, entries ...mutate.IndexAddendum) {
	t.Helper()
	folder := t.TempDir()
	if _, err := layout.Write(folder, mutate.AppendManifests(empty.Index, entries...)); err != nil {
		t.Fatal(err)
	}
	files, err := readFiles(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := writeArchive(path, files, committed); err != nil {
		t.Fatal(err)
	}
}

func randomIndex(t *testing.T) v1.ImageIndex {
	t.Helper()
	index, err := random.Index(64, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

func TestPush(t *testing.T) {
	r := onRepository(t)
	repository := r.root
	r.root = t.TempDir() // the images of the test are below this folder
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	r.registry = strings.TrimPrefix(server.URL, "http://") + "/hanse-dev"

	index := randomIndex(t)
	writeImages(t, filepath.Join(r.images(), "hanse-hub.tar"), mutate.IndexAddendum{Add: index})
	files := []file{{"metadata/annotations.yaml", 0o644, []byte("annotations: {}\n")}}
	if err := writeBundleImage(filepath.Join(r.out, bundleName+".tar"), files, committed); err != nil {
		t.Fatal(err)
	}
	charted := *r
	charted.root = repository
	for _, chart := range charts {
		if _, err := charted.packageChart(t.Context(), chart, r.out, committed); err != nil {
			t.Fatal(err)
		}
	}
	if err := push(t.Context(), r); err != nil {
		t.Fatal(err)
	}

	data, err := os.ReadFile(filepath.Join(r.out, pushedFile))
	if err != nil {
		t.Fatal(err)
	}
	var all []pushed
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	digests := map[string]string{}
	for _, p := range all {
		short := strings.TrimPrefix(p.Name, r.registry+"/")
		digests[short] = p.Digest
		ref, err := name.NewTag(p.Name + ":" + r.version.Plain())
		if err != nil {
			t.Fatal(err)
		}
		head, err := remote.Head(ref, remote.WithContext(t.Context()))
		if err != nil {
			t.Errorf("%s is not in the registry: %v", ref, err)
		} else if head.Digest.String() != p.Digest {
			t.Errorf("%s has the digest %s in the registry, want %s", ref, head.Digest, p.Digest)
		}
	}
	if len(all) != 4 {
		t.Errorf("uploaded %v, want two images and two charts", digests)
	}
	want, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if digests["hanse-hub"] != want.String() {
		t.Errorf("the image has the digest %s, want that of the archive, %s", digests["hanse-hub"], want)
	}
}

func TestWithImage(t *testing.T) {
	tests := map[string]struct {
		files     []file
		images    []mutate.IndexAddendum
		wantError string
	}{
		"an archive with two images has no one digest": {
			images:    []mutate.IndexAddendum{{Add: randomIndex(t)}, {Add: randomIndex(t)}},
			wantError: "2 entries",
		},
		"a name that leads out of the archive is refused": {
			files:     []file{{"../escape", 0o644, nil}},
			wantError: `"../escape" leads out`,
		},
		"an archive of something else is refused": {
			files:     []file{{"hello.txt", 0o644, nil}},
			wantError: "index.json",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.tar")
			if tt.images != nil {
				writeImages(t, path, tt.images...)
			} else if err := writeArchive(path, tt.files, committed); err != nil {
				t.Fatal(err)
			}
			err := withImage(path, func(openImage) error { return nil })
			wantError(t, err, tt.wantError)
		})
	}
}

func TestSign(t *testing.T) {
	r := &release{version: mustVersion(t, "v0.1.0"), root: t.TempDir(), out: t.TempDir(), registry: "ghcr.io/hanse-dev"}
	called := filepath.Join(r.root, "called")
	bin := t.TempDir()
	if err := writeFiles(bin, []file{{"cosign", 0o755, []byte("#!/bin/sh\necho \"$@\" >>" + called + "\n")}}); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	if err := writeFiles(r.images(), []file{{"hanse-hub.spdx.json", 0o644, nil}}); err != nil {
		t.Fatal(err)
	}
	all := `[{"name":"ghcr.io/hanse-dev/hanse-hub","digest":"sha256:1"},{"name":"ghcr.io/hanse-dev/charts/hanse-hub","digest":"sha256:2"}]`
	if err := writeFiles(r.out, []file{{pushedFile, 0o644, []byte(all)}}); err != nil {
		t.Fatal(err)
	}
	if err := sign(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(called)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"sign --yes ghcr.io/hanse-dev/hanse-hub@sha256:1",
		"attest --yes --type spdxjson --predicate " + filepath.Join(r.images(), "hanse-hub.spdx.json") + " ghcr.io/hanse-dev/hanse-hub@sha256:1",
		"sign --yes ghcr.io/hanse-dev/charts/hanse-hub@sha256:2",
		"sign-blob --yes --bundle " + filepath.Join(r.out, "SHA256SUMS.sigstore.json") + " " + filepath.Join(r.out, "SHA256SUMS"),
		"",
	}, "\n")
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Errorf("cosign was called otherwise: %s", diff)
	}
}
