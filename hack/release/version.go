package main

import (
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
)

// Version is the version of a release. The git tag of a release has the form v0.1.0. Images, charts, the bundle and
// binaries contain the version in the form 0.1.0.
type Version struct{ semver semver.Version }

// ParseVersion reads a tag such as v0.1.0 or v0.2.0-rc.1. It returns an error for a version with build metadata, which
// the tag of an image cannot have.
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

// Tag returns the version with a leading v.
func (v Version) Tag() string { return "v" + v.semver.String() }

// Plain returns the version without the v.
func (v Version) Plain() string { return v.semver.String() }
