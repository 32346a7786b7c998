package main

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestGCPercent(t *testing.T) {
	for name, tc := range map[string]struct {
		live uint64
		want int
	}{
		"a small heap grows by 64 MiB":    {32 << 20, 200},
		"a large one doubles":             {1 << 30, 100},
		"so does one of 64 MiB":           {64 << 20, 100},
		"an empty one is collected, too":  {0, 3200},
		"one that is nearly empty, too":   {1 << 20, 3200},
		"a heap between the two in steps": {48 << 20, 133},
	} {
		if got := gcPercent(tc.live, 64<<20); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

func TestThePercentFollowsTheHeap(t *testing.T) {
	t.Setenv("GOGC", "")
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	collectSmallHeapsLess(64 << 20)
	percent := func(is func(int) bool) {
		t.Helper()
		deadline := time.Now().Add(10 * time.Second)
		for {
			runtime.GC()
			runtime.Gosched() // finalizers have a goroutine of their own
			got := debug.SetGCPercent(-1)
			if got >= 0 {
				debug.SetGCPercent(got)
			}
			if is(got) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("GOGC is %d", got)
			}
		}
	}
	percent(func(p int) bool { return p > 200 })
	ballast := make([]byte, 128<<20)
	percent(func(p int) bool { return p == 100 })
	runtime.KeepAlive(ballast)
}
