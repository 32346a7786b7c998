// Package charttest creates archives of charts for tests.
package charttest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"maps"
	"slices"
)

// Archive returns an archive of a chart, as the command helm package writes it. folder is the name of the chart. files
// has the contents of the files by their paths in the folder.
func Archive(folder string, files map[string]string) []byte {
	var headers []tar.Header
	var contents []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		headers = append(headers, tar.Header{Name: folder + "/" + name, Typeflag: tar.TypeReg, Mode: 0o644})
		contents = append(contents, files[name])
	}
	return Entries(headers, contents)
}

// Entries returns a gzipped tar archive with these entries, valid or not. Each header has the content with the same
// index. Entries sets the sizes in the headers.
func Entries(headers []tar.Header, contents []string) []byte {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	entries := tar.NewWriter(zipped)
	for i, header := range headers {
		header.Size = int64(len(contents[i]))
		err := entries.WriteHeader(&header)
		if err == nil {
			_, err = entries.Write([]byte(contents[i]))
		}
		if err != nil {
			panic(err)
		}
	}
	if err := errors.Join(entries.Close(), zipped.Close()); err != nil {
		panic(err)
	}
	return out.Bytes()
}
