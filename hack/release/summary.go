package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

const sumsFile = "SHA256SUMS"

// notUploaded are files that are not part of a release on GitHub: the notes are its text, the image is in the registry.
var notUploaded = []string{"notes.md", bundleName + ".tar", sumsFile}

// copySBOMs copies the SBOMs of the images to the other files.
func (r *release) copySBOMs() error {
	for _, path := range r.glob("*.spdx.json") {
		data, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("reading an SBOM: %w", err)
		}
		if err := os.WriteFile(filepath.Join(r.out, filepath.Base(path)), data, 0o644); err != nil {
			return fmt.Errorf("writing an SBOM: %w", err)
		}
	}
	return nil
}

// glob returns the files in the folder of images that match a pattern.
func (r *release) glob(pattern string) []string {
	paths, err := filepath.Glob(filepath.Join(r.images(), pattern))
	if err != nil {
		panic(err) // the pattern is a constant of this program
	}
	return paths
}

// writeSums writes the checksums of all files of the folder that are uploaded.
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

// archives are the OCI archives of all images, with the bundle's at the end.
func (r *release) archives() ([]string, error) {
	images := r.glob("*.tar")
	if len(images) == 0 {
		return nil, fmt.Errorf("%s has no OCI archive: run make images", r.images())
	}
	return append(images, filepath.Join(r.out, bundleName+".tar")), nil
}

// summarize prints what was made.
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

// imageName is the name of the image in an archive.
func imageName(archive string) string { return strings.TrimSuffix(filepath.Base(archive), ".tar") }

func size(bytes int64) string {
	if bytes < 1<<20 {
		return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
}
