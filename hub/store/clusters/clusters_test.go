package clusters

import (
	"context"
	"slices"
	"testing"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/changes"
)

// lists is a cache with the clusters a and b. It counts how often they are listed.
type lists struct {
	client.Reader
	n int
}

func (l *lists) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	l.n++
	into.(*hubv1.MemberClusterList).Items = []hubv1.MemberCluster{*named("b"), *named("a")}
	return nil
}

func named(name string) *hubv1.MemberCluster {
	c := &hubv1.MemberCluster{}
	c.Name = name
	return c
}

// informer is the informer of the feed. It has delivered its first list when the test says so.
type informer struct {
	cache.Informers
	cache.Informer
	toolscache.ResourceEventHandler
	delivered bool
}

func (i *informer) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return i, nil
}

func (i *informer) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	i.ResourceEventHandler = h
	return registration{i}, nil
}

type registration struct{ *informer }

func (r registration) HasSynced() bool { return r.delivered }

func TestAllReadersShareOneSnapshotOfEachChange(t *testing.T) {
	reader, from := &lists{}, &informer{}
	s, feed := New(reader), changes.NewFeed()
	s.Follow(feed.Clusters)
	if err := feed.Watch(t.Context(), from); err != nil {
		t.Fatal(err)
	}
	read := func(wanted ...string) *Snapshot {
		t.Helper()
		now, err := s.Current(t.Context())
		if err != nil || !slices.Equal(now.Names(), wanted) {
			t.Fatalf("the clusters are %v (%v), want %v", now.Names(), err, wanted)
		}
		return now
	}
	from.OnAdd(named("b"), true)
	if read("a", "b"); reader.n != 1 {
		t.Errorf("before the end of the first list, %d reads list the clusters, want 1", reader.n)
	}
	from.OnAdd(named("a"), true)
	from.delivered = true
	first := read("a", "b")
	for range 100 {
		if read("a", "b") != first {
			t.Fatal("two reads without a change have two snapshots")
		}
	}
	later := named("b")
	later.Generation = 7
	from.OnUpdate(named("b"), later)
	second := read("a", "b")
	if second.Cluster("b").Generation != 7 || second.Number <= first.Number || first.Cluster("b").Generation != 0 {
		t.Error("a change does not make another snapshot")
	}
	from.OnDelete(named("a"))
	if now := read("b"); now.Cluster("a") != nil {
		t.Error("a deleted cluster is found")
	}
	if reader.n != 1 {
		t.Errorf("the clusters were listed %d times, want 1", reader.n)
	}
	if allocated := testing.AllocsPerRun(100, func() { _, _ = s.Current(t.Context()) }); allocated != 0 {
		t.Errorf("a read without a change allocates %.0f objects", allocated)
	}
}
