package events

import (
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
)

func TestAnEventIsLoggedOnceWithItsObject(t *testing.T) {
	tests := map[string]struct {
		regarding runtime.Object
		want      string
	}{
		"an object of a known type, as caches have it without kind": {
			regarding: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}},
			want:      `"kind"="ConfigMap" "namespace"="shop" "name"="web"`,
		},
		"a reference to an object of any kind": {
			regarding: &corev1.ObjectReference{APIVersion: "example.com/v1", Kind: "Widget", Namespace: "shop", Name: "web"},
			want:      `"kind"="Widget" "namespace"="shop" "name"="web"`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			log := funcr.New(func(_, args string) { got = append(got, args) }, funcr.Options{})
			recorded := events.NewFakeRecorder(2)
			e := Logged(recorded, scheme.Scheme, log)
			e.Eventf(tc.regarding, nil, corev1.EventTypeWarning, "ApplyFailed", "Apply", "failed on %d cluster: %s", 1, "100%")
			want := []string{`"level"=0 "msg"="Recorded an event" ` + tc.want + ` "reason"="ApplyFailed" "note"="failed on 1 cluster: 100%"`}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("log (-want +got):\n%s", diff)
			}
			if len(recorded.Events) != 1 {
				t.Errorf("%d events are recorded, want 1", len(recorded.Events))
			}
		})
	}
}
