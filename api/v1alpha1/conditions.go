package v1alpha1

// Condition types.
const (
	// ConditionReady of a MemberCluster: its watches deliver.
	ConditionReady = "Ready"
	// ConditionCredentialsValid of a MemberCluster: the kubeconfig is acceptable and the cluster takes its credentials.
	ConditionCredentialsValid = "CredentialsValid"
	// ConditionCredentialsExpireSoon of a MemberCluster: less than a third of the life of its credentials is left and they
	// were not renewed. False if they were not renewed although they should have been, and more time is left. Absent while
	// nothing is to be done.
	ConditionCredentialsExpireSoon = "CredentialsExpireSoon"
	// ConditionTopologyChanged of a MemberCluster: its nodes say another region than the pinned one.
	ConditionTopologyChanged = "TopologyChanged"
	// ConditionAnswersTooLarge of a MemberCluster: in the last minutes it answered more than it may. Absent while it did
	// not.
	ConditionAnswersTooLarge = "AnswersTooLarge"
	// ConditionUnclaimed of a MemberCluster: it has copies that no binding claims. Absent while there are none.
	ConditionUnclaimed = "Unclaimed"
	// ConditionAccepted of a policy: its spec can be followed.
	ConditionAccepted = "Accepted"
	// ConditionConflicted of an override policy: it says something else than another one of equal rank.
	ConditionConflicted = "Conflicted"
	// ConditionScheduled of a binding or placement: there is a decision.
	ConditionScheduled = "Scheduled"
	// ConditionApplied of a binding or placement: every target holds what is desired now.
	ConditionApplied = "Applied"
	// ConditionHealthy of a binding or placement: every target's object is healthy.
	ConditionHealthy = "Healthy"
	// ConditionContested of a binding: somebody on a member keeps changing what Hanse applies. Absent while nobody does.
	ConditionContested = "Contested"
	// ConditionRemovalHeld of a placement, or of a MemberCluster that leaves: copies are to go and stay until a user
	// confirms the removal. Absent if no removal was ever held.
	ConditionRemovalHeld = "RemovalHeld"
	// ConditionStatusWritten of a binding: the merged status is on the hub object.
	ConditionStatusWritten = "StatusWritten"
	// ConditionRowsTruncated of a binding: healthy rows were cut to stay within the size limit.
	ConditionRowsTruncated = "RowsTruncated"
	// ConditionObjectHealthy is added to the conditions of a hub object.
	ConditionObjectHealthy = Prefix + "Healthy"
)

// Reasons of a MemberCluster's conditions.
const (
	ReasonConnected          = "Connected"
	ReasonConnecting         = "Connecting"
	ReasonSecretMissing      = "SecretMissing"
	ReasonKubeconfigInvalid  = "KubeconfigInvalid"
	ReasonKubeconfigRefused  = "KubeconfigRefused"
	ReasonUnreachable        = "ClusterUnreachable"
	ReasonCertificateUnknown = "CertificateUnknown"
	ReasonUnauthorized       = "Unauthorized"
	ReasonForbidden          = "Forbidden"
	ReasonThrottled          = "Throttled"
	ReasonWatchesStalled     = "WatchesStalled"
	ReasonIdentityChanged    = "IdentityChanged"
	ReasonDuplicateCluster   = "DuplicateCluster"
	ReasonClusterIDClaimed   = "ClusterIDClaimed"
	ReasonLeaving            = "Leaving"
	ReasonCredentialsTaken   = "CredentialsTaken"
	ReasonRenewalRefused     = "RenewalRefused" // the cluster does not let the hub renew its token
	ReasonRenewalFailed      = "RenewalFailed"  // the hub tries again
	ReasonNotRenewable       = "NotRenewable"   // these credentials are not the hub's to renew
	ReasonTopologyStable     = "TopologyStable"
	ReasonNodesMoved         = "NodesMoved"
	ReasonAnswerTooLarge     = "AnswerTooLarge" // also of rows: the member answers more than it may
	ReasonCopiesUnclaimed    = "CopiesUnclaimed"
)

// Reasons of policies.
const (
	ReasonAccepted        = "Accepted"
	ReasonInvalid         = "Invalid"
	ReasonKindNotServed   = "KindNotServed" // also of rows: the member does not serve the kind
	ReasonNoConflict      = "NoConflict"
	ReasonOverrideClash   = "OverrideClash"
	ReasonNothingSelected = "NothingSelected"
	ReasonOtherFollowed   = "OtherPlacementFollowed" // what a placement selects follows another one
)

// Reasons of decisions: why a cluster was not chosen, or why an object is withdrawn or not scheduled.
const (
	ReasonNotSelected         = "NotSelected"
	ReasonExcluded            = "Excluded"
	ReasonExcludedByOverride  = "ExcludedByOverride" // a rule of an override policy keeps the object out of the cluster
	ReasonUnschedulable       = "Unschedulable"
	ReasonTaintNotTolerated   = "TaintNotTolerated"
	ReasonNamespaceNotAllowed = "NamespaceNotAllowed"
	ReasonClusterNotReady     = "ClusterNotReady"
	ReasonClusterLeaving      = "ClusterLeaving"
	ReasonObjectDeleted       = "ObjectDeleted"
	ReasonScheduled           = "Scheduled"
	ReasonNoClusterSelected   = "NoClusterSelected"
	ReasonPlacementGone       = "PlacementGone"
	ReasonSuspended           = "Suspended"
	ReasonHubWouldRun         = "HubWouldRun"
	ReasonNotFederated        = "NotFederated"       // the hub may not read this kind
	ReasonExpressionFalse     = "ExpressionFalse"    // clusters.expression over more than labels is false
	ReasonExpressionFailed    = "ExpressionFailed"   // clusters.expression gives no answer for the cluster
	ReasonVersionNotServed    = "VersionNotServed"   // the cluster serves the kind, not at the object's version
	ReasonTopologyMissing     = "TopologyMissing"    // the cluster lacks a topologyKey
	ReasonOtherAffinityGroup  = "OtherAffinityGroup" // another group of clusters holds the object
	ReasonNotChosen           = "NotChosen"          // enough clusters come before it
	ReasonSpreadConstraint    = "SpreadConstraint"   // a constraint leaves it out
	ReasonSpreadUnsatisfied   = "SpreadUnsatisfied"  // spread cannot hold with the clusters that there are
)

// Reasons of failover and drain.
const (
	ReasonEvicted          = "Evicted"          // of an entry: the cluster did not answer, and others took its place
	ReasonDrained          = "Drained"          // of an entry: the cluster was drained, and others took its place
	ReasonEvicting         = "Evicting"         // of a row: the copy is not counted and goes when its replacements are Healthy
	ReasonDraining         = "Draining"         // of a decision: the cluster is drained and gets nothing new
	ReasonNoReplacement    = "NoReplacement"    // of a decision and of Scheduled: no other cluster can take the place
	ReasonWantedEverywhere = "WantedEverywhere" // of a decision: the placement wants the object on every cluster, so that none can take the place
	ReasonTooManyAway      = "TooManyAway"      // of a decision and of Scheduled: so many clusters are away that the hub blames itself
	ReasonEvictionHeld     = "EvictionHeld"     // of a decision: it waits for its turn, or for the hub to make sure
)

// Reasons of removals that are held.
const (
	ReasonRemovalHeld      = "RemovalHeld"      // of a decision: the cluster is to lose the object and keeps it until a user confirms the removal
	ReasonTooManyRemovals  = "TooManyRemovals"  // of RemovalHeld: more copies would go than the limit of a placement or cluster allows
	ReasonLastCopy         = "LastCopy"         // of RemovalHeld: an object would have no copy any more
	ReasonRemovalConfirmed = "RemovalConfirmed" // of RemovalHeld: a user has confirmed it
	ReasonRemovalCancelled = "RemovalCancelled" // of RemovalHeld: nothing is to go any more
)

// Reasons of rows and of the conditions over them.
const (
	ReasonApplied            = "Applied"
	ReasonPending            = "Pending"
	ReasonAppliedEverywhere  = "AppliedEverywhere"
	ReasonFailedOnSome       = "FailedOnSome"
	ReasonNotYetReported     = "NotYetReported"
	ReasonHealthyEverywhere  = "HealthyEverywhere"
	ReasonDegradedOnSome     = "DegradedOnSome"
	ReasonProgressingOnSome  = "ProgressingOnSome"
	ReasonUnknownOnSome      = "UnknownOnSome"
	ReasonPartiallyUnknown   = "PartiallyUnknown" // some clusters are away, and all others are fine; also of conditions on hub objects
	ReasonAlreadyExists      = "AlreadyExists"
	ReasonOwnedByOther       = "OwnedByOther"
	ReasonFieldConflict      = "FieldConflict"
	ReasonFieldsNotServed    = "FieldsNotServed"
	ReasonOverrideInvalid    = "OverrideInvalid"
	ReasonOverrideConflict   = "OverrideConflict"
	ReasonManifestRefused    = "ManifestRefused"
	ReasonAdmissionDenied    = "AdmissionDenied"
	ReasonNamespaceMissing   = "NamespaceMissing"
	ReasonNamespaceRefused   = "NamespaceRefused"
	ReasonNamespaceTerminate = "NamespaceTerminating"
	// ReasonSecretTypeRefused and ReasonPodSecurityViolation: the object is not written, see package tenancy.
	ReasonSecretTypeRefused    = "SecretTypeRefused"
	ReasonPodSecurityViolation = "PodSecurityViolation"
	ReasonContested            = "Contested"
	ReasonPaused               = "Paused"
	ReasonServerError          = "ServerError"
	ReasonTooLarge             = "TooLarge"
	ReasonDeleting             = "Deleting"
	ReasonFinalizersRemain     = "FinalizersRemain" // the copy is being deleted and waits for finalizers that are not the hub's
	ReasonWithdrawn            = "Withdrawn"
	ReasonIsTemplate           = "IsTemplate"
	ReasonClusterMissing       = "ClusterMissing"
	ReasonTemplateMissing      = "TemplateMissing"
	ReasonCompleted            = "Completed"     // the copy ran to completion and is not made anew
	ReasonNotRecreated         = "NotRecreated"  // the copy vanished and apply.recreate is Never
	ReasonFieldsDropped        = "FieldsDropped" // applied without fields that the member does not know
	ReasonAutoscaled           = "Autoscaled"    // applied without fields that a HorizontalPodAutoscaler sets
	ReasonInSync               = "InSync"        // apply.mode is ReportOnly: nothing would change
	ReasonDiffers              = "Differs"       // apply.mode is ReportOnly: these fields would change
	ReasonMissing              = "Missing"       // apply.mode is ReportOnly: the object would be made
	ReasonHubIsOlder           = "HubIsOlder"    // the copy was written by a later state of the hub, see docs/backup.md
)

// Reasons of StatusWritten and RowsTruncated.
const (
	ReasonWritten             = "Written"
	ReasonBindingOnly         = "BindingOnly"
	ReasonNoStatusSubresource = "NoStatusSubresource"
	ReasonStatusOwnedByOther  = "StatusOwnedByOther"
	ReasonStatusRefused       = "StatusRefused"
	ReasonCoreWorkload        = "CoreWorkload"
	ReasonNothingToMerge      = "NothingToMerge"
	ReasonOverBudget          = "OverBudget"
	ReasonComplete            = "Complete"
)

// Reasons of divided replicas.
const (
	ReasonDivisionRefused     = "DivisionRefused"     // of Scheduled and Accepted: they cannot be divided as the placement asks
	ReasonReplicasUnplaced    = "ReplicasUnplaced"    // of Scheduled: the clusters have no room for all of them
	ReasonNoReplicas          = "NoReplicas"          // of a decision: the cluster would get a share of nothing
	ReasonPathOwnedByDivision = "PathOwnedByDivision" // of a row: an override changes the divided number
	ReasonNotDivided          = "NotDivided"          // of a row: there is no share for the cluster yet
)
