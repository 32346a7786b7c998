package preview

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
)

func TestALossIsDescribedAndDoesNotChangeTheInput(t *testing.T) {
	fleet := decide.Fleet{}
	for _, name := range []string{"a-1", "a-2", "b-1"} {
		fleet.Clusters = append(fleet.Clusters, &hubv1.MemberCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{hubv1.RegionLabel: name[:1]}},
			Status:     hubv1.MemberClusterStatus{Conditions: []metav1.Condition{{Type: hubv1.ConditionReady, Status: metav1.ConditionTrue}}},
		})
	}
	for name, tc := range map[string]struct {
		lose    func(*decide.Fleet, string) (string, error)
		of      string
		want    string
		refused string
		away    int
	}{
		"a cluster":               {LoseCluster, "a-1", "cluster a-1 does not answer for longer than any placement waits", "", 1},
		"a region":                {LoseRegion, "a", "region a does not answer for longer than any placement waits: a-1, a-2", "", 2},
		"an unknown cluster":      {LoseCluster, "mars", "", "no MemberCluster has this name: there are a-1, a-2, b-1", 0},
		"an unknown region":       {LoseRegion, "mars", "", "no cluster is in this region: there are a, b", 0},
		"a region without a name": {LoseRegion, "", "", "no cluster is in this region", 0},
	} {
		after := fleet
		got, err := tc.lose(&after, tc.of)
		if got != tc.want || (err == nil) != (tc.refused == "") || err != nil && !strings.Contains(err.Error(), tc.refused) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		away := 0
		for i, c := range after.Clusters {
			if c.IsAway() {
				away++
			}
			if fleet.Clusters[i].IsAway() {
				t.Errorf("%s: the fleet before has lost %s", name, c.Name)
			}
		}
		if away != tc.away {
			t.Errorf("%s: %d clusters are away, want %d", name, away, tc.away)
		}
	}
	if got := ThereAre(nil); got != "there are none" {
		t.Errorf("of no names: %q", got)
	}
}
