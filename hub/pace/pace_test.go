package pace

import (
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"
)

// server is an API server with a fake clock: a write takes long when more are in flight than it serves at once.
type server struct {
	*Pacer
	clock *testclock.FakePassiveClock
	t     *testing.T
}

func newServer(t *testing.T) *server {
	t.Helper()
	c := testclock.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	return &server{New(c), c, t}
}

func (s *server) wait(d time.Duration) { s.clock.SetTime(s.clock.Now().Add(d)) }

// take takes a turn that must be free.
func (s *server) take(c Class, key string) *Turn {
	s.t.Helper()
	turn, wait := s.Try(c, key)
	if turn == nil {
		s.t.Fatalf("%s gets no turn of class %d, but %s to wait", key, c, wait)
	}
	return turn
}

// refused is how long a caller has to wait that gets no turn.
func (s *server) refused(c Class, key string) time.Duration {
	s.t.Helper()
	turn, wait := s.Try(c, key)
	if turn != nil {
		s.t.Fatalf("%s gets a turn of class %d", key, c)
	}
	if wait <= 0 || wait > longestWait {
		s.t.Errorf("%s waits for %s", key, wait)
	}
	return wait
}

func (s *server) setWidth(n int) { s.width = float64(n) }

func TestNoMoreWritesAreInFlightThanTheWidthAllows(t *testing.T) {
	s := newServer(t)
	s.setWidth(2)
	first := s.take(FirstResult, "a")
	s.take(MergedStatus, "b")
	wait := s.refused(FirstResult, "c")
	s.take(Failure, "d") // one more for a failure
	s.refused(Failure, "e")
	first.Done()
	first.Done() // the second time does nothing
	s.refused(FirstResult, "f")
	s.wait(wait)
	s.refused(FirstResult, "c") // the failure is still in flight
	if s.inFlight != 2 {
		t.Errorf("%d in flight, want 2", s.inFlight)
	}
}

func TestACallerThatWaitsGoesBeforeOneThatComes(t *testing.T) {
	s := newServer(t)
	s.setWidth(1)
	turn := s.take(FirstResult, "a")
	wait := s.refused(FirstResult, "waits")
	turn.Done()
	s.refused(FirstResult, "comes")
	if again := s.refused(FirstResult, "waits"); again != wait {
		t.Errorf("asking early changes the wait from %s to %s", wait, again)
	}
	s.wait(wait)
	s.take(FirstResult, "waits").Done()
}

func TestWhatIsNotUrgentLeavesHalfOfTheWidthFree(t *testing.T) {
	s := newServer(t)
	s.setWidth(4)
	s.take(Many, "a")
	s.take(Rows, "b")
	s.refused(Many, "c")
	s.refused(Rows, "d")
	s.take(MergedStatus, "e")
	s.take(FirstResult, "f")
	s.refused(FirstResult, "g")
}

func TestAClassThatNobodyWaitsForCostsNothing(t *testing.T) {
	s := newServer(t)
	s.setWidth(1)
	s.take(FirstResult, "a")
	alone := s.share(Rows)
	s.refused(FirstResult, "b")
	if beside := s.share(Rows); beside != 4*alone { // weights 2 and 6
		t.Errorf("a turn of rows each %s beside first results, and each %s alone", beside, alone)
	}
}

// TestEveryClassGetsItsShare lets callers of two classes wait without end, and counts their turns.
func TestEveryClassGetsItsShare(t *testing.T) {
	s := newServer(t)
	s.setWidth(1)
	type caller struct {
		class Class
		key   int
		asks  time.Time
	}
	var callers []caller
	for key := range 20 {
		callers = append(callers, caller{FirstResult, key, s.clock.Now()}, caller{Many, key, s.clock.Now()})
	}
	const write, step, all = 10 * time.Millisecond, time.Millisecond, 20 * time.Second
	turns := map[Class]int{}
	var turn *Turn // the one that is taken
	var ends time.Time
	for end := s.clock.Now().Add(all); s.clock.Now().Before(end); s.wait(step) {
		if now := s.clock.Now(); turn != nil && !now.Before(ends) {
			turn.Done()
			turn = nil
			s.Steer(write)
			s.setWidth(1)
		}
		for i := range callers {
			c := &callers[i]
			if s.clock.Now().Before(c.asks) {
				continue
			}
			got, wait := s.Try(c.class, c.key)
			if got != nil {
				turns[c.class]++
				turn, ends = got, s.clock.Now().Add(write)
			}
			c.asks = s.clock.Now().Add(max(wait, step))
		}
	}
	most := int(all / (write + step))
	if n := turns[FirstResult] + turns[Many]; n < most*3/4 || turns[Many] < n/20 || turns[Many] > n/4 {
		t.Errorf("of %d turns, first results had %d and many had %d", most, turns[FirstResult], turns[Many])
	}
	t.Logf("of %d turns, first results had %d and many had %d", most, turns[FirstResult], turns[Many])
}

func TestTheWidthFollowsTheLatency(t *testing.T) {
	s := newServer(t)
	for range 100 {
		s.Steer(2 * time.Millisecond)
	}
	if s.width != widest {
		t.Errorf("width %.1f of a steady server, want %d", s.width, widest)
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
	if s.width != widest {
		t.Errorf("width %.1f of a server that stays as slow: fewer writes make it no faster", s.width)
	}
}

func TestNoiseDoesNotNarrowTheWidth(t *testing.T) {
	s := newServer(t)
	random := rand.New(rand.NewPCG(1, 2))
	narrow := 0
	for range 10_000 {
		s.Steer(time.Duration(random.ExpFloat64() * float64(20*time.Millisecond)))
		if s.width < widest/2 {
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
	if s.width != widest/2 {
		t.Errorf("width %.1f after two answers of one moment", s.width)
	}
	for range 10 {
		s.wait(time.Second)
		ask()
	}
	if s.width != 1 {
		t.Errorf("width %.1f, want the least", s.width)
	}
	status = http.StatusOK
	s.wait(time.Second)
	if ask(); s.width != 1 {
		t.Errorf("width %.1f after a good answer", s.width)
	}
}

func TestCallersThatDoNotAskAgainAreForgotten(t *testing.T) {
	s := newServer(t)
	s.setWidth(1)
	turn := s.take(Rows, "a")
	s.refused(Rows, "gone")
	turn.Done()
	s.wait(20 * longestWait)
	s.take(Rows, "b")
}
