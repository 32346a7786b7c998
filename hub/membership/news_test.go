package membership

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestEachChangeOfAClusterIsOneEvent(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	condition := func(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: "of " + reason, LastTransitionTime: metav1.NewTime(now.Add(-4 * time.Minute))}
	}
	ready := func(status metav1.ConditionStatus, reason string) metav1.Condition {
		return condition(hubv1.ConditionReady, status, reason)
	}
	up, lost := ready(metav1.ConditionTrue, hubv1.ReasonConnected), ready(metav1.ConditionFalse, hubv1.ReasonUnreachable)
	reworded := lost
	reworded.Message = "no route to host"
	taken := condition(hubv1.ConditionCredentialsValid, metav1.ConditionTrue, hubv1.ReasonCredentialsTaken)
	refused := condition(hubv1.ConditionCredentialsValid, metav1.ConditionFalse, hubv1.ReasonUnauthorized)
	soon := condition(hubv1.ConditionCredentialsExpireSoon, metav1.ConditionTrue, hubv1.ReasonRenewalFailed)
	tests := map[string]struct {
		before, after []metav1.Condition
		want          []clusterEvent
	}{
		"a cluster joins": {nil, []metav1.Condition{up, taken}, []clusterEvent{{"Normal", "Connected", "of Connected"}}},
		"a cluster is lost": {
			[]metav1.Condition{up, taken}, []metav1.Condition{lost, taken}, []clusterEvent{{"Warning", "ClusterUnreachable", "of ClusterUnreachable"}},
		},
		"a lost cluster is lost in other words": {[]metav1.Condition{lost}, []metav1.Condition{reworded}, nil},
		"a cluster is back": {
			[]metav1.Condition{lost}, []metav1.Condition{up}, []clusterEvent{{"Normal", "Connected", "the cluster answers again after 4m (ClusterUnreachable): of Connected"}},
		},
		"the address leads to another cluster": {
			[]metav1.Condition{lost},
			[]metav1.Condition{ready(metav1.ConditionFalse, hubv1.ReasonIdentityChanged)},
			[]clusterEvent{{"Warning", "IdentityChanged", "of IdentityChanged"}},
		},
		"the credentials are refused": {
			[]metav1.Condition{up, taken},
			[]metav1.Condition{ready(metav1.ConditionFalse, hubv1.ReasonUnauthorized), refused},
			[]clusterEvent{{"Warning", "Unauthorized", "of Unauthorized"}},
		},
		"new credentials are taken": {
			[]metav1.Condition{up, refused}, []metav1.Condition{up, taken}, []clusterEvent{{"Normal", "CredentialsTaken", "of CredentialsTaken"}},
		},
		"the credentials expire soon": {
			[]metav1.Condition{up}, []metav1.Condition{up, soon}, []clusterEvent{{"Warning", "RenewalFailed", "of RenewalFailed"}},
		},
		"all is as it was": {[]metav1.Condition{lost, refused, soon}, []metav1.Condition{lost, refused, soon}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, changes(tc.before, tc.after, now), cmp.AllowUnexported(clusterEvent{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	t.Run("a note is as long as an API server takes", func(t *testing.T) {
		long := lost
		long.Message = strings.Repeat("是", 4096)
		if got := len(changes(nil, []metav1.Condition{long}, now)[0].note); got > 1024 {
			t.Errorf("the note has %d bytes", got)
		}
	})
}

func TestEventsReportThatAClusterIsLostAndBack(t *testing.T) {
	s := newScene(t, "told")
	s.ready("told-id")
	s.reported("Normal Connected watches deliver")
	links.become(s.name, away(connected("told-id")))
	s.reported("Warning ClusterUnreachable it refuses connections")
	links.become(s.name, connected("told-id"))
	s.reported("Normal Connected the cluster answers again after")
	moved := connected("told-id")
	moved.Ready, moved.Reason, moved.Message = metav1.ConditionFalse, hubv1.ReasonIdentityChanged, "another cluster answers"
	links.become(s.name, moved)
	s.reported("Warning IdentityChanged another cluster answers")
	s.unchanged("the status after a restart", func() { links.become(s.name, connecting) })
	if got := len(recorder.of(s.name)); got != 4 {
		t.Errorf("there are %d events, want 4: %q", got, recorder.of(s.name))
	}
}
