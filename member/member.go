// Package member is the interface between the hub and its member clusters. It defines the types and interfaces that the
// hub's controllers use, without implementations.
//
//   - member/connect keeps the link to each cluster and reports whether its watches deliver events.
//   - member/apply writes one object to one cluster and returns an Outcome.
//   - member/discovery caches which kinds a cluster serves, and with which fields.
//   - member/cache watches the copies and keeps one Observation for each.
//   - member/health judges one object, without I/O.
//
// After a restore of the hub from a backup, a copy may be newer than the hub: a later state of the hub has written it
// (package epoch).
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
	"github.com/hanse-dev/hanse/member/credential"
	"github.com/hanse-dev/hanse/member/epoch"
	"github.com/hanse-dev/hanse/member/openapi"
)

// ErrNotConnected means that the cluster cannot be reached now, or is not registered.
var ErrNotConnected = errors.New("the member cluster is not connected")

// Fleet gives access to connected member clusters. It never waits for the network.
type Fleet interface {
	// Get returns the member with this name. It returns ErrNotConnected while the hub has no working connection to the
	// member.
	Get(cluster string) (Cluster, error)
}

// Cluster is one connected member. Methods with a context send requests to the cluster and return within its request
// timeout. The other methods answer from memory.
type Cluster interface {
	// Name returns the name of the MemberCluster that describes this member.
	Name() string
	// IsHub reports whether this member is the hub's own cluster, to which the hub writes no copies.
	IsHub() bool
	// Fit returns the manifest without the fields that are not in the cluster's schema of the kind, and the paths of
	// these fields. It returns the manifest itself if the schema has all its fields, or if the cluster publishes no
	// readable schema.
	Fit(ctx context.Context, manifest *unstructured.Unstructured) (fitting *unstructured.Unstructured, unserved []string)
	// Schema returns the cluster's schema of a kind, or nil if the cluster publishes no readable schema.
	Schema(ctx context.Context, gvk schema.GroupVersionKind) *openapi.Schema
	// Misfits returns the values of a manifest that violate the cluster's schema of the kind. The result is empty if the
	// cluster publishes no readable schema.
	Misfits(ctx context.Context, manifest *unstructured.Unstructured) []Misfit
	// Apply writes one object to the cluster. If it cannot, the outcome has the reason. Apply logs nothing.
	Apply(ctx context.Context, in ApplyIntent) Outcome
	// Withdraw deletes or orphans the copy of one hub object. Withdraw logs nothing.
	Withdraw(ctx context.Context, in WithdrawIntent) Outcome
	// Observe starts to watch objects of this kind on the cluster for a holder, which is the binding that needs them. A
	// second call for the same holder changes nothing.
	Observe(gvk schema.GroupVersionKind, holder types.NamespacedName)
	// Forget records that a holder, which is a binding, no longer needs the kind. The watch of the kind stops when no
	// binding needs it.
	Forget(gvk schema.GroupVersionKind, holder types.NamespacedName)
	// Observation returns the last observed state of an object. found is false if there is none. synced is false until the
	// kind's first list has been delivered, and while the cluster does not serve the kind. If synced is true and found is
	// false, the cluster holds no such object with the hub's label.
	Observation(gvk schema.GroupVersionKind, key types.NamespacedName) (o Observation, found, synced bool)
	// Unwatched returns why the kind's watch fails, so that observations may be outdated. The result is nil while the
	// watch works, while the kind is not observed, and while the cluster does not serve the kind.
	Unwatched(gvk schema.GroupVersionKind) *WatchFailure
}

// WatchFailure is the reason why the watch of a kind fails.
type WatchFailure struct {
	// Reason says why the watch fails, such as Forbidden; see package informer. Message is the error of the last attempt.
	Reason, Message string
	// Since is the time of the first failure after the watch last worked, or after the hub last connected to the cluster.
	Since time.Time
}

// Misfit is a value in a manifest that violates a schema.
type Misfit struct {
	// Path is the JSON pointer of the value that violates the schema.
	Path string
	// Declared is Path with "*" for each step that the schema does not name: an index, or a key of a map.
	Declared string
	// Message is the requirement of the schema, such as "must be an integer".
	Message string
	// Value is the value as JSON, cut to a maximum length. It is empty if the value is a map or a list, or is missing.
	Value string
}

// Observation has the data of one member object that the hub keeps in memory. Its size does not grow with the spec.
type Observation struct {
	GVK       schema.GroupVersionKind
	Namespace string
	Name      string

	CopyState
	Deleting bool // the object has a deletionTimestamp

	Owner    hubv1.ObjectIdentity // from the owner annotation; zero if the annotation is missing or unreadable
	OwnerUID types.UID            // UID of the hub object, from the owner annotation
	Source   epoch.Mark           // from the annotations for the mark
	Paused   time.Time            // from the pause annotation; zero if the annotation is missing or unreadable

	Assessment
	// Observed has the kept fields of the copy's status, as canonical JSON of at most 512 bytes. It is nil if the copy
	// has no status.
	Observed []byte
	// ObservedGeneration is status.observedGeneration, or the lowest generation in the conditions. It is -1 if the
	// object has neither.
	ObservedGeneration int64
}

// CopyState identifies one state of a member object.
type CopyState struct {
	UID             types.UID
	ResourceVersion string
	Generation      int64
	Digest          string // of the manifest, see ApplyIntent.Digest
	Hash            string // of the content, see member/content.Hash
	Adopted         bool   // the object was on the cluster before the hub adopted it
}

// Assessment is the health of an object on a member, with the reason.
type Assessment struct {
	Health        hubv1.Health
	HealthReason  string
	HealthMessage string
}

// ApplyIntent is the request to write one object to one cluster.
type ApplyIntent struct {
	// Manifest is the rendered object without the hub's labels and annotations, which Apply adds. Apply does not change
	// it.
	Manifest *unstructured.Unstructured
	// Whole is the manifest with the fields that it leaves out because the hub's API server has filled them in. An earlier
	// version of the hub has sent these fields. Where the copy still has such a value, Apply keeps the value, and the hub
	// gives up the field. Whole is nil if there are no such fields, or if the hub owns none of them on the copy.
	Whole    *unstructured.Unstructured
	Owner    hubv1.ObjectIdentity
	OwnerUID types.UID
	// OfOperator is true for an object of a FederatedOperator, which may be in kube-system: see package system.
	OfOperator bool
	// Digest is computed from the manifest, and from the settings of the placement that change how the hub applies it.
	Digest string

	Known
	ApplySettings

	// Adopting is the UID of an unmanaged object that the hub adopts, in the way that Adoption allows. If it is set,
	// Apply writes to no other object and creates none.
	Adopting types.UID
	// Again is true if the cluster stored other values than the last write sent. Apply then writes even if nothing has
	// changed since.
	Again bool
	// KeepAway is true if the cluster held the copy before and must not get it again. If the copy is missing, Apply does
	// not create it, and the outcome has the reason NotRecreated.
	KeepAway bool
	// Source is the state of the hub from which the manifest was rendered. Apply does not overwrite a copy that is newer,
	// and the outcome has the reason HubIsOlder.
	Source epoch.State
	// NamespaceLabels are the pod-security labels of the hub's namespace. Apply sets them on a namespace that it
	// creates on demand.
	NamespaceLabels map[string]string
}

// Known is what the hub knows about the copy before it writes. After each successful write, the row in the binding
// records the UID, the digest and the content hash of the copy. The fields with Confirmed in their name have these
// recorded values.
type Known struct {
	// Confirmed is the content hash in the row of the binding. It is empty if the binding has no row for the cluster.
	Confirmed string
	// Observed is the resourceVersion of the copy in the last watch event, or empty. It is set only if the copy in this
	// event has the content hash Confirmed, is not paused and is not being deleted. If it is set, Apply may write without
	// a read, on the condition that the copy still has this version.
	Observed string
	// Unknown is true if the hub knows of no object of this name on the cluster. Apply then creates the object without a
	// read, and reads it only if it exists.
	Unknown bool
	// ConfirmedUID is the UID of the copy in the row of the binding. An object with this UID is the hub's copy even if
	// some of its labels or annotations were removed.
	ConfirmedUID types.UID

	// Adopted is true if the hub had adopted the copy with ConfirmedUID.
	Adopted bool
	// Orphaned is the copy that the hub orphaned on this cluster. It is nil if the hub orphaned none. Apply adopts the
	// object with the UID of this copy again, even if Adoption forbids adoption.
	Orphaned *hubv1.OrphanedCopy
}

// ApplySettings are the apply settings of the placement, with defaults filled in.
type ApplySettings struct {
	// Mode ReportOnly means that Apply writes nothing. The outcome then says what a write would change.
	Mode hubv1.ApplyMode
	// MemberOwned are JSON pointers to fields that the hub sets when it creates the object, and does not change
	// afterwards.
	MemberOwned     []string
	Adoption        hubv1.Adoption
	FieldConflict   hubv1.FieldConflict
	CreateNamespace bool
}

// WithdrawIntent is the request to delete or orphan one copy on a cluster.
type WithdrawIntent struct {
	GVK      schema.GroupVersionKind
	Owner    hubv1.ObjectIdentity
	OwnerUID types.UID // UID of the hub object of the copy
	// ConfirmedUID and ConfirmedDigest are the UID and the digest of the copy in the row of the binding. If the object on
	// the cluster has both, it is the hub's copy, even if its annotation names an earlier hub object of the same name.
	ConfirmedUID    types.UID
	ConfirmedDigest string
	// Source is the state of the hub in which the withdrawal was decided. A copy that is newer stays on the cluster, and
	// the outcome has the reason HubIsOlder.
	Source epoch.State

	// Adopted is true if the hub had adopted the copy with ConfirmedUID.
	Adopted bool

	// Seen is the state of the copy in a live watch. It is nil if no watch has shown the copy. If Seen proves that the
	// copy may be deleted, Withdraw deletes exactly this version, without a read.
	Seen *Observation

	Policy hubv1.RemovalPolicy
	// PolicyIfAdopted is the policy for an adopted copy if Policy is Delete. A copy counts as adopted if the field Adopted
	// or an annotation of the copy says so.
	PolicyIfAdopted hubv1.RemovalPolicy
	Propagation     metav1.DeletionPropagation
}

// Retry says when the caller tries again.
type Retry int

const (
	// RetryNever: only a change of the hub object, of a policy or of the member's object can help. The event of this
	// change makes the controller try again.
	RetryNever Retry = iota
	// RetrySoon: retry after 0.2 s. The pause doubles with each further try, up to 60 s, with jitter.
	RetrySoon
	// RetrySlowly: only a change on the member can help, of which the hub may get no event. Retry after 30 s. The pause
	// doubles with each further try, up to 5 min.
	RetrySlowly
	// RetryAfter: retry after the pause in Outcome.After. The server has asked for this pause, or the copy is paused for
	// this time.
	RetryAfter
)

// Outcome is the result of one call of Apply or Withdraw.
type Outcome struct {
	// Applied is True if the cluster has carried out the request. It is False if the cluster refused the request or has
	// not completed it, and Unknown if the cluster could not be reached.
	Applied metav1.ConditionStatus
	// Reason is a constant of api/v1alpha1. Message says what the user can do, in at most 256 characters.
	Reason, Message string

	// Changed names the fields that the cluster stores with other values than the hub sent, see ChangedMessage. It is
	// empty if the cluster stores all values, and if the call has not compared them.
	Changed string

	// CopyState is the state of the object on the member after the call. It is empty if the call has not seen the object.
	// Its fields Adopted and Digest are set only if Applied is True. Digest is the digest of the intent. If Withdraw
	// leaves an object that is not a copy, UID is the UID of that object, and the caller does not wait for its deletion.
	CopyState
	// Newer is set if Reason is HubIsOlder: the hub was restored from a backup, and has written the copy in a later state
	// than the current one. Newer has this later state, and whether the copy was written for the same hub object.
	Newer Newer
	// Orphaned is the orphaned copy. It is set if Reason is Withdrawn and the copy stays on the cluster. The caller of
	// Withdraw sets the ClusterID in Orphaned.
	Orphaned *hubv1.OrphanedCopy
	// HubState is the state of the hub object from which the manifest was rendered. The caller of Apply sets this field.
	HubState

	// Wrote is true if the call of Apply or Withdraw changed the object on the member.
	Wrote bool
	// Drifted has up to 3 fields that other managers changed on the member, with these managers. The outcome's Reason
	// says whether Apply has restored them.
	Drifted []FieldDrift

	// Last is the last observed state of the copy. It is set if Reason is Completed, which means that the copy has run to
	// completion. The caller of Apply sets it.
	Last *Observation

	Retry Retry
	After time.Duration // the delay for RetryAfter
}

// HubState identifies one state of a hub object.
type HubState struct {
	HubGeneration int64
	// HubRevision is the number of the stored revision from which the manifest was rendered. A revision is one state of a
	// hub object and its override rules. HubRevision is 0 for the newest state.
	HubRevision int64
	// HubContent is a number that differs between contents of the hub object. It is comparable only within this
	// process. The hub needs it because many kinds have no generation.
	HubContent uint64
	// HubVersion is the version of the operator to which the object belongs. It is empty for any other object.
	HubVersion string
}

// Newer describes a copy that a later state of the hub wrote than the current one. This is possible after a restore of
// the hub from a backup. Mark is the later state.
type Newer struct {
	Mark       epoch.Mark
	SameObject bool
}

// FieldDrift is a field of the hub that another manager has changed.
type FieldDrift struct {
	Path    string // such as .spec.replicas
	Manager string // field manager on the member, or "unknown"
}

// ObservationHandler is called for every change of an observation. content is false if only the health or the status
// changed. gone is true if the object was deleted, and o is then its last observation.
type ObservationHandler func(cluster string, o Observation, content, gone bool)

// LinkState is the state of the hub's link to one cluster.
type LinkState struct {
	// Ready is True if the cluster answers requests and its watches deliver events. Otherwise it is False, with a reason.
	// It is Unknown until the first connection attempt has ended.
	Ready           metav1.ConditionStatus
	Reason, Message string
	// Credentials is False, with a reason, if the hub refuses the kubeconfig or the cluster refuses its credentials. It
	// is Unknown if the cluster could not be reached.
	Credentials        metav1.ConditionStatus
	CredentialsReason  string
	CredentialsMessage string
	// InUse are the credentials that the link uses. It is zero if the link uses none. The link uses new credentials
	// only after the cluster has accepted them.
	InUse credential.Credential
	// TooLarge names a recent response of the cluster that exceeded a limit. It is empty if there was none.
	TooLarge string
	// LastObserved is the time of the last watch event from the cluster. It is updated with each probe. It is zero before
	// the first event. Other responses do not change it, because they do not prove that watches deliver events.
	LastObserved time.Time
	// Facts are the facts about the cluster, such as its version and nodes, from the last read. They are zero before the
	// first read.
	Facts Facts
}

// Facts are data about a cluster. The hub reads them from the cluster's version, nodes and discovery.
type Facts struct {
	ClusterID  string // UID of the namespace kube-system
	Kubernetes string // version, such as v1.36.3
	// Region is the region of all nodes, or empty if the nodes have different regions. Zones are the sorted zones of
	// the nodes.
	Region      string
	Zones       []string
	Nodes       hubv1.NodeSummary
	Capacity    corev1.ResourceList // sum over all nodes
	Allocatable corev1.ResourceList // sum over the nodes that are ready and schedulable
	// Served has, for each wanted kind, the versions at which the cluster serves it. The list is empty for a kind that
	// the cluster does not serve. It is nil until the cluster has answered for the first time.
	Served map[schema.GroupKind][]string
}

// Links manages the links to all clusters. A link is the connection of the hub to one cluster. No method waits for the
// network.
type Links interface {
	// Ensure creates or updates the link of a cluster, which reaches the cluster by the route. A call with equal arguments
	// changes nothing. With a new token or certificate, the existing clients and caches stay. With a new address, the link
	// connects to it before the old connection ends. expectedID is status.clusterID, or empty while it is not known. If
	// the cluster has another ID, the link gets the reason IdentityChanged.
	Ensure(cluster string, route Route, expectedID string)
	// Remove ends the link of a cluster, which is the hub's connection, and removes the state of the link.
	Remove(cluster string)
	// State returns the state of a cluster's link. It returns false if the cluster has no link.
	State(cluster string) (LinkState, bool)
}
