package supervise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hanse-dev/hanse/lab/control"
	"github.com/hanse-dev/hanse/lab/plane"
	"github.com/hanse-dev/hanse/lab/topology"
)

// running is a supervisor that runs in the test process.
type running struct {
	dir    string
	client *control.Client
	cancel context.CancelFunc
	ended  chan error
}

func runSupervisor(t *testing.T, dir string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{dir: dir, client: control.NewClient(dir), cancel: cancel, ended: make(chan error, 1)}
	go func() {
		defer close(r.ended)
		r.ended <- Run(ctx, dir, nil)
	}()
	t.Cleanup(func() {
		cancel()
		for range r.ended { // wait until it has ended
		}
	})
	eventually(t, "the supervisor", func() bool {
		_, err := r.client.Status(t.Context())
		return err == nil
	})
	return r
}

// longDir returns a folder whose path is longer than a socket address can be.
func longDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 40))
	check(t, os.MkdirAll(dir, 0o700))
	return dir
}

func TestExtraProcessIsSupervisedLikeAComponent(t *testing.T) {
	r := runSupervisor(t, longDir(t))
	do := func(path string, request any) error { return r.client.Do(t.Context(), path, request) }
	run := control.Run{Name: "x", Command: []string{"/bin/sh", "-c", "echo $GREETING; exec sleep 600"}, Env: []string{"GREETING=hello"}, Dir: "/"}
	check(t, do(control.RunPath, run))
	if err := do(control.RunPath, run); err == nil {
		t.Error("the name could be used twice")
	}
	state := func() control.Component {
		status, err := r.client.Status(t.Context())
		check(t, err)
		return status.Extra[0]
	}
	eventually(t, "the output", func() bool {
		log, err := os.ReadFile(state().Log)
		return err == nil && string(log) == "hello\n"
	})
	for _, step := range []struct {
		action control.Action
		want   string
	}{
		{control.Pause, "paused"}, {control.Resume, "running"}, {control.Kill, "killed"}, {control.Start, "running"},
	} {
		check(t, do(control.SignalPath, control.Signal{Name: "x", Action: step.action}))
		if got := state().State; got != step.want {
			t.Errorf("after %s it is %s", step.action, got)
		}
	}
	pid := state().PID
	check(t, do(control.DownPath, control.Down{}))
	check(t, <-r.ended)
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d outlives the lab: %v", pid, err)
	}
	if _, err := os.Stat(r.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
}

func TestSecondSupervisorIsRefused(t *testing.T) {
	r := runSupervisor(t, t.TempDir())
	if !Alive(r.dir) {
		t.Error("the first one is not seen")
	}
	if err := Run(t.Context(), r.dir, nil); err == nil || !strings.Contains(err.Error(), "another supervisor") {
		t.Errorf("got %v", err)
	}
}

func TestRequestsThatNameNothingSayWhatThereIs(t *testing.T) {
	r := runSupervisor(t, t.TempDir())
	check(t, r.client.Do(t.Context(), control.RunPath, control.Run{Name: "x", Command: []string{"/bin/sleep", "600"}, Dir: "/"}))
	for path, request := range map[string]any{
		control.SignalPath: control.Signal{Name: "y", Action: control.Kill},
		control.FaultPath:  control.Fault{Name: "y"},
		control.RemovePath: control.Remove{Name: "y"},
	} {
		err := r.client.Do(t.Context(), path, request)
		if err == nil || !strings.Contains(err.Error(), `no "y"; it has: x`) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestComponentThatEndsIsNamedWithTheEndOfItsLog(t *testing.T) {
	bin := t.TempDir()
	script := "#!/bin/sh\nfor i in $(seq 30); do echo line $i; done\nexit 7\n"
	check(t, os.WriteFile(filepath.Join(bin, "etcd"), []byte(script), 0o755))
	r := runSupervisor(t, t.TempDir())
	up := control.Up{Bin: bin, Topology: topology.Topology{Clusters: []topology.Cluster{{Name: "hub", Hub: true}}}}
	err := r.client.Follow(t.Context(), control.UpPath, up, os.Stderr)
	if err == nil {
		t.Fatal("up succeeded")
	}
	for _, want := range []string{"etcd hub ended (exit status 7)", "line 11\n", "line 30"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not say %q:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "line 10\n") {
		t.Errorf("error shows more than the end of the log:\n%v", err)
	}
	check(t, <-r.ended) // the supervisor ends, because it has no process left
}

func TestPortsAreKeptAndDistinct(t *testing.T) {
	dir := t.TempDir()
	first, err := openLedger(dir, nil)
	check(t, err)
	ports := map[string]int{}
	seen := map[int]bool{}
	for i := range 50 {
		purpose := fmt.Sprintf("c%d/api", i)
		ports[purpose], err = first.port(purpose)
		check(t, err)
		if seen[ports[purpose]] {
			t.Fatalf("port %d was given twice", ports[purpose])
		}
		seen[ports[purpose]] = true
	}
	check(t, first.forget("c1"))
	delete(ports, "c1/api")
	second, err := openLedger(dir, nil)
	check(t, err)
	if diff := cmp.Diff(ports, second.state.Ports); diff != "" {
		t.Error(diff)
	}
}

func TestCleanLeavesWhatIsNotTheLabs(t *testing.T) {
	dir := t.TempDir()
	book, err := openLedger(dir, nil)
	check(t, err)
	_, err = book.port("hub/api")
	check(t, err)
	_, err = book.port(plane.StorePurpose + "hub/client")
	check(t, err)
	for _, name := range []string{"hub/kubeconfig", "_etcd/hub/data", "mine/notes"} {
		check(t, os.MkdirAll(filepath.Join(dir, name), 0o700))
	}
	check(t, Clean(dir))
	entries, err := os.ReadDir(dir)
	check(t, err)
	if len(entries) != 1 || entries[0].Name() != "mine" {
		t.Errorf("left: %v", entries)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
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

func TestNoOtherLabGetsAPortUntilItIsForgotten(t *testing.T) {
	book, err := openLedger(t.TempDir(), nil)
	check(t, err)
	port, err := book.port("eu-1/kube-apiserver")
	check(t, err)
	if hold, err := reserve(port); err == nil {
		_ = hold.Close()
		t.Fatalf("port %d can be reserved twice", port)
	}
	check(t, book.forget("eu-1"))
	hold, err := reserve(port)
	check(t, err)
	check(t, hold.Close())
}
