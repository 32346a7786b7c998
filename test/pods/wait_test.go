package pods

import (
	"testing"
	"time"
)

// normal is the longest time that eventually waits, which is enough on a busy machine.
const normal = 2 * time.Minute

// must fails the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually fails the test if check does not return nil within the time normal.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	deadline := time.NewTimer(normal)
	defer deadline.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-deadline.C:
			t.Fatalf("after %s: %v", normal, err)
		case <-tick.C:
		}
	}
}
