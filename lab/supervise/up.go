package supervise

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hanse-dev/hanse/lab/control"
	"github.com/hanse-dev/hanse/lab/plane"
	"github.com/hanse-dev/hanse/lab/topology"
)

// These are the names of the two etcds of a lab. The hub has a separate etcd, so that the writes of the hub can be
// counted.
const (
	hubStore    = "hub"
	memberStore = "members"
)

// Up starts the missing clusters. After an error, or when ctx ends, it stops all processes that it started, and does
// not change clusters that ran before.
func (s *Supervisor) Up(ctx context.Context, request control.Up, say func(format string, args ...any)) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	start := time.Now()
	timed := func(format string, args ...any) {
		say("%6.1fs  %s", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
	}
	if request.Topology.Real() && s.own == nil {
		return errors.New("the lab was started without a real node, and so has no namespaces for one; run `lab down` first")
	}
	wanted, err := s.missing(request.Topology, timed)
	if err != nil || len(wanted) == 0 {
		return err
	}
	s.mu.Lock()
	s.bin, s.stages = request.Bin, request.Stages
	s.mu.Unlock()
	if err := s.startStores(ctx, wanted); err != nil {
		s.stopUnusedStores()
		return err
	}
	started, err := s.startClusters(ctx, wanted, timed)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		for _, c := range started {
			c.stop()
		}
		s.stopUnusedStores()
		return err
	}
	s.mu.Lock()
	for _, c := range started {
		s.running.clusters[c.plane.Name] = c
	}
	s.mu.Unlock()
	return s.recordTopology()
}

// missing returns the clusters of t that do not run. It fails if a running cluster differs from its description in t.
func (s *Supervisor) missing(t topology.Topology, say func(string, ...any)) ([]topology.Cluster, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var wanted []topology.Cluster
	for _, c := range t.Clusters {
		running, ok := s.running.clusters[c.Name]
		if !ok {
			wanted = append(wanted, c)
			continue
		}
		if field := running.topology.Difference(c); field != "" {
			return nil, fmt.Errorf("cluster %q is up with other %s; run `lab remove %s` first", c.Name, field, c.Name)
		}
		say("%s: is up already", c.Name)
	}
	for _, c := range wanted {
		if _, ok := s.running.extra[c.Name]; ok {
			return nil, fmt.Errorf("cluster %q: an extra process has this name", c.Name)
		}
		for _, running := range s.running.clusters {
			if c.Hub && running.topology.Hub {
				return nil, fmt.Errorf("cluster %q: %q is the hub already", c.Name, running.plane.Name)
			}
		}
	}
	return wanted, nil
}

func storeOf(c topology.Cluster) string {
	if c.Hub {
		return hubStore
	}
	return memberStore
}

func (s *Supervisor) startStores(ctx context.Context, wanted []topology.Cluster) error {
	for _, c := range wanted {
		name := storeOf(c)
		if s.running.stores[name] != nil {
			continue
		}
		prepared, err := plane.PrepareStore(filepath.Join(s.dir, etcdFolder), s.bin, name, s.address(), s.ledger.port)
		if err != nil {
			return err
		}
		running, err := startStore(ctx, s.starter, prepared)
		if err != nil {
			return err
		}
		s.mu.Lock()
		s.running.stores[name] = running
		s.mu.Unlock()
	}
	return nil
}

// stopUnusedStores stops the etcds that no cluster uses.
func (s *Supervisor) stopUnusedStores() {
	s.mu.Lock()
	var unused []*store
	for name, st := range s.running.stores {
		used := false
		for _, c := range s.running.clusters {
			used = used || c.store == st
		}
		if !used {
			unused = append(unused, st)
			delete(s.running.stores, name)
		}
	}
	s.mu.Unlock()
	for _, st := range unused {
		st.stop()
	}
}

// startClusters starts clusters concurrently and returns the clusters that became ready. The first error cancels the
// other starts.
func (s *Supervisor) startClusters(ctx context.Context, wanted []topology.Cluster, say func(string, ...any)) ([]*cluster, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		all     sync.WaitGroup
		mu      sync.Mutex
		started []*cluster
		first   error
	)
	with := starting{starter: s.starter, stages: s.stages, ports: s.ledger.port, say: say}
	for _, t := range wanted {
		all.Go(func() {
			c, err := s.startOne(ctx, with, t)
			mu.Lock()
			defer mu.Unlock()
			if err != nil && first == nil {
				first = err
				cancel()
			}
			if err == nil {
				started = append(started, c)
			}
		})
	}
	all.Wait()
	return started, first
}

func (s *Supervisor) startOne(ctx context.Context, with starting, t topology.Cluster) (*cluster, error) {
	site := plane.Site{Address: s.address()}
	if t.Nodes == topology.Real {
		slot, err := s.ledger.slot(t.Name)
		if err != nil {
			return nil, err
		}
		network := s.own.Node(t.Name, slot)
		site.Node = &network
	}
	prepared, err := plane.Prepare(s.dir, s.bin, t.Name, site, s.ledger.port)
	if err != nil {
		return nil, err
	}
	return startCluster(ctx, with, prepared, t, s.running.stores[storeOf(t)])
}

// address returns the IP address of the lab.
func (s *Supervisor) address() string {
	if s.own == nil {
		return "127.0.0.1"
	}
	return s.own.Address()
}

func (s *Supervisor) recordTopology() error {
	s.mu.Lock()
	var t topology.Topology
	for _, name := range slices.Sorted(maps.Keys(s.running.clusters)) {
		t.Clusters = append(t.Clusters, s.running.clusters[name].topology)
	}
	s.mu.Unlock()
	slices.SortStableFunc(t.Clusters, func(a, b topology.Cluster) int { // the hub comes first in the output
		if a.Hub != b.Hub {
			return map[bool]int{true: -1, false: 1}[a.Hub]
		}
		return strings.Compare(a.Name, b.Name)
	})
	return s.ledger.change(func(st *State) { st.Topology = t })
}

// Remove stops a cluster and deletes all its data, or stops an extra process.
func (s *Supervisor) Remove(ctx context.Context, name string) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.mu.Lock()
	c, p := s.running.clusters[name], s.running.extra[name]
	delete(s.running.clusters, name)
	delete(s.running.extra, name)
	s.mu.Unlock()
	if p != nil {
		p.Kill(termination)
		return nil
	}
	if c == nil {
		return s.unknown(name)
	}
	c.stop()
	if err := c.store.client.DeletePrefix(ctx, c.plane.EtcdPrefix()); err != nil {
		return fmt.Errorf("deleting the objects of cluster %q: %w", name, err)
	}
	s.stopUnusedStores()
	if err := os.RemoveAll(c.plane.Dir); err != nil {
		return fmt.Errorf("deleting the folder of cluster %q: %w", name, err)
	}
	return errors.Join(s.ledger.forget(name), s.recordTopology())
}

func (s *Supervisor) unknown(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := append(slices.Collect(maps.Keys(s.running.clusters)), slices.Collect(maps.Keys(s.running.extra))...)
	slices.Sort(known)
	return fmt.Errorf("the lab has no %q; it has: %s", name, strings.Join(known, ", "))
}
