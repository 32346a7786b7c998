package console

import (
	"cmp"
	"context"
	"slices"
	"time"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view"
)

// maxProblems is the maximum number of listed problems of each kind.
const maxProblems = 10

// fleetBody has the data for the template of the first page: regions with their clusters, and the current problems.
type fleetBody struct {
	Regions  []regionOfClusters
	Clusters int
	Ready    int
	Problems view.Problems
	Now      time.Time
	// Namespace is the only namespace of the page. It is empty if the page shows all namespaces.
	Namespace string
}

// problems has the data for the template "problems", which shows a title and the problems of one kind.
type problems struct {
	Title    string
	Problems []view.Problem
	Now      time.Time
	// Namespace is the only namespace of the page. It is empty if the page shows all namespaces.
	Namespace string
}

// Of returns the data with which the template "problems" shows the given problems below the title.
func (b fleetBody) Of(title string, of []view.Problem) problems {
	return problems{title, of, b.Now, b.Namespace}
}

// regionOfClusters has the clusters of a region. The empty name is for clusters without a region.
type regionOfClusters struct {
	Name     string
	Clusters []view.Cluster
}

func fleetPage(ctx context.Context, v *visit) (*page, error) {
	members, err := v.user.members(ctx)
	if err != nil {
		return nil, err
	}
	objects, found := map[string]int{}, view.NewGatherer(members)
	err = v.user.eachBinding(ctx, v.namespace, func(b hubv1.BindingObject) {
		found.Add(b)
		for _, t := range b.BindingSpec().Clusters {
			objects[t.Name]++
		}
	})
	if err != nil {
		return nil, err
	}
	policies := []func() error{
		func() error { return v.user.eachPolicy(ctx, v.namespace, found.AddPolicy) },
		func() error { return v.user.eachBundle(ctx, v.namespace, found.AddBundle) },
	}
	for _, add := range policies {
		if err := add(); err != nil {
			return nil, err
		}
	}
	body := fleetBody{Problems: found.Worst(maxProblems), Now: v.now, Namespace: v.namespace}
	for _, c := range view.Clusters(members, objects, nil, v.now).Clusters {
		i := slices.IndexFunc(body.Regions, func(r regionOfClusters) bool { return r.Name == c.Region })
		if i < 0 {
			i = len(body.Regions)
			body.Regions = append(body.Regions, regionOfClusters{Name: c.Region})
		}
		body.Regions[i].Clusters = append(body.Regions[i].Clusters, c)
		body.Clusters++
		if c.Live {
			body.Ready++
		}
	}
	slices.SortFunc(body.Regions, func(a, b regionOfClusters) int { return cmp.Compare(a.Name, b.Name) })
	return &page{Title: "Fleet", Nav: "fleet", template: "fleet", Scope: v.scope(), Body: body}, nil
}
