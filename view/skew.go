package view

import (
	"regexp"

	"k8s.io/apimachinery/pkg/util/version"
)

// Skew tells how far two versions of Hanse, those of hansectl and the hub, are apart.
type Skew string

const (
	// SkewSupported means that the versions of hansectl and the hub are at most one minor version apart.
	SkewSupported Skew = "Supported"
	// SkewTooWide means that the versions of hansectl and the hub are more than one minor version apart.
	SkewTooWide Skew = "TooWide"
	// SkewUnknown means that the version of hansectl or the hub is not a release, so that the versions cannot be compared.
	SkewUnknown Skew = "Unknown"
)

// afterTag matches the suffix that git describe adds to the last tag: the number of commits since the tag, and a
// commit.
var afterTag = regexp.MustCompile(`-[0-9]+-g[0-9a-f]{7,}(-dirty)?$`)

// SkewOf compares two versions, such as "0.2.0" or "v0.2.0-rc.1". A build between two releases, such as
// "v0.1.0-12-gdeadbee", is not compared.
func SkewOf(a, b string) Skew {
	if afterTag.MatchString(a) || afterTag.MatchString(b) {
		return SkewUnknown
	}
	first, err := version.ParseSemantic(a)
	if err != nil {
		return SkewUnknown
	}
	second, err := version.ParseSemantic(b)
	if err != nil {
		return SkewUnknown
	}
	low, high := min(first.Minor(), second.Minor()), max(first.Minor(), second.Minor())
	if first.Major() != second.Major() || high-low > 1 {
		return SkewTooWide
	}
	return SkewSupported
}
