package informer_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/answer"
	"github.com/hanse-dev/hanse/internal/informer"
)

// heavy is a part that says that it takes 10 MiB. Six of them fit into the memory that the process keeps of one server.
type heavy struct{ *metav1.ObjectMeta }

func (heavy) Size() int64 { return 10 << 20 }

// limited makes the parts of a Set heavy. reported gets the reports about responses that could not be kept.
func limited(reported chan<- string) func(*informer.Options) {
	return func(o *informer.Options) {
		o.Retained = answer.NewRetained(func(what string, err error) {
			select {
			case reported <- what + ": " + err.Error():
			default:
			}
		})
		o.Transform = func(u *unstructured.Unstructured) (metav1.Object, error) {
			return heavy{&metav1.ObjectMeta{Name: u.GetName(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion()}}, nil
		}
	}
}

var six = []string{"a", "b", "c", "d", "e", "f"}

func TestWhatDoesNotFitIntoMemoryIsReportedAndTheObjectsStay(t *testing.T) {
	for name, exceed := range map[string]func(*library, *informer.Set){
		"an event": func(l *library, _ *informer.Set) { l.put("g") },
		"a list": func(l *library, s *informer.Set) {
			l.set(func(l *library) { l.watch = hang }) // no event brings the object
			l.put("g")
			s.Relist(shelf)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, reported := newLibrary(six...), make(chan string, 1)
			s, log := start(t, l, limited(reported))
			until(t, "the first list", synced(s))
			exceed(l, s)
			until(t, "the reason", reason(s, hubv1.ReasonAnswerTooLarge))
			if text := <-reported; !strings.HasPrefix(text, "the objects of Shelf: the data that the hub keeps of the cluster is larger than") {
				t.Errorf("reported %q", text)
			}
			if diff := cmp.Diff(six, names(s)); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
			l.set(func(l *library) { delete(l.shelves, "a"); l.watch = nil })
			s.Restart()
			until(t, "the list after another object was deleted", func() bool { return log.has("-a") && log.has("+g") })
			until(t, "the end of the reason", reason(s, ""))
		})
	}
}

func TestTheSameObjectsFitASecondTime(t *testing.T) {
	l, reported := newLibrary(six...), make(chan string, 1)
	s, log := start(t, l, limited(reported))
	until(t, "the first list", synced(s))
	for lists := range 3 {
		s.Relist(shelf)
		until(t, "another list", func() bool { n, _ := l.opened(); return n == lists+2 && log.has("~f") })
	}
	l.put("a") // the watch works, so that no list has failed
	until(t, "an event", func() bool { o, _ := s.Get(shelf, "a"); return o.GetResourceVersion() == "11" })
	if len(reported) > 0 {
		t.Errorf("reported %q", <-reported)
	}
}

func TestAStoppedKindTakesNoMemory(t *testing.T) {
	retained := answer.NewRetained(func(string, error) {})
	for range 3 {
		s, _ := start(t, newLibrary(six...), func(o *informer.Options) {
			limited(nil)(o)
			o.Retained = retained
		})
		until(t, "the first list", synced(s))
		s.Stop(shelf)
	}
}

func TestAnUnchangedObjectIsNotTransformedAgain(t *testing.T) {
	var transformed atomic.Int32
	l := newLibrary("a", "b")
	s, _ := start(t, l, func(o *informer.Options) {
		o.Transform = func(u *unstructured.Unstructured) (metav1.Object, error) {
			transformed.Add(1)
			return u, nil
		}
	})
	until(t, "the first list", synced(s))
	l.set(func(l *library) { l.watch = refuse(http.StatusGone, metav1.StatusReasonExpired) })
	s.Restart()
	until(t, "another list", func() bool { n, _ := l.opened(); return n > 1 })
	l.set(func(l *library) { l.watch = nil })
	l.put("b")
	until(t, "the change", func() bool { o, _ := s.Get(shelf, "b"); return o.GetResourceVersion() == "11" })
	if n := transformed.Load(); n != 3 {
		t.Errorf("%d objects were transformed, want 3", n)
	}
}

func TestAPartWithoutASizeIsRefusedWhereMemoryIsLimited(t *testing.T) {
	s, _ := start(t, newLibrary("a"), func(o *informer.Options) { o.Retained = answer.NewRetained(func(string, error) {}) })
	until(t, "the refusal", func() bool {
		state, _ := s.State(shelf)
		return strings.Contains(state.Refused, "does not know its size")
	})
}
