// Package supervise runs the supervisor, which is the parent of every process of a lab.
//
// A supervisor holds a lock in the lab's folder while it runs, so that a lab has only one supervisor. When the
// supervisor ends for any reason, its child processes end, too. The supervisor writes a state file, with which the next
// supervisor starts the same clusters at the same addresses with the same data. The supervisor runs the fault proxies
// in its own process.
package supervise

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hanse-dev/hanse/lab/control"
	"github.com/hanse-dev/hanse/lab/namespaces"
	"github.com/hanse-dev/hanse/lab/plane"
	"github.com/hanse-dev/hanse/lab/process"
)

// Files and folders of a lab, except for those of its clusters. The name of a cluster cannot collide with them.
const (
	etcdFolder  = "_etcd"
	extraFolder = "_run"
	lockFile    = "lock"
	// LogFile is the supervisor's own log.
	LogFile = "supervisor.log"

	idleTimeout = 30 * time.Second
	lockRetry   = 50 * time.Millisecond
)

// Supervisor runs the processes of a lab.
type Supervisor struct {
	dir     string
	ledger  *ledger
	starter *process.Starter
	own     *namespaces.Lab // the namespaces of a lab with real nodes, or nil
	quit    context.CancelFunc

	// turn is the lock for changes to the set of processes: only one request at a time may start or stop processes. It may
	// be held for minutes.
	turn sync.Mutex

	// mu guards the fields below it. It is held only for short times.
	mu      sync.Mutex
	bin     string
	stages  []string
	running inventory
	clean   bool // remove all files when the supervisor ends
}

// inventory has what runs in the lab.
type inventory struct {
	stores   map[string]*store
	clusters map[string]*cluster
	extra    map[string]*process.Process
}

// Run supervises the lab in dir until ctx ends or a client requests the end. When it returns, no process of the lab
// runs. own are the namespaces of a lab with real nodes, in which this process must be process 1. Otherwise own is nil.
func Run(ctx context.Context, dir string, own *namespaces.Lab) error {
	lock, err := acquire(dir)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	book, err := openLedger(dir, own)
	if err != nil {
		return err
	}
	listener, err := control.Listen(dir)
	if err != nil {
		return fmt.Errorf("opening the control socket: %w", err)
	}
	ctx, quit := context.WithCancel(ctx)
	defer quit()
	s := &Supervisor{
		dir: dir, ledger: book, starter: process.NewStarter(), own: own, quit: quit,
		running: inventory{stores: map[string]*store{}, clusters: map[string]*cluster{}, extra: map[string]*process.Process{}},
	}
	server := &http.Server{Handler: s.handler()} // no timeouts: only our own clients use this private socket
	go func() { _ = server.Serve(listener) }()   // returns when the server is closed
	time.AfterFunc(idleTimeout, s.quitIfIdle)
	<-ctx.Done()
	_ = server.Close() // interrupts a running up, which then rolls back
	s.turn.Lock()
	defer s.turn.Unlock()
	s.stopAll()
	if own != nil {
		if err := own.Leave(dir); err != nil {
			return err
		}
	}
	if s.clean {
		return Clean(dir)
	}
	_ = os.Remove(filepath.Join(dir, control.SocketName)) // a remaining socket is replaced at the next start
	return book.change(func(s *State) { s.PID = 0 })
}

// quitIfIdle ends a supervisor that has received no request. This happens if `lab up` is killed right after it has
// started the supervisor.
func (s *Supervisor) quitIfIdle() {
	if !s.turn.TryLock() {
		return
	}
	defer s.turn.Unlock()
	if s.idle() {
		s.quit()
	}
}

func (s *Supervisor) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.running.clusters)+len(s.running.extra) == 0
}

// acquire takes the lock of the lab, which the kernel releases when the process ends. It tries for a while, because
// Alive holds the lock for a moment.
func acquire(dir string) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the lab: %w", err)
	}
	for range 10 {
		if err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			return lock, nil
		}
		time.Sleep(lockRetry)
	}
	_ = lock.Close()
	return nil, fmt.Errorf("another supervisor has the lab in %s: %w", dir, err)
}

// Alive reports whether a supervisor holds the lock of the lab in dir.
func Alive(dir string) bool {
	lock, err := os.Open(filepath.Join(dir, lockFile))
	if err != nil {
		return false
	}
	defer func() { _ = lock.Close() }()
	return errors.Is(syscall.Flock(int(lock.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// stopAll stops every process of the lab. The etcds are stopped last.
func (s *Supervisor) stopAll() {
	s.mu.Lock()
	clusters, stores, extra := s.running.clusters, s.running.stores, s.running.extra
	s.running.clusters, s.running.stores, s.running.extra = map[string]*cluster{}, map[string]*store{}, map[string]*process.Process{}
	s.mu.Unlock()
	var stopping sync.WaitGroup
	for _, p := range extra {
		stopping.Go(func() { p.Kill(syscall.SIGTERM) })
	}
	for _, c := range clusters {
		stopping.Go(c.stop)
	}
	stopping.Wait()
	for _, st := range stores {
		stopping.Go(st.stop)
	}
	stopping.Wait()
}

// Clean removes the files of an ended lab. It also removes the folder if the folder is then empty.
func Clean(dir string) error {
	state, err := ReadState(dir)
	if err != nil {
		return err
	}
	names := []string{etcdFolder, extraFolder, LogFile, control.SocketName, filepath.Base(stateFile(dir))}
	for purpose := range state.Ports { // includes clusters that never became ready
		if name, _, ok := strings.Cut(purpose, "/"); ok && !strings.HasPrefix(name, plane.StorePurpose) {
			names = append(names, name)
		}
	}
	for _, name := range append(names, lockFile) {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("emptying the lab's folder: %w", err)
		}
	}
	_ = os.Remove(dir) // fails if the folder has other files, which is intended
	return nil
}
