// Package heap measures how much memory tests keep.
package heap

import "runtime"

// Live returns the memory of all objects that are in use, in bytes.
func Live() int64 {
	var m runtime.MemStats
	for range 3 { // a pool of buffers is empty only after the second collection
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Kept returns the memory of the result of a function, in bytes. It is exact only if nothing else runs.
func Kept(f func() any) int64 {
	before := Live()
	kept := f()
	size := Live() - before
	runtime.KeepAlive(kept)
	return size
}
