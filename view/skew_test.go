package view

import (
	"strings"
	"testing"
)

func TestVersionsAreOneMinorVersionApartAtMost(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		client, hub string
		want        Skew
	}{
		"the same release":                           {"0.2.0", "0.2.0", SkewSupported},
		"a v before one of them":                     {"v0.2.0", "0.2.0", SkewSupported},
		"another patch release":                      {"0.2.9", "0.2.0", SkewSupported},
		"hansectl is one minor version newer":        {"0.3.0", "0.2.5", SkewSupported},
		"hansectl is one minor version older":        {"0.1.0", "0.2.5", SkewSupported},
		"a release candidate":                        {"0.3.0-rc.1", "0.2.0", SkewSupported},
		"hansectl is two minor versions newer":       {"0.3.0", "0.1.0", SkewTooWide},
		"hansectl is two minor versions older":       {"v0.1.0", "v0.3.0", SkewTooWide},
		"minor versions are numbers":                 {"0.9.0", "0.10.0", SkewSupported},
		"another major version":                      {"1.0.0", "0.9.0", SkewTooWide},
		"a commit after a tag":                       {"v0.1.0-12-gdeadbee", "0.3.0", SkewUnknown},
		"a commit after a release candidate":         {"0.3.0", "v0.1.0-rc.1-3-gdeadbeef0123", SkewUnknown},
		"changes after a commit after a tag":         {"v0.1.0-12-gdeadbee-dirty", "0.3.0", SkewUnknown},
		"changes after a tag":                        {"v0.2.0-dirty", "0.1.0", SkewSupported},
		"a commit without a tag":                     {"5d30937", "0.1.0", SkewUnknown},
		"a commit of digits alone":                   {"1234567", "0.1.0", SkewUnknown},
		"changes after a commit without a tag":       {"5d30937-dirty", "0.1.0", SkewUnknown},
		"a build without a version":                  {"unknown", "0.1.0", SkewUnknown},
		"two numbers":                                {"0.1", "0.3.0", SkewUnknown},
		"no version":                                 {"", "0.1.0", SkewUnknown},
		"two builds without a version, which differ": {"5d30937", "cd129af", SkewUnknown},
	} {
		if got := SkewOf(tc.client, tc.hub); got != tc.want {
			t.Errorf("%s: %s and %s: %s, want %s", name, tc.client, tc.hub, got, tc.want)
		}
		if there, back := SkewOf(tc.client, tc.hub), SkewOf(tc.hub, tc.client); there != back {
			t.Errorf("%s: %s one way, %s the other", name, there, back)
		}
	}
}

func TestTheChecksWarnOfVersionsThatAreTooFarApart(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		client, hub, unknown string
		want                 Finding
		says                 []string
	}{
		"one version":                {"0.1.0", "0.1.0", "", FindingOK, []string{"0.1.0"}},
		"neighbours":                 {"0.2.0", "0.1.0", "", FindingOK, []string{"the hub is 0.1.0, hansectl is 0.2.0"}},
		"too far apart":              {"0.3.0", "0.1.0", "", FindingWarning, []string{"the hub is 0.1.0, hansectl is 0.3.0", "more than one minor version apart"}},
		"a development build":        {"5d30937-dirty", "0.1.0", "", FindingOK, []string{"the hub is 0.1.0, hansectl is 5d30937-dirty", "not compared"}},
		"a version that is not read": {"0.1.0", "", "no hub has led yet", FindingUnknown, []string{"no hub has led yet"}},
	} {
		got := CheckVersions(tc.client, tc.hub, tc.unknown)
		if got.Result != tc.want {
			t.Errorf("%s: %+v, want %s", name, got, tc.want)
		}
		for _, text := range tc.says {
			if !strings.Contains(got.Message, text) {
				t.Errorf("%s: the message %q does not say %q", name, got.Message, text)
			}
		}
	}
}
