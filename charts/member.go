package charts

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"io/fs"
)

//go:embed hanse-member/Chart.yaml hanse-member/values.yaml hanse-member/values.schema.json hanse-member/files/* hanse-member/templates/*
var member embed.FS

// Member returns the files of the chart hanse-member, by their paths in the chart's folder.
func Member() fs.FS {
	files, err := fs.Sub(member, "hanse-member")
	if err != nil { // cannot fail: the path is valid
		panic(err)
	}
	return files
}

// Archive returns the files of a chart as a gzipped tar archive, which package chart can render.
func Archive(name string, files fs.FS) ([]byte, error) {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	archive := tar.NewWriter(zipped)
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		if err := archive.WriteHeader(&tar.Header{Name: name + "/" + path, Mode: 0o644, Size: int64(len(text))}); err != nil {
			return err
		}
		_, err = archive.Write(text)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("packing the chart %s: %w", name, err)
	}
	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("packing the chart %s: %w", name, err)
	}
	if err := zipped.Close(); err != nil {
		return nil, fmt.Errorf("packing the chart %s: %w", name, err)
	}
	return out.Bytes(), nil
}
