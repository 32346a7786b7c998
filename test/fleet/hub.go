package fleet

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// HubProcess is one running process of hanse-hub.
type HubProcess struct {
	PID     int
	LogFile string
	Metrics string // address of its metrics page, which is plain HTTP on loopback
	View    string // address at which users read copies on members through the hub
	Console string // address of the console, which is plain HTTP on loopback
	Tunnel  string // host:port for agents of members; empty without Agents

	probes string
	cmd    *exec.Cmd
	ended  chan struct{}
	err    error
}

// StartHub runs hanse-hub with a token of the chart's ServiceAccount and waits until it is ready. name distinguishes
// replicas. The caller must stop the process.
func (f *Fleet) StartHub(ctx context.Context, name string, args ...string) (*HubProcess, error) {
	token, err := f.Hub.Token(ctx, "hanse-hub")
	if err != nil {
		return nil, err
	}
	kubeconfig, err := f.Hub.KubeconfigFor(token, false)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(f.hubKubeconfig(name), kubeconfig, 0o600); err != nil {
		return nil, err
	}
	h, err := f.RunHub(name, args...)
	if err != nil {
		return nil, err
	}
	return h, h.WaitReady(ctx)
}

func (f *Fleet) hubKubeconfig(name string) string { return filepath.Join(f.Dir, name+".kubeconfig") }

// RunHub starts hanse-hub again with the token that StartHub requested, as a kubelet restarts a container. It does not
// wait until the process is ready.
func (f *Fleet) RunHub(name string, args ...string) (*HubProcess, error) {
	probes, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	metrics, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	view, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	console, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(f.Dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()

	h := &HubProcess{
		LogFile: log.Name(), Metrics: "http://" + metrics + "/metrics", View: "https://" + view, Console: "http://" + console,
		probes: "http://" + probes, ended: make(chan struct{}),
	}
	h.cmd = exec.Command(filepath.Join(f.Bin, "hanse-hub"), append([]string{
		"--kubeconfig", f.hubKubeconfig(name), "--leader-elect", "--namespace", hubv1.SystemNamespace,
		"--health-probe-bind-address", probes, "--metrics-bind-address", metrics, "--metrics-secure=false",
		"--view-bind-address", view, "--console-bind-address", console, "--console-secure=false",
		"--removal-limit-copies", "1000", "--removal-window", "1s", // tests delete more copies in a short time than users do
	}, args...)...)
	if f.Agents {
		if h.Tunnel, err = FreeAddress(); err != nil {
			return nil, err
		}
		h.cmd.Args = append(h.cmd.Args, "--tunnel-bind-address", h.Tunnel)
	}
	h.cmd.Stdout, h.cmd.Stderr = log, log
	h.cmd.Env = append(os.Environ(), "GORACE=halt_on_error=1 atexit_sleep_ms=0", "GOGC=200") // the chart sets the same GOGC
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := h.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting hanse-hub: %w", err)
	}
	h.PID = h.cmd.Process.Pid
	go func() {
		h.err = h.cmd.Wait()
		close(h.ended)
	}()
	return h, nil
}

// WaitReady waits up to 60 s until the process is ready.
func (h *HubProcess) WaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if h.ready(ctx) {
			return nil
		}
		select {
		case <-h.ended:
			return fmt.Errorf("hanse-hub ended before it was ready: %w: %s", errors.Join(h.err, errEnded), h.LogTail())
		case <-ctx.Done():
			return fmt.Errorf("hanse-hub is not ready after 60 s: %s", h.LogTail())
		case <-tick.C:
		}
	}
}

var errEnded = errors.New("process ended")

// ready checks the probe and the metrics page, because the process may answer probes shortly before it serves metrics.
func (h *HubProcess) ready(ctx context.Context) bool {
	probe, answers := status(ctx, h.probes+"/readyz")
	if !answers || probe != http.StatusOK {
		return false
	}
	_, answers = status(ctx, h.Metrics)
	return answers
}

// status returns the HTTP status code of a response. answers is false if there is no response.
func status(ctx context.Context, url string) (code int, answers bool) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, false
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, false
	}
	_ = res.Body.Close()
	return res.StatusCode, true
}

// Kill kills the process without a graceful shutdown, as after a crash.
func (h *HubProcess) Kill() error { return h.end(syscall.SIGKILL) }

// Stop sends SIGTERM to the process and waits until it ends. After 20 s it kills the process and returns an error.
func (h *HubProcess) Stop() error { return h.end(syscall.SIGTERM) }

// Signal sends a signal to the process and does not wait.
func (h *HubProcess) Signal(s syscall.Signal) error { return h.cmd.Process.Signal(s) }

func (h *HubProcess) end(s syscall.Signal) error {
	if h.Ended() {
		return nil
	}
	if err := h.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("signalling hanse-hub: %w", err)
	}
	select {
	case <-h.ended:
		return nil
	case <-time.After(20 * time.Second):
		_ = h.cmd.Process.Kill()
		<-h.ended
		return errors.New("hanse-hub did not end within 20 s of SIGTERM")
	}
}

// Ended reports whether the process has ended.
func (h *HubProcess) Ended() bool {
	select {
	case <-h.ended:
		return true
	default:
		return false
	}
}

// LogTail returns the end of the process's log.
func (h *HubProcess) LogTail() string {
	raw, err := os.ReadFile(h.LogFile)
	if err != nil {
		return err.Error()
	}
	return tail(string(raw), 4000)
}
