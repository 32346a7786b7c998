// Package image writes the container image of a static binary as an OCI archive, without a container runtime.
//
// An archive is a tar file of an OCI image layout. The layout has one image index, with an image for each platform. An
// image has two layers: the base layer, which is the same in all images, and the binary.
//
// Equal inputs give equal archives on every machine. All files have the time 0 of Unix, and the time of the image is a
// part of the input.
package image

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/distribution/reference"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Nonroot is the user and the group of an image whose Spec sets no user.
const Nonroot = "65532:65532"

// Spec describes an image.
type Spec struct {
	// Reference is the full name of the image with a tag, such as ghcr.io/hanse-dev/hanse-hub:0.1.0.
	Reference string
	// Binaries has one binary for each platform of the image.
	Binaries []Binary
	// Entrypoint is the absolute path of the binary in the image, such as /hanse.
	Entrypoint string
	// Args are the default arguments of a container.
	Args []string
	// User has the numbers of a user and a group, such as 65534:65534. The default is Nonroot.
	User string
	// Labels are the labels of each image and the annotations of the index.
	Labels map[string]string
	// Created is the time of the image, in whole seconds.
	Created time.Time
}

// Write writes the archive of an image to a file, and returns the digest of the image's index. After an upload, a
// registry shows the same digest. If Write fails, the file stays unchanged.
func Write(file string, spec Spec) (digest string, err error) {
	name, err := parseReference(spec.Reference)
	if err != nil {
		return "", err
	}
	index, err := newIndex(spec)
	if err != nil {
		return "", fmt.Errorf("image %s: %w", spec.Reference, err)
	}
	hash, err := index.Digest()
	if err != nil {
		return "", fmt.Errorf("computing the digest of image %s: %w", spec.Reference, err)
	}
	if err := writeArchive(file, name, index); err != nil {
		return "", fmt.Errorf("writing image %s to %s: %w", spec.Reference, file, err)
	}
	return hash.String(), nil
}

func parseReference(s string) (reference.NamedTagged, error) {
	named, err := reference.ParseNamed(s)
	if err != nil {
		return nil, fmt.Errorf("image reference %q: %w", s, err)
	}
	tagged, ok := named.(reference.NamedTagged)
	if _, digested := named.(reference.Digested); !ok || digested {
		return nil, fmt.Errorf("image reference %q: it must have a tag and no digest", s)
	}
	return tagged, nil
}

// newIndex returns the index that a registry serves for the image. Its images are sorted by platform.
func newIndex(spec Spec) (v1.ImageIndex, error) {
	if err := validate(spec); err != nil {
		return nil, err
	}
	base, err := newLayer(base())
	if err != nil {
		return nil, fmt.Errorf("packing the base layer: %w", err)
	}
	binaries := slices.SortedFunc(slices.Values(spec.Binaries), func(a, b Binary) int {
		return cmp.Compare(a.platform(), b.platform())
	})
	var images []mutate.IndexAddendum
	for i, binary := range binaries {
		if i > 0 && binary.platform() == binaries[i-1].platform() {
			return nil, fmt.Errorf("two binaries are for %s: %s and %s", binary.platform(), binaries[i-1].Path, binary.Path)
		}
		img, err := newImage(spec, base, binary)
		if err != nil {
			return nil, err
		}
		images = append(images, mutate.IndexAddendum{
			Add:        untyped{img},
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: binary.OS, Architecture: binary.Arch}},
		})
	}
	index := mutate.AppendManifests(empty.Index, images...)
	return mutate.Annotations(index, spec.Labels).(v1.ImageIndex), nil
}

// untyped is an image whose descriptor has no artifact type. For an image, the artifact type has no meaning. skopeo
// removes it when it copies the image to a registry, which would change the digest of the index.
type untyped struct{ v1.Image }

func (untyped) ArtifactType() (string, error) { return "", nil }

var numericUser = regexp.MustCompile(`^[0-9]+:[0-9]+$`)

func validate(spec Spec) error {
	switch {
	case len(spec.Binaries) == 0:
		return fmt.Errorf("it has no binary")
	case !path.IsAbs(spec.Entrypoint) || path.Clean(spec.Entrypoint) != spec.Entrypoint || spec.Entrypoint == "/":
		return fmt.Errorf("entrypoint %q is not the absolute path of a file", spec.Entrypoint)
	case spec.User != "" && !numericUser.MatchString(spec.User):
		return fmt.Errorf("user %q is not a number of a user and of a group, such as %s", spec.User, Nonroot)
	case spec.Created.IsZero():
		return fmt.Errorf("the time of creation is not set")
	}
	return nil
}

func newImage(spec Spec, base v1.Layer, binary Binary) (v1.Image, error) {
	content, err := binary.read()
	if err != nil {
		return nil, err
	}
	top, err := newLayer(withParents(entry{name: spec.Entrypoint, mode: 0o755, content: content}))
	if err != nil {
		return nil, fmt.Errorf("packing the binary for %s: %w", binary.platform(), err)
	}
	created := v1.Time{Time: spec.Created.UTC().Truncate(time.Second)}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err = mutate.ConfigFile(img, &v1.ConfigFile{
		OS:           binary.OS,
		Architecture: binary.Arch,
		Created:      created,
		RootFS:       v1.RootFS{Type: "layers"},
		Config: v1.Config{
			Entrypoint: []string{spec.Entrypoint},
			Cmd:        spec.Args,
			User:       cmp.Or(spec.User, Nonroot),
			Labels:     spec.Labels,
			Env:        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("configuring the image for %s: %w", binary.platform(), err)
	}
	img, err = mutate.Append(img,
		mutate.Addendum{Layer: base, History: v1.History{Created: created, CreatedBy: "hanse image: base"}},
		mutate.Addendum{Layer: top, History: v1.History{Created: created, CreatedBy: "hanse image: " + spec.Entrypoint}},
	)
	if err != nil {
		return nil, fmt.Errorf("adding the layers for %s: %w", binary.platform(), err)
	}
	return img, nil
}

// entry is a file in a layer. It is a folder if its name ends with a slash. Its owner is root.
type entry struct {
	name    string
	mode    int64
	content []byte
}

// withParents returns a file or folder of a layer, preceded by its parent folders.
func withParents(e entry) []entry {
	var entries []entry
	for i, r := range e.name[1:] {
		if r == '/' {
			entries = append(entries, entry{name: e.name[:i+2], mode: 0o755})
		}
	}
	return append(entries, e)
}

func newLayer(entries []entry) (v1.Layer, error) {
	var packed bytes.Buffer
	if err := pack(&packed, entries); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer),
		tarball.WithCompressionLevel(gzip.DefaultCompression), tarball.WithCompressedCaching)
}

func pack(w io.Writer, entries []entry) error {
	archive := tar.NewWriter(w)
	for _, e := range entries {
		header := &tar.Header{
			Name:     strings.TrimPrefix(e.name, "/"),
			Typeflag: tar.TypeReg,
			Mode:     e.mode,
			Size:     int64(len(e.content)),
			ModTime:  time.Unix(0, 0),
			Format:   tar.FormatPAX,
		}
		if strings.HasSuffix(e.name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(e.content); err != nil {
			return err
		}
	}
	return archive.Close()
}
