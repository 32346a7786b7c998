package schedule

import (
	"context"
	"maps"
	"slices"
	"sync"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/decide"
	"github.com/hanse-dev/hanse/hub/scopes"
	"github.com/hanse-dev/hanse/rollout"
)

// Revisions stores the parts of revisions before bindings name them.
type Revisions interface {
	Ensure(ctx context.Context, p decide.Payload) error
}

// rollouts are the rollouts of all objects, as far as objects of one placement wait for each other.
type rollouts struct {
	mu sync.Mutex
	// version moves with each change.
	version uint64
	of      map[decide.Owner]*placementRollouts
	owners  map[key]decide.Owner
}

// placementRollouts are the rollouts of the objects of one placement.
type placementRollouts struct {
	progress map[key]rollout.Progress
	peers    *rollout.Peers // made from progress when somebody asks
}

// peers returns the rollouts of a placement's objects.
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

// claim notes the progress of an object. It returns false, and notes nothing, if the object begins to move and the
// rollouts have changed since they were at the given version: another object may have taken its place. waiting are the
// objects of the placement that may go on.
func (r *rollouts) claim(id key, owner decide.Owner, now *rollout.Progress, version uint64) (waiting []key, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, known := r.before(id, owner)
	if now == nil {
		if !known {
			return nil, true
		}
		r.version++
		return r.drop(id), true
	}
	if known && before == *now {
		return nil, true
	}
	if now.Moving && !before.Moving && r.version != version {
		return nil, false
	}
	r.version++
	r.set(id, owner, *now)
	return r.waiting(id, owner), true
}

// before returns the progress of an object under a placement.
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
		r.of[owner] = &placementRollouts{progress: map[key]rollout.Progress{}}
	}
	r.owners[id] = owner
	r.of[owner].progress[id], r.of[owner].peers = now, nil
}

// drop forgets an object, and returns the objects that may have waited for it.
func (r *rollouts) drop(id key) []key {
	owner := r.owners[id]
	delete(r.owners, id)
	p := r.of[owner]
	delete(p.progress, id)
	if p.peers = nil; len(p.progress) == 0 {
		delete(r.of, owner)
		return nil
	}
	return r.waiting(id, owner)
}

// waiting returns the objects of a placement that are not done, without one.
func (r *rollouts) waiting(without key, owner decide.Owner) []key {
	var out []key
	for id, p := range r.of[owner].progress {
		if id != without && !p.Done {
			out = append(out, id)
		}
	}
	return out
}

// staging returns what the rollout of an object depends on, nil if revisions cannot be stored.
func (s *Scheduler) staging() *decide.Staging {
	if s.Revisions == nil {
		return nil
	}
	return &decide.Staging{Key: s.Key, Denied: s.DeniedMetadataPrefixes, Peers: s.rollouts.peers}
}

// claimRollout notes the progress of an object and wakes the objects that wait for it. It returns false if another
// object was faster.
func (s *Scheduler) claimRollout(id key, p decide.Plan, version uint64) bool {
	owner := decide.Owner{}
	if p.Spec != nil {
		owner = decide.OwnerOf(p.Spec.PlacementRef)
	}
	waiting, ok := s.rollouts.claim(id, owner, p.Claims.Rollout, version)
	if _, q := s.leading(); q != nil && len(waiting) > 0 {
		addUncounted(q, waiting...)
	}
	return ok
}

// learnRollouts reads the rollouts of all objects from their bindings. A new leader does so before it decides.
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

// stagedBy returns the objects with a rollout of the kinds that a policy speaks of.
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

// rowsOfRollout is what a rollout waits for: the rows without what does not matter to it. Nil if the object has no
// rollout, or if its rollout waits for no row.
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
