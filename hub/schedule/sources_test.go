package schedule

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/kindwatch"
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

// oneBinding has the binding of one object and nothing else, as a cache that has been read.
type oneBinding struct {
	client.Client
	id key
}

func (b oneBinding) Get(_ context.Context, at client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	if at == b.id.BindingKey() {
		return nil
	}
	return apierrors.NewNotFound(schema.GroupResource{}, at.Name)
}

// stateOf is a kind's state and no objects.
type stateOf struct {
	Templates
	told bool
}

func (s stateOf) State(schema.GroupKind) (kindwatch.State, bool) {
	return kindwatch.State{Synced: true, Told: s.told}, true
}

func (s stateOf) List(schema.GroupKind) []key {
	return []key{{Kind: "Widget", Namespace: "n", Name: "known"}, {Kind: "Widget", Namespace: "n", Name: "new"}}
}

// nothingListed lists nothing, and has the binding of one object.
type nothingListed struct{ oneBinding }

func (nothingListed) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

func TestTheObjectsOfAFirstListWaitForItsEndAndChangesDoNot(t *testing.T) {
	q := priorityqueue.New[key]("test")
	defer q.ShutDown()
	known, made := key{Kind: "Widget", Namespace: "n", Name: "known"}, key{Kind: "Widget", Namespace: "n", Name: "new"}
	s := &Scheduler{Options: Options{Client: nothingListed{oneBinding{id: known}}, Templates: stateOf{}}, ctx: t.Context(), queue: q}
	s.wakeObject(known)
	s.Templates = stateOf{told: true}
	changed := key{Kind: "Widget", Namespace: "n", Name: "changed"}
	s.wakeObject(changed)
	if got, _ := q.Get(); got != changed {
		t.Errorf("%s was queued before the list was whole", got)
	}
	s.wakeKind(known.GroupKind())
	for i, want := range []key{made, known} {
		got, _ := q.Get()
		if got != want {
			t.Errorf("%s is number %d of the list, want %s", got, i+1, want)
		}
	}
}

func TestAnObjectThatIsNewAtTheStartGoesBeforeThoseThatHaveABinding(t *testing.T) {
	q := priorityqueue.New[key]("test")
	defer q.ShutDown()
	known, made := key{Kind: "Widget", Namespace: "n", Name: "a"}, key{Kind: "Widget", Namespace: "n", Name: "b"}
	s := &Scheduler{Options: Options{Client: oneBinding{id: known}}}
	s.replay(t.Context(), q, known, made)
	for i, want := range []key{made, known} {
		got, _ := q.Get()
		if got != want {
			t.Errorf("%s is number %d, want %s", got, i+1, want)
		}
		q.Done(got)
	}
}
