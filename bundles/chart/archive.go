package chart

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
)

const (
	// MaxArchiveBytes is the maximum size of an archive: 8 MiB.
	MaxArchiveBytes = 8 << 20
	// MaxUnpackedBytes is the maximum size of the unpacked archive, including the archives of subcharts: 32 MiB.
	MaxUnpackedBytes = 32 << 20
	// MaxTemplateBytes is the maximum size of one template: 2 MiB. A small template cannot nest its actions deeply.
	// Deeply nested actions would fill the stack of the process that renders them.
	MaxTemplateBytes = 2 << 20
	// MaxFiles is the maximum number of files and folders in an archive, including the archives of subcharts.
	MaxFiles = 2000
	// MaxPathDepth is the maximum number of names in the path of a file. For a file in the archive of a subchart, only
	// the path in that archive counts.
	MaxPathDepth = 24
	// MaxSubchartDepth is the maximum number of archives that are inside each other, including the outermost one.
	MaxSubchartDepth = 5
)

// unpacking reads an archive and the archives of subcharts inside it. The limits apply to all these archives together.
type unpacking struct {
	files []*archive.BufferedFile
	names map[string]bool
	// bytes and entries are the numbers of bytes and tar entries that may still be read.
	bytes, entries int64
}

// unpack returns the files of an archive. It also unpacks the archives of subcharts, each into a folder inside the
// folder charts. Otherwise helm would unpack these archives, and no limit would apply to all archives together.
func unpack(text []byte) ([]*archive.BufferedFile, error) {
	u := &unpacking{names: map[string]bool{}, bytes: MaxUnpackedBytes, entries: MaxFiles}
	if err := u.archive("", text, MaxSubchartDepth); err != nil {
		return nil, err
	}
	return u.files, nil
}

// archive reads one archive. It puts the prefix before the paths of the files. depth is how many archives may still be
// inside each other.
func (u *unpacking) archive(prefix string, text []byte, depth int) error {
	if depth == 0 {
		return fmt.Errorf("%s: archives are nested deeper than %d levels: unpack subcharts into folders", prefix, MaxSubchartDepth)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("%s is not a gzipped archive: %w", cmp.Or(strings.TrimSuffix(prefix, unpackedFolder), "the chart"), err)
	}
	limited := &io.LimitedReader{R: unzipped, N: u.bytes}
	entries := tar.NewReader(limited)
	for {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) && limited.N > 0 {
			break
		}
		if limited.N == 0 {
			return errUnpacked
		}
		if err != nil {
			return fmt.Errorf("reading the tar archive: %w", err)
		}
		if err := u.entry(prefix, header, entries, depth, limited); err != nil {
			return err
		}
	}
	u.bytes = limited.N
	return nil
}

var errUnpacked = fmt.Errorf("the chart has more than %d bytes unpacked: remove files from the chart", MaxUnpackedBytes)

// unpackedFolder is the end of the name of the folder into which the archive of a subchart is unpacked.
const unpackedFolder = ".unpacked/"

// entry reads one entry of the tar archive, and adds its file to the files.
func (u *unpacking) entry(prefix string, header *tar.Header, content io.Reader, depth int, limited *io.LimitedReader) error {
	if u.entries--; u.entries < 0 {
		return fmt.Errorf("the chart has more than %d files: remove files from the chart", MaxFiles)
	}
	if header.Typeflag == tar.TypeXGlobalHeader {
		return nil // a header of the tar format, such as git archive writes
	}
	name, err := nameOf(header.Name)
	if err != nil {
		return err
	}
	switch header.Typeflag {
	case tar.TypeDir:
		return nil
	case tar.TypeReg:
	default:
		return fmt.Errorf("%q is neither a file nor a directory: links and devices are refused", header.Name)
	}
	_, name, found := strings.Cut(name, "/")
	if !found {
		return fmt.Errorf("%q is in no folder: the files of a chart are in a folder with its name", header.Name)
	}
	text, err := io.ReadAll(content)
	switch {
	case limited.N == 0:
		return errUnpacked
	case err != nil:
		return fmt.Errorf("reading %q: %w", header.Name, err)
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if subchart(name) {
		u.bytes = limited.N
		err := u.archive(prefix+name+unpackedFolder, text, depth-1)
		limited.N = u.bytes
		return err
	}
	return u.add(prefix+name, text)
}

func (u *unpacking) add(name string, text []byte) error {
	if u.names[name] {
		return fmt.Errorf("%q is twice in the archive", name)
	}
	u.names[name] = true
	u.files = append(u.files, &archive.BufferedFile{Name: name, Data: text})
	return nil
}

// nameOf returns the path of a tar entry, without ./ at the start and / at the end. A path that is absolute, too deep,
// or has .. in it is an error.
func nameOf(name string) (string, error) {
	short := strings.TrimSuffix(strings.TrimPrefix(name, "./"), "/")
	switch {
	case strings.HasPrefix(name, "/"):
		return "", fmt.Errorf("the path %q is absolute", name)
	case strings.ContainsAny(name, "\\\x00") || len(name) > 1 && name[1] == ':':
		return "", fmt.Errorf("the path %q has a backslash or a drive: use / between folders", name)
	case short == "" || short == ".":
		return ".", nil
	case path.Clean(short) != short || strings.HasPrefix(short, "../") || short == "..":
		return "", fmt.Errorf("the path %q has . or .. or an empty name in it", name)
	case strings.Count(short, "/") >= MaxPathDepth:
		return "", fmt.Errorf("the path %q has more than %d names: use fewer folders", name, MaxPathDepth)
	}
	return short, nil
}

// subchart reports whether a file is the archive of a subchart. Helm ignores archives whose names begin with . or _.
func subchart(name string) bool {
	folder, file := path.Split(name)
	return inCharts(folder) && path.Ext(file) == ".tgz" && !strings.HasPrefix(file, "_") && !strings.HasPrefix(file, ".")
}

// inCharts reports whether a folder has subcharts. It is the folder charts of the chart, or of a subchart, such as
// charts/NAME/charts/.
func inCharts(folder string) bool {
	names := strings.Split(strings.TrimSuffix(folder, "/"), "/")
	for i := 0; i < len(names); i += 2 {
		if names[i] != "charts" {
			return false
		}
	}
	return len(names)%2 == 1
}

// Pack returns the chart in a folder as an archive, without the files that its .helmignore excludes. Equal files give
// equal archives. Pack follows symbolic links.
func Pack(folder string) ([]byte, error) {
	c, err := loader.LoadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("reading the chart of folder %s: %w", folder, err)
	}
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	entries := tar.NewWriter(zipped)
	for _, f := range c.Raw { // files in the order of their names
		if err := entries.WriteHeader(&tar.Header{Name: path.Join(c.Name(), f.Name), Mode: 0o644, Size: int64(len(f.Data))}); err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.Name, err)
		}
		if _, err := entries.Write(f.Data); err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.Name, err)
		}
	}
	if err := errors.Join(entries.Close(), zipped.Close()); err != nil {
		return nil, fmt.Errorf("packing the chart of folder %s: %w", folder, err)
	}
	return out.Bytes(), nil
}
