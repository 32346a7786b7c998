package health

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestStoredVersionsAreReadFromTheRowsOfADefinition(t *testing.T) {
	t.Parallel()
	row := func(cluster, observed string) hubv1.ClusterRow {
		r := hubv1.ClusterRow{Name: cluster}
		if observed != "" {
			r.Observed = &runtime.RawExtension{Raw: []byte(observed)}
		}
		return r
	}
	got, err := StoredVersions([]hubv1.ClusterRow{row("silent", ""), row("eu", `{"/storedVersions":["v1","v2"]}`), row("us", `{"/storedVersions":null}`)})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string][]string{"eu": {"v1", "v2"}}, got); diff != "" {
		t.Errorf("stored versions (-want +got):\n%s", diff)
	}
	if _, err := StoredVersions([]hubv1.ClusterRow{row("eu", `{`)}); err == nil {
		t.Error("a row that cannot be read gives no error")
	}
}
