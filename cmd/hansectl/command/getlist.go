package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/views"
	"github.com/hanse-dev/hanse/view"
	"github.com/hanse-dev/hanse/view/wire"
)

// list shows all objects of a kind on the clusters, including objects that are not copies.
func (g *get) list(ctx context.Context, kind, name string) error {
	c, err := g.hub.reader(&g.window)
	if err != nil {
		return err
	}
	id, version, err := g.hub.identify(ctx, c, kind, name)
	if err != nil {
		return err
	}
	clusters := g.clusters
	if err := existing(ctx, c, clusters, nil); err != nil {
		return err
	}
	if len(clusters) == 0 {
		if clusters, err = answeringFirst(ctx, c); err != nil {
			return err
		}
	}
	viewer, err := g.window.open(ctx, g.hub, c)
	if err != nil {
		return err
	}
	if g.all {
		id.Namespace = ""
	}
	look := func() *view.Listed { return g.ask(ctx, viewer, clusters, id, version) }
	if g.watch {
		return g.watchList(ctx, look)
	}
	found := look()
	if err := g.out.print(g.hub.streams.Out, found); err != nil {
		return err
	}
	return g.hub.noteMembers(found.Notes, found.NotAsked)
}

// watchList lists the objects again and again, and prints the table after each change, until ctx ends.
func (g *get) watchList(ctx context.Context, look func() *view.Listed) error {
	tick := time.NewTicker(g.every)
	defer tick.Stop()
	s := g.hub.newScreen(g.out)
	for {
		found := look()
		if ctx.Err() != nil {
			return nil // the user has ended the watch
		}
		if err := s.show(found, found.Versions()); err != nil {
			return err
		}
		for _, n := range byNote(found.Notes) {
			g.hub.warn(fmt.Sprintf("warning: %s: %s\n", n.Cluster, view.Printable(n.Note)))
		}
		for _, n := range byNote(found.NotAsked) {
			g.hub.warn(fmt.Sprintf("error: %s: %s\n", n.Cluster, view.Printable(n.Note)))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// ask lists the objects of the kind on the clusters. For a cluster that does not serve the kind, the list has no
// objects.
func (g *get) ask(ctx context.Context, viewer *views.Client, clusters []string, id hubv1.ObjectIdentity, version string) *view.Listed {
	request := wire.ListRequest{
		Group: id.Group, Version: version, Kind: id.Kind, Name: id.Name, LabelSelector: g.selector, Most: g.limit,
		Whole: g.out.format != "name" && !g.out.text(),
	}
	found := view.NewListed(id.GroupKind(), g.all)
	var mu sync.Mutex
	found.NotAsked = eachMember(clusters, func(cluster string) error {
		var answer wire.ListAnswer
		if err := viewer.Ask(ctx, cluster, wire.List, id.Namespace, request, &answer); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		found.Add(cluster, answer)
		return nil
	})
	found.Sort()
	return found
}

// answeringFirst returns the names of all clusters. Clusters that are not Ready come last, because requests to them may
// be slow.
func answeringFirst(ctx context.Context, c client.Client) ([]string, error) {
	members, err := listClusters(ctx, c)
	if err != nil {
		return nil, err
	}
	last := func(m hubv1.MemberCluster) int {
		if meta.IsStatusConditionTrue(m.Status.Conditions, hubv1.ConditionReady) {
			return 0
		}
		return 1
	}
	slices.SortFunc(members, func(a, b hubv1.MemberCluster) int {
		return cmp.Or(cmp.Compare(last(a), last(b)), cmp.Compare(a.Name, b.Name))
	})
	var names []string
	for _, m := range members {
		names = append(names, m.Name)
	}
	return names, nil
}
