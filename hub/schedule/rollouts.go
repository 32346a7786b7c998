package schedule

import (
	"context"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/scopes"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/placement/rollout"
)

// Revisions stores the contents of revisions: earlier templates and override rules, which clusters keep during a
// rollout.
type Revisions interface {
	// Ensure stores a part of a revision, before a binding names it.
	Ensure(ctx context.Context, p decide.Payload) error
	// Template returns a stored template. It is shared and must not be changed.
	Template(ctx context.Context, digest string) (*unstructured.Unstructured, error)
	// Lost reports whether the part with this digest is known to be stored no more, although a binding names it.
	Lost(digest string) bool
}

// rollouts has the progress of the rollouts of all objects. All decisions share it, because the rollouts of objects
// with the same placement wait for each other.
type rollouts struct {
	mu sync.Mutex
	// version increases with each change of a rollout.
	version uint64
	of      map[decide.Owner]*placementRollouts
	owners  map[key]decide.Owner
}

// placementRollouts are the rollouts of the objects of one placement.
type placementRollouts struct {
	progress map[key]rollout.Progress
	peers    *rollout.Peers // computed from progress on demand
	// waiting has the objects whose rollouts wait for other objects of the placement. moved is true if a rollout of the
	// placement has made progress since the waiting objects were last queued.
	waiting map[key]bool
	moved   bool
}

// peers returns the progress of all objects of a placement, for the rollout of one object, which may have to wait for
// the other objects.
func (r *rollouts) peers(o decide.Owner) rollout.Peers {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.of[o]
	if p == nil {
		return rollout.NewPeers(nil)
	}
	if p.peers == nil {
		made := rollout.NewPeers(slices.Collect(maps.Values(p.progress)))
		p.peers = &made
	}
	return *p.peers
}

// current returns a number that increases with each change of a rollout.
func (r *rollouts) current() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.version
}

// claim records the progress of an object's rollout, and whether the rollout waits for other objects. It records
// nothing and returns false if the rollout begins now, but another rollout has changed since the given version. The
// decision must then be made again, because the other rollout may have begun first.
func (r *rollouts) claim(id key, owner decide.Owner, now *rollout.Progress, waits bool, version uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, known := r.before(id, owner)
	if now == nil {
		if known {
			r.version++
			r.drop(id)
		}
		return true
	}
	if now.Moving && !before.Moving && r.version != version {
		return false
	}
	if !known || before != *now {
		r.version++
		r.set(id, owner, *now)
	}
	if waits {
		r.of[owner].waiting[id] = true
	} else {
		delete(r.of[owner].waiting, id)
	}
	return true
}

// before returns the last recorded progress of an object's rollout. The progress is empty if it was recorded under
// another placement. The result is false if no progress is recorded.
func (r *rollouts) before(id key, owner decide.Owner) (rollout.Progress, bool) {
	last, known := r.owners[id]
	switch {
	case !known:
		return rollout.Progress{}, false
	case last != owner:
		return rollout.Progress{}, true
	}
	return r.of[last].progress[id], true
}

func (r *rollouts) set(id key, owner decide.Owner, now rollout.Progress) {
	if last, known := r.owners[id]; known && last != owner {
		r.drop(id)
	}
	if r.of == nil {
		r.of, r.owners = map[decide.Owner]*placementRollouts{}, map[key]decide.Owner{}
	}
	if r.of[owner] == nil {
		r.of[owner] = &placementRollouts{progress: map[key]rollout.Progress{}, waiting: map[key]bool{}}
	}
	r.owners[id] = owner
	p := r.of[owner]
	p.progress[id], p.peers, p.moved = now, nil, true
}

// drop removes the progress of an object's rollout.
func (r *rollouts) drop(id key) {
	owner := r.owners[id]
	delete(r.owners, id)
	p := r.of[owner]
	delete(p.progress, id)
	delete(p.waiting, id)
	if p.peers, p.moved = nil, true; len(p.progress) == 0 {
		delete(r.of, owner)
	}
}

// released returns the objects that wait for other objects of their placement, for each placement in which a rollout
// has made progress.
func (r *rollouts) released() (ids []key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.of {
		if p.moved {
			p.moved = false
			ids = slices.AppendSeq(ids, maps.Keys(p.waiting))
		}
	}
	return ids
}

// staging returns the inputs of an object's rollout. It returns nil if the hub cannot store revisions, because all
// clusters are then changed at once.
func (s *Scheduler) staging(ctx context.Context, in decide.Input) *decide.Staging {
	if s.opts.Rollouts.Revisions == nil {
		return nil
	}
	return &decide.Staging{
		Key: s.opts.Rollouts.Key, Denied: s.opts.Rollouts.DeniedMetadataPrefixes, Peers: s.shared.rollouts.peers, Lost: s.opts.Rollouts.Revisions.Lost, UndoBlocked: s.undoBlocked(ctx, in),
	}
}

// RevisionsLost queues objects whose bindings name a part of a revision that is stored no more. The leader then stores
// the part again, if the hub object or its override rules still have this content.
func (s *Scheduler) RevisionsLost(ids ...hubv1.ObjectIdentity) {
	if _, q := s.leading(); q != nil {
		s.addBehind(q, ids...)
	}
}

// claimRollout records the progress of an object's rollout. It returns false if the decision must be made again,
// because the rollout of another object may have begun first.
func (s *Scheduler) claimRollout(id key, p decide.Plan, version uint64) bool {
	owner, waits := decide.Owner{}, false
	if p.Spec != nil {
		owner = decide.OwnerOf(p.Spec.PlacementRef)
		waits = p.Spec.Rollout != nil && p.Spec.Rollout.Phase == hubv1.RolloutWaitingForOthers
	}
	return s.shared.rollouts.claim(id, owner, p.Claims.Rollout, waits, version)
}

// learnRollouts reads the progress of all rollouts from the bindings. A new leader calls it before its first decision.
func (s *Scheduler) learnRollouts(ctx context.Context) {
	bindings, err := scopes.Bindings(ctx, s.opts.Client, "", client.UnsafeDisableDeepCopy)
	placements, err2 := scopes.Placements(ctx, s.opts.Client, client.UnsafeDisableDeepCopy)
	if err != nil || err2 != nil {
		ctrl.LoggerFrom(ctx).Info("Not reading the rollouts: the cache is ending")
		return
	}
	policies := map[decide.Owner]*hubv1.RolloutPolicy{}
	for _, p := range placements {
		policies[decide.OwnerOf(decide.ReferenceTo(p))] = p.PlacementSpec().Rollout
	}
	s.shared.rollouts.mu.Lock()
	defer s.shared.rollouts.mu.Unlock()
	s.shared.rollouts.of, s.shared.rollouts.owners = nil, nil
	learn := func(id key, name string, ref *hubv1.PlacementReference, stored *hubv1.BindingRollout) {
		owner := decide.OwnerOf(ref)
		if policy := policies[owner]; stored != nil && policy != nil {
			progress := rollout.ProgressOf(policy, stored)
			progress.Object = name
			s.shared.rollouts.set(id, owner, progress)
		}
	}
	whole := s.wholeBundles(ctx)
	for of, r := range whole {
		learn(setKey(of), of.String(), r.PlacementRef, r.Rollout)
	}
	for _, b := range bindings {
		spec := b.BindingSpec()
		if of := spec.ObjectRef.Bundle; of != nil && whole[*of] != nil {
			continue // the rollout of its bundle counts instead
		}
		id := hubv1.ObjectOf(b)
		learn(id, id.String(), spec.PlacementRef, spec.Rollout)
	}
}

// stagedBy returns the objects that have a rollout and whose kinds an override policy selects.
func (s *Scheduler) stagedBy(p hubv1.OverridePolicyObject) []key {
	s.shared.rollouts.mu.Lock()
	defer s.shared.rollouts.mu.Unlock()
	var out []key
	for id := range s.shared.rollouts.owners {
		if decide.MaySelect([]hubv1.OverridePolicyObject{p}, id) {
			out = append(out, id)
		}
	}
	return out
}

// rowsOfRollout returns the rows of all clusters while the binding's rollout is in progress, or its revision has not
// passed yet, because the next step depends on them. It copies only the fields that matter to the rollout. It returns
// nil for other rollouts.
func rowsOfRollout(b hubv1.BindingObject) map[string]hubv1.ClusterRow {
	rollout := b.BindingSpec().Rollout
	if rollout == nil || rollout.Wave == "" && rollout.Passed == rollout.Revision {
		return nil
	}
	return rowsOf(b)
}

// rowsOf returns the rows of all clusters, with the fields that matter to rollouts.
func rowsOf(b hubv1.BindingObject) map[string]hubv1.ClusterRow {
	rows := map[string]hubv1.ClusterRow{}
	for _, r := range b.BindingStatus().Clusters {
		row := hubv1.ClusterRow{Applied: r.Applied, Health: r.Health, Reason: r.Reason, Revision: r.Revision}
		if r.PassingSince != nil {
			row.Message = r.PassingSince.UTC().String()
		}
		rows[r.Name] = row
	}
	return rows
}
