package command

import (
	"context"
	"fmt"
	"sync"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view"
	"github.com/hanse-dev/hanse/view/wire"
)

// events has the arguments of one run of the command events.
type events struct {
	hub      *hub
	window   window
	out      output
	clusters []string
}

func newEvents(h *hub) *cobra.Command {
	e := &events{hub: h}
	cmd := &cobra.Command{
		Use:   "events (KIND NAME | KIND/NAME)",
		Short: "Show the events about an object, its copies, and the objects that controllers made for them",
		Long: `Show the events about a hub object, its copies on the members, and the objects that controllers made for the
copies there, by ownerReferences, down to pods. The newest events come last. Events of the hub have the
cluster (hub). Events of an object of the same name that is not Hanse's are not shown.

A member must grant its events and workloads to the hub: chart values listEvents and listWorkloads, or hansectl join
--list-events --list-workloads. Of each cluster, at most 2,000 events of the namespace are read, and at most the newest
200 are shown; a warning says if there are more.

The exit code is 1 if a cluster could not be asked.`,
		Example: `  hansectl events deployment/web -n shop

  hansectl events prometheus web -n monitoring --cluster cn-sha-1`,
		Args:              objectArguments,
		ValidArgsFunction: h.completeObjects,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := e.out.check(cmd); err != nil {
				return err
			}
			kind, name := kindAndName(args)
			return e.run(cmd.Context(), kind, name)
		},
	}
	e.out.addTo(cmd)
	e.window.addTo(cmd.Flags())
	cmd.Flags().StringSliceVar(&e.clusters, "cluster", nil, "Show only this cluster. Can be repeated.")
	_ = cmd.RegisterFlagCompletionFunc("cluster", h.completeMoreClusters)
	return cmd
}

func (e *events) run(ctx context.Context, kind, name string) error {
	c, err := e.hub.reader(&e.window)
	if err != nil {
		return err
	}
	binding, clusters, err := e.hub.holders(ctx, c, kind, name, e.clusters)
	if err != nil {
		return err
	}
	views, err := e.window.open(ctx, e.hub, c)
	if err != nil {
		return err
	}
	found := &view.Events{Items: []view.ClusterEvent{}}
	if len(e.clusters) == 0 {
		if err := e.ofHub(ctx, c, binding, found); err != nil {
			return err
		}
	}
	id := hubv1.ObjectOf(binding)
	var mu sync.Mutex
	found.NotAsked = eachMember(clusters, func(cluster string) error {
		var answer wire.EventsAnswer
		request := wire.EventsRequest{Object: wire.ObjectOf(id)}
		if err := views.Ask(ctx, cluster, wire.Events, id.Namespace, request, &answer); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		found.Add(cluster, answer)
		return nil
	})
	found.Sort()
	if err := e.out.print(e.hub.streams.Out, found); err != nil {
		return err
	}
	return e.hub.noteMembers(found.Notes, found.NotAsked)
}

// ofHub adds the events about the hub object and about its binding.
func (e *events) ofHub(ctx context.Context, c client.Client, binding hubv1.BindingObject, found *view.Events) error {
	namespace := binding.GetNamespace()
	if namespace == "" {
		namespace = corev1.NamespaceDefault
	}
	for _, uid := range []string{string(binding.BindingSpec().ObjectRef.UID), string(binding.GetUID())} {
		var list corev1.EventList
		err := c.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{"involvedObject.uid": uid}, client.Limit(pageSize))
		if err := e.hub.unlessForbidden(err, "events of the hub are missing"); err != nil {
			return fmt.Errorf("listing events in namespace %s: %w", namespace, err)
		}
		for i := range list.Items {
			found.AddHub(list.Items[i])
		}
	}
	return nil
}

// holders returns the binding of an object, and the clusters that hold the object. These include clusters whose copy is
// being withdrawn. If the user has named clusters, it returns only those.
func (h *hub) holders(ctx context.Context, c client.Client, kind, name string, named []string) (hubv1.BindingObject, []string, error) {
	id, version, err := h.identify(ctx, c, kind, name)
	if err != nil {
		return nil, nil, err
	}
	binding, err := h.readPlaced(ctx, c, id, version)
	if err != nil {
		return nil, nil, err
	}
	clusters, err := sentTo(id, binding, named, hubv1.TargetAbsent)
	return binding, clusters, err
}
