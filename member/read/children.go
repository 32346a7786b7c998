package read

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/hanse-dev/hanse/member"
)

var (
	deployments  = apps("deployments")
	replicaSets  = apps("replicasets")
	statefulSets = apps("statefulsets")
	daemonSets   = apps("daemonsets")
	jobs         = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	cronJobs     = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "cronjobs"}

	// below maps a built-in kind to the kinds of its children, which Kubernetes' controllers create. For an object of any
	// other kind, the search looks for children of each kind in the list workloads.
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
	// maxChildren is the maximum number of children of all owners together. maxChildDepth is the maximum depth of the
	// search: children, their children, and so on.
	maxChildren   = 1000
	maxChildDepth = 5
)

// Finder finds children on one member. It keeps no state.
type Finder struct{ client dynamic.Interface }

// NewFinder returns a Finder. Every request of the client has a timeout.
func NewFinder(client dynamic.Interface) *Finder { return &Finder{client: client} }

// Rights returns the hub's rights on the member in a namespace; see the function Rights.
func (f *Finder) Rights(ctx context.Context, namespace string) (string, error) {
	return Rights(ctx, f.client, namespace)
}

// Children finds the children of each owner. It implements a method of member.Viewer.
func (f *Finder) Children(ctx context.Context, owners []member.Owner) member.Children {
	s := &search{ctx: ctx, client: f.client, lists: map[place]map[types.UID][]listed{}, granted: map[string]Rules{}}
	out := member.Children{Of: map[types.UID][]member.Child{}}
	for _, o := range owners {
		if o.Namespace == "" || o.UID == "" {
			continue
		}
		if found := s.children(o, maxChildDepth); len(found) > 0 {
			out.Of[o.UID] = found
		}
	}
	if s.found > maxChildren {
		s.note("more than %d children: the rest is not shown", maxChildren)
	}
	slices.Sort(s.notes)
	out.Notes = slices.Compact(s.notes)
	return out
}

// search is the state of one call of Children. It lists each kind in each namespace only once.
type search struct {
	ctx     context.Context
	client  dynamic.Interface
	lists   map[place]map[types.UID][]listed
	granted map[string]Rules
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
			if s.found++; s.found > maxChildren || depth == 0 {
				return out
			}
			c := found.child
			kind := schema.GroupKind{Group: c.Group, Kind: c.Kind}
			c.Children = s.children(member.Owner{Kind: kind, Namespace: o.Namespace, UID: c.UID}, depth-1)
			out = append(out, c)
		}
	}
	return out
}
