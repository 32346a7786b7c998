// Package member is the door between the hub and its member clusters: the types and interfaces that the hub's
// controllers speak, and no implementation.
//
//   - member/connect keeps the link to each cluster and says whether its watches deliver.
//   - member/apply writes one object to one cluster and returns an Outcome.
//   - member/served says which kinds a cluster serves, and with which fields.
//   - member/observe watches what was sent and keeps one Observation per object.
//   - member/health judges one object, purely.
package member

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/credential"
	"github.com/hanse-dev/hanse/source"
)

// ErrNotConnected means that the cluster is registered but cannot be reached now, or is not registered.
var ErrNotConnected = errors.New("member cluster not connected")

// Fleet gives access to connected member clusters. It never waits for the network.
type Fleet interface {
	// Get returns the cluster, or ErrNotConnected while its link is down.
	Get(cluster string) (Cluster, error)
}

// Cluster is one connected member. Methods that take a context talk to the cluster and return within its request
// time-out; the others answer from memory.
type Cluster interface {
	// Name of the MemberCluster.
	Name() string
	// IsHub is true if this member is the hub's own cluster: nothing is ever written to it.
	IsHub() bool
	// Fit returns the manifest without the fields that the cluster's schema of its kind does not have, and their paths. It
	// is the manifest itself if there are none, or if the cluster publishes no schema that can be read.
	Fit(ctx context.Context, manifest *unstructured.Unstructured) (fitting *unstructured.Unstructured, unserved []string)
	// Misfits are the values in a manifest that the cluster's schema of its kind does not take: none if it publishes no
	// schema that can be read.
	Misfits(ctx context.Context, manifest *unstructured.Unstructured) []Misfit
	// Apply brings one object to the cluster, or says why not. It logs nothing.
	Apply(ctx context.Context, in ApplyIntent) Outcome
	// Withdraw deletes or orphans the copy of one hub object. It logs nothing.
	Withdraw(ctx context.Context, in WithdrawIntent) Outcome
	// Observe makes sure that objects of this kind are watched for the given holder, a binding. Idempotent.
	Observe(gvk schema.GroupVersionKind, holder types.NamespacedName)
	// Forget ends the holder's interest in the kind; the watch stops after the last holder.
	Forget(gvk schema.GroupVersionKind, holder types.NamespacedName)
	// Observation returns what was last seen of an object. synced is false until the kind's first list has been
	// delivered; only then does a missing observation mean that the cluster holds no object with the hub's label.
	Observation(gvk schema.GroupVersionKind, key types.NamespacedName) (o Observation, found, synced bool)
}

// Misfit is a value that a schema does not take.
type Misfit struct {
	// Path is its JSON pointer.
	Path string
	// Declared is the path with "*" for each step that the schema does not name.
	Declared string
	// Message says what the schema wants, such as "must be an integer".
	Message string
	// Value as JSON, cut short; empty if it is a map or a list, or missing.
	Value string
}

// Observation is what is kept of one member object: everything that later decisions need, and nothing that grows with
// its spec.
type Observation struct {
	GVK       schema.GroupVersionKind
	Namespace string
	Name      string

	UID             types.UID
	ResourceVersion string
	Generation      int64
	Deleting        bool // it has a deletionTimestamp

	Owner    hubv1.ObjectIdentity // from the owner annotation; zero if there is none or it cannot be read
	OwnerUID types.UID            // UID of the hub object, from the owner annotation
	Digest   string               // digest annotation
	Hash     string               // content hash, see member/content.Hash
	Source   source.Mark          // source annotation
	Paused   time.Time            // pause annotation; zero if unset or unreadable
	Adopted  bool                 // annotation of a copy that was there before the hub took it over

	Health        hubv1.Health
	HealthReason  string
	HealthMessage string

	// Observed is the projection of the status as canonical JSON, at most 512 bytes; nil if there is no status.
	Observed []byte
	// ObservedGeneration is status.observedGeneration, or the lowest one in the conditions; -1 if the object has none.
	ObservedGeneration int64
}

// ApplyIntent is one object as one cluster shall hold it.
type ApplyIntent struct {
	// Manifest is the rendered object without marks of the hub; Apply adds them. It is not changed.
	Manifest *unstructured.Unstructured
	Owner    hubv1.ObjectIdentity
	OwnerUID types.UID
	// Digest of the manifest and of the parts of the policy that change how it is applied.
	Digest string

	// Confirmed is the row's hash: what the content was when it was last confirmed. Empty if there is no row.
	Confirmed string
	// Observed is the resourceVersion of the copy as it was last observed, if that was ours, as it was last confirmed, and
	// neither paused nor being deleted: then it is written on that version, and read only if it has changed. Empty means
	// read first.
	Observed string
	// Unknown says that nothing is known to be there under this name: then it is made at once, and read only if that shows
	// that something is.
	Unknown bool
	// ConfirmedUID is the UID of the copy that was last confirmed. That one is ours even if some of its marks were taken
	// off.
	ConfirmedUID types.UID

	// Adopted says that the copy with ConfirmedUID was on the cluster before the hub took it over.
	Adopted bool
	// Orphaned is the copy that the hub left on this cluster, nil if none: the object with its UID is taken back, whatever
	// Adoption says.
	Orphaned *hubv1.OrphanedCopy

	// Mode ReportOnly makes the outcome say what a write would do; nothing is written.
	Mode hubv1.ApplyMode
	// MemberOwned are JSON pointers to fields that are set when the object is made and left to the member from then on.
	MemberOwned     []string
	Adoption        hubv1.Adoption
	FieldConflict   hubv1.FieldConflict
	CreateNamespace bool
	// Adopting is, if it is set, the UID of an object that is not Hanse's. That object is taken over as Adoption says. No
	// other object is written, and none is made.
	Adopting types.UID
	// KeepAway means that the cluster held the copy: if it is gone, the outcome is NotRecreated and it is not made anew.
	KeepAway bool
	// Source is the state of the hub that the manifest comes from. A copy that a later state wrote is not overwritten: the
	// outcome is HubIsOlder.
	Source source.State
	// NamespaceLabels are the hub namespace's pod-security labels, for a namespace made on demand.
	NamespaceLabels map[string]string
}

// WithdrawIntent is one object that a cluster shall no longer hold.
type WithdrawIntent struct {
	GVK      schema.GroupVersionKind
	Owner    hubv1.ObjectIdentity
	OwnerUID types.UID // UID of the hub object whose copy is to go
	// ConfirmedUID and ConfirmedDigest are those of the copy that was last confirmed. If it carries that digest still, it
	// is ours even if it was made for an earlier hub object of the same name.
	ConfirmedUID    types.UID
	ConfirmedDigest string
	// Source is the state of the hub that decided so. A copy that a later state wrote is left as it is: the outcome is
	// HubIsOlder.
	Source source.State

	// Adopted says that the copy with ConfirmedUID was on the cluster before the hub took it over.
	Adopted bool

	// Seen is the copy as a live watch shows it; nil if none does. If it proves that the copy may go, the copy is deleted
	// at exactly that version and not read before.
	Seen *Observation

	Policy hubv1.RemovalPolicy
	// PolicyIfAdopted takes the place of Policy Delete for a copy that was adopted, by Adopted or by its annotation.
	PolicyIfAdopted hubv1.RemovalPolicy
	Propagation     metav1.DeletionPropagation
}

// Retry says when an outcome is worth another try.
type Retry int

const (
	// RetryNever means that only a change of the hub object, a policy or the member's object can help; these wake the key.
	RetryNever Retry = iota
	// RetrySoon means with the usual back-off: 0.2 s doubling to 60 s with jitter.
	RetrySoon
	// RetrySlowly means that a change on the member is needed, whose event may be missed: after 30 s doubling to 5 min.
	RetrySlowly
	// RetryAfter means after Outcome.After: the server said so, or a pause ends.
	RetryAfter
)

// Outcome is what came of one Apply or Withdraw.
type Outcome struct {
	// Applied is True if the cluster holds what was asked for, False if it was refused or is under way, Unknown if the
	// cluster could not be asked.
	Applied metav1.ConditionStatus
	// Reason is a constant of api/v1alpha1; Message says what to do, in at most 256 characters.
	Reason, Message string

	// UID, ResourceVersion, Generation and Hash are those of the member object after the call, if it was seen. A
	// withdrawal that left an object alone has its UID: that object does not hold up the end of the withdrawal.
	UID             types.UID
	ResourceVersion string
	Generation      int64
	Hash            string
	Digest          string // the digest asked for, if Applied is True
	// Newer is, with ReasonHubIsOlder, the mark of the copy and whether it was written for the same hub object.
	Newer Newer
	// Adopted is true if Applied is True and the copy was on the cluster before the hub took it over.
	Adopted bool
	// Orphaned is, with ReasonWithdrawn, the copy that the hub left on the cluster. Its ClusterID is set by the caller of
	// Withdraw.
	Orphaned *hubv1.OrphanedCopy
	// HubGeneration is the generation of the hub object that the manifest was rendered from. Set by the caller of Apply.
	HubGeneration int64
	// HubRevision is the revision of the hub object that the manifest was rendered from; 0 for its newest state. Set by the
	// caller of Apply.
	HubRevision int64
	// HubContent tells apart the contents of the hub object that the manifest was rendered from, for this process only:
	// many kinds have no generation. Set by the caller of Apply.
	HubContent uint64

	// Wrote is true if the member object was changed.
	Wrote bool
	// Drifted names up to 3 fields that had been changed on the member and were put back or found, with the manager that
	// did it.
	Drifted []FieldDrift

	// Last is, with ReasonCompleted, the copy as it was last seen. Set by the caller of Apply.
	Last *Observation

	Retry Retry
	After time.Duration // with RetryAfter
}

// Newer is a copy that a later state of the hub wrote, as far as the caller of Apply or Withdraw knew the hub.
type Newer struct {
	Mark       source.Mark
	SameObject bool
}

// FieldDrift is one field of ours that somebody else changed.
type FieldDrift struct {
	Path    string // such as .spec.replicas
	Manager string // field manager on the member, or "unknown"
}

// ObservationHandler is told of every change of an observation; content is false if only health or status moved.
// gone is true if the object was deleted; the observation is then the last one.
type ObservationHandler func(cluster string, o Observation, content, gone bool)

// LinkState is what is known of the link to one cluster.
type LinkState struct {
	// Ready is True if the cluster answers and its watches deliver, False with a reason if not, Unknown before the first
	// try has ended.
	Ready           metav1.ConditionStatus
	Reason, Message string
	// Credentials is False with a reason if the kubeconfig is refused or its credentials are not taken, Unknown if that
	// could not be asked.
	Credentials        metav1.ConditionStatus
	CredentialsReason  string
	CredentialsMessage string
	// InUse are the credentials that the link uses; zero while it uses none. Those of the kubeconfig are used once the
	// cluster has taken them.
	InUse credential.Credential
	// TooLarge says which answer of the last minutes was larger than it may be; empty if none was.
	TooLarge string
	// LastHeard is when a watch of the cluster last delivered something, as of the last probe; zero if none has. An answer
	// that a watch did not bring does not count: it says nothing of the objects.
	LastHeard time.Time
	// Facts are those last read; zero before the first read.
	Facts Facts
}

// Facts are what a cluster says of itself.
type Facts struct {
	ClusterID  string // UID of kube-system
	Kubernetes string // version, such as v1.36.3
	// Region is the region that all nodes share, or empty; Zones are those of the nodes, sorted.
	Region      string
	Zones       []string
	Nodes       hubv1.NodeSummary
	Capacity    corev1.ResourceList // sum over nodes
	Allocatable corev1.ResourceList // sum over ready, schedulable nodes
	// Served has the versions of each kind of which the cluster was asked, none if it does not serve it. Nil before the
	// first answer.
	Served map[schema.GroupKind][]string
}

// Links keeps the connections. It never waits for the network.
type Links interface {
	// Ensure makes or updates the link of a cluster. kubeconfig is the content of the Secret. Equal content changes
	// nothing; a changed token or certificate is taken up without a new cache; a changed address is connected before the
	// old link is dropped. expectedID is status.clusterID, empty before it is known: another ID behind the address gives
	// IdentityChanged.
	Ensure(cluster string, kubeconfig []byte, expectedID string)
	// Remove ends the link and forgets it.
	Remove(cluster string)
	// State of a link; false if there is none.
	State(cluster string) (LinkState, bool)
}
