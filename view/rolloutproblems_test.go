package view

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestAWaveThatWaitsIsOneProblem(t *testing.T) {
	noon := metav1.NewTime(time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC))
	var p rolloutProblems
	for i, wave := range []string{"asia", "asia", "rest", "asia"} {
		b := &hubv1.ResourceBinding{}
		b.Spec.PlacementRef = &hubv1.PlacementReference{Kind: "Placement", Namespace: "shop", Name: "web"}
		b.Spec.Rollout = &hubv1.BindingRollout{
			Wave: wave, Phase: hubv1.RolloutWaitingForClusters, Since: metav1.NewTime(noon.Add(-time.Duration(i) * time.Minute)),
			Message: "eu keeps revision " + string(rune('1'+i)),
		}
		p.add("ConfigMap shop/settings", b, NewGatherer(nil).worstCopies)
	}
	var got []string
	for _, one := range p.list {
		got = append(got, one.Of+": "+one.Message+" since "+one.Since.UTC().Format(time.TimeOnly))
	}
	want := []string{
		"Placement shop/web: eu keeps revision 1 (3 objects) since 11:57:00",
		"Placement shop/web: eu keeps revision 3 since 11:58:00",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestAStoppedRolloutWithoutAReasonEndsWithoutAColon(t *testing.T) {
	p := &hubv1.Placement{}
	p.Status.Rollout = &hubv1.PlacementRollout{Stopped: &hubv1.RolloutStop{Object: "Cache shop/sessions", Revision: 2}}
	if got := PlacementRolloutOf(p, nil).Progress; got != "Revision 2 of Cache shop/sessions failed, which stops the placement" {
		t.Errorf("the progress is %q", got)
	}
}
