package decide

import (
	"cmp"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/canonical"
)

// maxAdopted is the maximum number of different states of a bundle on its clusters from which the hub begins to decide
// on the bundle as a whole.
const maxAdopted = 8

// Adoption contains all inputs of AdoptSet. Its Spec has no rollout, and its Lists have the list of Spec.Newest.
type Adoption struct {
	SetInput
	Key canonical.Key
	// Rules are the newest override rules of the objects in Spec.Newest.
	Rules SetList
	// Part returns the digest of a stored content of an object for lists, and stores the content for them. template is the
	// digest by which the binding of the object names the content.
	Part func(id hubv1.ObjectIdentity, template string) (string, error)
}

// AdoptSet begins the decision on a bundle as a whole. The revisions of the bundle are what the clusters hold at
// present, so that nothing changes on them. It returns no spec while the rollout of an object is still in progress,
// while a removal waits, or if the clusters hold too many different states: each object then still follows its own
// rollout. It does not wait for a rollout that ended with a lost SetRollout. It also returns the lists that must be
// stored before the spec.
func AdoptSet(in Adoption) (*hubv1.SetRolloutSpec, []Payload, error) {
	a := adoption{Adoption: in, phases: map[hubv1.RolloutPhase]bool{}, held: map[string]vector{}}
	if settled, err := a.gather(); err != nil || !settled {
		return nil, nil, err
	}
	return a.begin()
}

// content is the content and the override rules of one object.
type content struct{ part, rules string }

// vector has the contents of the objects of a bundle on one cluster.
type vector map[hubv1.ObjectIdentity]content

type adoption struct {
	Adoption
	phases  map[hubv1.RolloutPhase]bool
	pending bool // the first revision of an object is not healthy on all clusters yet
	proven  bool
	failed  bool
	lost    bool // an earlier SetRollout is lost
	began   metav1.Time
	highest int64
	// desired is what all clusters shall hold, and held what each of them holds.
	desired vector
	held    map[string]vector
}

// gather reads what the clusters hold from the bindings. It returns false if the state must settle first.
func (a *adoption) gather() (settled bool, err error) {
	a.desired, a.proven = vector{}, true
	newest := a.Lists[a.Spec.Newest.List]
	for id, part := range newest {
		a.desired[id] = content{part, a.Rules[id]}
	}
	for id, o := range a.Objects {
		spec := o.spec()
		a.lost = a.lost || o.Followed
		if _, has := newest[id]; !has && len(spec.Clusters) > 0 && !o.Followed {
			return false, nil // its removal is not carried out yet
		}
		if settled, err := a.object(id, o); err != nil || !settled {
			return settled, err
		}
	}
	if a.lost {
		a.resume()
	}
	for _, held := range a.held {
		if a.lost {
			break // the SetRollout, and not the placement, has decided which cluster has an object
		}
		for id, of := range a.desired {
			if _, has := held[id]; !has {
				held[id] = of // the placement does not want the object there, or the cluster does not serve its kind
			}
		}
	}
	return true, nil
}

// resume makes the content of the cluster whose turn is last the content that all clusters shall hold. A change that
// was in progress when the SetRollout was lost thus begins again at the first wave.
func (a *adoption) resume() {
	policy, last, at := a.Placement.PlacementSpec().Rollout, "", -1
	for _, name := range slices.Sorted(maps.Keys(a.held)) {
		if w := WaveOf(policy, Facts{Clusters: a.Clusters}.Cluster(name)); w >= at {
			last, at = name, w
		}
	}
	if last != "" {
		a.desired = maps.Clone(a.held[last])
	}
}

func (a *adoption) object(id hubv1.ObjectIdentity, o SetObject) (settled bool, err error) {
	spec := o.spec()
	if r := spec.Rollout; r != nil && !o.Followed {
		first := r.Wave == "" && r.Phase == hubv1.RolloutProgressing
		if !first && r.Phase != hubv1.RolloutComplete && r.Phase != hubv1.RolloutRolledBack {
			return false, nil
		}
		a.phases[r.Phase] = true
		a.pending = a.pending || first
		a.proven = a.proven && (r.Passed == r.Revision)
		a.failed = a.failed || r.Failed != 0
		if a.began.Before(&r.Began) {
			a.began = r.Began
		}
		if a.desired[id], err = a.content(id, spec, r.Revision); err != nil {
			return false, err
		}
	} else if len(spec.Clusters) > 0 && !o.Followed {
		a.proven = false
	}
	for _, r := range spec.Revisions {
		a.highest = max(a.highest, r.Number)
	}
	for _, e := range spec.Clusters {
		switch {
		case e.State == hubv1.TargetAbsent:
			continue
		case e.Removal != nil:
			return false, nil
		case a.held[e.Name] == nil:
			a.held[e.Name] = vector{}
		}
		if a.held[e.Name][id], err = a.content(id, spec, e.Revision); err != nil {
			return false, err
		}
	}
	return true, nil
}

// content returns the content of a revision of an object. Without a revision, it is the newest content.
func (a *adoption) content(id hubv1.ObjectIdentity, spec *hubv1.BindingSpec, revision int64) (content, error) {
	newest := content{a.Lists[a.Spec.Newest.List][id], a.Rules[id]}
	r := spec.Revision(revision)
	if r == nil {
		return newest, nil
	}
	if newest.part != "" {
		names, err := a.Digests(id, newest.part)
		if err != nil {
			return content{}, err
		}
		if slices.Contains(names, r.Template) {
			return content{newest.part, r.Policies}, nil
		}
	}
	part, err := a.Part(id, r.Template)
	return content{part, r.Policies}, err
}

// begin returns the first state of the SetRollout. Its revisions have higher numbers than those in the bindings.
func (a *adoption) begin() (*hubv1.SetRolloutSpec, []Payload, error) {
	distinct, clusters := a.distinct()
	behind, returned := len(distinct) > 1, a.phases[hubv1.RolloutRolledBack]
	if behind && (returned || a.pending || !a.proven) || returned && a.pending || len(distinct) > maxAdopted {
		return nil, nil, nil
	}
	slices.Reverse(distinct) // what the clusters shall hold gets the highest number
	now := metav1.NewTime(a.Now).Rfc3339Copy()
	spec := a.Spec.DeepCopy()
	spec.PlacementRef = ReferenceTo(a.Placement)
	var payloads []Payload
	for i, v := range distinct {
		r, lists, err := a.revision(v, a.highest+1+int64(i), now)
		if err != nil {
			return nil, nil, err
		}
		spec.Revisions, payloads = append(spec.Revisions, r), append(payloads, lists...)
	}
	last := &spec.Revisions[len(spec.Revisions)-1]
	for _, name := range slices.Sorted(maps.Keys(clusters)) {
		spec.Clusters = append(spec.Clusters, hubv1.SetCluster{Name: name, Revision: last.Number - int64(clusters[name]), Adopted: true})
	}
	spec.Rollout = &hubv1.BindingRollout{Revision: last.Number, Newest: last.Number, Phase: hubv1.RolloutComplete, Since: now, Began: cmp.Or(a.began, now)}
	if a.pending || !a.proven && !returned {
		spec.Rollout.Phase, spec.Rollout.Start = hubv1.RolloutProgressing, hubv1.StartFirst
	} else {
		spec.Rollout.Passed, last.Passed = last.Number, true
	}
	if returned {
		a.goBack(spec)
	}
	return spec, payloads, nil
}

// distinct returns the different states of the clusters, the desired one first, and the index of each cluster's state.
func (a *adoption) distinct() (states []vector, of map[string]int) {
	states, of = []vector{a.desired}, map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(a.held)) {
		i := slices.IndexFunc(states, func(v vector) bool { return maps.Equal(v, a.held[name]) })
		if i < 0 {
			states, i = append(states, a.held[name]), len(states)
		}
		of[name] = i
	}
	return states, of
}

// goBack makes the newest content of the bundle a revision to which the clusters do not go, because they have returned
// from it.
func (a *adoption) goBack(spec *hubv1.SetRolloutSpec) {
	newest := hubv1.SetRevision{
		Number: spec.Rollout.Revision + 1, Generation: spec.Newest.Generation, List: spec.Newest.List, Policies: a.Policies, Time: spec.Newest.Time,
	}
	spec.Revisions = append(spec.Revisions, newest)
	spec.Rollout.Newest, spec.Rollout.Phase = newest.Number, hubv1.RolloutRolledBack
	if a.failed {
		spec.Rollout.Failed = newest.Number
	}
}

// revision returns a revision of the bundle with the given contents, and its lists in their stored form.
func (a *adoption) revision(v vector, number int64, now metav1.Time) (hubv1.SetRevision, []Payload, error) {
	parts, rules := SetList{}, SetList{}
	for id, c := range v {
		parts[id], rules[id] = c.part, c.rules
	}
	r := hubv1.SetRevision{Number: number, Generation: a.Spec.Newest.Generation, Time: now}
	list, err := parts.Pack(a.Key)
	if err != nil {
		return r, nil, err
	}
	policies, err := rules.Pack(a.Key)
	r.List, r.Policies = list.Digest, policies.Digest
	return r, []Payload{list, policies}, err
}
