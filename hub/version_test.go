package hub

import "testing"

func TestTheLeaseSaysWhichVersionLeads(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"v0.1.0-12-gdeadbee-dirty": "v0.1.0-12-gdeadbee-dirty",
		"0.1.0+acme.1":             "0.1.0_acme.1",
		"":                         "unknown",
		"no label: at all":         "unknown",
	} {
		if got := versionLabel(version); len(got) != 1 || got["app.kubernetes.io/version"] != want {
			t.Errorf("version %q gives %v, want %q", version, got, want)
		}
	}
}
