package decide

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/canonical"
	"github.com/hanse-dev/hanse/overrides"
	"github.com/hanse-dev/hanse/placement"
	"github.com/hanse-dev/hanse/placement/rollout"
)

// Set is the part of the decision on a bundle as a whole (hubv1.SetRollout) that concerns one object of the bundle. The
// object follows it: the decision on the object chooses clusters, and Set says which content each of them gets.
type Set struct {
	// Lost is true if the SetRollout is lost, and the binding has followed it. Each cluster then keeps its content, until
	// the hub decides on the bundle as a whole again. All other fields are empty.
	Lost bool
	// Dropped is true if the bundle no longer has the object. If the hub no longer decides on the bundle as a whole, each
	// cluster keeps its content until the object is deleted.
	Dropped bool
	// Contents are the contents of the object in the revisions of the bundle that are in use, sorted by Numbers. A
	// revision without the object is missing.
	Contents []SetContent
	// Holds has the revision of the bundle that each cluster shall hold, or 0 if that revision does not have the object. A
	// cluster that is not in the map has no revision of the bundle yet.
	Holds map[string]int64
	// Since has the time at which each cluster got its revision. It may be missing.
	Since map[string]*metav1.Time
	// Rollout is the state of the rollout of the bundle.
	Rollout hubv1.BindingRollout
	// Leads is true for the one object of the bundle whose binding shows the state of the rollout.
	Leads bool
	// Read returns a stored content of the object, and ReadRules stored override rules. The results are shared and must
	// not be changed.
	Read      func(part string) (*unstructured.Unstructured, error)
	ReadRules func(digest string) (*HeldRules, error)
}

// keeps reports whether each cluster keeps its content. staged is true if the placement has a rollout.
func (s *Set) keeps(staged bool) bool {
	return s != nil && (s.Lost && staged || s.Dropped && (!staged || s.Holds == nil))
}

// SetContent is one content of an object of a bundle.
type SetContent struct {
	// Numbers are the revisions of the bundle with this content, sorted.
	Numbers []int64
	// Part is the digest of the object in the list of the revision, and Rules the digest of its override rules.
	Part, Rules string
	Time        metav1.Time
}

// number returns the number of the object's revision that belongs to a revision of the bundle. of is the result of
// revised. The result is 0 if the revision of the bundle does not have the object.
func (s *Set) number(of []hubv1.ObjectRevision, revision int64) int64 {
	for i, c := range s.Contents {
		if slices.Contains(c.Numbers, revision) {
			return of[i].Number
		}
	}
	return 0
}

// Known returns the revision of an object with the given content, if its binding lists it. A binding that followed its
// own rollout before may list the content under another number than the bundle. digests are the digests of the content
// by which the binding may name it; they are not needed if the binding lists a number of the content.
func (c SetContent) Known(spec *hubv1.BindingSpec, digests func() ([]string, error)) (*hubv1.ObjectRevision, error) {
	for _, n := range c.Numbers {
		if r := spec.Revision(n); r != nil {
			return r, nil
		}
	}
	if len(spec.Revisions) == 0 {
		return nil, nil
	}
	names, err := digests()
	if err != nil {
		return nil, err
	}
	for i := range spec.Revisions {
		if r := &spec.Revisions[i]; r.Policies == c.Rules && slices.Contains(names, r.Template) {
			return r, nil
		}
	}
	return nil, nil
}

// revised returns the revision of the object for each of the Contents of its Set, and the parts of these revisions that
// are not stored yet.
func (in input) revised(winner hubv1.PlacementObject, division *hubv1.Division) (out []hubv1.ObjectRevision, payloads []Payload, err error) {
	for _, c := range in.Set.Contents {
		r, more, err := in.revision(c, winner, division)
		if err != nil {
			return nil, nil, err
		}
		out, payloads = append(out, r), append(payloads, more...)
	}
	return out, payloads, nil
}

// revision returns the revision of the object with one content, and the parts of it that are not stored yet.
func (in input) revision(c SetContent, winner hubv1.PlacementObject, division *hubv1.Division) (r hubv1.ObjectRevision, missing []Payload, err error) {
	var inputs Inputs
	read := func() ([]string, error) {
		template, err := in.Set.Read(c.Part)
		if err != nil {
			return nil, err
		}
		if inputs, err = InputsOf(template, in.selectable(), in.Facts.Overrides, winner.PlacementSpec(), in.Staging.Denied); err != nil {
			return nil, err
		}
		return inputs.names(in.Staging.Key, division), nil
	}
	known, err := c.Known(in.Spec(), read)
	if err != nil {
		return r, nil, err
	}
	if lost := in.Staging.Lost; known != nil && (lost == nil || !lost(known.Template) && !lost(known.Policies)) {
		return *known, nil, nil
	}
	names, err := read()
	if err != nil {
		return r, nil, err
	}
	r = hubv1.ObjectRevision{Number: c.Numbers[0], Generation: in.Object.Template.GetGeneration(), Template: names[0], Policies: c.Rules, Time: c.Time}
	if known != nil {
		r = *known
	}
	if digest(in.Staging.Key, inputs.Rules) != c.Rules {
		earlier, err := in.Set.ReadRules(c.Rules)
		if err != nil {
			return r, nil, err
		}
		inputs.Rules = earlier.Rules
	}
	missing, err = in.payloads(inputs, r)
	return r, missing, err
}

// names returns the digests by which a revision may name the template: the present one, and that of a hub which sent
// all fields.
func (i Inputs) names(key canonical.Key, division *hubv1.Division) []string {
	return []string{TemplateDigest(key, i.Template, division), TemplateDigest(key, i.Whole, division)}
}

// NamesOf returns the digests by which the revisions of an object may name a content of the object. denied are prefixes
// of labels and annotations that are never copied to members.
func NamesOf(key canonical.Key, template *unstructured.Unstructured, denied []string, division *hubv1.Division) ([]string, error) {
	prepared, err := overrides.Prepare(template, denied)
	if err != nil {
		return nil, err
	}
	return Inputs{Template: prepared.Manifest(), Whole: prepared.Whole()}.names(key, division), nil
}

// followSet writes into each entry of spec.clusters the revision of the object that belongs to the revision of the
// bundle on this cluster.
func (in input) followSet(p *Plan, winner hubv1.PlacementObject) error {
	revisions, payloads, err := in.revised(winner, p.Spec.Division)
	if err != nil {
		return err
	}
	p.Payloads = payloads
	for i := range p.Spec.Clusters {
		e := &p.Spec.Clusters[i]
		before := in.Spec().Target(e.Name)
		e.KeptHealth, e.Revision, e.RevisionTime = "", 0, nil
		if e.State == hubv1.TargetAbsent {
			continue
		}
		if e.Revision = in.Set.number(revisions, in.Set.Holds[e.Name]); e.Revision == 0 && before != nil {
			e.Revision = before.Revision // it is evicted, or its removal waits for an uncached read
		}
		if e.RevisionTime = in.Set.Since[e.Name]; before != nil && before.Revision == e.Revision {
			e.RevisionTime = before.RevisionTime
		}
	}
	p.Spec.Revisions = in.inUse(p.Spec, revisions)
	p.Spec.Rollout = in.shown(revisions)
	in.keepListed(p.Spec)
	return nil
}

// keepListed leaves revisions that are no longer in use in the binding until something else in it changes. Otherwise
// the end of each change would write the bindings of all changed objects once more.
func (in input) keepListed(spec *hubv1.BindingSpec) {
	before := in.Spec()
	for _, r := range spec.Revisions {
		if known := before.Revision(r.Number); known == nil || *known != r {
			return
		}
	}
	same := *spec
	if same.Revisions = before.Revisions; equality.Semantic.DeepEqual(before, &same) {
		spec.Revisions = before.Revisions
	}
}

// inUse returns the revisions that the binding lists, sorted by number: those of the bundle that are in use, and those
// that entries still name.
func (in input) inUse(spec *hubv1.BindingSpec, revisions []hubv1.ObjectRevision) []hubv1.ObjectRevision {
	out := slices.Clone(revisions)
	for _, e := range spec.Clusters {
		known := slices.ContainsFunc(out, func(r hubv1.ObjectRevision) bool { return r.Number == e.Revision })
		if held := in.Spec().Revision(e.Revision); !known && held != nil {
			out = append(out, *held)
		}
	}
	slices.SortFunc(out, func(a, b hubv1.ObjectRevision) int { return int(a.Number - b.Number) })
	return slices.CompactFunc(out, func(a, b hubv1.ObjectRevision) bool { return a.Number == b.Number })
}

// shown returns the state of the rollout that the binding shows. While a change is in progress or has not passed, the
// binding of the object that leads shows the rollout of the bundle. All other bindings show a rollout that has ended,
// and change only if the content of their object changes. Otherwise each step of a bundle would write the bindings of
// all its objects.
func (in input) shown(revisions []hubv1.ObjectRevision) *hubv1.BindingRollout {
	number := func(of int64) int64 {
		if n := in.Set.number(revisions, of); n != 0 || of == 0 || len(revisions) == 0 {
			return n
		}
		return revisions[len(revisions)-1].Number // the revision of the bundle does not have the object
	}
	of := in.Set.Rollout
	r := of
	r.Revision, r.Newest, r.Passed = number(of.Revision), number(of.Newest), number(of.Passed)
	r.Failed, r.RolledBack = number(of.Failed), number(of.RolledBack)
	if r.Revision == 0 {
		return nil
	}
	if atRest := of.Phase == hubv1.RolloutComplete && of.Passed == of.Newest; in.Set.Leads && !atRest {
		return &r
	}
	r = hubv1.BindingRollout{Revision: r.Revision, Newest: r.Newest, Passed: r.Revision, Phase: hubv1.RolloutComplete, Since: of.Began, Began: of.Began}
	if r.Revision != r.Newest {
		r.Phase = hubv1.RolloutRolledBack
	}
	before := in.Spec().Rollout
	if before != nil && before.Wave == "" && before.Revision == r.Revision && before.Newest == r.Newest && before.Passed == r.Passed && before.Phase == r.Phase {
		return before
	}
	return &r
}

// inTurn returns the decision without the clusters whose revision of the bundle does not have the object, and without
// new clusters that have no revision of the bundle yet. It returns a decision on an object outside bundles unchanged.
func (in input) inTurn(d placement.Decision) placement.Decision {
	if in.Set == nil {
		return d
	}
	out := d
	out.Targets, out.Withdraw, out.Rejected = nil, slices.Clone(d.Withdraw), slices.Clone(d.Rejected)
	for _, t := range d.Targets {
		holds, listed := in.Set.Holds[t.Cluster]
		e := in.Spec().Target(t.Cluster)
		has := e != nil && e.State != hubv1.TargetAbsent
		r := placement.Rejection{Cluster: t.Cluster, Reason: hubv1.ReasonNotInRevision}
		switch {
		case holds != 0, !listed && has:
			out.Targets = append(out.Targets, t)
		case !listed:
			r.Message = "the bundle has not reached the cluster yet"
			out.Rejected = append(out.Rejected, r)
		case has:
			r.Message = "the revision of the bundle on the cluster does not have the object"
			out.Withdraw = append(out.Withdraw, r)
		default:
			r.Message = "the revision of the bundle on the cluster does not have the object"
			out.Rejected = append(out.Rejected, r)
		}
	}
	return out
}

// chosen returns the clusters on which the placement wants the object, or still keeps it, whatever revision of the
// bundle they hold.
func (in input) chosen(d placement.Decision) []string {
	var out []string
	for _, t := range d.Targets {
		out = append(out, t.Cluster)
	}
	for _, r := range d.Evict {
		out = append(out, r.Cluster)
	}
	slices.Sort(out)
	return out
}

// removalOf returns the removal policy for a copy on a cluster whose revision of the bundle does not have the object.
// It is the policy for deleted objects. Claims for storage are kept, because a return to the revision with the object
// brings back no data.
func removalOf(id hubv1.ObjectIdentity, deletion hubv1.DeletionPolicy) hubv1.RemovalPolicy {
	if id.Group == "" && id.Kind == "PersistentVolumeClaim" && deletion.WhenDeleted == "" {
		return hubv1.RemovalOrphan
	}
	policy, _ := placement.DefaultRemoval(id.GroupKind(), deletion)
	return policy
}

// nameOfSet returns the names of a placement and a bundle for commands in messages.
func nameOfSet(winner hubv1.PlacementObject, of hubv1.BundleReference) rollout.Names {
	names := rollout.NamesOf(winner)
	names.Bundle, names.Object = of.String(), fmt.Sprintf("%s %s", of.Kind, of.Name)
	names.ObjectNamespace, names.Whole = of.Namespace, true
	return names
}
