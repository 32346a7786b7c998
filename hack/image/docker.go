package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// WriteDocker writes the image of one platform, such as linux/amd64, in the format of docker save. Docker can read an
// archive with an index only if Docker stores its images in containerd.
func WriteDocker(w io.Writer, archive, platform string) (err error) {
	folder, err := os.MkdirTemp("", "hanse-image-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if err := unpack(folder, archive); err != nil {
		return fmt.Errorf("unpacking archive %s: %w", archive, err)
	}
	tag, img, err := find(folder, platform)
	if err != nil {
		return fmt.Errorf("reading archive %s: %w", archive, err)
	}
	if err := tarball.Write(tag, img, w); err != nil {
		return fmt.Errorf("converting archive %s for docker: %w", archive, err)
	}
	return nil
}

// find reads a layout that writeArchive wrote. It returns the name of the image, and the image for one platform.
func find(folder, platform string) (name.Tag, v1.Image, error) {
	outer, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return name.Tag{}, nil, err
	}
	named, err := outer.IndexManifest()
	if err != nil {
		return name.Tag{}, nil, err
	}
	if len(named.Manifests) != 1 {
		return name.Tag{}, nil, fmt.Errorf("it has %d images, and not one", len(named.Manifests))
	}
	tag, err := name.NewTag(named.Manifests[0].Annotations[annotationName])
	if err != nil {
		return name.Tag{}, nil, err
	}
	inner, err := outer.ImageIndex(named.Manifests[0].Digest)
	if err != nil {
		return name.Tag{}, nil, err
	}
	platforms, err := inner.IndexManifest()
	if err != nil {
		return name.Tag{}, nil, err
	}
	for _, manifest := range platforms.Manifests {
		if manifest.Platform.String() == platform {
			img, err := inner.Image(manifest.Digest)
			return tag, img, err
		}
	}
	return name.Tag{}, nil, fmt.Errorf("it has no image for %s", platform)
}

// unpack writes the files of an archive into an empty folder.
func unpack(folder, archive string) (err error) {
	in, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for entries := tar.NewReader(in); ; {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		if err := root.MkdirAll(path.Dir(header.Name), 0o755); err != nil {
			return err
		}
		file, err := root.Create(header.Name)
		if err != nil {
			return err
		}
		_, err = io.Copy(file, entries)
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
}
