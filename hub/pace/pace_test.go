package pace

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"
)

// server is the Pacer for the writes to an API server, with a fake clock. It records the keys of the callers that the
// Pacer has woken.
type server struct {
	*Pacer
	clock *testclock.FakePassiveClock
	t     *testing.T
	woken []string
}

func newServer(t *testing.T) *server {
	t.Helper()
	c := testclock.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	return &server{Pacer: New(c), clock: c, t: t}
}

func (s *server) pass(d time.Duration) { s.clock.SetTime(s.clock.Now().Add(d)) }

// take takes a turn. It fails the test if no turn is free.
func (s *server) take(c Class, key string) *Turn {
	s.t.Helper()
	turn := s.ask(c, key)
	if turn == nil {
		s.t.Fatalf("%s gets no turn of class %d", key, c)
	}
	return turn
}

// wait asks for a turn. It fails the test if it gets a turn.
func (s *server) wait(c Class, key string) {
	s.t.Helper()
	if s.ask(c, key) != nil {
		s.t.Fatalf("%s gets a turn of class %d", key, c)
	}
}

func (s *server) ask(c Class, key string) *Turn {
	return s.Try(c, key, func() { s.woken = append(s.woken, key) })
}

// wakes checks which callers the Pacer has woken since the last call of wakes.
func (s *server) wakes(want ...string) {
	s.t.Helper()
	if !slices.Equal(s.woken, want) {
		s.t.Fatalf("woken: %v, want %v", s.woken, want)
	}
	s.woken = nil
}

func (s *server) setWidth(n int) { s.width = float64(n) }

func TestNoMoreWritesAreInFlightThanTheWidthAllows(t *testing.T) {
	s := newServer(t)
	s.setWidth(2)
	first := s.take(FirstResult, "a")
	second := s.take(MergedStatus, "b")
	s.wait(FirstResult, "c")
	s.take(Failure, "d") // a failure may exceed the width by one write
	s.wait(Failure, "e")
	first.Done()
	first.Done() // a second call has no effect
	s.wakes("e")
	s.take(Failure, "e")
	second.Done()
	s.wakes() // nobody is woken, because the failures are still in flight
}

func TestACallerThatWaitsGoesBeforeOneThatComes(t *testing.T) {
	s := newServer(t)
	s.setWidth(1)
	turn := s.take(FirstResult, "a")
	s.wait(FirstResult, "first")
	s.wait(FirstResult, "second")
	turn.Done()
	s.wakes("first")
	s.wait(FirstResult, "comes")
	s.wait(FirstResult, "second") // a try before its turn has no effect
	s.take(FirstResult, "first").Done()
	s.wakes("second")
	s.take(FirstResult, "second").Done()
	s.wakes("comes")
}

func TestACallerThatBecomesUrgentChangesItsClass(t *testing.T) {
	s := newServer(t)
	s.setWidth(1)
	turn := s.take(FirstResult, "a")
	s.wait(Many, "many")
	s.wait(Many, "fails")
	failure := s.take(Failure, "b") // a failure may exceed the width by one write
	s.wait(Failure, "fails")
	failure.Done()
	s.wakes("fails")
	s.take(Failure, "fails").Done()
	turn.Done()
	s.wakes("many")
}

func TestWhatIsNotUrgentLeavesWidthForSingleChanges(t *testing.T) {
	s := newServer(t)
	s.setWidth(8)
	s.take(Many, "a")
	s.take(Many, "b")
	s.wait(Many, "a quarter")
	s.take(Rows, "c")
	s.take(Rows, "d")
	s.wait(Rows, "a half")
	for i := range 4 {
		s.take(MergedStatus, fmt.Sprint(i))
	}
	s.wait(FirstResult, "all")
}

func TestFirstDecisionsLeaveOneTurnForReports(t *testing.T) {
	s := newServer(t)
	decision := s.take(FirstDecision, "a")
	result := s.take(FirstResult, "b")
	s.wait(FirstResult, "c")
	s.wait(Rows, "d")
	s.take(Failure, "e")
	other := s.take(FirstDecision, "f")
	result.Done()
	s.wakes("d") // this class has had no turn yet
	s.take(Rows, "d").Done()
	s.wakes("c")
	s.take(FirstResult, "c")
	s.wait(MergedStatus, "g")
	decision.Done()
	s.wakes()
	other.Done()
	s.wakes("g")
}

func TestEveryClassGetsItsShareWhileAllWait(t *testing.T) {
	s := newServer(t)
	s.setWidth(1)
	turn := s.take(FirstResult, "first")
	for c := FirstDecision; c < classes; c++ {
		for i := range 200 {
			s.wait(c, fmt.Sprintf("%d-%d", c, i))
		}
	}
	turns := [classes]int{}
	for range 120 {
		turn.Done()
		if len(s.woken) != 1 {
			t.Fatalf("woken: %v, want one caller", s.woken)
		}
		key := s.woken[0]
		s.woken = nil
		var c Class
		if _, err := fmt.Sscanf(key, "%d-", &c); err != nil {
			t.Fatal(err)
		}
		turns[c]++
		turn = s.take(c, key)
	}
	want := [classes]int{0, 60, 30, 15, 10, 5} // in proportion to the weights 12, 6, 3, 2, 1
	for c := range classes {
		if math.Abs(float64(turns[c]-want[c])) > 1 {
			t.Errorf("turns by class: %v, want about %v", turns, want)
			break
		}
	}
}

func TestAClassSavesUpNoTurnsWhileNobodyWaits(t *testing.T) {
	s := newServer(t)
	s.setWidth(1)
	turn := s.take(FirstResult, "first")
	next := func(want string) {
		t.Helper()
		turn.Done()
		s.wakes(want)
		turn = s.take(Many, want) // the class at the time of the reservation counts, not Many
	}
	for i := range 20 {
		s.wait(FirstResult, fmt.Sprintf("result-%d", i))
	}
	for i := range 10 {
		next(fmt.Sprintf("result-%d", i))
	}
	for i := range 5 {
		s.wait(Many, fmt.Sprintf("many-%d", i))
	}
	next("many-0")
	for i := range 6 { // in proportion to the weights
		next(fmt.Sprintf("result-%d", i+10))
	}
	next("many-1")
}

func TestATurnThatIsNotClaimedGoesToTheNextCaller(t *testing.T) {
	s := newServer(t)
	s.setWidth(1)
	turn := s.take(Rows, "a")
	s.wait(Rows, "gone")
	s.wait(Rows, "b")
	turn.Done()
	s.wakes("gone")
	s.pass(reservedFor)
	s.wait(Rows, "c")
	s.wakes("b")
	s.take(Rows, "b").Done()
	s.wakes("c")
}

// TestNoTurnIsLostOrGivenTwice makes callers ask for turns, write, leave and change their class in random order.
func TestNoTurnIsLostOrGivenTwice(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := newServer(t)
		turns := map[string]*Turn{}
		names := rapid.StringMatching(`[a-h]`)
		rt.Repeat(map[string]func(*rapid.T){
			"ask": func(rt *rapid.T) {
				key := names.Draw(rt, "key")
				if turns[key] == nil {
					if turn := s.ask(Class(rapid.IntRange(0, int(classes)-1).Draw(rt, "class")), key); turn != nil {
						turns[key] = turn
					}
				}
			},
			"end": func(rt *rapid.T) {
				key := names.Draw(rt, "key")
				turns[key].Done()
				delete(turns, key)
			},
			"width": func(rt *rapid.T) { s.setWidth(rapid.IntRange(1, maxWidth).Draw(rt, "width")) },
			"pass":  func(rt *rapid.T) { s.pass(time.Duration(rapid.IntRange(0, 1500).Draw(rt, "ms")) * time.Millisecond) },
			"": func(rt *rapid.T) {
				reserved := 0
				for _, w := range s.line.callers {
					if w.place == nil {
						reserved++
					}
				}
				if n := s.from(Failure); n != len(turns)+reserved || n > maxWidth+1 {
					rt.Fatalf("%d in flight: %d turns are taken and %d reserved", n, len(turns), reserved)
				}
			},
		})
		s.setWidth(maxWidth)
		for _, turn := range turns {
			turn.Done()
		}
		for range 20 { // callers that never take their reserved turns
			s.pass(reservedFor)
			s.Steer(time.Millisecond)
		}
		if s.from(Failure) != 0 || len(s.line.callers) != 0 || len(s.line.reserved) != 0 {
			rt.Fatalf("in flight %v, %d callers, %d reserved, after all have ended", s.inFlight, len(s.line.callers), len(s.line.reserved))
		}
	})
}

func TestTheWidthFollowsTheLatency(t *testing.T) {
	s := newServer(t)
	for range 100 {
		s.Steer(2 * time.Millisecond)
	}
	if s.width != maxWidth {
		t.Errorf("width %.1f of a steady server, want %d", s.width, maxWidth)
	}
	least := s.width
	for range 20 {
		s.Steer(20 * time.Millisecond)
		least = min(least, s.width)
	}
	if least > 2 {
		t.Errorf("width %.1f of a server that has become ten times as slow", least)
	}
	for range 10 * usualWrites {
		s.Steer(20 * time.Millisecond)
	}
	if s.width != maxWidth {
		t.Errorf("width %.1f of a server that stays as slow: fewer writes make it no faster", s.width)
	}
}

func TestNoiseDoesNotNarrowTheWidth(t *testing.T) {
	s := newServer(t)
	random := rand.New(rand.NewPCG(1, 2))
	narrow := 0
	for range 10_000 {
		s.Steer(time.Duration(random.ExpFloat64() * float64(20*time.Millisecond)))
		if s.width < maxWidth/2 {
			narrow++
		}
	}
	if narrow > 500 {
		t.Errorf("%d of 10000 writes found less than half of the width", narrow)
	}
}

func TestTooManyRequestsHalveTheWidthOnceForAllAnswersOfOneMoment(t *testing.T) {
	s := newServer(t)
	status := http.StatusTooManyRequests
	transport := s.Wrap(roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Body: http.NoBody}, nil
	}))
	ask := func() {
		resp, err := transport.RoundTrip(nil)
		if err != nil || resp.StatusCode != status {
			t.Fatalf("got %v, %v", resp, err)
		}
		_ = resp.Body.Close()
	}
	ask()
	ask()
	if s.width != maxWidth/2 {
		t.Errorf("width %.1f after two answers of one moment", s.width)
	}
	for range 10 {
		s.pass(time.Second)
		ask()
	}
	if s.width != 1 {
		t.Errorf("width %.1f, want the least", s.width)
	}
	status = http.StatusOK
	s.pass(time.Second)
	if ask(); s.width != 1 {
		t.Errorf("width %.1f after a good answer", s.width)
	}
}
