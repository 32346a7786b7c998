package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// leastGrowth is what the heap may grow by, in bytes, before it is collected.
const leastGrowth = 64 << 20

// collectSmallHeapsLess lets a heap that is smaller than growth grow by that much between two collections instead of
// only doubling: the 30 MiB that a small fleet needs would be collected several times a second under load. A larger
// heap may double, as ever. The environment variable GOGC, if it is set, holds instead.
func collectSmallHeapsLess(growth uint64) {
	if os.Getenv("GOGC") != "" {
		return
	}
	// A finalizer that sets itself anew runs once after each collection.
	var adjust func(*[1]*byte)
	percent := 100
	adjust = func(sentinel *[1]*byte) {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		if p := gcPercent(live[0].Value.Uint64(), growth); p != percent {
			percent = p
			debug.SetGCPercent(p)
		}
		runtime.SetFinalizer(sentinel, adjust)
	}
	adjust(&[1]*byte{})
}

// gcPercent is the GOGC by which a heap with so many live bytes may grow by growth, and at least 100.
func gcPercent(live, growth uint64) int {
	if live >= growth {
		return 100
	}
	const most = 3200 // an empty heap
	return int(min(most, growth*100/max(live, 1)))
}
