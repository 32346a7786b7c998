package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// resetPeak resets the kernel's record of a process's peak memory, so that each phase gets its own peak.
func resetPeak(pid int) error {
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		return fmt.Errorf("resetting the peak memory of process %d: %w", pid, err)
	}
	return nil
}

// memory returns the peak and the current resident memory of a process in MiB.
func memory(pid int) (peak, now float64, err error) {
	fields, err := kibibytes(fmt.Sprintf("/proc/%d/status", pid))
	return round(fields["VmHWM"] / 1024), round(fields["VmRSS"] / 1024), err
}

// kibibytes reads the lines "Name: 123 kB" of a file in /proc.
func kibibytes(path string) (map[string]float64, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading memory figures: %w", err)
	}
	out := map[string]float64{}
	lines := bufio.NewScanner(bytes.NewReader(raw))
	for lines.Scan() {
		name, rest, _ := strings.Cut(lines.Text(), ":")
		number, ok := strings.CutSuffix(strings.TrimSpace(rest), " kB")
		if !ok {
			continue
		}
		if out[name], err = strconv.ParseFloat(number, 64); err != nil {
			return nil, fmt.Errorf("reading %s of %s: %w", name, path, err)
		}
	}
	return out, nil
}

// Machine describes the machine on which a benchmark runs.
type Machine struct {
	CPU       string  `json:"cpu"`
	Cores     int     `json:"cores"`
	MemoryGiB float64 `json:"memoryGiB"`
	OS        string  `json:"os"`
	// LoadBefore is the load average of the minute before the benchmark. It shows whether other processes used the
	// machine.
	LoadBefore float64 `json:"loadBefore"`
}

func machine() (Machine, error) {
	m := Machine{Cores: runtime.NumCPU(), CPU: runtime.GOARCH}
	total, err := kibibytes("/proc/meminfo")
	if err != nil {
		return m, err
	}
	m.MemoryGiB = round(total["MemTotal"] / (1 << 20))
	for path, take := range map[string]func(string){
		"/proc/cpuinfo":              func(s string) { m.CPU = cpuModel(s, m.CPU) },
		"/proc/sys/kernel/osrelease": func(s string) { m.OS = "Linux " + majorMinor(s) },
		"/proc/loadavg":              func(s string) { _, _ = fmt.Sscan(s, &m.LoadBefore) },
	} {
		raw, err := os.ReadFile(path)
		if err != nil {
			return m, fmt.Errorf("reading about the machine: %w", err)
		}
		take(string(raw))
	}
	return m, nil
}

// cpuModel returns the first "model name" in /proc/cpuinfo. If cpuinfo has no such line, as on some architectures,
// cpuModel returns the argument otherwise.
func cpuModel(cpuinfo, otherwise string) string {
	for line := range strings.Lines(cpuinfo) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return otherwise
}

// majorMinor returns the part of a kernel release that is comparable between machines: "6.18" of "6.18.44-custom".
func majorMinor(release string) string {
	parts := strings.SplitN(strings.TrimSpace(release), ".", 3)
	return strings.Join(parts[:min(len(parts), 2)], ".")
}
