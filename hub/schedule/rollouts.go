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
	"github.com/hanse-dev/hanse/decide"
	"github.com/hanse-dev/hanse/hub/scopes"
	"github.com/hanse-dev/hanse/rollout"
)

// Revisions stores the contents of revisions.
type Revisions interface {
	// Ensure stores a part of a revision, before a binding names it.
	Ensure(ctx context.Context, p decide.Payload) error
	// Template returns a stored template. It is shared and must not be changed.
	Template(ctx context.Context, digest string) (*unstructured.Unstructured, error)
}

// rollouts has the rollouts of all objects, because objects of one placement wait for each other.
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
	// waiting are the objects that wait for other objects of the placement. moved is true if the progress of another
	// object has changed since they were queued.
	waiting map[key]bool
	moved   bool
}

// peers returns the rollouts of the other objects of a placement.
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

// current returns the version of the rollouts.
func (r *rollouts) current() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.version
}

// claim records the progress of an object, and whether it waits for other objects. It returns false and records nothing
// if the rollout of the object begins, and another rollout has changed since the given version. Another object may have
// begun in its place.
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

// before returns the progress that was last recorded for an object under a placement.
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

// drop removes an object.
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

// released returns the objects that waited for other objects of their placement, if one of these has made progress.
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

// staging returns the inputs of an object's rollout. It is nil if revisions cannot be stored.
func (s *Scheduler) staging(ctx context.Context, in decide.Input) *decide.Staging {
	if s.Revisions == nil {
		return nil
	}
	return &decide.Staging{Key: s.Key, Denied: s.DeniedMetadataPrefixes, Peers: s.rollouts.peers, UndoBlocked: s.undoBlocked(ctx, in)}
}

// claimRollout records the progress of an object. It returns false if the decision must be repeated, because another
// object has begun first.
func (s *Scheduler) claimRollout(id key, p decide.Plan, version uint64) bool {
	owner, waits := decide.Owner{}, false
	if p.Spec != nil {
		owner = decide.OwnerOf(p.Spec.PlacementRef)
		waits = p.Spec.Rollout != nil && p.Spec.Rollout.Phase == hubv1.RolloutWaitingForOthers
	}
	return s.rollouts.claim(id, owner, p.Claims.Rollout, waits, version)
}

// learnRollouts reads the rollouts of all objects from their bindings. A new leader calls it before its first decision.
func (s *Scheduler) learnRollouts(ctx context.Context) {
	bindings, err := scopes.Bindings(ctx, s.Client, "", client.UnsafeDisableDeepCopy)
	placements, err2 := scopes.Placements(ctx, s.Client, client.UnsafeDisableDeepCopy)
	if err != nil || err2 != nil {
		ctrl.LoggerFrom(ctx).Info("Not reading the rollouts: the cache is ending")
		return
	}
	policies := map[decide.Owner]*hubv1.RolloutPolicy{}
	for _, p := range placements {
		policies[decide.OwnerOf(decide.ReferenceTo(p))] = p.PlacementSpec().Rollout
	}
	s.rollouts.mu.Lock()
	defer s.rollouts.mu.Unlock()
	s.rollouts.of, s.rollouts.owners = nil, nil
	for _, b := range bindings {
		spec := b.BindingSpec()
		owner := decide.OwnerOf(spec.PlacementRef)
		if policy := policies[owner]; spec.Rollout != nil && policy != nil {
			progress := rollout.ProgressOf(policy, spec.Rollout)
			id := hubv1.ObjectOf(b)
			progress.Object = id.String()
			s.rollouts.set(id, owner, progress)
		}
	}
}

// stagedBy returns the objects with a rollout, of the kinds that a policy selects.
func (s *Scheduler) stagedBy(p hubv1.OverridePolicyObject) []key {
	s.rollouts.mu.Lock()
	defer s.rollouts.mu.Unlock()
	var out []key
	for id := range s.rollouts.owners {
		if speakOf([]hubv1.OverridePolicyObject{p}, id) {
			out = append(out, id)
		}
	}
	return out
}

// rowsOfRollout returns the rows for which the rollout of the binding waits, without fields that do not matter. It is
// nil if the rollout waits for no row.
func rowsOfRollout(b hubv1.BindingObject) map[string]hubv1.ClusterRow {
	rollout := b.BindingSpec().Rollout
	if rollout == nil || rollout.Phase == hubv1.RolloutComplete || rollout.Phase == hubv1.RolloutRolledBack {
		return nil
	}
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
