package informer

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/answer"
)

func TestAKindHasNoObjectsForEver(t *testing.T) {
	t.Parallel()
	k := newTestKind(t.Context(), &shelves{})
	event := func(n int) watch.Event {
		u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": fmt.Sprint(n), "resourceVersion": fmt.Sprint(n)}}}
		return watch.Event{Type: watch.Added, Object: u}
	}
	k.set.options.Transform = func(u *unstructured.Unstructured) (metav1.Object, error) {
		return &metav1.ObjectMeta{Name: u.GetName()}, nil
	}
	for n := range maxObjects {
		if err := k.take(event(n)); err != nil {
			t.Fatal(err)
		}
	}
	err := k.take(event(maxObjects))
	if !answer.IsTooLarge(err) || !strings.Contains(err.Error(), "100000 objects") {
		t.Errorf("one more: %v", err)
	}
	if reason, _ := classify(err); reason != hubv1.ReasonAnswerTooLarge {
		t.Errorf("the reason is %s", reason)
	}
	if err := k.take(event(7)); err != nil {
		t.Errorf("an object that is known: %v", err)
	}
}

func TestAPageThatIsTooLargeIsAskedForInSmallerOnes(t *testing.T) {
	t.Parallel()
	s := &shelves{objects: 60, bytes: 10, limited: true, most: 3}
	k := newTestKind(t.Context(), s)
	if err := k.list(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(k.objects) != 60 {
		t.Errorf("%d objects, want 60", len(k.objects))
	}
	s.most = 0 // smaller than one object
	if err := k.list(t.Context()); !answer.IsTooLarge(err) {
		t.Errorf("an object that is too large by itself: %v", err)
	}
}

func TestAListThatNeverKnowsWhereItContinuesIsReadInOnePiece(t *testing.T) {
	t.Parallel()
	s := &shelves{objects: 120, bytes: 10, refuse: apierrors.NewResourceExpired("the place is too old")}
	k := newTestKind(t.Context(), s)
	if err := k.list(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(k.objects) != 120 {
		t.Errorf("%d objects, want 120", len(k.objects))
	}
}
