package operator_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hanse-dev/hanse/bundles/operator"
)

func TestTheNewestVersionOfAChart(t *testing.T) {
	t.Parallel()
	many := []string{"1.0.0"}
	for i := range 10_000 {
		many = append(many, fmt.Sprintf("1.0.0-nightly.%d", i), fmt.Sprintf("sha-%040x", i))
	}
	for name, tc := range map[string]struct {
		used     string
		versions []string
		want     string
	}{
		"the highest number counts, not the order of the letters": {"1.0.0", []string{"1.10.0", "1.9.0", "1.0.0"}, "1.10.0"},
		"without a newer version, it is the version in use":       {"2.0.0", []string{"2.0.0", "1.0.0"}, "2.0.0"},
		"the version in use may be missing in the repository":     {"3.0.0", []string{"2.0.0", "1.0.0"}, "2.0.0"},
		"a pre-release does not count":                            {"1.0.0", []string{"1.1.0", "1.2.0-rc.1"}, "1.1.0"},
		"a pre-release counts if one is in use":                   {"1.2.0-rc.1", []string{"1.1.0", "1.2.0-rc.2", "1.2.0-rc.10"}, "1.2.0-rc.10"},
		"a release is newer than its pre-releases":                {"1.2.0-rc.1", []string{"1.2.0", "1.2.0-rc.2"}, "1.2.0"},
		"versions may begin with v":                               {"v1.0.0", []string{"v1.1.0", "1.0.5"}, "v1.1.0"},
		"of equal versions, the first by its letters is taken":    {"1.0.0", []string{"v1.1.0", "1.1.0+b", "1.1.0+a"}, "1.1.0+a"},
		"tags that are no versions are ignored":                   {"1.0.0", []string{"latest", "", "9", "9.9", "1.2.3.4", "1.x.0", "01.2.3", "1.0.1", "sha256-" + strings.Repeat("a", 64) + ".sig", "2024.01.02"}, "1.0.1"},
		"a text with spaces or control characters is ignored":     {"1.0.0", []string{" 9.0.0", "9.0.0\n", "9.0.0-\x1b[31m", "1.0.1"}, "1.0.1"},
		"a version that a FederatedOperator cannot name is ignored": {
			"1.0.0", []string{"9.0.0+" + strings.Repeat("a", 128), "1.0.1"}, "1.0.1",
		},
		"a number that is too large is ignored":                     {"1.0.0", []string{"1.0.1", "18446744073709551616.0.0", "1." + strings.Repeat("9", 100) + ".0"}, "1.0.1"},
		"10,000 nightly builds and digests hide no version":         {"0.9.0", many, "1.0.0"},
		"of a version in use that is none, only releases are known": {"stable", []string{"1.0.0", "1.1.0-rc.1"}, "1.0.0"},
		"an empty repository has none":                              {"1.0.0", nil, ""},
	} {
		if got := operator.Newest(tc.used, tc.versions); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestAVersionIsNewer(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		newest, used string
		want         bool
	}{
		"a higher version":                              {"1.10.0", "1.9.0", true},
		"the same version":                              {"1.9.0", "1.9.0", false},
		"the same version with another build":           {"1.9.0+b", "1.9.0+a", false},
		"the same version with a v":                     {"v1.9.0", "1.9.0", false},
		"an older version, after an upgrade":            {"1.9.0", "1.10.0", false},
		"a release after a pre-release":                 {"1.9.0", "1.9.0-rc.1", true},
		"a pre-release after a pre-release":             {"1.9.0-rc.2", "1.9.0-rc.1", true},
		"a pre-release after the return to a release":   {"2.0.0-rc.2", "1.9.0", false},
		"a version of an unknown one":                   {"1.9.0", "stable", false},
		"no version, as in a repository that is empty":  {"", "1.9.0", false},
		"a version before the hub has stored the chart": {"1.9.0", "", false},
	} {
		if got := operator.IsNewer(tc.newest, tc.used); got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
