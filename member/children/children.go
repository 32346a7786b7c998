// Package children finds what was made for an object on one member: the objects with an ownerReference to it, and those
// with one to them, down to pods.
//
//   - Only workloads are looked for, see below: by listing, since no server finds children by their owner.
//   - Only kinds are listed that the member grants the hub; it is asked first, so that nothing is refused. Those that
//     it does not grant are named.
//   - Lists have an end. One that was cut is named, too. They are read page by page, and of a page only names, states
//     and UIDs are kept.
//
// Nothing of a child is returned but its name and how it does. Children in other namespaces are not looked for: those
// of a cluster-scoped object are none of what a hub object's readers may see.
package children

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/granted"
)

var (
	pods         = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	deployments  = apps("deployments")
	replicaSets  = apps("replicasets")
	statefulSets = apps("statefulsets")
	daemonSets   = apps("daemonsets")
	jobs         = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	cronJobs     = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "cronjobs"}

	// below says which kinds the controllers of Kubernetes make for one; any of these may be made for another kind.
	below = map[schema.GroupKind][]schema.GroupVersionResource{
		{Kind: "Pod"}:                        nil,
		{Group: "apps", Kind: "Deployment"}:  {replicaSets},
		{Group: "apps", Kind: "ReplicaSet"}:  {pods},
		{Group: "apps", Kind: "StatefulSet"}: {pods},
		{Group: "apps", Kind: "DaemonSet"}:   {pods},
		{Group: "batch", Kind: "Job"}:        {pods},
		{Group: "batch", Kind: "CronJob"}:    {jobs},
	}
	workloads = []schema.GroupVersionResource{deployments, statefulSets, daemonSets, replicaSets, cronJobs, jobs, pods}
)

func apps(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: resource}
}

const (
	// mostChildren is how many are returned for all owners together.
	mostChildren = 1000
	deepest      = 5
)

// Finder finds children on one member. It keeps no state.
type Finder struct{ client dynamic.Interface }

// New returns a Finder. Every request of the client has a time-out.
func New(client dynamic.Interface) *Finder { return &Finder{client: client} }

// Children implements part of member.Viewer.
func (f *Finder) Children(ctx context.Context, owners []member.Owner) member.Children {
	s := &search{ctx: ctx, client: f.client, lists: map[place]map[types.UID][]listed{}, granted: map[string]granted.Rules{}}
	out := member.Children{Of: map[types.UID][]member.Child{}}
	for _, o := range owners {
		if o.Namespace == "" || o.UID == "" {
			continue
		}
		if found := s.children(o, deepest); len(found) > 0 {
			out.Of[o.UID] = found
		}
	}
	if s.found > mostChildren {
		s.note("more than %d children: the rest is not shown", mostChildren)
	}
	slices.Sort(s.notes)
	out.Notes = slices.Compact(s.notes)
	return out
}

// search is one call: every list is asked for once.
type search struct {
	ctx     context.Context
	client  dynamic.Interface
	lists   map[place]map[types.UID][]listed
	granted map[string]granted.Rules
	found   int
	notes   []string
}

func (s *search) note(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

func (s *search) children(o member.Owner, depth int) []member.Child {
	kinds, known := below[o.Kind]
	if !known {
		kinds = workloads
	}
	var out []member.Child
	for _, resource := range kinds {
		for _, found := range s.list(place{resource, o.Namespace})[o.UID] {
			if s.found++; s.found > mostChildren || depth == 0 {
				return out
			}
			c := found.child
			kind := schema.GroupKind{Group: c.Group, Kind: c.Kind}
			c.Children = s.children(member.Owner{Kind: kind, Namespace: o.Namespace, UID: found.uid}, depth-1)
			out = append(out, c)
		}
	}
	return out
}
