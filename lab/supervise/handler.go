package supervise

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/hanse-dev/hanse/lab/control"
	"github.com/hanse-dev/hanse/lab/plane"
	"github.com/hanse-dev/hanse/lab/process"
)

// termination is the signal with which Remove asks an extra process to end.
const termination = syscall.SIGTERM

func (s *Supervisor) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+control.StatusPath, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(s.Status(r.Context())) // an error means that the client is gone
	})
	mux.HandleFunc("POST "+control.UpPath, s.serveUp)
	mux.HandleFunc("POST "+control.DownPath, s.serveDown)
	mux.HandleFunc("POST "+control.RemovePath, serve(func(ctx context.Context, r control.Remove) error { return s.Remove(ctx, r.Name) }))
	mux.HandleFunc("POST "+control.SignalPath, serve(s.signal))
	mux.HandleFunc("POST "+control.FaultPath, serve(s.fault))
	mux.HandleFunc("POST "+control.LoadPath, serve(s.load))
	mux.HandleFunc("POST "+control.RunPath, serve(s.run))
	return mux
}

// serve returns a handler that decodes the request and calls do. If do fails, the response is the text of the error.
func serve[T any](do func(context.Context, T) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var request T
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if err := do(r.Context(), request); err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
		}
	}
}

// serveUp starts clusters, and reports the progress line by line. If the start fails and the supervisor has no
// processes, the supervisor ends.
func (s *Supervisor) serveUp(w http.ResponseWriter, r *http.Request) {
	var request control.Up
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var mu sync.Mutex
	send := func(p control.Progress) {
		mu.Lock()
		defer mu.Unlock()
		if json.NewEncoder(w).Encode(p) == nil { // an error means that the client is gone, which also ends the context
			_ = http.NewResponseController(w).Flush()
		}
	}
	err := s.Up(r.Context(), request, func(format string, args ...any) {
		send(control.Progress{Line: fmt.Sprintf(format, args...)})
	})
	if err == nil {
		return
	}
	send(control.Progress{Error: err.Error()})
	if s.idle() {
		s.quit()
	}
}

// serveDown stops all processes before it responds. The supervisor ends only after it has sent the whole response,
// because its end closes the connection.
func (s *Supervisor) serveDown(w http.ResponseWriter, r *http.Request) {
	serve(func(_ context.Context, request control.Down) error {
		s.down(request)
		w.Header().Set("Content-Length", "0")
		_ = http.NewResponseController(w).Flush() // the client may be gone
		s.quit()
		return nil
	})(w, r)
}

func (s *Supervisor) down(request control.Down) {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.stopAll()
	s.clean = !request.Keep
}

// find returns the named component of a cluster, or an extra process. Without a component, it returns the cluster's API
// server.
func (s *Supervisor) find(name, component string) (*process.Process, error) {
	s.mu.Lock()
	c, extra := s.running.clusters[name], s.running.extra[name]
	s.mu.Unlock()
	switch {
	case extra != nil:
		return extra, nil
	case c == nil:
		return nil, s.unknown(name)
	case component == "":
		component = plane.APIServer
	case component == plane.Etcd:
		return c.store.process, nil
	}
	for _, p := range c.processes() {
		if p.Spec.Name == name+"/"+component {
			return p, nil
		}
	}
	return nil, fmt.Errorf("cluster %q has no component %q", name, component)
}

func (s *Supervisor) signal(_ context.Context, request control.Signal) error {
	p, err := s.find(request.Name, request.Component)
	if err != nil {
		return err
	}
	switch request.Action {
	case control.Kill:
		p.Kill(syscall.SIGKILL)
		return nil
	case control.Start:
		return p.Start()
	case control.Pause:
		return p.Pause()
	case control.Resume:
		return p.Resume()
	}
	return fmt.Errorf("action %q is unknown", request.Action)
}

func (s *Supervisor) fault(_ context.Context, request control.Fault) error {
	s.mu.Lock()
	c := s.running.clusters[request.Name]
	s.mu.Unlock()
	if c == nil {
		return s.unknown(request.Name)
	}
	c.proxy.Set(request.Fault)
	return nil
}

func (s *Supervisor) load(ctx context.Context, request control.Load) error {
	s.mu.Lock()
	c := s.running.clusters[request.Name]
	s.mu.Unlock()
	switch {
	case c == nil:
		return s.unknown(request.Name)
	case c.node == nil:
		return fmt.Errorf("cluster %q has no real node", request.Name)
	}
	for _, image := range request.Images {
		if err := c.node.load(ctx, image); err != nil {
			return fmt.Errorf("cluster %q: %w", request.Name, err)
		}
	}
	return nil
}

// run starts an extra process. The name of an ended process can be used again.
func (s *Supervisor) run(_ context.Context, request control.Run) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.mu.Lock()
	_, taken := s.running.clusters[request.Name]
	old := s.running.extra[request.Name]
	s.mu.Unlock()
	if old != nil {
		taken = old.PID() != 0
	}
	if taken {
		return fmt.Errorf("%q is running already", request.Name)
	}
	logs := filepath.Join(s.dir, extraFolder)
	if err := os.MkdirAll(logs, 0o700); err != nil {
		return err
	}
	p, err := s.starter.Start(process.Spec{
		Name: request.Name, Path: request.Command[0], Args: request.Command[1:], Env: request.Env,
		Dir: request.Dir, Log: filepath.Join(logs, request.Name+".log"),
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.running.extra[request.Name] = p
	s.mu.Unlock()
	return nil
}
