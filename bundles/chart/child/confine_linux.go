package child

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// command returns a command that starts this program again, even if its file was replaced or removed. The kernel ends
// the child when the thread that started it ends.
func command(ctx context.Context) (*exec.Cmd, error) {
	cmd := exec.CommandContext(ctx, "/proc/self/exe", Argument)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd, nil
}

// maxOOMScore is the highest value of oom_score_adj.
const maxOOMScore = "1000"

// confine sets resource limits of the kernel for this process. The process cannot raise these limits again. It also
// makes this process the first one that the kernel ends if the memory of the container is used up.
func confine() error {
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte(maxOOMScore), 0); err != nil {
		return err
	}
	had, err := dataBytes()
	if err != nil {
		return err
	}
	// The first timer of a Go process opens file descriptors. After RLIMIT_NOFILE is 0, this would fail, so a timer is
	// used before.
	<-time.After(1)
	for _, limit := range []struct {
		name     string
		resource int
		value    uint64
	}{
		// RLIMIT_DATA limits the private writable memory. Go reserves more address space than this. The limit does not count
		// reserved addresses until Go uses them.
		{"memory", syscall.RLIMIT_DATA, had + MaxMemory},
		{"descriptors", syscall.RLIMIT_NOFILE, 0}, // no new descriptors; open ones stay open
		{"size of files", syscall.RLIMIT_FSIZE, 0},
		{"core dumps", syscall.RLIMIT_CORE, 0},
	} {
		var now syscall.Rlimit
		if err := syscall.Getrlimit(limit.resource, &now); err != nil {
			return fmt.Errorf("reading the limit of %s: %w", limit.name, err)
		}
		value := min(limit.value, now.Max)
		if err := syscall.Setrlimit(limit.resource, &syscall.Rlimit{Cur: value, Max: value}); err != nil {
			return fmt.Errorf("setting the limit of %s to %d: %w", limit.name, value, err)
		}
	}
	// The kernel sends SIGXCPU at the soft limit, and kills the process at the hard limit.
	seconds := uint64(MaxCPU.Seconds())
	var now syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_CPU, &now); err != nil {
		return fmt.Errorf("reading the limit of CPU time: %w", err)
	}
	value := min(seconds+10, now.Max)
	if err := syscall.Setrlimit(syscall.RLIMIT_CPU, &syscall.Rlimit{Cur: min(seconds, value), Max: value}); err != nil {
		return fmt.Errorf("setting the limit of CPU time to %d s: %w", seconds, err)
	}
	return nil
}

// overCPU returns a channel that gets a signal when this process has used MaxCPU.
func overCPU() <-chan os.Signal {
	over := make(chan os.Signal, 1)
	signal.Notify(over, syscall.SIGXCPU)
	return over
}

// dataBytes returns the size of this process's private writable memory, which RLIMIT_DATA limits. In a program with the
// race detector, it is terabytes.
func dataBytes() (uint64, error) {
	const statm = "/proc/self/statm"
	text, err := os.ReadFile(statm)
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(text)
	if len(fields) < 6 {
		return 0, fmt.Errorf("reading %s: it has %d fields", statm, len(fields))
	}
	pages, err := strconv.ParseUint(string(fields[5]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading %s: %w", statm, err)
	}
	return pages * uint64(os.Getpagesize()), nil
}
