package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// file is a file in an archive. Archives contain no other data of a file, such as its owner, so that equal files give
// equal archives.
type file struct {
	name string
	mode int64
	data []byte
}

// writeArchive writes the files as a zip archive if the path ends in zip, and otherwise as a tar archive, which is
// compressed if the path ends in gz.
func writeArchive(path string, files []file, when time.Time) (err error) {
	out, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("creating an archive: %w", err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	switch {
	case strings.HasSuffix(path, ".zip"):
		err = writeZip(out, files, when)
	case strings.HasSuffix(path, "gz"):
		compressed := gzip.NewWriter(out)
		if err = writeTar(compressed, files, when); err == nil {
			err = compressed.Close()
		}
	default:
		err = writeTar(out, files, when)
	}
	if err != nil {
		return fmt.Errorf("writing archive %s: %w", path, err)
	}
	return nil
}

func writeTar(w io.Writer, files []file, when time.Time) error {
	archive := tar.NewWriter(w)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: when, Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(f.data); err != nil {
			return err
		}
	}
	return archive.Close()
}

func writeZip(w io.Writer, files []file, when time.Time) error {
	archive := zip.NewWriter(w)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: when}
		header.SetMode(os.FileMode(f.mode))
		entry, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := entry.Write(f.data); err != nil {
			return err
		}
	}
	return archive.Close()
}

// readTar returns the regular files of a tar archive, which may be compressed.
func readTar(path string) ([]file, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading an archive: %w", err)
	}
	var content io.Reader = bytes.NewReader(data)
	if strings.HasSuffix(path, "gz") {
		if content, err = gzip.NewReader(content); err != nil {
			return nil, fmt.Errorf("reading archive %s: %w", path, err)
		}
	}
	var files []file
	for archive := tar.NewReader(content); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading archive %s: %w", path, err)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			return nil, fmt.Errorf("reading %s of archive %s: %w", header.Name, path, err)
		}
		files = append(files, file{header.Name, header.Mode, data})
	}
}
