package console

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/rollup"
	"github.com/hanse-dev/hanse/view"
)

func TestOnlyAHealthyCopyOfAReachableClusterIsGreen(t *testing.T) {
	t.Parallel()
	for _, s := range rollup.CopyStates() {
		if green := copyState(s).Class == "ok"; green != (s == rollup.CopyHealthy) {
			t.Errorf("a copy that is %s is green: %t", s, green)
		}
	}
	now := time.Now()
	for _, ready := range []metav1.ConditionStatus{"", metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown} {
		for _, ago := range []time.Duration{time.Second, time.Hour} {
			m := hubv1.MemberCluster{}
			at := metav1.NewTime(now.Add(-ago))
			m.Status.LastObservedTime = &at
			if ready != "" {
				m.Status.Conditions = []metav1.Condition{{Type: hubv1.ConditionReady, Status: ready, Reason: hubv1.ReasonUnreachable}}
			}
			observed := ready == metav1.ConditionTrue && ago < time.Minute
			cluster := clusterState(view.Clusters([]hubv1.MemberCluster{m}, nil, nil, now).Clusters[0])
			if want := map[bool]string{true: "ok", false: "unknown"}[observed]; cluster.Class != want {
				t.Errorf("a cluster with Ready=%q that was observed %s ago is %v, want %s", ready, ago, cluster, want)
			}
		}
	}
	if got := fmt.Sprint(operatorCell{On: &view.OperatorOnCluster{Ready: true, Away: true}}.State()); got != "{unknown unknown}" {
		t.Errorf("an operator is %s on a cluster that is away", got)
	}
}
