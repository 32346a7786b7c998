package decide

import (
	"cmp"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// SetView shows the state of a bundle from the side of its objects.
type SetView struct {
	spec  *hubv1.SetRolloutSpec
	lists map[string]SetList
	inUse []int64
	leads hubv1.ObjectIdentity
}

// ViewSet returns the view of a SetRollout. lists has the lists of the revisions that are in use, by digest.
func ViewSet(spec *hubv1.SetRolloutSpec, lists map[string]SetList) *SetView {
	v := &SetView{spec: spec, lists: lists, inUse: SetInUse(spec)}
	v.leads = v.leader()
	return v
}

// ContentsOf returns the contents of an object in the revisions of a bundle that are in use. lists has the lists of
// these revisions, by digest.
func ContentsOf(spec *hubv1.SetRolloutSpec, lists map[string]SetList, id hubv1.ObjectIdentity) []SetContent {
	return (&SetView{spec: spec, lists: lists, inUse: SetInUse(spec)}).Contents(id)
}

// Contents returns the contents of an object in the revisions that are in use.
func (v *SetView) Contents(id hubv1.ObjectIdentity) []SetContent {
	var out []SetContent
	for _, n := range v.inUse {
		r := v.spec.Revision(n)
		part, has := v.lists[r.List][id]
		if !has {
			continue
		}
		rules := v.rules(id, r)
		i := slices.IndexFunc(out, func(c SetContent) bool { return c.Part == part && c.Rules == rules })
		if i < 0 {
			out = append(out, SetContent{Part: part, Rules: rules, Time: r.Time})
			i = len(out) - 1
		}
		out[i].Numbers = append(out[i].Numbers, n)
	}
	return out
}

// rules returns the digest of the override rules of an object in a revision. The rules of a revision do not name an
// object of an earlier list that a rollback brings back. The object then has its rules of another revision.
func (v *SetView) rules(id hubv1.ObjectIdentity, r *hubv1.SetRevision) string {
	if rules, ok := v.lists[r.Policies][id]; ok {
		return rules
	}
	for _, n := range slices.Backward(v.inUse) {
		if rules, ok := v.lists[v.spec.Revision(n).Policies][id]; ok {
			return rules
		}
	}
	return ""
}

// HeldParts returns the contents of an object that clusters shall hold, without duplicates. Clusters hold
// CustomResourceDefinitions of a later revision after a rollback. lists has the lists of the revisions in use.
func HeldParts(spec *hubv1.SetRolloutSpec, lists map[string]SetList, id hubv1.ObjectIdentity) []string {
	v, parts := &SetView{spec: spec, lists: lists}, map[string]bool{}
	for _, c := range spec.Clusters {
		holds := c.Revision
		if NoRollback(id) && v.has(c.Definitions, id) {
			holds = c.Definitions
		}
		if v.has(holds, id) {
			parts[lists[spec.Revision(holds).List][id]] = true
		}
	}
	return slices.Sorted(maps.Keys(parts))
}

// has reports whether a revision has the object.
func (v *SetView) has(revision int64, id hubv1.ObjectIdentity) bool {
	r := v.spec.Revision(revision)
	if r == nil {
		return false
	}
	_, has := v.lists[r.List][id]
	return has
}

// Of returns the part of the decision on the bundle that concerns one object. The SetRollout must have a rollout.
func (v *SetView) Of(id hubv1.ObjectIdentity) *Set {
	set := &Set{Contents: v.Contents(id), Holds: map[string]int64{}, Since: map[string]*metav1.Time{}, Rollout: *v.spec.Rollout, Leads: v.leads == id}
	_, newest := v.lists[v.spec.Newest.List][id]
	set.Dropped = !newest
	for _, c := range v.spec.Clusters {
		set.Holds[c.Name], set.Since[c.Name] = 0, c.Since
		switch {
		case NoRollback(id) && v.has(c.Definitions, id):
			set.Holds[c.Name] = c.Definitions
		case v.has(c.Revision, id):
			set.Holds[c.Name] = c.Revision
		}
	}
	return set
}

// leader returns the object of the bundle whose binding shows the rollout of the bundle. It is the first object that
// the change changes. If there is none, it is the first one that has a copy already, or else the first one.
func (v *SetView) leader() hubv1.ObjectIdentity {
	var first, had hubv1.ObjectIdentity
	if v.spec.Rollout == nil {
		return first
	}
	newest, before := v.spec.Revision(v.spec.Rollout.Newest), v.spec.Revision(v.spec.Rollout.Passed)
	if newest == nil {
		return first
	}
	for _, id := range v.lists[newest.List].Objects() {
		first = cmp.Or(first, id)
		if before == nil {
			continue
		}
		was, known := v.lists[before.List][id]
		if known && was != v.lists[newest.List][id] {
			return id
		}
		if known {
			had = cmp.Or(had, id)
		}
	}
	return cmp.Or(had, first)
}

// BindingOfSet returns the state of a SetRollout in the form of a binding: its revisions, its rollout, and the revision
// of each cluster.
func BindingOfSet(spec *hubv1.SetRolloutSpec) *hubv1.BindingSpec {
	out := &hubv1.BindingSpec{PlacementRef: spec.PlacementRef, Revisions: toObjectRevisions(spec.Revisions), Rollout: spec.Rollout}
	for _, c := range spec.Clusters {
		out.Clusters = append(out.Clusters, hubv1.BindingTarget{Name: c.Name, State: hubv1.TargetPresent, Revision: c.Revision, RevisionTime: c.Since})
	}
	return out
}

func toObjectRevisions(in []hubv1.SetRevision) []hubv1.ObjectRevision {
	var out []hubv1.ObjectRevision
	for _, r := range in {
		out = append(out, hubv1.ObjectRevision{
			Number: r.Number, Generation: r.Generation, Template: r.List, Policies: r.Policies, Time: r.Time, Passed: r.Passed, SupersededBy: r.SupersededBy, TemplateOf: r.ListOf,
		})
	}
	return out
}

func toSetRevisions(in []hubv1.ObjectRevision) []hubv1.SetRevision {
	var out []hubv1.SetRevision
	for _, r := range in {
		out = append(out, hubv1.SetRevision{
			Number: r.Number, Generation: r.Generation, List: r.Template, Policies: r.Policies, Time: r.Time, Passed: r.Passed, SupersededBy: r.SupersededBy, ListOf: r.TemplateOf,
		})
	}
	return out
}
