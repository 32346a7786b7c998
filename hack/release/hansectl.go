package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// platforms has the platforms for which hansectl is built.
var platforms = []platform{
	{"linux", "amd64"}, {"linux", "arm64"},
	{"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"},
}

type platform struct{ os, arch string }

// binary returns the file name of hansectl in the archive.
func (p platform) binary() string {
	if p.os == "windows" {
		return "hansectl.exe"
	}
	return "hansectl"
}

// archive returns the file name of the archive for this platform.
func (p platform) archive(v Version) string {
	extension := "tar.gz"
	if p.os == "windows" {
		extension = "zip"
	}
	return fmt.Sprintf("hansectl_%s_%s_%s.%s", v.Tag(), p.os, p.arch, extension)
}

// archive is a written archive with hansectl.
type archive struct {
	platform platform
	name     string
	sha256   string
}

// buildArchives builds hansectl for each platform.
func (r *release) buildArchives(ctx context.Context, when time.Time) ([]archive, error) {
	license, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return nil, fmt.Errorf("reading the license: %w", err)
	}
	var archives []archive
	for _, p := range platforms {
		fmt.Printf("building hansectl for %s/%s\n", p.os, p.arch)
		binary, err := r.buildHansectl(ctx, p)
		if err != nil {
			return nil, err
		}
		a := archive{platform: p, name: p.archive(r.version)}
		files := []file{{p.binary(), 0o755, binary}, {"LICENSE", 0o644, license}}
		if err := writeArchive(filepath.Join(r.out, a.name), files, when); err != nil {
			return nil, err
		}
		if a.sha256, err = sum(filepath.Join(r.out, a.name)); err != nil {
			return nil, err
		}
		archives = append(archives, a)
	}
	return archives, nil
}

// buildHansectl builds hansectl for a platform and returns the binary. The binary contains no path and no state of the
// checkout, so that other builds of the commit give the same bytes.
func (r *release) buildHansectl(ctx context.Context, p platform) (binary []byte, err error) {
	err = inFolder(func(folder string) error {
		path := filepath.Join(folder, p.binary())
		_, err := r.command(ctx, []string{"CGO_ENABLED=0", "GOOS=" + p.os, "GOARCH=" + p.arch},
			"go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.version="+r.version.Plain(), "-o", path, "./cmd/hansectl")
		if err != nil {
			return err
		}
		binary, err = os.ReadFile(path)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("building hansectl for %s/%s: %w", p.os, p.arch, err)
	}
	return binary, nil
}

// sum returns the SHA-256 checksum of a file, in hexadecimal digits.
func sum(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("reading a file for its checksum: %w", err)
	}
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:]), nil
}
