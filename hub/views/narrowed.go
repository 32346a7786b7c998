package views

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view/wire"
)

// Narrowed is the client of a user who may view only one namespace. It lists the clusters and policies that affect this
// namespace. If the user may not list a kind, Narrowed gets its objects by a FactsRequest to the hub.
type Narrowed struct {
	client.Client
	Namespace string
	// Views returns the client for a FactsRequest to the hub. It is called only if the user may not list a kind.
	Views func(context.Context) (*Client, error)
	// Note is called with a text that says which data the answer leaves out.
	Note func(text string)

	mu    sync.Mutex
	facts wire.FactsAnswer
	fault error
	asked time.Time
}

// factsLast is how long the answer to a FactsRequest is used for further lists. One request is therefore enough for all
// lists of a command.
const factsLast = time.Second

// List implements client.Reader.
func (n *Narrowed) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := n.Client.List(ctx, list, opts...)
	if !apierrors.IsForbidden(err) {
		return err
	}
	var from client.ListOptions
	from.ApplyOptions(opts)
	switch list := list.(type) {
	case *hubv1.MemberClusterList:
		return n.take(ctx, err, func(f *wire.FactsAnswer) { list.Items = f.MemberClusters })
	case *hubv1.ClusterPlacementList:
		return n.take(ctx, err, func(f *wire.FactsAnswer) { list.Items = f.ClusterPlacements })
	case *hubv1.ClusterOverridePolicyList:
		return n.take(ctx, err, func(f *wire.FactsAnswer) { list.Items = f.ClusterOverridePolicies })
	case *hubv1.OverridePolicyList:
		if from.Namespace == n.Namespace {
			return n.take(ctx, err, func(f *wire.FactsAnswer) { list.Items = f.OverridePolicies })
		}
	}
	return err
}

// Partial reports whether the data of a list came from a FactsRequest. Such a list has only the data that concerns the
// namespace.
func (n *Narrowed) Partial() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.asked.IsZero()
}

// take calls the function `from`, which fills a list from the answer to a FactsRequest. refused is the Forbidden error
// of the user's own list request. It becomes a part of the error if the FactsRequest fails.
func (n *Narrowed) take(ctx context.Context, refused error, from func(*wire.FactsAnswer)) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if time.Since(n.asked) > factsLast {
		n.facts = wire.FactsAnswer{}
		n.fault = n.read(ctx)
		n.asked = time.Now()
	}
	switch {
	case errors.Is(n.fault, ErrNoViews):
		return refused
	case n.fault != nil: // if the hub refuses the request, its error names the needed role
		return fmt.Errorf("reading the policies and clusters of namespace %s from the hub: %w (you may not list them directly: %w)", n.Namespace, n.fault, refused)
	}
	for _, note := range n.facts.Notes {
		n.Note(note)
	}
	from(&n.facts)
	return nil
}

// ErrNoViews is the error of Narrowed.Views if the hub does not serve requests about members.
var ErrNoViews = errors.New("the hub serves no views of members: it runs without --view-bind-address")

func (n *Narrowed) read(ctx context.Context) error {
	views, err := n.Views(ctx)
	if err != nil {
		return err
	}
	return views.Ask(ctx, "", wire.Facts, n.Namespace, wire.FactsRequest{}, &n.facts)
}
