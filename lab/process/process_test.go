package process

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// asParent is the variable with which the test binary runs as a parent that starts children and waits to be killed.
const asParent = "LAB_TEST_AS_PARENT"

func TestMain(m *testing.M) {
	if log := os.Getenv(asParent); log != "" {
		parent(log)
	}
	os.Exit(m.Run())
}

func parent(log string) {
	starter := NewStarter()
	for range 3 {
		p, err := starter.Start(Spec{Name: "sleep", Path: "/bin/sleep", Args: []string{"600"}, Log: log})
		if err != nil {
			panic(err)
		}
		fmt.Println(p.PID())
	}
	fmt.Println("ready")
	select {}
}

func TestChildrenDieWithAKilledParent(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asParent+"="+filepath.Join(t.TempDir(), "log"))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "ready"; {
		pid, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	for _, pid := range pids {
		if !alive(pid) {
			t.Fatalf("child %d does not run", pid)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the error says that the process was killed
	for _, pid := range pids {
		eventually(t, fmt.Sprintf("the end of child %d", pid), func() bool { return !alive(pid) })
	}
}

func TestPausedProcessCanBeResumedKilledAndStarted(t *testing.T) {
	p := start(t, Spec{Path: "/bin/sleep", Args: []string{"600"}})
	if err := p.Pause(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the process to stop", func() bool { return procState(p.PID()) == "T" })
	if err := p.Resume(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the process to continue", func() bool { return procState(p.PID()) == "S" })
	if err := p.Pause(); err != nil {
		t.Fatal(err)
	}
	p.Kill(syscall.SIGTERM)
	if state, _ := p.State(); state != Killed || p.PID() != 0 {
		t.Fatalf("after the kill: %s, process %d", state, p.PID())
	}
	if err := p.Pause(); err == nil {
		t.Error("a killed process could be paused")
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	if !alive(p.PID()) {
		t.Error("it does not run after start")
	}
}

func TestProcessThatIgnoresTheSignalIsKilled(t *testing.T) {
	p := start(t, Spec{Path: "/bin/sh", Args: []string{"-c", "trap '' TERM; echo armed; while :; do sleep 600; done"}})
	eventually(t, "the trap", func() bool { return strings.Contains(Tail(p.Spec.Log, 1), "armed") })
	p.Kill(syscall.SIGTERM)
	if p.PID() != 0 {
		t.Error("it still runs")
	}
}

func TestEndedProcessTellsHowAndIsRestartedOnlyIfWanted(t *testing.T) {
	p := start(t, Spec{Path: "/bin/sh", Args: []string{"-c", "echo last words; exit 3"}})
	<-p.Ended()
	if state, reason := p.State(); state != Exited || reason != "exit status 3" {
		t.Errorf("got %s (%s)", state, reason)
	}
	if got := Tail(p.Spec.Log, 5); !strings.Contains(got, "last words") {
		t.Errorf("log ends with %q", got)
	}
	again := start(t, Spec{Path: "/bin/sh", Args: []string{"-c", "echo run"}, Restart: true})
	eventually(t, "a second run", func() bool { return strings.Count(Tail(again.Spec.Log, 5), "run") > 1 })
}

func start(t *testing.T, spec Spec) *Process {
	t.Helper()
	spec.Name, spec.Log = t.Name(), filepath.Join(t.TempDir(), "log")
	p, err := NewStarter().Start(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Kill(syscall.SIGKILL) })
	return p
}

func alive(pid int) bool {
	state := procState(pid)
	return state != "" && state != "Z"
}

// procState returns the one-letter state of a process in /proc. It is empty if there is no such process.
func procState(pid int) string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	return fields[0]
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
