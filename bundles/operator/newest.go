package operator

import (
	"regexp"

	"k8s.io/apimachinery/pkg/util/version"
)

// acceptedVersion matches the versions of a chart that spec.chart.repository.version accepts.
var acceptedVersion = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.+-]{0,127}$`)

// Newest returns the highest version of a chart. Pre-releases count only if used, the version in use, is a pre-release.
// Newest ignores texts that are no semantic versions, and versions that a FederatedOperator cannot name. It returns an
// empty text if no version is left.
func Newest(used string, versions []string) string {
	early := isPreRelease(used)
	var newest string
	var highest *version.Version
	for _, text := range versions {
		v := semantic(text)
		if v == nil || v.PreRelease() != "" && !early {
			continue
		}
		if highest == nil || highest.LessThan(v) || v.EqualTo(highest) && text < newest {
			newest, highest = text, v
		}
	}
	return newest
}

// IsNewer reports whether newest is a version that a user of the version used may want. It is false if one of the two
// is no semantic version.
func IsNewer(newest, used string) bool {
	n, u := semantic(newest), semantic(used)
	return n != nil && u != nil && u.LessThan(n) && (n.PreRelease() == "" || u.PreRelease() != "")
}

func isPreRelease(text string) bool {
	v := semantic(text)
	return v != nil && v.PreRelease() != ""
}

// semantic returns the semantic version in a text. It returns nil if the text is none.
func semantic(text string) *version.Version {
	if !acceptedVersion.MatchString(text) {
		return nil
	}
	v, err := version.ParseSemantic(text)
	if err != nil {
		return nil
	}
	return v
}
