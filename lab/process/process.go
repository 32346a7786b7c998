// Package process runs child processes that end with this process.
//
// The kernel kills every child when the thread that started it ends (PR_SET_PDEATHSIG), so that even SIGKILL leaves no
// process behind. The thread must therefore live as long as this process: a Starter has one such thread and starts all
// children from it. The kernel does not kill grandchildren. Only containerd has grandchildren, which end with the lab's
// namespaces: see package namespaces.
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
	Name string   // the name in messages
	Path string   // the path of the program
	Args []string // the arguments without the program
	Env  []string // variables in addition to those of this process
	Dir  string   // working directory
	Log  string   // stdout and stderr are appended to this file

	// Restart is true if the process must be restarted when it ends by itself.
	Restart bool
}

// Command returns the program and its arguments.
func (s Spec) Command() []string { return append([]string{s.Path}, s.Args...) }

// Starter starts processes from one thread.
type Starter struct {
	calls chan func()
}

// NewStarter returns a Starter whose thread lives as long as this process.
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

// These are the states of a child process.
const (
	Running State = "running"
	Paused  State = "paused"
	Killed  State = "killed" // ended by a call of Kill
	Exited  State = "exited" // ended without a call of Kill
)

// Process is one supervised child process. It can be killed and started again.
type Process struct {
	Spec    Spec
	starter *Starter

	mu     sync.Mutex
	cmd    *exec.Cmd
	state  State
	reason string        // how the process ended
	ended  chan struct{} // closed when the current run of the process has ended
}

const (
	restartDelay = time.Second
	killAfter    = 3 * time.Second
)

// Start starts a process. After an error, the process does not run.
func (s *Starter) Start(spec Spec) (*Process, error) {
	p := &Process{Spec: spec, starter: s}
	return p, p.Start()
}

// Start starts an ended process again. It does nothing if the process runs.
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

// restart starts a process again that ended by itself, but not a process that was killed on request.
func (p *Process) restart() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == Exited {
		if err := p.startLocked(); err != nil {
			p.reason = err.Error() // the command lab status shows the error
		}
	}
}

// Kill sends the signal to the process group and waits until the process has ended. If the process does not end in
// time, Kill sends SIGKILL. The process is not restarted.
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

// State returns the state of the process, and how it ended.
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

// Ended returns a channel that is closed when the present run of the process has ended.
func (p *Process) Ended() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}
