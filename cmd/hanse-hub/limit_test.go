package main

import (
	"math"
	"runtime/debug"
	"testing"
)

func TestTheMemoryLimitIsThatOfTheContainer(t *testing.T) {
	tests := map[string]struct {
		container, runtime string
		want               int64
	}{
		"a tenth is left":               {container: "1073741824", want: 1073741824 / 10 * 9},
		"none without a limit":          {want: math.MaxInt64},
		"none for text that is none":    {container: "1Gi", want: math.MaxInt64},
		"GOMEMLIMIT holds if it is set": {container: "1073741824", runtime: "500MiB", want: math.MaxInt64}, // the runtime read it when it started
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			defer debug.SetMemoryLimit(debug.SetMemoryLimit(math.MaxInt64))
			t.Setenv(memoryLimit, tc.container)
			t.Setenv("GOMEMLIMIT", tc.runtime)
			stayBelowLimit()
			if got := debug.SetMemoryLimit(-1); got != tc.want {
				t.Errorf("the limit is %d, want %d", got, tc.want)
			}
		})
	}
}
