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

// memory is what a queue keeps of one binding between runs. It may be lost at any time.
type memory struct {
	last member.Outcome // of the last apply, or of the withdrawal that was confirmed
	told time.Time      // when the cluster said so
	gvk  schema.GroupVersionKind
	// asked is when the cluster is asked for the copy if the first list of the kind has not come by then. Zero if that was
	// not awaited.
	asked time.Time

	// withdrawn is the absence that the member has confirmed, nil if none or if the object was written since.
	withdrawn *hubv1.Absence
	// taken says that a withdrawal was begun since the object was last written.
	taken bool
}

// wrote says whether that is the copy just as the cluster answered the last write.
func (m memory) wrote(seen member.Observation) bool {
	last := m.last
	return last.Applied == metav1.ConditionTrue && last.ResourceVersion != "" && last.ResourceVersion == seen.ResourceVersion && last.UID == seen.UID &&
		last.Hash == seen.Hash && last.Digest == seen.Digest && !seen.Deleting
}

// kept is a memory in the form in which it is held, since there is one for each copy on each member.
type kept struct {
	common                        unique.Handle[common]
	uid                           types.UID
	resourceVersion, hash, digest string
	generation, hubGeneration     int64
	hubContent                    uint64
	told, asked                   time.Time
	seen                          *member.Observation
	orphaned                      *hubv1.OrphanedCopy
	withdrawn                     *hubv1.Absence
}

// common is what the memories of many copies have in common. It is held once for all of them.
type common struct {
	gvk             schema.GroupVersionKind
	applied         metav1.ConditionStatus
	reason, message string
	retry           member.Retry
	after           time.Duration
	taken, adopted  bool
}

// pack leaves out of the last outcome only what it did: that it wrote, and over whom; and Newer, which comes with no
// outcome that is remembered.
func (m memory) pack() *kept {
	o := m.last
	return &kept{
		common: unique.Make(common{gvk: m.gvk, applied: o.Applied, reason: o.Reason, message: o.Message, retry: o.Retry, after: o.After, taken: m.taken, adopted: o.Adopted}),
		uid:    o.UID, resourceVersion: o.ResourceVersion, hash: o.Hash, digest: o.Digest, generation: o.Generation, hubGeneration: o.HubGeneration,
		hubContent: o.HubContent,
		seen:       o.Last, orphaned: o.Orphaned, told: m.told, asked: m.asked, withdrawn: m.withdrawn,
	}
}

// memory is the inverse of pack. Nothing is remembered in nil.
func (k *kept) memory() memory {
	if k == nil {
		return memory{}
	}
	c := k.common.Value()
	return memory{
		last: member.Outcome{
			Applied: c.applied, Reason: c.reason, Message: c.message, Retry: c.retry, After: c.after,
			UID: k.uid, ResourceVersion: k.resourceVersion, Hash: k.hash, Digest: k.digest, Generation: k.generation, HubGeneration: k.hubGeneration,
			HubContent: k.hubContent,
			Last:       k.seen, Orphaned: k.orphaned, Adopted: c.adopted,
		},
		gvk: c.gvk, taken: c.taken, told: k.told, asked: k.asked, withdrawn: k.withdrawn,
	}
}
