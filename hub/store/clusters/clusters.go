// Package clusters keeps all MemberClusters in one Snapshot, which decisions and the other parts of the hub share. A
// list of all MemberClusters for each decision, or for each event of a MemberCluster, would cost the square of their
// number.
package clusters

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/changes"
	"github.com/hanse-dev/hanse/hub/store/scopes"
)

// Snapshot has the MemberClusters at one time. It never changes, and callers share it and must not change its objects.
type Snapshot struct {
	// Number identifies the snapshot: a later one of the same Store has a higher number.
	Number uint64
	// Clusters are sorted by name.
	Clusters []*hubv1.MemberCluster
}

// Cluster returns the MemberCluster of a name. It is nil if there is none.
func (s *Snapshot) Cluster(name string) *hubv1.MemberCluster {
	i, found := slices.BinarySearchFunc(s.Clusters, name, func(c *hubv1.MemberCluster, name string) int { return strings.Compare(c.Name, name) })
	if !found {
		return nil
	}
	return s.Clusters[i]
}

// Names returns the names of all MemberClusters, sorted.
func (s *Snapshot) Names() []string {
	names := make([]string, len(s.Clusters))
	for i, c := range s.Clusters {
		names[i] = c.Name
	}
	return names
}

// Store makes a Snapshot after each change of a MemberCluster, when it is first read.
type Store struct {
	reader client.Reader
	listed func() bool // nil: the Store follows no feed

	mu      sync.Mutex
	known   map[string]*hubv1.MemberCluster
	current *Snapshot // nil after a change
	number  uint64
}

// New returns a Store that lists the MemberClusters for each read, until it follows a feed whose first list is
// complete. reader reads from the cache.
func New(reader client.Reader) *Store {
	return &Store{reader: reader, known: map[string]*hubv1.MemberCluster{}}
}

// Follow takes the MemberClusters from a feed. It must be called before any other function is registered there: a
// function that is called for a change then finds the change in the Snapshot.
func (s *Store) Follow(feed *changes.Kind[*hubv1.MemberCluster]) {
	feed.On(changes.All, s.changed)
	s.listed = feed.Listed
}

func (s *Store) changed(_ context.Context, c changes.Cluster) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.After == nil {
		delete(s.known, c.Before.Name)
	} else {
		s.known[c.After.Name] = c.After
	}
	s.current = nil
}

// Current returns the MemberClusters as they are now. Only if the feed has not delivered its first list yet, it reads
// them from the cache, so that no caller ever sees a part of the fleet.
func (s *Store) Current(ctx context.Context) (*Snapshot, error) {
	if s.listed == nil || !s.listed() {
		return s.list(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		sorted := make([]*hubv1.MemberCluster, 0, len(s.known))
		for _, name := range slices.Sorted(maps.Keys(s.known)) {
			sorted = append(sorted, s.known[name])
		}
		s.number++
		s.current = &Snapshot{Number: s.number, Clusters: sorted}
	}
	return s.current, nil
}

func (s *Store) list(ctx context.Context) (*Snapshot, error) {
	sorted, err := scopes.Clusters(ctx, s.reader, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.number++
	return &Snapshot{Number: s.number, Clusters: sorted}, nil
}
