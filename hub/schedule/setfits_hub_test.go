package schedule

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/apiserver"
)

func TestABundleOnTooManyClustersSaysBothNumbers(t *testing.T) {
	apiserver.Needed(t)
	s := newSetScene(t, "setmany")
	spec := &hubv1.SetRolloutSpec{}
	for i := range hubv1.MaxEntries + 1 {
		spec.Clusters = append(spec.Clusters, hubv1.SetCluster{Name: fmt.Sprint(i), Revision: 1})
	}
	steps := func(clusters int) (fits bool, c *metav1.Condition) {
		t.Helper()
		r := &setRun{s: scheduler, of: s.of, bundle: &hubv1.Bundle{}}
		if err := hubClient.Get(t.Context(), client.ObjectKeyFromObject(s.bundle), r.bundle); err != nil {
			t.Fatal(err)
		}
		fits, err := r.fits(t.Context(), &hubv1.SetRolloutSpec{Clusters: spec.Clusters[:clusters]})
		if err != nil {
			t.Fatal(err)
		}
		after := &hubv1.Bundle{}
		if err := hubClient.Get(t.Context(), client.ObjectKeyFromObject(s.bundle), after); err != nil {
			t.Fatal(err)
		}
		return fits, meta.FindStatusCondition(after.Status.Conditions, hubv1.ConditionScheduled)
	}
	if fits, c := steps(hubv1.MaxEntries); !fits || c != nil {
		t.Errorf("with as many clusters as a SetRollout has: %t, %+v", fits, c)
	}
	fits, c := steps(hubv1.MaxEntries + 1)
	if fits || c == nil || c.Status != metav1.ConditionFalse || c.Reason != hubv1.ReasonTooManyClusters || !strings.Contains(c.Message, "at most 2200 clusters, and 2201 shall") {
		t.Errorf("with one cluster more: %t, %+v", fits, c)
	}
	if fits, c := steps(3); !fits || c != nil {
		t.Errorf("with few clusters again: %t, %+v", fits, c)
	}
}
