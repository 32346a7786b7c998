package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ticks is USER_HZ, in which Linux gives CPU time to user space.
const ticks = 100

// Who uses the machine's CPU during a run.
const (
	whoHanse  = "hanse-hub"
	whoBench  = "bench" // with its watches of all members
	whoOthers = "others"
)

// cpuByRole is the CPU time in seconds that each part of the run has used since it started, and the rest of the machine
// since it booted. A process is part of the run if it is this one or its command line names the run's folder.
func cpuByRole(dir string) (map[string]float64, error) {
	busy, err := machineBusy()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	out := map[string]float64{whoOthers: busy}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil {
			continue // it has ended
		}
		role := roleOf(string(raw), dir)
		if pid == os.Getpid() {
			role = whoBench
		}
		if role == "" {
			continue
		}
		used, err := processCPU(pid)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out[role] += used
		out[whoOthers] -= used
	}
	return out, nil
}

// roleOf says what a process with this command line (its arguments end with NUL) is to the run in dir; "" if it is none
// of its own.
func roleOf(cmdline, dir string) string {
	if !strings.Contains(cmdline, dir) {
		return ""
	}
	args := strings.Split(cmdline, "\x00")
	name := filepath.Base(args[0])
	for _, arg := range args {
		switch {
		case arg == "--name=hub" || arg == "--etcd-prefix=/hub":
			return "hub's " + name
		case strings.HasPrefix(arg, "--name=") || strings.HasPrefix(arg, "--etcd-prefix="):
			return "members' " + name
		}
	}
	return name
}

// processCPU is the user and system time in seconds that a process has used.
func processCPU(pid int) (float64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("reading the CPU time of process %d: %w", pid, err)
	}
	// The second field, the name, may hold anything; it ends with the last parenthesis. utime and stime are fields 14
	// and 15.
	return sumFields(string(raw[bytes.LastIndexByte(raw, ')')+1:]), 11, 12)
}

// machineBusy is the CPU time in seconds that was not idle, on all cores; what the host took for others counts as well.
func machineBusy() (float64, error) {
	raw, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("reading the machine's CPU time: %w", err)
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	return sumFields(line, 1, 2, 3, 6, 7, 8) // user, nice, system, irq, softirq, steal
}

// sumFields adds fields that are in ticks, and returns seconds.
func sumFields(line string, which ...int) (float64, error) {
	fields := strings.Fields(line)
	sum := int64(0)
	for _, i := range which {
		if i >= len(fields) {
			return 0, fmt.Errorf("reading CPU time: %d fields, want %d at least", len(fields), i+1)
		}
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading CPU time: %w", err)
		}
		sum += n
	}
	return float64(sum) / ticks, nil
}
