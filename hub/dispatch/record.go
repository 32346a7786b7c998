package dispatch

import (
	"maps"
	"slices"
	"sync"
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

// record has the state of one copy between two runs. It may be lost at any time, for example by a restart.
type record struct {
	gvk schema.GroupVersionKind
	// last is the outcome of the last write of the copy, or of its confirmed withdrawal.
	last member.Outcome
	// confirmedAt is the time at which the member returned the outcome of the last write of the copy, or of its
	// withdrawal.
	confirmedAt time.Time
	// withdrawn is the binding's instruction for the withdrawal that the member has confirmed. It is nil if no withdrawal
	// was confirmed, or if the copy was written again since.
	withdrawn *hubv1.Absence
	// withdrawing is true if a withdrawal began after the last write of the copy.
	withdrawing bool
	// yielded is true if this process has written the copy. The hub then owns no field of it that the manifest leaves out.
	yielded bool
}

// wrote reports whether an event of the copy shows the result of the hub's last write.
func (r record) wrote(seen member.Observation) bool {
	last := r.last
	return last.Applied == metav1.ConditionTrue && last.ResourceVersion != "" && last.ResourceVersion == seen.ResourceVersion &&
		last.UID == seen.UID && last.Hash == seen.Hash && last.Digest == seen.Digest && !seen.Deleting
}

// records has the record of each copy on one member, by binding.
type records struct {
	clock clock.PassiveClock

	mu     sync.Mutex
	packed map[types.NamespacedName]*packed
	// finished has the last states of copies, such as Jobs, that ran to completion and were then deleted on the member.
	finished map[types.NamespacedName]*member.Observation
	// awaited has, for each kind, the time at which a run first compared a copy of the kind. The time is zero after the
	// first list of the kind.
	awaited map[schema.GroupVersionKind]time.Time
}

func newRecords(c clock.PassiveClock) *records {
	return &records{
		clock: c, packed: map[types.NamespacedName]*packed{}, finished: map[types.NamespacedName]*member.Observation{},
		awaited: map[schema.GroupVersionKind]time.Time{},
	}
}

// get returns the record of a binding: the last known state of its copy on the member. It is empty if the binding has
// no record.
func (r *records) get(key types.NamespacedName) record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.packed[key].unpack()
}

func (r *records) set(key types.NamespacedName, rec record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.packed[key] = rec.pack()
}

func (r *records) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.packed, key)
	delete(r.finished, key)
}

// keys returns the bindings for which the last known state of a copy is recorded.
func (r *records) keys() []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.packed))
}

// rank returns the rank of a binding's kind, which determines its place among keys that are due together. It is 0 if no
// state of the binding's copy is recorded.
func (r *records) rank(key types.NamespacedName) int { return Rank(r.get(key).gvk.GroupKind()) }

// setFinished keeps the last state of a copy that ran to completion.
func (r *records) setFinished(key types.NamespacedName, o member.Observation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.finished[key] = &o
}

// getFinished returns the last state of a copy that ran to completion and was then deleted on the member. It returns
// nil for all other copies.
func (r *records) getFinished(key types.NamespacedName) *member.Observation {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.finished[key]
}

// listWait returns the remaining time to wait for the first list of a kind. It is zero or less when the wait is over.
// The wait begins with the first call for the kind. After the wait, each copy is read with a request, and the member's
// answer tells why the kind cannot be listed.
func (r *records) listWait(gvk schema.GroupVersionKind) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	since, ok := r.awaited[gvk]
	if !ok {
		since = r.clock.Now()
		r.awaited[gvk] = since
	}
	return calm - r.clock.Since(since)
}

// listed records that the watch of the kind has delivered its first list. No later run waits for a list of this kind.
func (r *records) listed(gvk schema.GroupVersionKind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.awaited[gvk] = time.Time{}
}

// packed is a record in a compact form. The hub keeps one for each copy on each member.
type packed struct {
	common                        unique.Handle[common]
	uid                           types.UID
	resourceVersion, hash, digest string
	generation                    int64
	hub                           hubNumbers
	confirmedAt                   time.Time
	seen                          *member.Observation
	orphaned                      *hubv1.OrphanedCopy
	withdrawn                     *hubv1.Absence
}

// hubNumbers identifies the content of the hub object that a copy has.
type hubNumbers struct {
	generation, revision int64
	content              uint64
}

// common is the part of a record that is equal for many copies. They share one instance of this part.
type common struct {
	gvk             schema.GroupVersionKind
	applied         metav1.ConditionStatus
	reason, message string
	changed         string
	retry           member.Retry
	after           time.Duration
	withdrawing     bool
	yielded         bool
	adopted         bool
	hubVersion      string
}

// pack converts a record to its compact form. It drops the fields Wrote, Drifted and Newer of the last outcome, because
// they describe only one call.
func (r record) pack() *packed {
	o := r.last
	return &packed{
		common: unique.Make(common{
			gvk: r.gvk, applied: o.Applied, reason: o.Reason, message: o.Message, changed: o.Changed, retry: o.Retry, after: o.After,
			withdrawing: r.withdrawing, yielded: r.yielded, adopted: o.Adopted, hubVersion: o.HubVersion,
		}),
		uid: o.UID, resourceVersion: o.ResourceVersion, hash: o.Hash, digest: o.Digest,
		generation: o.Generation, hub: hubNumbers{o.HubGeneration, o.HubRevision, o.HubContent},
		seen: o.Last, orphaned: o.Orphaned, confirmedAt: r.confirmedAt, withdrawn: r.withdrawn,
	}
}

// unpack converts the compact form of a record back to the record. It returns an empty record for nil.
func (p *packed) unpack() record {
	if p == nil {
		return record{}
	}
	c := p.common.Value()
	return record{
		last: member.Outcome{
			Applied: c.applied, Reason: c.reason, Message: c.message, Changed: c.changed, Retry: c.retry, After: c.after,
			CopyState: member.CopyState{UID: p.uid, ResourceVersion: p.resourceVersion, Generation: p.generation, Digest: p.digest, Hash: p.hash, Adopted: c.adopted},
			HubState:  member.HubState{HubGeneration: p.hub.generation, HubRevision: p.hub.revision, HubContent: p.hub.content, HubVersion: c.hubVersion},
			Last:      p.seen, Orphaned: p.orphaned,
		},
		gvk: c.gvk, withdrawing: c.withdrawing, yielded: c.yielded, confirmedAt: p.confirmedAt, withdrawn: p.withdrawn,
	}
}
