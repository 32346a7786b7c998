package main

import (
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
)

// A Version is that of a release. The tag in git is v0.1.0. Images, charts, the bundle and binaries say 0.1.0.
type Version struct{ semver semver.Version }

// ParseVersion reads a tag such as v0.1.0 or v0.2.0-rc.1. It refuses build metadata, which a tag of an image cannot
// have.
func ParseVersion(tag string) (Version, error) {
	plain, found := strings.CutPrefix(tag, "v")
	if !found {
		return Version{}, fmt.Errorf("version %q does not begin with v: pass VERSION=vX.Y.Z", tag)
	}
	v, err := semver.Parse(plain)
	if err != nil {
		return Version{}, fmt.Errorf("version %q is not semantic, pass VERSION=vX.Y.Z: %w", tag, err)
	}
	if len(v.Build) > 0 {
		return Version{}, fmt.Errorf("version %q has build metadata, which no tag of an image can have", tag)
	}
	return Version{v}, nil
}

// Tag is the version with v.
func (v Version) Tag() string { return "v" + v.semver.String() }

// Plain is the version without v.
func (v Version) Plain() string { return v.semver.String() }
