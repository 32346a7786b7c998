package pace

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func kindOf(name string) schema.GroupKind { return schema.GroupKind{Group: "example.com", Kind: name} }

// takeKind takes a turn for one write of an object of the kind. It fails the test if no turn is free.
func (s *server) takeKind(name string) *KindTurn {
	s.t.Helper()
	turn, wait := s.TryKind(kindOf(name))
	if turn == nil {
		s.t.Fatalf("%s gets no turn, but %s to wait", name, wait)
	}
	return turn
}

// refusedKind asks for a turn for one write of an object of the kind. It fails the test if it gets a turn. It returns
// the time after which the caller may ask again.
func (s *server) refusedKind(name string) time.Duration {
	s.t.Helper()
	turn, wait := s.TryKind(kindOf(name))
	if turn != nil {
		s.t.Fatalf("%s gets a turn", name)
	}
	if wait <= 0 || wait > AnswerWithin {
		s.t.Errorf("%s waits for %s", name, wait)
	}
	return wait
}

func TestAKindThatIsNotSlowHasNoLimit(t *testing.T) {
	s := newServer(t)
	s.Steer(time.Millisecond)
	for range 2 * maxWidth {
		s.takeKind("Widget")
		s.pass(time.Microsecond)
	}
}

func TestASlowKindHasOneWriteInFlight(t *testing.T) {
	s := newServer(t)
	s.Steer(time.Millisecond)
	turn := s.takeKind("Slow")
	s.pass(11 * time.Millisecond)
	s.refusedKind("Slow")
	turn.Done()
	turn = s.takeKind("Slow")
	s.refusedKind("Slow")
	s.pass(time.Millisecond)
	turn.Done() // this write took a millisecond, so the kind is fast again
	s.takeKind("Slow")
	s.takeKind("Slow")
}

func TestSlowKindsTogetherHaveTwoWritesInFlight(t *testing.T) {
	s := newServer(t)
	s.Steer(time.Millisecond)
	kinds := []string{"A", "B", "C"}
	var turns []*KindTurn
	for _, kind := range kinds {
		turns = append(turns, s.takeKind(kind))
	}
	s.pass(time.Second)
	for _, turn := range turns {
		turn.Done()
	}
	s.takeKind("A")
	b := s.takeKind("B")
	s.refusedKind("C")
	s.takeKind("Fast")
	b.Done()
	s.takeKind("C")
}

func TestRefusedCallersOfAKindAskAgainOneAfterTheOther(t *testing.T) {
	s := newServer(t)
	s.Steer(time.Millisecond)
	turn := s.takeKind("Slow")
	s.pass(time.Second)
	turn.Done()
	s.takeKind("Slow")
	for i := 1; i <= 3; i++ {
		if got, want := s.refusedKind("Slow"), time.Duration(i)*time.Second; got != want {
			t.Errorf("caller %d waits for %s, want %s", i, got, want)
		}
	}
	for range 100 {
		s.refusedKind("Slow")
	}
}
