// Package process runs child processes that cannot outlive this one.
//
// The kernel kills every child when the thread that started it ends (PR_SET_PDEATHSIG), so that even SIGKILL leaves no
// process behind. That thread must not end before the process does: a Starter owns one and starts all children from it.
// Grandchildren are not covered. Only containerd has some, which end with the lab's namespaces: see package namespaces.
package process

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Spec describes a process.
type Spec struct {
	Name string   // for messages
	Path string   // the program
	Args []string // without the program
	Env  []string // added to our own environment
	Dir  string   // working directory
	Log  string   // stdout and stderr are appended to this file

	// Restart is true if a process that ends on its own is started again, as by a kubelet.
	Restart bool
}

// Command returns the program and its arguments.
func (s Spec) Command() []string { return append([]string{s.Path}, s.Args...) }

// Starter starts processes from one thread.
type Starter struct {
	calls chan func()
}

// NewStarter returns a starter whose thread lives as long as this process.
func NewStarter() *Starter {
	s := &Starter{calls: make(chan func())}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread must not end
		for call := range s.calls {
			call()
		}
		select {}
	}()
	return s
}

func (s *Starter) start(cmd *exec.Cmd) error {
	result := make(chan error)
	s.calls <- func() { result <- cmd.Start() }
	return <-result
}

// State is the state of a process.
type State string

// The states of a process.
const (
	Running State = "running"
	Paused  State = "paused"
	Killed  State = "killed" // on request
	Exited  State = "exited" // on its own
)

// Process is one supervised child; it may be killed and started again.
type Process struct {
	Spec    Spec
	starter *Starter

	mu     sync.Mutex
	cmd    *exec.Cmd
	state  State
	reason string        // how it ended
	ended  chan struct{} // closed when the current run is over
}

const (
	restartDelay = time.Second
	killAfter    = 3 * time.Second
)

// Start starts a process; an error means that it did not start.
func (s *Starter) Start(spec Spec) (*Process, error) {
	p := &Process{Spec: spec, starter: s}
	return p, p.Start()
}

// Start starts an ended process again. It does nothing for a running one.
func (p *Process) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.startLocked()
}

func (p *Process) startLocked() error {
	if p.state == Running || p.state == Paused {
		return nil
	}
	log, err := os.OpenFile(p.Spec.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("starting %s: %w", p.Spec.Name, err)
	}
	defer func() { _ = log.Close() }() // the child has its own copy
	cmd := exec.Command(p.Spec.Path, p.Spec.Args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.Spec.Dir, log, log
	cmd.Env = append(os.Environ(), p.Spec.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := p.starter.start(cmd); err != nil {
		return fmt.Errorf("starting %s: %w", p.Spec.Name, err)
	}
	p.cmd, p.state, p.reason, p.ended = cmd, Running, "", make(chan struct{})
	go p.wait(cmd, p.ended)
	return nil
}

func (p *Process) wait(cmd *exec.Cmd, ended chan struct{}) {
	err := cmd.Wait()
	p.mu.Lock()
	p.reason = cmd.ProcessState.String()
	if err == nil {
		p.reason = "exit status 0"
	}
	again := p.state != Killed && p.Spec.Restart
	if p.state != Killed {
		p.state = Exited
	}
	close(ended)
	p.mu.Unlock()
	if again {
		time.AfterFunc(restartDelay, p.restart)
	}
}

// restart starts a process that ended on its own, unless it was killed on request.
func (p *Process) restart() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == Exited {
		if err := p.startLocked(); err != nil {
			p.reason = err.Error() // status shows it
		}
	}
}

// Kill ends the process with a signal to its group and waits until it is gone; if the signal
// has no effect in time it sends SIGKILL. The process is not restarted.
func (p *Process) Kill(signal syscall.Signal) {
	p.mu.Lock()
	alive := p.state == Running || p.state == Paused
	pid, ended := 0, p.ended
	if alive {
		pid = p.cmd.Process.Pid
	}
	p.state = Killed
	p.mu.Unlock()
	if !alive {
		return
	}
	_ = syscall.Kill(-pid, signal)
	_ = syscall.Kill(-pid, syscall.SIGCONT) // a stopped process handles only SIGKILL
	select {
	case <-ended:
	case <-time.After(killAfter):
		_ = syscall.Kill(-pid, syscall.SIGKILL)
		<-ended
	}
}

// Pause stops a running process with SIGSTOP.
func (p *Process) Pause() error { return p.flip(Running, Paused, syscall.SIGSTOP) }

// Resume continues a paused process with SIGCONT.
func (p *Process) Resume() error { return p.flip(Paused, Running, syscall.SIGCONT) }

func (p *Process) flip(from, to State, signal syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == to {
		return nil
	}
	if p.state != from {
		return fmt.Errorf("%s is %s, not %s", p.Spec.Name, p.state, from)
	}
	if err := syscall.Kill(-p.cmd.Process.Pid, signal); err != nil {
		return fmt.Errorf("signalling %s: %w", p.Spec.Name, err)
	}
	p.state = to
	return nil
}

// State returns the state, and how the process ended.
func (p *Process) State() (State, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state, p.reason
}

// PID returns the process ID, or 0 if the process has ended.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != Running && p.state != Paused {
		return 0
	}
	return p.cmd.Process.Pid
}

// Ended is closed when the present run of the process is over.
func (p *Process) Ended() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}
