package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// RolloutPolicy sends changes of an object to its clusters in waves. A change is a new content of the hub object, a new
// set of override rules, or another value of apply.memberOwnedFields, apply.unknownFields or references with restart
// OnChange. A new number of divided replicas is no change.
//
// +kubebuilder:validation:XValidation:rule="!has(self.onFailure) || self.onFailure != 'Rollback' || !has(self.revisionHistoryLimit) || self.revisionHistoryLimit > 0",message="onFailure: Rollback needs a revision to return to: set revisionHistoryLimit to at least 1"
// +kubebuilder:validation:XValidation:rule="self.waves.all(w, self.waves.exists_one(o, o.name == w.name))",message="names of waves are unique"
type RolloutPolicy struct {
	// waves are groups of clusters. Each wave begins after the wave before it has passed. A cluster belongs to the first
	// wave that selects it. A cluster that no wave selects belongs to the last wave. 1 to 20.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	Waves []RolloutWave `json:"waves"`

	// settleSeconds makes objects that change at the same time wait for each other. An object begins a wave only after
	// certain other objects have passed the wave before: those whose changes began at most settleSeconds after its own
	// change. 0 to 600, default 5.
	// +optional
	// +kubebuilder:default=5
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=600
	SettleSeconds *int32 `json:"settleSeconds,omitempty"`

	// healthGate sets when a cluster of a wave has passed, and when it has failed.
	// +optional
	// +kubebuilder:default={}
	HealthGate RolloutGate `json:"healthGate,omitempty"`

	// onFailure sets what happens if a change fails. Pause stops the change: clusters that have the change keep it, and
	// the others do not get it. Rollback returns the clusters that have the change to the last revision that passed on all
	// clusters. A CustomResourceDefinition is never rolled back. Default Pause.
	// +optional
	// +kubebuilder:default=Pause
	OnFailure RolloutFailure `json:"onFailure,omitempty"`

	// windows are periods of time in which clusters may begin to change. A cluster that has begun to change may finish
	// after the end of the period. Unset: clusters may change at any time. At most 10.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Windows []RolloutWindow `json:"windows,omitempty"`

	// maxObjectsMoving is the maximum number of objects of this placement that change at the same time. 1 to 100000.
	// Unset: no limit.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	MaxObjectsMoving *int32 `json:"maxObjectsMoving,omitempty"`

	// revisionHistoryLimit is the number of old revisions of each object that the hub keeps. A revision is one state of
	// the object and its override rules. 0 to 10, default 10.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
}

// RolloutWave is a group of clusters that change in the same step of a rollout.
type RolloutWave struct {
	// name of the wave, which must be a DNS label.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// clusters of the wave. A cluster belongs to the wave if it matches all fields that are set. The expression cannot
	// read operators. Unset: all clusters that no earlier wave selects.
	// +optional
	Clusters *RuleClusters `json:"clusters,omitempty"`

	// soakSeconds is how long all clusters of the wave must stay healthy before the next wave begins. 0 to 2592000 (30
	// days), default 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2592000
	SoakSeconds int32 `json:"soakSeconds,omitempty"`

	// maxConcurrent is the maximum number of clusters of the wave that change at the same time. It is a number, or a
	// percentage of the clusters of the wave. A percentage is rounded up, and at least one cluster may change. Unset: all
	// clusters of the wave change at the same time.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]?|100)%$`
	MaxConcurrent *intstr.IntOrString `json:"maxConcurrent,omitempty"`

	// maxFailures is the number of clusters of the wave that may fail without stopping the change. 0 to 2000, default 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2000
	MaxFailures int32 `json:"maxFailures,omitempty"`

	// approval sets whether the wave waits for a user. With Manual, the wave waits until a user approves it with the
	// command hansectl rollout approve. Unset: Automatic, which does not wait.
	// +optional
	Approval RolloutApproval `json:"approval,omitempty"`
}

// RolloutApproval sets whether a wave waits for a user.
// +kubebuilder:validation:Enum=Automatic;Manual
type RolloutApproval string

const (
	// ApprovalAutomatic begins the wave as soon as the wave before it has passed.
	ApprovalAutomatic RolloutApproval = "Automatic"
	// ApprovalManual begins the wave when the wave before it has passed and a user has approved the wave.
	ApprovalManual RolloutApproval = "Manual"
)

// RolloutFailure sets what happens if a change fails.
// +kubebuilder:validation:Enum=Pause;Rollback
type RolloutFailure string

const (
	// FailurePause stops the change. Clusters that have the change keep it, and the others do not get it.
	FailurePause RolloutFailure = "Pause"
	// FailureRollback returns the clusters that have the change to the last revision that passed on all clusters.
	FailureRollback RolloutFailure = "Rollback"
)

// UnreachableInWave sets what happens if a cluster of a wave does not answer.
// +kubebuilder:validation:Enum=Hold;Skip
type UnreachableInWave string

const (
	// UnreachableHold makes the wave wait for the cluster. If the cluster is not healthy when timeoutSeconds of the
	// healthGate are over, it has failed.
	UnreachableHold UnreachableInWave = "Hold"
	// UnreachableSkip continues the wave without the cluster. The cluster gets the change when it answers.
	UnreachableSkip UnreachableInWave = "Skip"
)

// RolloutGate sets when a cluster of a wave has passed, and when it has failed.
type RolloutGate struct {
	// timeoutSeconds is how long a cluster may take to become healthy after the hub has decided to change its copy. After
	// this time, the cluster has failed. 30 to 604800, default 900.
	// +optional
	// +kubebuilder:default=900
	// +kubebuilder:validation:Minimum=30
	// +kubebuilder:validation:Maximum=604800
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`

	// unreachable sets what happens if a cluster does not answer. Hold waits for it. Skip continues without it. Default
	// Hold.
	// +optional
	// +kubebuilder:default=Hold
	Unreachable UnreachableInWave `json:"unreachable,omitempty"`

	// minObservedSeconds is how long a copy must be healthy before its cluster has passed, if the status of the copy has
	// no observedGeneration. Such a status may be older than the change. It is also how long a copy must be degraded, or
	// the write of the copy be refused, before the cluster has failed. 0 to 86400, default 60.
	// +optional
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	MinObservedSeconds *int32 `json:"minObservedSeconds,omitempty"`
}

// RolloutWindow is a repeated period of time in which clusters may begin to change.
type RolloutWindow struct {
	// schedule has the times at which the window opens, in the format of cron. Its fields are minute, hour, day of the
	// month, month and day of the week, such as "0 2 * * 1-5".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Schedule string `json:"schedule"`

	// durationSeconds is how long the window stays open. 60 to 604800.
	// +required
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=604800
	DurationSeconds int32 `json:"durationSeconds"`

	// timeZone of the schedule. It is a name of the IANA database, such as Asia/Shanghai. Default UTC.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone,omitempty"`
}

// RolloutPhase is the state of a rollout: what the rollout does, or for what it waits.
// +kubebuilder:validation:Enum=Progressing;Soaking;WaitingForApproval;WaitingForWindow;WaitingForOthers;WaitingForClusters;Paused;Failed;RollingBack;RolledBack;Complete
type RolloutPhase string

const (
	// RolloutProgressing means that clusters of the current wave change.
	RolloutProgressing RolloutPhase = "Progressing"
	// RolloutSoaking means that all clusters of the current wave have changed. They must stay healthy for the soakSeconds
	// of the wave.
	RolloutSoaking RolloutPhase = "Soaking"
	// RolloutWaitingForApproval means that a user must approve the next wave.
	RolloutWaitingForApproval RolloutPhase = "WaitingForApproval"
	// RolloutWaitingForWindow means that the next clusters change when a window of the policy opens.
	RolloutWaitingForWindow RolloutPhase = "WaitingForWindow"
	// RolloutWaitingForOthers means that the object waits for other objects of the same placement: they change first, one
	// of them has failed, or maxObjectsMoving of them are changing.
	RolloutWaitingForOthers RolloutPhase = "WaitingForOthers"
	// RolloutWaitingForClusters means that clusters of the current wave cannot change, or can no longer show whether the
	// change works: they are cordoned or suspended, the removal of their copies is held, or they have left.
	RolloutWaitingForClusters RolloutPhase = "WaitingForClusters"
	// RolloutPaused means that a user has paused the rollouts of the placement.
	RolloutPaused RolloutPhase = "Paused"
	// RolloutFailed means that clusters have failed. The rollout waits until the object or its policies change, or until a
	// user acts.
	RolloutFailed RolloutPhase = "Failed"
	// RolloutRollingBack means that clusters return to the last revision that passed on all clusters.
	RolloutRollingBack RolloutPhase = "RollingBack"
	// RolloutRolledBack means that all clusters hold an older revision than that of the hub object.
	RolloutRolledBack RolloutPhase = "RolledBack"
	// RolloutComplete means that all clusters hold the newest revision.
	RolloutComplete RolloutPhase = "Complete"
)

// BindingRollout is the state of the rollout of one object.
type BindingRollout struct {
	// revision that the clusters get, wave after wave.
	// +required
	// +kubebuilder:validation:Minimum=1
	Revision int64 `json:"revision"`

	// newest is the revision of the present hub object and its policies. After a rollback or an undo, the clusters get an
	// older revision, and newest differs from revision.
	// +required
	// +kubebuilder:validation:Minimum=1
	Newest int64 `json:"newest"`

	// wave is the name of the wave that is in progress, or that is next. Empty: all waves have passed.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Wave string `json:"wave,omitempty"`

	// phase says what the rollout does, or for what it waits.
	// +required
	Phase RolloutPhase `json:"phase"`

	// since is the time at which wave or phase last changed.
	// +required
	Since metav1.Time `json:"since"`

	// began is the time at which the hub first saw the change that is in progress. It is later than the time of each
	// approval, skip and promotion that users gave before.
	// +required
	Began metav1.Time `json:"began"`

	// start says why the clusters get the revision. Waves wait for approvals only if start is unset: the revision is a
	// change of the hub object or its policies.
	// +optional
	Start RolloutStart `json:"start,omitempty"`

	// waveBegan is the time at which the first cluster of the current wave began to change. Unset: no cluster of the wave
	// has begun.
	// +optional
	WaveBegan *metav1.Time `json:"waveBegan,omitempty"`

	// passedWaves are the waves that the change has passed. After the revision has passed on all clusters, only the
	// approved waves stay.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=20
	PassedWaves []PassedWave `json:"passedWaves,omitempty"`

	// passed is the number of the last revision that was healthy on a cluster of each wave, and on all clusters for which
	// the waves waited. A rollback returns to it. Unset: there is no such revision.
	// +optional
	Passed int64 `json:"passed,omitempty"`

	// failed is the number of the revision that failed last. The hub does not try this revision again until the hub object
	// or its policies change, or until a user promotes it. Unset: no revision has failed.
	// +optional
	Failed int64 `json:"failed,omitempty"`

	// rolledBack is the number of a revision that failed. It is set if, since the failure, only override rules have
	// changed: the hub object still has the content that failed. The clusters then get the newest override rules with an
	// older content of the object. Unset: there is no such revision.
	// +optional
	RolledBack int64 `json:"rolledBack,omitempty"`

	// undone is the value of the annotation hanse.dev/rollout-undo that this rollout follows or has followed. The hub
	// follows each value only once. Unset: the hub has followed no value, or a user has removed the annotation.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Undone string `json:"undone,omitempty"`

	// message says for what the rollout waits, or why it failed. At most 512 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}

// RolloutStart says why clusters get a revision, other than by a change of the hub object or its policies.
// +kubebuilder:validation:Enum=First;Return;Promotion
type RolloutStart string

const (
	// StartFirst means that the revision is the first one of the object. All clusters get it at once.
	StartFirst RolloutStart = "First"
	// StartReturn means that a rollback or an undo returns the clusters to a revision that has passed.
	StartReturn RolloutStart = "Return"
	// StartPromotion means that a user has sent the revision to all clusters at once.
	StartPromotion RolloutStart = "Promotion"
)

// PassedWave is a wave that a change has passed.
type PassedWave struct {
	// name of the wave.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// healthy is true if a cluster of the wave was healthy with the revision. It is false if the wave had no clusters, or
	// passed without all of them.
	// +optional
	Healthy bool `json:"healthy,omitempty"`

	// approved is true if clusters that join the wave get the revision at once: a user has approved the wave, or the wave
	// needs no approval.
	// +optional
	Approved bool `json:"approved,omitempty"`
}

// ObjectRevision is one revision: one state of the hub object, and of the override rules and settings that determine
// its copies. Its content is stored in Secrets in the hub's namespace.
type ObjectRevision struct {
	// number of the revision. A later change has a higher number.
	// +required
	// +kubebuilder:validation:Minimum=1
	Number int64 `json:"number"`

	// generation of the hub object in this revision.
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// template is a digest of the hub object. It does not include the status, the UID, and the numbers that are divided
	// among clusters.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Template string `json:"template"`

	// policies is a digest of the override rules that select the object, and of the placement's settings that change its
	// copies.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Policies string `json:"policies"`

	// time at which the hub first saw this revision.
	// +required
	Time metav1.Time `json:"time"`

	// passed is true if this revision was healthy on a cluster of each wave, and on all clusters for which the waves
	// waited.
	// +optional
	Passed bool `json:"passed,omitempty"`

	// supersededBy is the number of a later revision. The change to that revision began when this revision had neither
	// failed nor passed on all clusters. Unset: there is no such revision.
	// +optional
	SupersededBy int64 `json:"supersededBy,omitempty"`

	// templateOf is the number of the earlier revision from which this one has the content of the object. It is set if
	// only override rules have changed since a rollback or an undo. Unset: the content is that of the hub object at the
	// time of this revision.
	// +optional
	TemplateOf int64 `json:"templateOf,omitempty"`
}

// MaxRevisions bounds BindingSpec.Revisions.
const MaxRevisions = 32

// PlacementRollout summarizes the rollouts of a placement's objects.
type PlacementRollout struct {
	// wave is the wave of the objects that are furthest behind. Empty: no object is changing.
	// +optional
	Wave string `json:"wave,omitempty"`

	// phase is the phase of the object that the field stopped names. If stopped is unset, it is the phase of the object
	// that is furthest behind.
	// +required
	Phase RolloutPhase `json:"phase"`

	// object is the object that is furthest behind. Of several such objects, it is one that waits for a user. Empty: no
	// object is changing.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Object string `json:"object,omitempty"`

	// revision that the clusters of this object get.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// waveBegan is the earliest time at which a cluster of the wave began to change, of all objects in this wave. Unset:
	// no cluster of the wave has begun.
	// +optional
	WaveBegan *metav1.Time `json:"waveBegan,omitempty"`

	// objects has the number of objects in each state of a rollout.
	// +optional
	Objects RolloutObjects `json:"objects,omitempty"`

	// stopped names an object whose failure stops the rollouts of this placement. Unset: no object stops them.
	// +optional
	Stopped *RolloutStop `json:"stopped,omitempty"`

	// approvals, skips and promotion are the requests of users that the hub has read from the annotations of the
	// placement. The hub reads each request once, and its rollouts follow only these records. The hub keeps a record as
	// long as the annotation has the request, or a change to which the request applies lacks a cluster.

	// approvals are the approved waves. At most 100.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Approvals []RolloutRequest `json:"approvals,omitempty"`

	// skips are the clusters and waves for which no change waits. At most 100.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Skips []RolloutRequest `json:"skips,omitempty"`

	// promotion is the request to send the changes to all clusters at once. Unset: there is no such request.
	// +optional
	Promotion *RolloutRequest `json:"promotion,omitempty"`

	// message says for what the rollouts wait, or why they failed. At most 512 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}

// RolloutRequest is a request of a user about the rollouts of a placement. It applies to changes that began at or
// before its time.
type RolloutRequest struct {
	// wave that a user has approved or skipped.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Wave string `json:"wave,omitempty"`

	// cluster that a user has skipped.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Cluster string `json:"cluster,omitempty"`

	// reason of a promotion.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`

	// time of the request, from the annotation.
	// +required
	Time metav1.Time `json:"time"`

	// by is the user who changed the placement last when the hub read the request. Unset: the hub does not know the user.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	By string `json:"by,omitempty"`

	// refused is true if the time was in the future when the hub read the request. Such a request never applies.
	// +optional
	Refused bool `json:"refused,omitempty"`
}

// RolloutObjects counts objects.
type RolloutObjects struct {
	// moving is the number of objects whose change is in progress, or waits.
	// +optional
	// +kubebuilder:default=0
	Moving int32 `json:"moving"`

	// passed is the number of objects that have their newest revision on all clusters.
	// +optional
	// +kubebuilder:default=0
	Passed int32 `json:"passed"`

	// failing is the number of objects whose change has failed or was rolled back.
	// +optional
	// +kubebuilder:default=0
	Failing int32 `json:"failing"`

	// pending is the number of objects for which no revision is stored yet. The changes of such an object are sent to all
	// clusters at once.
	// +optional
	// +kubebuilder:default=0
	Pending int32 `json:"pending"`
}

// RolloutStop is an object whose failure stops the rollouts of its placement.
type RolloutStop struct {
	// object whose change failed, such as "Deployment shop/web".
	// +required
	// +kubebuilder:validation:MaxLength=400
	Object string `json:"object"`

	// revision that failed.
	// +required
	Revision int64 `json:"revision"`

	// since is the time of the failure.
	// +required
	Since metav1.Time `json:"since"`
}
