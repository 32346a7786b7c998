package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

const sumsFile = "SHA256SUMS"

// notUploaded has the files in the folder of the release that have no line in SHA256SUMS. The notes become the
// description of the release on GitHub, and the bundle's image is in the registry. SHA256SUMS is uploaded, but cannot
// contain its own checksum.
var notUploaded = []string{"notes.md", bundleName + ".tar", sumsFile}

// copySBOMs copies the SBOM of each image to the folder of the release. It returns an error if an image has no SBOM.
func (r *release) copySBOMs() error {
	images, err := r.imageArchives()
	if err != nil {
		return err
	}
	for _, image := range images {
		data, err := os.ReadFile(r.sbom(imageName(image)))
		if err != nil {
			return fmt.Errorf("reading the SBOM of image %s: %w", imageName(image), err)
		}
		if err := writeFiles(r.out, []file{{filepath.Base(r.sbom(imageName(image))), 0o644, data}}); err != nil {
			return err
		}
	}
	return nil
}

// sbom returns the path of an image's SBOM.
func (r *release) sbom(image string) string { return filepath.Join(r.images(), image+".spdx.json") }

// writeSums writes the checksums of the files in the folder that are uploaded to GitHub.
func writeSums(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("listing the files of the release: %w", err)
	}
	var lines strings.Builder
	for _, e := range entries {
		if e.IsDir() || slices.Contains(notUploaded, e.Name()) {
			continue
		}
		digest, err := sum(filepath.Join(folder, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%s  %s\n", digest, e.Name())
	}
	if err := os.WriteFile(filepath.Join(folder, sumsFile), []byte(lines.String()), 0o644); err != nil {
		return fmt.Errorf("writing the checksums: %w", err)
	}
	return nil
}

// imageArchives returns the paths of the OCI archives that `make images` has written.
func (r *release) imageArchives() ([]string, error) {
	names, err := fs.Glob(os.DirFS(r.images()), "*.tar")
	if err != nil {
		return nil, fmt.Errorf("listing the images: %w", err)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s has no OCI archive: run make images", r.images())
	}
	for i, name := range names {
		names[i] = filepath.Join(r.images(), name)
	}
	return names, nil
}

// archives returns the paths of the OCI archives of all images. The archive of the bundle's image is the last one.
func (r *release) archives() ([]string, error) {
	images, err := r.imageArchives()
	if err != nil {
		return nil, err
	}
	return append(images, filepath.Join(r.out, bundleName+".tar")), nil
}

// summarize prints the files and images of the release, with sizes and digests.
func (r *release) summarize(w io.Writer, section string) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "\nrelease %s, notes from the section [%s]\n\nFILE\tSIZE\tSHA256\n", r.version.Tag(), section)
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return fmt.Errorf("listing the files of the release: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return fmt.Errorf("reading the size of %s: %w", e.Name(), err)
		}
		digest, err := sum(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", e.Name(), size(info.Size()), digest)
	}
	archives, err := r.archives()
	if err != nil {
		return err
	}
	fmt.Fprint(table, "\nIMAGE\tSIZE\tDIGEST\n")
	for _, path := range archives {
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("reading the size of an image: %w", err)
		}
		err = withImage(path, func(image openImage) error {
			fmt.Fprintf(table, "%s:%s\t%s\t%s\n", imageName(path), r.version.Plain(), size(info.Size()), image.entry.Digest)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return table.Flush()
}

// imageName returns the name of the image in an archive.
func imageName(archive string) string { return strings.TrimSuffix(filepath.Base(archive), ".tar") }

func size(bytes int64) string {
	if bytes < 1<<20 {
		return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
}
