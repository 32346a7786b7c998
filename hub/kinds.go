package hub

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/hanse-dev/hanse/kindwatch"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/connect"
	"github.com/hanse-dev/hanse/member/copies"
	"github.com/hanse-dev/hanse/member/served"
	"github.com/hanse-dev/hanse/member/values"
)

// newKinds makes what knows the kinds of a member. changed is told of a kind that may be served otherwise than before,
// defined of any definition of an expected group.
func newKinds(ctx context.Context, c *connect.Cluster, changed func(schema.GroupKind), defined func()) (*served.Kinds, error) {
	http, err := rest.HTTPClientFor(c.Requests)
	if err != nil {
		return nil, fmt.Errorf("making the client for schemas: %w", err)
	}
	disco, err := discovery.NewDiscoveryClientForConfigAndClient(c.Requests, http)
	if err != nil {
		return nil, fmt.Errorf("making the discovery client: %w", err)
	}
	definitions, err := dynamic.NewForConfig(served.MetadataOnly(c.Watches))
	if err != nil {
		return nil, fmt.Errorf("making the client for definitions: %w", err)
	}
	return served.New(ctx, served.Options{Discovery: disco, HTTP: http, Definitions: definitions, OnChange: changed, OnDefinition: defined}), nil
}

// groupsOf kinds.
func groupsOf(kinds []schema.GroupKind) sets.Set[string] {
	groups := sets.New[string]()
	for _, gk := range kinds {
		groups.Insert(gk.Group)
	}
	return groups
}

// Fit implements member.Cluster.
func (c *memberCluster) Fit(ctx context.Context, manifest *unstructured.Unstructured) (*unstructured.Unstructured, []string) {
	return c.kinds.Fit(ctx, manifest)
}

// Misfits implements member.Cluster.
func (c *memberCluster) Misfits(ctx context.Context, manifest *unstructured.Unstructured) []member.Misfit {
	return misfits(c.kinds.Faults(ctx, manifest))
}

// hubMisfits says what of a manifest the hub's own schema does not take. Whether a field exists is for the member to
// say: an override may set one that a newer definition there has.
func hubMisfits(kinds *served.Kinds) func(context.Context, *unstructured.Unstructured) []member.Misfit {
	return func(ctx context.Context, manifest *unstructured.Unstructured) []member.Misfit {
		return misfits(slices.DeleteFunc(kinds.Faults(ctx, manifest), func(f values.Fault) bool { return f.Message == values.Undeclared }))
	}
}

func misfits(faults []values.Fault) []member.Misfit {
	out := make([]member.Misfit, 0, len(faults))
	for _, f := range faults {
		out = append(out, member.Misfit(f))
	}
	return out
}

// newLister makes what lists the copies on a member.
func newLister(c *connect.Cluster, kinds *served.Kinds, hubUID types.UID) (*copies.Lister, error) {
	client, err := kindwatch.NewClient(served.MetadataOnly(c.Requests))
	if err != nil {
		return nil, fmt.Errorf("making the client for lists of copies: %w", err)
	}
	return copies.New(copies.Options{
		Client: client, HubUID: hubUID, Groups: kinds.Groups,
		Kinds: func(ctx context.Context, group string) ([]copies.Kind, error) {
			var out []copies.Kind
			found, err := kinds.Listable(ctx, group)
			for _, k := range found {
				out = append(out, copies.Kind(k))
			}
			return out, err
		},
	}), nil
}

// Copies implements member.Pruner. On the hub itself there are none.
func (c *memberCluster) Copies(ctx context.Context, most int, keep func(member.Copy) (bool, error)) (member.Copies, error) {
	if c.isHub {
		return member.Copies{}, nil
	}
	return c.Lister.Copies(ctx, most, keep)
}

// Apply implements member.Cluster. What the member refuses says something of what it serves.
func (c *memberCluster) Apply(ctx context.Context, in member.ApplyIntent) member.Outcome {
	return c.kinds.Heed(in.Manifest.GroupVersionKind(), c.Applier.Apply(ctx, in))
}

// Restart opens every watch again at once, as after the link came back.
func (c *memberCluster) Restart() {
	c.Observer.Restart()
	c.kinds.Restart()
}
