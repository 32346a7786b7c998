// Package member is the interface between the hub and its member clusters. It defines the types and interfaces that the
// hub's controllers use, without implementations.
//
//   - member/connect keeps the link to each cluster and reports whether its watches deliver events.
//   - member/apply writes one object to one cluster and returns an Outcome.
//   - member/served caches which kinds a cluster serves, and with which fields.
//   - member/observe watches the copies and keeps one Observation for each.
//   - member/health judges one object, without I/O.
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

// ErrNotConnected means that the cluster cannot be reached now, or is not registered.
var ErrNotConnected = errors.New("member cluster not connected")

// Fleet gives access to connected member clusters. It never waits for the network.
type Fleet interface {
	// Get returns the cluster. It returns ErrNotConnected while the cluster's link is down.
	Get(cluster string) (Cluster, error)
}

// Cluster is one connected member. Methods with a context send requests to the cluster and return within its request
// timeout. The other methods answer from memory.
type Cluster interface {
	// Name returns the name of the MemberCluster.
	Name() string
	// IsHub reports whether this member is the hub's own cluster, to which the hub writes no copies.
	IsHub() bool
	// Fit returns the manifest without the fields that are not in the cluster's schema of the kind, and the paths of
	// these fields. It returns the manifest itself if the schema has all its fields, or if the cluster publishes no
	// readable schema.
	Fit(ctx context.Context, manifest *unstructured.Unstructured) (fitting *unstructured.Unstructured, unserved []string)
	// Misfits returns the values of a manifest that violate the cluster's schema of the kind. It returns none if the
	// cluster publishes no readable schema.
	Misfits(ctx context.Context, manifest *unstructured.Unstructured) []Misfit
	// Apply writes one object to the cluster. The outcome has the reason if it cannot. It logs nothing.
	Apply(ctx context.Context, in ApplyIntent) Outcome
	// Withdraw deletes or orphans the copy of one hub object. It logs nothing.
	Withdraw(ctx context.Context, in WithdrawIntent) Outcome
	// Observe starts to watch objects of this kind for the given holder, a binding. It is idempotent.
	Observe(gvk schema.GroupVersionKind, holder types.NamespacedName)
	// Forget ends the use of the kind by the holder. The watch stops after its last holder is gone.
	Forget(gvk schema.GroupVersionKind, holder types.NamespacedName)
	// Observation returns the last observed state of an object. synced is false until the kind's first list has been
	// delivered, and while the cluster does not serve the kind. If synced is true, a missing observation means that the
	// cluster holds no such object with the hub's label.
	Observation(gvk schema.GroupVersionKind, key types.NamespacedName) (o Observation, found, synced bool)
	// Unwatched returns why the kind's watch fails, so that observations may be outdated. It is nil while the watch works,
	// while the kind is not observed, and while the cluster does not serve the kind.
	Unwatched(gvk schema.GroupVersionKind) *WatchFailure
}

// WatchFailure is the reason why the watch of a kind fails.
type WatchFailure struct {
	// Reason is a reason of package kindwatch, such as Forbidden. Message is the error of the last attempt.
	Reason, Message string
	// Since is the time of the first failure since the watch last worked or the link came up.
	Since time.Time
}

// Misfit is a value that violates a schema.
type Misfit struct {
	// Path is its JSON pointer.
	Path string
	// Declared is the path with "*" for each step that the schema does not name.
	Declared string
	// Message is the requirement of the schema, such as "must be an integer".
	Message string
	// Value as JSON, cut short; empty if it is a map or a list, or missing.
	Value string
}

// Observation has the facts about one member object that later decisions need. Its size does not grow with the spec.
type Observation struct {
	GVK       schema.GroupVersionKind
	Namespace string
	Name      string

	CopyState
	Deleting bool // it has a deletionTimestamp

	Owner    hubv1.ObjectIdentity // from the owner annotation; zero if missing or unreadable
	OwnerUID types.UID            // UID of the hub object, from the owner annotation
	Source   source.Mark          // source annotation
	Paused   time.Time            // pause annotation; zero if unset or unreadable

	Assessment
	// Observed has the kept fields of the copy's status, as canonical JSON of at most 512 bytes; nil if it has no status.
	Observed []byte
	// ObservedGeneration is status.observedGeneration, or the lowest one in the conditions; -1 if the object has none.
	ObservedGeneration int64
}

// CopyState distinguishes the states of a member object.
type CopyState struct {
	UID             types.UID
	ResourceVersion string
	Generation      int64
	Digest          string // of the manifest, see ApplyIntent.Digest
	Hash            string // of the content, see member/content.Hash
	Adopted         bool   // the object was on the cluster before the hub took it over
}

// Assessment is the health of a member object with its reason.
type Assessment struct {
	Health        hubv1.Health
	HealthReason  string
	HealthMessage string
}

// ApplyIntent is one object as one cluster shall hold it.
type ApplyIntent struct {
	// Manifest is the rendered object without the hub's labels and annotations, which Apply adds. It is not changed.
	Manifest *unstructured.Unstructured
	Owner    hubv1.ObjectIdentity
	OwnerUID types.UID
	// Digest of the manifest and of the parts of the policy that change how it is applied.
	Digest string

	Known
	ApplySettings

	// Adopting is the UID of an object that is not Hanse's, to be adopted as Adoption says. If it is set, no other object
	// is written, and none is created.
	Adopting types.UID
	// KeepAway means that the cluster held the copy. If the copy is gone, it is not created again, and the outcome is
	// NotRecreated.
	KeepAway bool
	// Source is the state of the hub that the manifest comes from. A copy that a later state wrote is not overwritten: the
	// outcome is HubIsOlder.
	Source source.State
	// NamespaceLabels are the hub namespace's pod-security labels, for a namespace made on demand.
	NamespaceLabels map[string]string
}

// Known is what the hub knows of the copy before it writes.
type Known struct {
	// Confirmed is the row's hash of the last confirmed content. Empty if there is no row.
	Confirmed string
	// Observed is the last observed resourceVersion of the copy. It is set only if the copy was ours, as last
	// confirmed, and neither paused nor being deleted. Then the copy is written at that version, and read only if it
	// has changed. If it is empty, the copy is read first.
	Observed string
	// Unknown means that no object of this name is known on the cluster. Then Apply creates one without a read, and
	// reads only if an object exists.
	Unknown bool
	// ConfirmedUID is the UID of the last confirmed copy. That copy is ours even if some of its labels or annotations
	// were removed.
	ConfirmedUID types.UID

	// Adopted is true if the copy with ConfirmedUID was adopted.
	Adopted bool
	// Orphaned is the copy that the hub orphaned on this cluster; nil if there is none. The object with its UID is
	// adopted again, even if Adoption forbids it.
	Orphaned *hubv1.OrphanedCopy
}

// ApplySettings are those of the placement, with their defaults.
type ApplySettings struct {
	// Mode ReportOnly writes nothing. The outcome says what a write would do.
	Mode hubv1.ApplyMode
	// MemberOwned are JSON pointers to fields that are set at the creation of the object, and then left to the member.
	MemberOwned     []string
	Adoption        hubv1.Adoption
	FieldConflict   hubv1.FieldConflict
	CreateNamespace bool
}

// WithdrawIntent is one copy to remove from a cluster.
type WithdrawIntent struct {
	GVK      schema.GroupVersionKind
	Owner    hubv1.ObjectIdentity
	OwnerUID types.UID // UID of the hub object of the copy
	// ConfirmedUID and ConfirmedDigest are from the last confirmed copy. If the copy still has that digest, it is ours,
	// even if it was made for an earlier hub object of the same name.
	ConfirmedUID    types.UID
	ConfirmedDigest string
	// Source is the state of the hub that decided the withdrawal. A copy from a later state stays: the outcome is
	// HubIsOlder.
	Source source.State

	// Adopted is true if the copy with ConfirmedUID was adopted.
	Adopted bool

	// Seen is the copy's state from a live watch; nil if there is none. If it proves that the copy may be deleted, the
	// copy is deleted at exactly that version, without a read.
	Seen *Observation

	Policy hubv1.RemovalPolicy
	// PolicyIfAdopted replaces Policy Delete for a copy that was adopted, by Adopted or by its annotation.
	PolicyIfAdopted hubv1.RemovalPolicy
	Propagation     metav1.DeletionPropagation
}

// Retry tells when to try again after an outcome.
type Retry int

const (
	// RetryNever means that only a change of the hub object, a policy or the member's object can help. Such a change
	// queues the key.
	RetryNever Retry = iota
	// RetrySoon means the usual back-off: 0.2 s doubling to 60 s with jitter.
	RetrySoon
	// RetrySlowly means that only a change on the member can help, and that there may be no event: 30 s doubling to 5
	// min.
	RetrySlowly
	// RetryAfter means after Outcome.After, because the server asked for it or a pause ends then.
	RetryAfter
)

// Outcome is the result of one Apply or Withdraw.
type Outcome struct {
	// Applied is True if the cluster has carried out the request. It is False if the request was refused or is in
	// progress, Unknown if the cluster could not be reached.
	Applied metav1.ConditionStatus
	// Reason is a constant of api/v1alpha1; Message has advice, in at most 256 characters.
	Reason, Message string

	// CopyState is that of the member object after the call, if the call has seen it. Adopted and Digest, which is the one
	// asked for, are set only if Applied is True. After a withdrawal that left an object alone, the UID is that of the
	// object, which then does not delay the end of the withdrawal.
	CopyState
	// Newer is, with ReasonHubIsOlder, the mark of the copy and whether it was written for the same hub object.
	Newer Newer
	// Orphaned is, with ReasonWithdrawn, the copy that the hub left on the cluster. Its ClusterID is set by the caller of
	// Withdraw.
	Orphaned *hubv1.OrphanedCopy
	// HubState is the state of the hub object from which the manifest was rendered. Set by the caller of Apply.
	HubState

	// Wrote is true if the member object was changed.
	Wrote bool
	// Drifted names up to 3 fields that were changed on the member, with their managers. Apply has restored or only
	// found them.
	Drifted []FieldDrift

	// Last is, for ReasonCompleted, the last observed state of the copy. The caller of Apply sets it.
	Last *Observation

	Retry Retry
	After time.Duration // for RetryAfter
}

// HubState distinguishes the states of a hub object.
type HubState struct {
	HubGeneration int64
	// HubRevision is 0 for the newest state.
	HubRevision int64
	// HubContent differs between contents. It holds within this process only, and is needed because many kinds have no
	// generation.
	HubContent uint64
	// HubVersion is the version of the operator; empty unless the object is a workload of one.
	HubVersion string
}

// Newer describes a copy that a later state of the hub wrote than the caller of Apply or Withdraw knew.
type Newer struct {
	Mark       source.Mark
	SameObject bool
}

// FieldDrift is one field of ours that another manager changed.
type FieldDrift struct {
	Path    string // such as .spec.replicas
	Manager string // field manager on the member, or "unknown"
}

// ObservationHandler is called for every change of an observation. content is false if only health or status changed.
// gone is true if the object was deleted; then the observation is the last one.
type ObservationHandler func(cluster string, o Observation, content, gone bool)

// LinkState is the state of the link to one cluster.
type LinkState struct {
	// Ready is True if the cluster answers and its watches deliver, False with a reason if not, Unknown before the end
	// of the first attempt.
	Ready           metav1.ConditionStatus
	Reason, Message string
	// Credentials is False with a reason if the hub refuses the kubeconfig or the cluster refuses its credentials. It
	// is Unknown if the cluster could not be reached.
	Credentials        metav1.ConditionStatus
	CredentialsReason  string
	CredentialsMessage string
	// InUse are the current credentials of the link; zero if there are none. New credentials are used once the cluster
	// has accepted them.
	InUse credential.Credential
	// TooLarge is the recent answer that exceeded a limit; empty if there was none.
	TooLarge string
	// LastHeard is the time of the last watch event of the cluster, as of the last probe; zero if there was none. Other
	// responses do not count, because they do not show that watches deliver.
	LastHeard time.Time
	// Facts are the last facts read; zero before the first read.
	Facts Facts
}

// Facts are read from a cluster's version, nodes and discovery.
type Facts struct {
	ClusterID  string // UID of kube-system
	Kubernetes string // version, such as v1.36.3
	// Region is the common region of all nodes, or empty; Zones are the zones of the nodes, sorted.
	Region      string
	Zones       []string
	Nodes       hubv1.NodeSummary
	Capacity    corev1.ResourceList // sum over nodes
	Allocatable corev1.ResourceList // sum over ready, schedulable nodes
	// Served has the versions at which the cluster serves each wanted kind, none for a kind that it does not serve. It
	// is nil before the first answer.
	Served map[schema.GroupKind][]string
}

// Links keeps the connections. It never waits for the network.
type Links interface {
	// Ensure makes or updates the link of a cluster. kubeconfig is the content of the Secret. Equal content changes
	// nothing. A changed token or certificate is used without a new cache. A changed address is connected before the
	// old link ends. expectedID is status.clusterID, empty before it is known: another ID behind the address gives
	// IdentityChanged.
	Ensure(cluster string, kubeconfig []byte, expectedID string)
	// Remove ends the link and removes its state.
	Remove(cluster string)
	// State returns the state of a link; false if there is none.
	State(cluster string) (LinkState, bool)
}
