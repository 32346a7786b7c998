package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/distribution/reference"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/renameio/v2"
)

// Annotations with the name of an image in an OCI layout. containerd and podman read the full name, other tools the
// tag.
const (
	annotationName = "io.containerd.image.name"
	annotationTag  = "org.opencontainers.image.ref.name"
)

// writeArchive writes an OCI layout with the index of an image under the image's name. The index.json of the layout has
// one entry, which names no platform. Therefore containerd gives the name to the images of all platforms, and unpacks
// only the image for its own platform.
func writeArchive(file string, name reference.NamedTagged, index v1.ImageIndex) (err error) {
	folder, err := os.MkdirTemp("", "hanse-image-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()

	named := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{
		Add: index,
		Descriptor: v1.Descriptor{Annotations: map[string]string{
			annotationName: name.String(),
			annotationTag:  name.Tag(),
		}},
	})
	if _, err := layout.Write(folder, named); err != nil {
		return fmt.Errorf("laying out the image: %w", err)
	}
	pending, err := renameio.NewPendingFile(file, renameio.WithPermissions(0o644))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pending.Cleanup()) }()
	if err := packFolder(pending, os.DirFS(folder)); err != nil {
		return fmt.Errorf("packing the layout: %w", err)
	}
	return pending.CloseAtomicallyReplace()
}

// packFolder writes a folder as a tar archive. Files are sorted by name and have no times or owners, so that equal
// folders give equal archives.
func packFolder(w io.Writer, folder fs.FS) error {
	archive := tar.NewWriter(w)
	err := fs.WalkDir(folder, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		if d.IsDir() {
			return archive.WriteHeader(&tar.Header{
				Name: name + "/", Typeflag: tar.TypeDir, Mode: 0o755, ModTime: time.Unix(0, 0), Format: tar.FormatPAX,
			})
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		err = archive.WriteHeader(&tar.Header{
			Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: info.Size(), ModTime: time.Unix(0, 0), Format: tar.FormatPAX,
		})
		if err != nil {
			return err
		}
		content, err := folder.Open(name)
		if err != nil {
			return err
		}
		_, err = io.Copy(archive, content)
		return errors.Join(err, content.Close())
	})
	if err != nil {
		return err
	}
	return archive.Close()
}
