package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

var (
	errNotServed = errors.New("neither the member nor the hub serves this kind: check the spelling, or create its definition on the hub first")
	errAmbiguous = errors.New("several groups have this kind: name one")
)

// resolveGrants completes the kinds that the user has typed: it turns singulars and short names into plurals, and adds
// missing groups. It first searches the kinds that the member serves, and then those of the hub. notes name the kinds
// that the member does not serve yet.
func resolveGrants(member, hub meta.RESTMapper, kinds []kindGrant) (out []kindGrant, notes []string, err error) {
	for _, k := range kinds {
		found, err := servedAs(member, k)
		if errors.Is(err, errNotServed) {
			if found, err = servedAs(hub, k); err == nil {
				notes = append(notes, noteNotServed(found))
			}
		}
		if err != nil {
			return nil, nil, fmt.Errorf("--grant %s: %w", k, err)
		}
		out = append(out, found)
	}
	return out, notes, nil
}

func noteNotServed(kind kindGrant) string {
	return kind.String() + " is not served by the member yet: the hub writes its objects once it is"
}

// servedAs finds the resource that a server serves for a typed kind. If the kind has no group, a resource of the core
// group is preferred.
func servedAs(mapper meta.RESTMapper, k kindGrant) (kindGrant, error) {
	found, err := mapper.ResourcesFor(schema.GroupVersionResource{Group: k.group, Resource: k.resource})
	if err != nil && !meta.IsNoMatchError(err) {
		return kindGrant{}, fmt.Errorf("reading the served kinds: %w", err)
	}
	var groups []kindGrant
	for _, r := range found {
		if g := (kindGrant{r.Group, r.Resource}); (k.group == "" || r.Group == k.group) && !slices.Contains(groups, g) {
			groups = append(groups, g)
		}
	}
	for _, g := range groups {
		if g.group == k.group || len(groups) == 1 {
			return g, nil
		}
	}
	if len(groups) == 0 {
		return kindGrant{}, errNotServed
	}
	return kindGrant{}, fmt.Errorf("%w: %s", errAmbiguous, joined(groups))
}

func joined(kinds []kindGrant) string {
	var texts []string
	for _, k := range kinds {
		texts = append(texts, k.String())
	}
	return strings.Join(texts, ", ")
}

// lackingGrants returns the kinds that placements send to a cluster but that the hub may not write there. For each
// kind, it also returns these placements. A placement with an expression counts for every cluster. Kinds that the hub
// does not serve are left out. Kinds of Hanse are also left out, because their objects stay on the hub.
func lackingGrants(ctx context.Context, c client.Client, mapper meta.RESTMapper, cluster *hubv1.MemberCluster, granted []string) (kinds []kindGrant, placements map[kindGrant][]string, err error) {
	placements = map[kindGrant][]string{}
	for _, list := range []client.ObjectList{&hubv1.PlacementList{}, &hubv1.ClusterPlacementList{}} {
		if err := c.List(ctx, list); err != nil {
			return nil, nil, fmt.Errorf("listing placements: %w", err)
		}
		err := meta.EachListItem(list, func(o runtime.Object) error {
			p, ok := o.(placementObject)
			if !ok || !p.PlacementSpec().Clusters.MaySelect(cluster) {
				return nil
			}
			for _, s := range p.PlacementSpec().ResourceSelectors {
				if s.APIGroup == hubv1.GroupVersion.Group {
					continue
				}
				mapping, err := mapper.RESTMapping(schema.GroupKind{Group: s.APIGroup, Kind: s.Kind})
				if err != nil {
					continue
				}
				k := kindGrant{mapping.Resource.Group, mapping.Resource.Resource}
				by := placementKind(p) + "/" + nameOf(p)
				if !slices.Contains(granted, k.String()) && !slices.Contains(placements[k], by) {
					if placements[k] == nil {
						kinds = append(kinds, k)
					}
					placements[k] = append(placements[k], by)
				}
			}
			return nil
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return kinds, placements, nil
}
