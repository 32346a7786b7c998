package dispatch

import (
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

// record has the last known state of one copy.
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
func (r record) pack() packed {
	o := r.last
	return packed{
		common: unique.Make(common{
			gvk: r.gvk, applied: o.Applied, reason: o.Reason, message: o.Message, changed: o.Changed, retry: o.Retry, after: o.After,
			withdrawing: r.withdrawing, yielded: r.yielded, adopted: o.Adopted, hubVersion: o.HubVersion,
		}),
		uid: o.UID, resourceVersion: o.ResourceVersion, hash: o.Hash, digest: o.Digest,
		generation: o.Generation, hub: hubNumbers{o.HubGeneration, o.HubRevision, o.HubContent},
		seen: o.Last, orphaned: o.Orphaned, confirmedAt: r.confirmedAt, withdrawn: r.withdrawn,
	}
}

// unpack converts the compact form of a record back to the record. The zero value becomes an empty record.
func (p packed) unpack() record {
	if p.empty() {
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

// empty reports whether no state of the copy is recorded.
func (p packed) empty() bool { return p.common == unique.Handle[common]{} }
