package schedule

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestAnObjectThatChangesGoesBeforeThoseOfAClusterThatDoes(t *testing.T) {
	q := priorityqueue.New[key]("test")
	defer q.ShutDown()
	many := []key{{Kind: "Widget", Name: "a"}, {Kind: "Widget", Name: "b"}}
	behind(func(context.Context, *hubv1.MemberCluster) []key { return many })(t.Context(), &hubv1.MemberCluster{}, q)
	changed := key{Kind: "Widget", Name: "c"}
	q.Add(changed)
	for i := range 3 {
		got, _ := q.Get()
		if first := got == changed; first != (i == 0) {
			t.Errorf("%s is number %d", got, i+1)
		}
		q.Done(got)
	}
}
