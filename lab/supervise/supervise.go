// Package supervise is the parent of every process of a lab.
//
// A supervisor holds a lock in the lab's folder for as long as it lives, so there is one at a time.
// Its children die with it, however it dies; its state file lets the next one bring the same
// clusters back at the same addresses with the same data. It runs the fault proxies itself.
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
	"github.com/hanse-dev/hanse/lab/plane"
	"github.com/hanse-dev/hanse/lab/process"
)

// Folders and files of a lab beside those of the clusters, whose names cannot start so.
const (
	etcdFolder  = "_etcd"
	extraFolder = "_run"
	lockFile    = "lock"
	// LogFile is the supervisor's own log.
	LogFile = "supervisor.log"

	idleTimeout = 30 * time.Second
	lockRetry   = 50 * time.Millisecond
)

// Supervisor is the state of a running lab.
type Supervisor struct {
	dir     string
	ledger  *ledger
	starter *process.Starter
	quit    context.CancelFunc

	// turn lets one change of the set of processes happen at a time. It may take minutes.
	turn sync.Mutex

	// mu guards what follows, for moments only.
	mu       sync.Mutex
	bin      string
	stages   []string
	stores   map[string]*store
	clusters map[string]*cluster
	extra    map[string]*process.Process
	clean    bool // remove everything at the end
}

// Run supervises the lab in dir until ctx ends or a client asks for the end. Then nothing runs any more.
func Run(ctx context.Context, dir string) error {
	lock, err := acquire(dir)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	book, err := openLedger(dir)
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
		dir: dir, ledger: book, starter: process.NewStarter(), quit: quit,
		stores: map[string]*store{}, clusters: map[string]*cluster{}, extra: map[string]*process.Process{},
	}
	server := &http.Server{Handler: s.handler()} // no time-outs: its clients are our own, on a socket that is ours
	go func() { _ = server.Serve(listener) }()   // returns when the server is closed
	time.AfterFunc(idleTimeout, s.quitIfIdle)
	<-ctx.Done()
	_ = server.Close() // ends an up that is under way, which rolls itself back
	s.turn.Lock()
	defer s.turn.Unlock()
	s.stopAll()
	if s.clean {
		return Clean(dir)
	}
	_ = os.Remove(filepath.Join(dir, control.SocketName)) // one that stays is replaced
	return book.change(func(s *State) { s.PID = 0 })
}

// quitIfIdle ends a supervisor that nobody has asked for anything, because `lab up` died at once.
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
	return len(s.clusters)+len(s.extra) == 0
}

// acquire takes the lock that says that a supervisor lives. The kernel releases it whatever happens.
// It tries for a while, because Alive holds the lock for a moment.
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

// Alive says whether a supervisor holds the lab in dir.
func Alive(dir string) bool {
	lock, err := os.Open(filepath.Join(dir, lockFile))
	if err != nil {
		return false
	}
	defer func() { _ = lock.Close() }()
	return errors.Is(syscall.Flock(int(lock.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// stopAll ends every process, the stores last.
func (s *Supervisor) stopAll() {
	s.mu.Lock()
	clusters, stores, extra := s.clusters, s.stores, s.extra
	s.clusters, s.stores, s.extra = map[string]*cluster{}, map[string]*store{}, map[string]*process.Process{}
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

// Clean removes what a lab that has ended wrote, and its folder if nothing else is in it.
func Clean(dir string) error {
	state, err := ReadState(dir)
	if err != nil {
		return err
	}
	names := []string{etcdFolder, extraFolder, LogFile, control.SocketName, filepath.Base(stateFile(dir))}
	for purpose := range state.Ports { // also of clusters that never became ready
		if name, _, ok := strings.Cut(purpose, "/"); ok && !strings.HasPrefix(name, plane.StorePurpose) {
			names = append(names, name)
		}
	}
	for _, name := range append(names, lockFile) {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("emptying the lab's folder: %w", err)
		}
	}
	_ = os.Remove(dir) // fails if somebody else keeps something there, and shall
	return nil
}
