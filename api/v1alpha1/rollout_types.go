package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// RolloutPolicy sends changes of an object to its clusters in waves. A change is a new template, a new set of override
// rules, or other values of apply.memberOwnedFields and apply.unknownFields.
//
// +kubebuilder:validation:XValidation:rule="!has(self.onFailure) || self.onFailure != 'Rollback' || !has(self.revisionHistoryLimit) || self.revisionHistoryLimit > 0",message="onFailure: Rollback needs a revision to return to: set revisionHistoryLimit to at least 1"
// +kubebuilder:validation:XValidation:rule="self.waves.all(w, self.waves.exists_one(o, o.name == w.name))",message="names of waves are unique"
type RolloutPolicy struct {
	// waves of clusters, in order. A cluster belongs to the first wave that selects it. A cluster that no wave selects
	// belongs to the last wave. 1 to 20.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	Waves []RolloutWave `json:"waves"`

	// settleSeconds groups the changes of several objects. A change belongs to the group of an object if it began at most
	// settleSeconds after the object's own change. An object enters a wave when all objects of its group have passed the
	// wave before. 0 to 600, default 5.
	// +optional
	// +kubebuilder:default=5
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=600
	SettleSeconds *int32 `json:"settleSeconds,omitempty"`

	// healthGate sets when a cluster has passed, and when it has failed.
	// +optional
	// +kubebuilder:default={}
	HealthGate RolloutGate `json:"healthGate,omitempty"`

	// onFailure Pause stops the change where it is. Rollback returns the clusters that have the change to the last
	// revision that passed on all clusters. A CustomResourceDefinition is never rolled back. Default Pause.
	// +optional
	// +kubebuilder:default=Pause
	OnFailure RolloutFailure `json:"onFailure,omitempty"`

	// windows are times in which clusters may begin to change. A cluster that has begun completes its change even after
	// the end of the window. Unset: at any time. At most 10.
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

	// revisionHistoryLimit is the number of old revisions that the hub keeps of each object. 0 to 10, default 10.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
}

// RolloutWave is a group of clusters that change together.
type RolloutWave struct {
	// name of the wave, a DNS label.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// clusters of the wave. A cluster must match all fields that are set. Unset: all clusters that no earlier wave
	// selects.
	// +optional
	Clusters *RuleClusters `json:"clusters,omitempty"`

	// soakSeconds is how long all clusters of the wave must stay healthy before the next wave begins. 0 to 2592000 (30
	// days), default 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2592000
	SoakSeconds int32 `json:"soakSeconds,omitempty"`

	// maxConcurrent is the maximum number of clusters of the wave that change at the same time. It is a number, or a
	// percentage of the wave that is rounded up. At least one cluster changes. Unset: all clusters of the wave.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]?|100)%$`
	MaxConcurrent *intstr.IntOrString `json:"maxConcurrent,omitempty"`

	// maxFailures is the number of clusters of the wave that may fail without stopping the change. 0 to 2000, default 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2000
	MaxFailures int32 `json:"maxFailures,omitempty"`

	// approval Manual makes the wave wait until a user approves it, as hansectl rollout approve does. Unset: Automatic.
	// +optional
	Approval RolloutApproval `json:"approval,omitempty"`
}

// RolloutApproval sets whether a wave waits for a user.
// +kubebuilder:validation:Enum=Automatic;Manual
type RolloutApproval string

const (
	// ApprovalAutomatic begins the wave when the wave before has passed.
	ApprovalAutomatic RolloutApproval = "Automatic"
	// ApprovalManual also waits until a user approves the wave.
	ApprovalManual RolloutApproval = "Manual"
)

// RolloutFailure sets what happens if a change fails.
// +kubebuilder:validation:Enum=Pause;Rollback
type RolloutFailure string

const (
	// FailurePause stops the change. Clusters that have the change keep it.
	FailurePause RolloutFailure = "Pause"
	// FailureRollback returns clusters to the last revision that passed on all clusters.
	FailureRollback RolloutFailure = "Rollback"
)

// UnreachableInWave sets what happens to clusters of a wave that do not answer.
// +kubebuilder:validation:Enum=Hold;Skip
type UnreachableInWave string

const (
	// UnreachableHold waits for the cluster. When the timeout of the health gate is over, the cluster has failed.
	UnreachableHold UnreachableInWave = "Hold"
	// UnreachableSkip leaves the cluster out. It gets the change when it answers.
	UnreachableSkip UnreachableInWave = "Skip"
)

// RolloutGate sets when a cluster has passed, and when it has failed.
type RolloutGate struct {
	// timeoutSeconds is how long a cluster may take from the decision to change until it is healthy. After this time it
	// has failed. 30 to 604800, default 900.
	// +optional
	// +kubebuilder:default=900
	// +kubebuilder:validation:Minimum=30
	// +kubebuilder:validation:Maximum=604800
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`

	// unreachable Hold waits for clusters that do not answer. Skip leaves them out. Default Hold.
	// +optional
	// +kubebuilder:default=Hold
	Unreachable UnreachableInWave `json:"unreachable,omitempty"`

	// minObservedSeconds is how long a copy must be healthy if its status has no observedGeneration, because such a status
	// may be older than the change. It is also how long a copy must be degraded or refused before its cluster has failed.
	// 0 to 86400, default 60.
	// +optional
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	MinObservedSeconds *int32 `json:"minObservedSeconds,omitempty"`
}

// RolloutWindow is a time in which clusters may begin to change.
type RolloutWindow struct {
	// schedule in the format of cron, with minute, hour, day of the month, month and day of the week: "0 2 * * 1-5". A
	// window opens at each such time.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Schedule string `json:"schedule"`

	// durationSeconds is how long the window stays open. 60 to 604800.
	// +required
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=604800
	DurationSeconds int32 `json:"durationSeconds"`

	// timeZone of the schedule, a name of the IANA database such as Asia/Shanghai. Default UTC.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone,omitempty"`
}

// RolloutPhase says what a rollout does, or for what it waits.
// +kubebuilder:validation:Enum=Progressing;Soaking;WaitingForApproval;WaitingForWindow;WaitingForOthers;Paused;Failed;RollingBack;RolledBack;Complete
type RolloutPhase string

const (
	// RolloutProgressing means that clusters of the wave change.
	RolloutProgressing RolloutPhase = "Progressing"
	// RolloutSoaking means that all clusters of the wave have changed and must stay healthy for soakSeconds.
	RolloutSoaking RolloutPhase = "Soaking"
	// RolloutWaitingForApproval means that a user must approve the wave.
	RolloutWaitingForApproval RolloutPhase = "WaitingForApproval"
	// RolloutWaitingForWindow means that the next clusters change when a window opens.
	RolloutWaitingForWindow RolloutPhase = "WaitingForWindow"
	// RolloutWaitingForOthers means that other objects of the placement change first, or that one of them has failed.
	RolloutWaitingForOthers RolloutPhase = "WaitingForOthers"
	// RolloutPaused means that a user has paused the rollouts of the placement.
	RolloutPaused RolloutPhase = "Paused"
	// RolloutFailed means that clusters have failed. The rollout waits for another change, or for a user.
	RolloutFailed RolloutPhase = "Failed"
	// RolloutRollingBack means that clusters return to the last revision that passed.
	RolloutRollingBack RolloutPhase = "RollingBack"
	// RolloutRolledBack means that all clusters have an older revision than the hub object.
	RolloutRolledBack RolloutPhase = "RolledBack"
	// RolloutComplete means that all clusters have the newest revision.
	RolloutComplete RolloutPhase = "Complete"
)

// BindingRollout is the state of the rollout of one object.
type BindingRollout struct {
	// revision that the clusters get, wave after wave.
	// +required
	// +kubebuilder:validation:Minimum=1
	Revision int64 `json:"revision"`

	// newest is the revision of the present hub object and its policies. It differs from revision after a rollback or an
	// undo.
	// +required
	// +kubebuilder:validation:Minimum=1
	Newest int64 `json:"newest"`

	// wave that is in progress, or that is next. Empty if all waves have passed.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Wave string `json:"wave,omitempty"`

	// phase says what the rollout does, or for what it waits.
	// +required
	Phase RolloutPhase `json:"phase"`

	// since is the time at which wave or phase last changed.
	// +required
	Since metav1.Time `json:"since"`

	// began is the time at which the hub first saw this change.
	// +required
	Began metav1.Time `json:"began"`

	// passed is the last revision that passed on all clusters. Unset: no revision has.
	// +optional
	Passed int64 `json:"passed,omitempty"`

	// failed is the revision that failed last. It is not tried again until the hub object or its policies change, or a
	// user promotes it. Unset: no revision has failed.
	// +optional
	Failed int64 `json:"failed,omitempty"`

	// rolledBack is the revision that has failed with the template that the hub object still has. Only policies have
	// changed since, so that the clusters get the newest policies with an older template. Unset: there is no such
	// revision.
	// +optional
	RolledBack int64 `json:"rolledBack,omitempty"`

	// undone is the value of the annotation hanse.dev/rollout-undo that this rollout follows or has followed.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Undone string `json:"undone,omitempty"`

	// message says for what the rollout waits, or why it failed. At most 512 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}

// ObjectRevision is one state of the inputs that determine the copies of an object. Its content is stored in Secrets in
// the hub's namespace.
type ObjectRevision struct {
	// number of the revision. A later change has a higher number.
	// +required
	// +kubebuilder:validation:Minimum=1
	Number int64 `json:"number"`

	// generation of the hub object with this revision.
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// template is the digest of the hub object without its status, UID and divided numbers.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Template string `json:"template"`

	// policies is the digest of the override rules that select the object, and of the fields of apply that change its
	// copies.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Policies string `json:"policies"`

	// time at which the hub first saw the revision.
	// +required
	Time metav1.Time `json:"time"`

	// passed is true if the revision has passed on all clusters.
	// +optional
	Passed bool `json:"passed,omitempty"`

	// supersededBy is the revision of a change that began before this revision had failed, or had passed on all clusters.
	// Unset: there is no such revision.
	// +optional
	SupersededBy int64 `json:"supersededBy,omitempty"`

	// templateOf is the earlier revision with the same template. It is set if only policies have changed after a rollback
	// or an undo. Unset: the template is the one that the hub object had.
	// +optional
	TemplateOf int64 `json:"templateOf,omitempty"`
}

// MostRevisions bounds BindingSpec.Revisions.
const MostRevisions = 32

// PlacementRollout counts the rollouts of a placement's objects.
type PlacementRollout struct {
	// wave of the objects that are furthest behind. Empty if no object is changing.
	// +optional
	Wave string `json:"wave,omitempty"`

	// phase of the object that is furthest behind, or Failed if an object has failed.
	// +required
	Phase RolloutPhase `json:"phase"`

	// objects has the numbers of objects by the state of their rollout.
	// +optional
	Objects RolloutObjects `json:"objects,omitempty"`

	// stopped names the object that stops the rollouts of this placement. Unset: no object stops them.
	// +optional
	Stopped *RolloutStop `json:"stopped,omitempty"`

	// message says for what the rollouts wait, or why they failed. At most 512 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}

// RolloutObjects counts objects.
type RolloutObjects struct {
	// moving is the number of objects that change now, or wait.
	// +optional
	// +kubebuilder:default=0
	Moving int32 `json:"moving"`

	// passed is the number of objects that have their newest revision on all clusters.
	// +optional
	// +kubebuilder:default=0
	Passed int32 `json:"passed"`

	// failing is the number of objects that have failed, or were rolled back.
	// +optional
	// +kubebuilder:default=0
	Failing int32 `json:"failing"`

	// pending is the number of objects without a revision. While an object has no revision, its changes are sent to all
	// clusters at once.
	// +optional
	// +kubebuilder:default=0
	Pending int32 `json:"pending"`
}

// RolloutStop is an object whose failure stops the rollouts of its placement.
type RolloutStop struct {
	// object as kind namespace/name.
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
