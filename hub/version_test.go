package hub

import (
	"maps"
	"testing"
)

func TestTheLeaseSaysWhichVersionLeads(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]map[string]string{
		"v0.1.0-12-gdeadbee-dirty": {"app.kubernetes.io/version": "v0.1.0-12-gdeadbee-dirty"},
		"":                         nil,
		"no label: at all":         nil,
	} {
		if got := versionLabel(version); !maps.Equal(got, want) {
			t.Errorf("version %q gives %v, want %v", version, got, want)
		}
	}
}
