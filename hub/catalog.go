package hub

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hanse-dev/hanse/hub/catalog"
	"github.com/hanse-dev/hanse/hub/report"
	"github.com/hanse-dev/hanse/hub/templates"
	"github.com/hanse-dev/hanse/member/health"
)

// conventions are how the statuses of kinds are read, by the hub's definitions. The hub is asked, once for all members:
// a path that a member's objects do not have says nothing of them.
type conventions struct{ *catalog.Catalog }

// of answers from memory: those of a kind that was never asked about are empty.
func (c conventions) of(gvk schema.GroupVersionKind) health.Conventions {
	v, err := c.Known(gvk.GroupKind()).Version(gvk.Version)
	if err != nil {
		return health.Conventions{}
	}
	return v.Conventions
}

// learn asks the hub if its definition is not known. If it cannot be read, less is known of how an object fares.
func (c conventions) learn(ctx context.Context, gvk schema.GroupVersionKind) health.Conventions {
	if _, err := c.Get(ctx, gvk.GroupKind()); err != nil {
		return health.Conventions{}
	}
	return c.of(gvk)
}

// scalePath is where the definition of a kind has the replicas of its scale subresource; empty if there are none, or
// the definition cannot be read.
func scalePath(c *catalog.Catalog) func(context.Context, schema.GroupKind) string {
	return func(ctx context.Context, kind schema.GroupKind) string {
		d, err := c.Get(ctx, kind)
		if err != nil {
			return ""
		}
		return d.ScalePath()
	}
}

// followDefinitions makes a changed definition count at once: statuses are merged by the new schema, and copies are
// read by the new conventions.
func followDefinitions(c *catalog.Catalog, store *templates.Store, reporter *report.Reporter, f *fleet) {
	c.OnChange(func(kind schema.GroupKind, before, after *catalog.Definition) {
		for _, id := range store.List(kind) {
			reporter.WakeObject(id)
		}
		if !equality.Semantic.DeepEqual(conventionsOf(before), conventionsOf(after)) {
			f.readAnew(kind)
		}
	})
}

func conventionsOf(d *catalog.Definition) map[string]health.Conventions {
	out := map[string]health.Conventions{}
	if d != nil {
		for _, v := range d.Versions {
			out[v.Name] = v.Conventions
		}
	}
	return out
}
