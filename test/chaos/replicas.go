package chaos

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/hanse-dev/hanse/test/fleet"
)

// replicas are the processes of the hub. A process that ends starts again, as a kubelet restarts a container.
type replicas struct {
	fleet *fleet.Fleet

	mu        sync.Mutex
	names     []string
	processes map[string]*fleet.HubProcess
	stopped   bool // none of them shall run
	restarts  int
	failure   error // what prevented the start of a process
}

func startReplicas(ctx context.Context, f *fleet.Fleet, n int) (*replicas, error) {
	r := &replicas{fleet: f, processes: map[string]*fleet.HubProcess{}}
	for i := range n {
		name := fmt.Sprintf("replica-%d", i)
		h, err := f.StartHub(ctx, name, "--identity", name)
		if h != nil {
			r.names, r.processes[name] = append(r.names, name), h
		}
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

// keep starts processes again until the context ends.
func (r *replicas) keep(ctx context.Context) {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			r.startEnded()
		}
	}
}

func (r *replicas) startEnded() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range r.names {
		if r.stopped || !r.processes[name].Ended() {
			continue
		}
		h, err := r.fleet.RunHub(name, "--identity", name)
		if err != nil {
			r.failure = errors.Join(r.failure, err)
			continue
		}
		r.processes[name] = h
		r.restarts++
	}
}

func (r *replicas) get(name string) *fleet.HubProcess {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.processes[name]
}

// outcome returns how often a process started again, and what prevented it.
func (r *replicas) outcome() (restarts int, failure error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.restarts, r.failure
}

// all returns the processes of all replicas.
func (r *replicas) all() map[string]*fleet.HubProcess {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]*fleet.HubProcess{}
	for name, h := range r.processes {
		out[name] = h
	}
	return out
}

// stop ends all processes until start.
func (r *replicas) stop() error {
	r.mu.Lock()
	r.stopped = true
	r.mu.Unlock()
	var errs []error
	for _, h := range r.all() {
		_ = h.Signal(syscall.SIGCONT)
		errs = append(errs, h.Stop())
	}
	return errors.Join(errs...)
}

func (r *replicas) start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = false
}

// ready waits until all processes are ready.
func (r *replicas) ready(ctx context.Context) error {
	return until(ctx, 2*time.Minute, func() error {
		r.startEnded()
		var errs []error
		for name, h := range r.all() {
			if h.Ended() {
				errs = append(errs, fmt.Errorf("%s has ended", name))
				continue
			}
			if err := h.WaitReady(ctx); err != nil {
				errs = append(errs, err)
			}
		}
		return errors.Join(errs...)
	})
}

// until repeats a check until it returns nil. After the time-out, it returns the last error of the check.
func until(ctx context.Context, timeout time.Duration, check func() error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, timeout, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("after %s: %w", timeout, errors.Join(last, context.Cause(ctx)))
	}
	return nil
}
