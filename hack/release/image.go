package main

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// imageFolders are the folders of the OLM bundle that the bundle's image contains. The file bundle.Dockerfile is not in
// the image.
var imageFolders = []string{"manifests/", "metadata/", "tests/"}

// writeBundleImage writes the image of the OLM bundle as an OCI archive.
func writeBundleImage(path string, files []file, when time.Time) error {
	files = slices.DeleteFunc(slices.Clone(files), func(f file) bool {
		return !slices.ContainsFunc(imageFolders, func(folder string) bool { return strings.HasPrefix(f.name, folder) })
	})
	image, err := bundleImage(files, when)
	if err != nil {
		return fmt.Errorf("making the image of the bundle: %w", err)
	}
	index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: image})
	return inFolder(func(folder string) error {
		if _, err := layout.Write(folder, index); err != nil {
			return fmt.Errorf("writing the image of the bundle: %w", err)
		}
		content, err := readFiles(folder)
		if err != nil {
			return fmt.Errorf("reading the image of the bundle: %w", err)
		}
		return writeArchive(path, content, when)
	})
}

// readFiles returns all files of a folder.
func readFiles(folder string) ([]file, error) {
	var files []file
	root := os.DirFS(folder)
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(root, name)
		files = append(files, file{name, 0o644, data})
		return err
	})
	return files, err
}

func bundleImage(files []file, when time.Time) (v1.Image, error) {
	var content bytes.Buffer
	if err := writeTar(&content, files, when); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.Append(base, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: when}}})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.Created = v1.Time{Time: when}
	config.OS, config.Architecture = "linux", "amd64"
	config.Config.Labels = annotations
	return mutate.ConfigFile(image, config)
}

// openImage is the content of an OCI archive.
type openImage struct {
	index v1.ImageIndex // the index.json of the layout
	entry v1.Descriptor // the only entry of the index: an image, or an index with images for several platforms
}

// withImage runs a function with the content of an OCI archive.
func withImage(path string, do func(openImage) error) error {
	files, err := readTar(path)
	if err != nil {
		return err
	}
	return inFolder(func(folder string) error {
		o, err := unpack(folder, files)
		if err != nil {
			return fmt.Errorf("opening image %s: %w", path, err)
		}
		return do(o)
	})
}

func unpack(folder string, files []file) (openImage, error) {
	for _, f := range files {
		if !filepath.IsLocal(f.name) {
			return openImage{}, fmt.Errorf("the name %q leads out of the archive", f.name)
		}
	}
	if err := writeFiles(folder, files); err != nil {
		return openImage{}, err
	}
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return openImage{}, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return openImage{}, err
	}
	if len(manifest.Manifests) != 1 {
		return openImage{}, fmt.Errorf("its index.json has %d entries, where one image or index is expected", len(manifest.Manifests))
	}
	return openImage{index, manifest.Manifests[0]}, nil
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
