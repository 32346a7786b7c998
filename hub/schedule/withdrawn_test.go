package schedule

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestWhichBindingAConfirmationCovers(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	of := func(uid types.UID, generation int64) *hubv1.ResourceBinding {
		b := bound(absent("eu", hubv1.ReasonObjectDeleted, hubv1.RemovalDelete))
		b.UID, b.Generation = uid, generation
		return b
	}
	ending := func(uid types.UID, generation int64) *hubv1.ResourceBinding {
		b := of(uid, generation)
		b.DeletionTimestamp = &now
		return b
	}
	tests := map[string]struct {
		b    *hubv1.ResourceBinding
		want bool
	}{
		"the one that was confirmed":                {of("x", 5), true},
		"the same after its deletion was asked for": {ending("x", 6), true},
		"not the next decision":                     {of("x", 6), false},
		"not a later decision":                      {of("x", 7), false},
		"not an earlier decision":                   {of("x", 4), false},
		"not another binding of that name":          {of("y", 5), false},
		"not another binding that is being deleted": {ending("y", 6), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var w withdrawals
			if w.cover(tc.b) || !w.note(of("x", 5)) {
				t.Fatal("it was covered before")
			}
			if got := w.cover(tc.b); got != tc.want {
				t.Errorf("covered: %v, want %v", got, tc.want)
			}
			if news := w.note(tc.b); news == tc.want {
				t.Errorf("news: %v, want %v", news, !tc.want)
			}
			w.forget(client.ObjectKeyFromObject(tc.b))
			if w.cover(tc.b) {
				t.Error("it is not forgotten")
			}
		})
	}
}

// A binding ends with three writes: the write of the Absent clusters into its spec, the deletion of the binding, and
// the removal of its finalizer. None of these writes contains rows.
func TestABindingEndsWhenItsMembersConfirmToThisProcess(t *testing.T) {
	t.Parallel()
	s := newScene(t, "confirmed", "eu", "sg")
	s.create(s.place("web", "eu", "sg"))
	s.object()
	s.becomes("eu", "sg")
	watching, err := client.NewWithWatch(hubConfig, client.Options{Scheme: hubClient.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	events, err := watching.Watch(t.Context(), &hubv1.ResourceBindingList{}, client.InNamespace(s.id.Namespace))
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	objects.remove(s.id)
	s.becomes("-eu ObjectDeleted Delete", "-sg ObjectDeleted Delete")
	if !scheduler.Withdrawn(s.binding()) {
		t.Error("the confirmation is no news")
	}
	s.becomes("no binding")
	var written []string
	for e := range events.ResultChan() {
		b, _ := e.Object.(*hubv1.ResourceBinding)
		if e.Type == apiwatch.Added {
			continue // the binding at the start of the watch
		}
		written = append(written, fmt.Sprintf("%s generation %d, %d rows", e.Type, b.Generation, len(b.Status.Clusters)))
		if e.Type == apiwatch.Deleted {
			break
		}
	}
	want := []string{"MODIFIED generation 2, 0 rows", "MODIFIED generation 3, 0 rows", "DELETED generation 3, 0 rows"}
	if fmt.Sprint(written) != fmt.Sprint(want) {
		t.Errorf("the binding was written %q, want %q", written, want)
	}
}

func TestAConfirmationEndsWithItsDecision(t *testing.T) {
	t.Parallel()
	s := newScene(t, "retaken", "eu")
	s.create(s.place("web", "eu"))
	s.object()
	s.becomes("eu")
	objects.remove(s.id)
	s.becomes("-eu ObjectDeleted Delete")
	confirmed := s.binding()
	s.object()
	s.becomes("-eu MadeAnew Delete")
	s.withdraws()
	s.becomes("eu")
	objects.remove(s.id)
	s.becomes("-eu ObjectDeleted Delete")
	scheduler.Withdrawn(confirmed) // a late confirmation: the copy was made again meanwhile
	s.eventually("the confirmation was looked at", func() error {
		if c, _, _, _ := scheduler.Decision(s.id.BindingKey()); c.ObservedGeneration != s.binding().Generation {
			return fmt.Errorf("the decision is for generation %d", c.ObservedGeneration)
		}
		return nil
	})
	s.becomes("-eu ObjectDeleted Delete")
	s.withdraws()
	s.becomes("no binding")
}
