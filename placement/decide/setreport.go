package decide

import (
	"cmp"
	"slices"
	"time"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/operator"
	"github.com/hanse-dev/hanse/placement/rollout"
)

// SetReport is the last report of a cluster about its revision of a bundle.
type SetReport struct {
	rollout.Row
	// Objects is the number of objects that the cluster shall hold. Missing are those that it has not applied yet at the
	// wanted revision, sorted.
	Objects int
	Missing []SetMissing
	// Leaving are the objects that shall leave the cluster and are still there, sorted.
	Leaving []hubv1.ObjectIdentity
}

// SetMissing is an object of a bundle that a cluster has not applied yet at the wanted revision.
type SetMissing struct {
	Object          hubv1.ObjectIdentity
	Reason, Message string
}

// ReportOfSet returns the report of a cluster about its revision of a bundle. bindings are those of the objects of the
// bundle. lists has the lists of the revisions that are in use, by digest. If it is nil, a binding that does not follow
// the SetRollout yet counts as if it did.
func ReportOfSet(spec *hubv1.SetRolloutSpec, lists map[string]SetList, cluster string, bindings []hubv1.BindingObject) SetReport {
	var out SetReport
	entry := spec.Cluster(cluster)
	if entry == nil {
		return out
	}
	var view *SetView
	if lists != nil {
		view = ViewSet(spec, lists)
	}
	var parts []rollout.Part
	for _, b := range bindings {
		id, target, row := hubv1.ObjectOf(b), b.BindingSpec().Target(cluster), b.BindingStatus().Row(cluster)
		switch {
		case target == nil:
			continue
		case target.State == hubv1.TargetAbsent:
			out.Leaving = append(out.Leaving, id)
			continue
		}
		p := rollout.Part{Object: id.String(), Needed: operator.Needs(id), Wants: target.Revision, Row: rowOf(row, target.Revision, false)}
		if view != nil && view.lags(id, target.Revision, *entry) {
			p.Wants = -1
		}
		out.Objects++
		if p.Revision != p.Wants || !p.Applied {
			out.Missing = append(out.Missing, SetMissing{id, p.Reason, p.Message})
		}
		if entry.Definitions == 0 || !NoRollback(id) {
			parts = append(parts, p)
		}
	}
	slices.SortFunc(out.Missing, func(a, b SetMissing) int { return byIdentity(a.Object, b.Object) })
	slices.SortFunc(out.Leaving, byIdentity)
	since := time.Time{}
	if entry.Since != nil {
		since = entry.Since.Time
	}
	out.Row = rollout.Fold(entry.Revision, since, parts)
	return out
}

// lags reports whether the binding of an object still has to follow the SetRollout on a cluster: its entry has a
// revision of the object that belongs only to other revisions of the bundle.
func (v *SetView) lags(id hubv1.ObjectIdentity, number int64, c hubv1.SetCluster) bool {
	holds := c.Revision
	if NoRollback(id) && v.has(c.Definitions, id) {
		holds = c.Definitions
	}
	for _, content := range v.Contents(id) {
		if slices.Contains(content.Numbers, number) {
			return !slices.Contains(content.Numbers, holds)
		}
	}
	return false
}

// SetChange is the difference between the lists of two revisions of a bundle. Each list is sorted.
type SetChange struct {
	Added, Changed, Removed []hubv1.ObjectIdentity
}

// ChangeOfSet returns what a cluster gets and loses that goes from one list of objects to another.
func ChangeOfSet(from, to SetList) SetChange {
	var out SetChange
	for _, id := range to.Objects() {
		switch before, had := from[id]; {
		case !had:
			out.Added = append(out.Added, id)
		case before != to[id]:
			out.Changed = append(out.Changed, id)
		}
	}
	for _, id := range from.Objects() {
		if _, stays := to[id]; !stays {
			out.Removed = append(out.Removed, id)
		}
	}
	return out
}

// LeadOfSet returns the binding that shows the rollout of a bundle while a change of the bundle is in progress or has
// failed. It returns nil if no binding does. bindings are those of the objects of the bundle.
func LeadOfSet(bindings []hubv1.BindingObject) hubv1.BindingObject {
	return slices.MaxFunc(append([]hubv1.BindingObject{nil}, bindings...), func(a, b hubv1.BindingObject) int {
		return cmp.Compare(shows(a), shows(b))
	})
}

// shows orders bindings of a bundle by how much they show of its rollout: 0 for one that shows only its end.
func shows(b hubv1.BindingObject) int {
	if b == nil || b.BindingSpec().Rollout == nil {
		return 0
	}
	switch r := b.BindingSpec().Rollout; {
	case r.Wave != "" || r.Phase != hubv1.RolloutComplete && r.Phase != hubv1.RolloutRolledBack:
		return 2
	case r.Failed != 0 || r.RolledBack != 0 || r.Message != "":
		return 1
	}
	return 0
}
