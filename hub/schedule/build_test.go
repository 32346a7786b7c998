package schedule

import (
	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/placement/decide/decidetest"
)

var (
	template    = decidetest.Template
	cluster     = decidetest.Cluster
	policy      = decidetest.Policy
	named       = decidetest.Named
	labelled    = decidetest.Labelled
	absent      = decidetest.Absent
	bound       = decidetest.Bound
	lost        = decidetest.Lost
	evictedBy   = decidetest.EvictedBy
	entriesOf   = decidetest.EntriesOf
	saying      = decidetest.WithRows
	failingOver = decidetest.FailingOver
	dividing    = decidetest.Dividing
	cpus        = decidetest.Cpus
	share       = decidetest.Share
	divided     = decidetest.Divided
	shares      = decidetest.Shares
	only        = decidetest.Only
	excluding   = decidetest.Excluding
	naming      = decidetest.Naming
	now         = decidetest.Now
	object      = decidetest.Object
)

func present(cluster string) hubv1.BindingTarget {
	return hubv1.BindingTarget{Name: cluster, State: hubv1.TargetPresent}
}

// inputFor returns the input for an object with uid "a".
func inputFor(b *hubv1.ResourceBinding, placements []hubv1.PlacementObject, clusters []*hubv1.MemberCluster) decide.Input {
	in := decide.Input{
		Object: decide.Object{ID: object, Template: template("a")}, Now: now,
		Facts: decide.Facts{Placements: placements, Clusters: clusters, NamespaceRead: true},
	}
	if b != nil {
		in.Binding = b
	}
	return in
}
