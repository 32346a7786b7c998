package main

import (
	"os"
	"runtime/debug"
	"strconv"
)

// memoryLimit is the environment variable with the limit of the container's memory in bytes, by the downward API.
const memoryLimit = "HANSE_MEMORY_LIMIT"

// stayBelowLimit makes the runtime collect garbage more often as memory comes close to the container's limit, instead
// of being ended by the kernel. A tenth is left for memory that the runtime does not count and for the time that a
// collection takes. The environment variable GOMEMLIMIT, if it is set, holds instead.
func stayBelowLimit() {
	bytes, err := strconv.ParseInt(os.Getenv(memoryLimit), 10, 64)
	if err == nil && bytes > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(bytes / 10 * 9)
	}
}
