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

// ticks is USER_HZ, the unit in which Linux reports CPU time to user space.
const ticks = 100

// The parts to which the CPU time of the machine is attributed.
const (
	whoHanse  = "hanse-hub"
	whoBench  = "bench" // including the benchmark's watches of all members
	whoOthers = "others"
)

// cpuByRole returns the CPU time in seconds of each part of this benchmark since its start. It also returns the CPU
// time of all other processes of the machine since its boot. A process belongs to the benchmark if it is this process,
// or if its command line contains the folder dir.
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
			continue // the process has ended
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

// roleOf returns the part of the benchmark to which a process with this command line belongs. dir is the folder of the
// benchmark. The arguments in cmdline end with NUL. The result is "" if the process does not belong to the benchmark.
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

// processCPU returns the user and system time of a process in seconds.
func processCPU(pid int) (float64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("reading the CPU time of process %d: %w", pid, err)
	}
	// The second field, the name of the program, may contain any character and ends with the last parenthesis. The
	// times utime and stime are fields 14 and 15.
	return sumFields(string(raw[bytes.LastIndexByte(raw, ')')+1:]), 11, 12)
}

// machineBusy returns the non-idle CPU time of all cores in seconds. It includes the time in which the host ran other
// virtual machines.
func machineBusy() (float64, error) {
	raw, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("reading the machine's CPU time: %w", err)
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	return sumFields(line, 1, 2, 3, 6, 7, 8) // user, nice, system, irq, softirq, steal
}

// sumFields adds the fields with these indices, which are in ticks, and returns seconds.
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
