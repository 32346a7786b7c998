package hub

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/hanse-dev/hanse/hub/dispatch"
	"github.com/hanse-dev/hanse/hub/epochs"
	"github.com/hanse-dev/hanse/hub/memberview"
)

// listenForViews opens the port for views of members; nil if it is turned off.
func listenForViews(o Options) (*memberview.Server, error) {
	if o.ViewAddress == "" || o.ViewAddress == "0" {
		return nil, nil
	}
	return memberview.Listen(o.ViewAddress, o.ViewHost)
}

// addViews serves what users may see of members.
func addViews(mgr manager.Manager, server *memberview.Server, f *fleet, dispatcher *dispatch.Dispatcher, known *epochs.Keeper, shards *shards) error {
	if server == nil {
		return nil
	}
	server.Handler = memberview.New(memberview.Options{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Mapper: mgr.GetRESTMapper(), Members: f.viewer, Intent: dispatcher.Intent,
		Adopt:  dispatcher.Adopt,
		Epochs: known, Rank: dispatch.Rank,
		Holder: func(cluster string) memberview.Holder {
			if shards.Holds(cluster) {
				return memberview.Holder{Here: true}
			}
			return memberview.HolderOf(shards.coordinator.Holder(cluster))
		},
		Logger: mgr.GetLogger().WithName("view"),
	})
	if err := mgr.Add(server); err != nil {
		return fmt.Errorf("adding the server for views of members: %w", err)
	}
	return nil
}

// viewer returns a connected member as users look at it.
func (f *fleet) viewer(name string) (memberview.Member, error) {
	c, err := f.Get(name)
	if err != nil {
		return nil, err
	}
	v, ok := c.(memberview.Member)
	if !ok {
		return nil, fmt.Errorf("cluster %q cannot be looked at: it is a %T", name, c)
	}
	return v, nil
}
