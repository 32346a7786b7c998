package v1alpha1

// Condition types.
const (
	// ConditionReady of a MemberCluster is True if the hub's watches on the cluster deliver events. For a placement or
	// override policy, it is True if all other conditions are good. For a NotificationSink, it is True if the receiver
	// accepts notifications.
	ConditionReady = "Ready"
	// ConditionCredentialsValid of a MemberCluster is True if the kubeconfig is valid and the cluster accepts its
	// credentials.
	ConditionCredentialsValid = "CredentialsValid"
	// ConditionCredentialsExpireSoon of a MemberCluster is True if less than a third of the lifetime of its credentials is
	// left, and they were not renewed. It is False if a renewal has failed or is not possible, but more than a third of
	// the lifetime is left. Otherwise the MemberCluster does not have this condition.
	ConditionCredentialsExpireSoon = "CredentialsExpireSoon"
	// ConditionTopologyChanged of a MemberCluster is True if the nodes of the cluster have a region or zone that
	// status.topology lacks. If a label of the MemberCluster sets the region or zone, the nodes are not compared with it.
	ConditionTopologyChanged = "TopologyChanged"
	// ConditionAnswersTooLarge of a MemberCluster is True if a response of the cluster in the last ten minutes was larger
	// than a limit of the hub. Otherwise the MemberCluster does not have this condition.
	ConditionAnswersTooLarge = "AnswersTooLarge"
	// ConditionUnclaimed of a MemberCluster is True if the cluster has copies of this hub that belong to no binding: the
	// object has no binding, or its binding does not list the cluster. Otherwise the MemberCluster does not have this
	// condition.
	ConditionUnclaimed = "Unclaimed"
	// ConditionStored of a bundle is True if the manifests of the bundle are valid, and the hub has stored their objects.
	ConditionStored = "Stored"
	// ConditionAccepted of a placement or override policy is True if its spec is valid, and the hub can read all selected
	// kinds.
	ConditionAccepted = "Accepted"
	// ConditionConflicted of an override policy is True if another policy sets the same field to another value, and no
	// order of precedence decides between the two.
	ConditionConflicted = "Conflicted"
	// ConditionScheduled of a binding is True if the hub has decided which clusters get the object, and the decision has
	// all clusters that the placement asks for. For a placement, it is True if this holds for all objects that follow the
	// placement.
	ConditionScheduled = "Scheduled"
	// ConditionApplied of a binding, placement or bundle is True if every cluster that shall hold a copy holds it with the
	// wanted content.
	ConditionApplied = "Applied"
	// ConditionHealthy of a binding, placement or bundle is True if the copies are healthy on all clusters that shall hold
	// them.
	ConditionHealthy = "Healthy"
	// ConditionContested of a binding is True if another field manager on a member repeatedly changes fields that the hub
	// sets. Otherwise the binding does not have this condition.
	ConditionContested = "Contested"
	// ConditionRolledOut of a placement with a rollout is True if all objects have their newest revision on all clusters.
	// A revision is one state of the hub object and its override rules.
	ConditionRolledOut = "RolledOut"
	// ConditionRemovalHeld of a placement, of a MemberCluster that is being deleted, or of a bundle that no longer
	// contains some objects, is True if copies stay until a user confirms their removal. If no removal was ever held, the
	// condition is missing.
	ConditionRemovalHeld = "RemovalHeld"
	// ConditionCertificateExpiresSoon of a FederatedOperator is True if a kept certificate of its chart expires within 30
	// days, or has expired. Otherwise the FederatedOperator does not have this condition.
	ConditionCertificateExpiresSoon = "CertificateExpiresSoon"
	// ConditionStatusWritten of a binding is True if the hub has written the merged status to the hub object.
	ConditionStatusWritten = "StatusWritten"
	// ConditionRowsTruncated of a binding is True if the hub has shortened rows, because all rows together were too large.
	// The rows of healthy copies are shortened first.
	ConditionRowsTruncated = "RowsTruncated"
	// ConditionObjectHealthy is the type of a condition that the hub adds to the status of a hub object. Its value is that
	// of the binding's condition Healthy.
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
	ReasonTunnelOff          = "TunnelOff"       // the type is Tunnel, and the hub listens for no agents
	ReasonPendingApproval    = "PendingApproval" // the type is Tunnel, and no key of an agent is set
	ReasonAgentAway          = "AgentAway"       // the type is Tunnel, and no agent is connected
	ReasonLeaving            = "Leaving"
	ReasonCredentialsTaken   = "CredentialsTaken"
	ReasonRenewalRefused     = "RenewalRefused" // the cluster does not let the hub renew its token
	ReasonRenewalFailed      = "RenewalFailed"  // the renewal failed, and the hub tries again
	ReasonNotRenewable       = "NotRenewable"   // the hub cannot renew credentials of this type
	ReasonTopologyStable     = "TopologyStable"
	ReasonNodesMoved         = "NodesMoved"
	ReasonAnswerTooLarge     = "AnswerTooLarge" // an answer of the member is too large; also in rows
	ReasonCopiesUnclaimed    = "CopiesUnclaimed"
)

// Reasons of policies.
const (
	ReasonAccepted        = "Accepted"
	ReasonInvalid         = "Invalid"
	ReasonRequestRefused  = "RequestRefused" // an annotation about rollouts has a time in the future; the spec is accepted
	ReasonKindNotServed   = "KindNotServed"  // the member does not serve the kind; also in rows
	ReasonNoConflict      = "NoConflict"
	ReasonOverrideClash   = "OverrideClash"
	ReasonNothingSelected = "NothingSelected"
	ReasonOtherFollowed   = "OtherPlacementFollowed" // all objects that a placement selects follow other placements
)

// Reasons of a NotificationSink.
const (
	ReasonDelivered         = "Delivered"
	ReasonDeliveryPending   = "DeliveryPending"   // the receiver has not answered yet
	ReasonDeliveryFailed    = "DeliveryFailed"    // the receiver does not answer, or refuses notifications
	ReasonSigningKeyInvalid = "SigningKeyInvalid" // the Secret does not exist, or has no key of Standard Webhooks
	ReasonSecretInvalid     = "SecretInvalid"     // the Secret does not exist, or lacks the entry for the format
)

// ReasonOperatorNotReady is the reason in the row of a cluster whose copy is not created yet. The operator that
// reconciles the kind of the object is not ready on the cluster.
const ReasonOperatorNotReady = "OperatorNotReady"

// Reasons that concern needed objects. A needed object is one that a field of a placed object names, such as its
// Secret. The field references of the placement has the path of this field.
const (
	ReasonReferenced        = "Referenced"        // the decision follows the objects that need the object
	ReasonNotReferenced     = "NotReferenced"     // no object on the cluster needs the object any more
	ReasonReferenceInvalid  = "ReferenceInvalid"  // the names of the needed objects cannot be read
	ReasonReferenceNotReady = "ReferenceNotReady" // of a row: the copy waits for a needed object on the cluster
)

// ReasonBundleNotReady is the reason in the row of a cluster whose copy is not created yet, because it waits for other
// objects of the bundle. A webhook configuration or APIService is created after the bundle's workloads and
// CustomResourceDefinitions are ready on the cluster, and after its other objects of Kubernetes exist there. A workload
// is created after the objects that its pods may need.
const ReasonBundleNotReady = "BundleNotReady"

// Reasons of the conditions of bundles. If the manifests of a bundle cannot be stored, the objects that were stored
// before stay.
const (
	ReasonStored                = "Stored"
	ReasonManifestInvalid       = "ManifestInvalid"       // a manifest cannot be an object of the bundle
	ReasonConfigMapMissing      = "ConfigMapMissing"      // a ConfigMap of the bundle does not exist
	ReasonAccountMayNot         = "AccountMayNot"         // the ServiceAccount of the bundle lacks a right on the hub
	ReasonIdentityTaken         = "IdentityTaken"         // another bundle, or the hub itself, has the object
	ReasonManifestLimit         = "ManifestLimit"         // the Bundles of the namespace have too many objects
	ReasonHubNamespaceMissing   = "HubNamespaceMissing"   // the hub does not have the namespace of an object
	ReasonChartInvalid          = "ChartInvalid"          // the chart of an operator cannot be rendered
	ReasonChartNotFetched       = "ChartNotFetched"       // the hub cannot fetch the chart from its repository
	ReasonRepositoryNotAllowed  = "RepositoryNotAllowed"  // the hub may not fetch charts from this repository
	ReasonUpgradeBlocked        = "UpgradeBlocked"        // a changed definition of an operator breaks objects in use
	ReasonUndoBlocked           = "UndoBlocked"           // the chart to return to breaks objects in use
	ReasonNonDeterministicChart = "NonDeterministicChart" // the chart of an operator renders differently each time
	ReasonValuesWouldChange     = "ValuesWouldChange"     // the chart generates other fields than those with kept values
	ReasonValuesNotKept         = "ValuesNotKept"         // a Secret of another type has the name of that with kept values
	ReasonCertificateExpires    = "CertificateExpires"    // of CertificateExpiresSoon
	ReasonNothingPlaced         = "NothingPlaced"         // no placement selects the bundle
	ReasonPartlyPlaced          = "PartlyPlaced"          // some objects follow no placement
)

// Reasons of decisions: why a cluster was not chosen, or why an object is withdrawn or not scheduled.
const (
	ReasonNotSelected         = "NotSelected"
	ReasonNotInRevision       = "NotInRevision" // the revision of the bundle on the cluster does not have the object
	ReasonExcluded            = "Excluded"
	ReasonExcludedByOverride  = "ExcludedByOverride" // a rule of an override policy keeps the object out of the cluster
	ReasonUnschedulable       = "Unschedulable"
	ReasonTaintNotTolerated   = "TaintNotTolerated"
	ReasonNamespaceNotAllowed = "NamespaceNotAllowed"
	ReasonClusterNotReady     = "ClusterNotReady"
	ReasonClusterLeaving      = "ClusterLeaving"
	ReasonObjectDeleted       = "ObjectDeleted"
	ReasonMadeAnew            = "MadeAnew" // of an entry and a row: the copy is of an earlier hub object of the same name
	ReasonScheduled           = "Scheduled"
	ReasonNoClusterSelected   = "NoClusterSelected"
	ReasonPlacementGone       = "PlacementGone"
	ReasonSuspended           = "Suspended"
	ReasonHubWouldRun         = "HubWouldRun"
	ReasonNotFederated        = "NotFederated"       // the hub may not read this kind
	ReasonKindUnreadable      = "KindUnreadable"     // of Scheduled: the hub cannot read the objects of a selected kind
	ReasonExpressionFalse     = "ExpressionFalse"    // clusters.expression, which reads more than labels, is false
	ReasonExpressionFailed    = "ExpressionFailed"   // the evaluation of clusters.expression fails for the cluster
	ReasonVersionNotServed    = "VersionNotServed"   // the cluster serves the kind, but not the object's version
	ReasonTopologyMissing     = "TopologyMissing"    // the cluster lacks the label of a topologyKey
	ReasonOtherAffinityGroup  = "OtherAffinityGroup" // another group of clusters holds the object
	ReasonNotChosen           = "NotChosen"          // enough other clusters have a better score
	ReasonSpreadConstraint    = "SpreadConstraint"   // a spread constraint excludes the cluster
	ReasonRevisionTooLarge    = "RevisionTooLarge"   // of Scheduled: the change is too large to be a revision
	ReasonSpreadUnsatisfied   = "SpreadUnsatisfied"  // the selected clusters cannot meet spread
)

// Reasons of failover and drain. In the comments below, an entry is an item of spec.clusters of a binding, a row is an
// item of its status.clusters, and a decision is its status.decision.
const (
	ReasonEvicted          = "Evicted"          // of an entry: the cluster did not answer, and other clusters replace it
	ReasonDrained          = "Drained"          // of an entry: the cluster was drained, and other clusters replace it
	ReasonEvicting         = "Evicting"         // of a row: the copy is withdrawn when its replacements are Healthy
	ReasonDraining         = "Draining"         // of a decision: the cluster is drained and gets no new objects
	ReasonNoReplacement    = "NoReplacement"    // of a decision and of Scheduled: no other cluster can take the object
	ReasonWantedEverywhere = "WantedEverywhere" // of a decision: the placement wants every cluster
	ReasonTooManyAway      = "TooManyAway"      // of a decision and Scheduled: too many clusters do not answer
	ReasonEvictionHeld     = "EvictionHeld"     // of a decision: the eviction waits for the rate limit, or for a probe
)

// Reasons of removals of copies that wait for the confirmation of a user. In the comments below, a decision is
// status.decision of a binding, and RemovalHeld is the condition of a placement, MemberCluster or bundle.
const (
	ReasonRemovalHeld      = "RemovalHeld"      // of a decision: the object stays until a user confirms its removal
	ReasonTooManyRemovals  = "TooManyRemovals"  // of RemovalHeld: more copies would be deleted than a limit allows
	ReasonLastCopy         = "LastCopy"         // of RemovalHeld: an object would lose its last copy
	ReasonRemovalConfirmed = "RemovalConfirmed" // of RemovalHeld: a user has confirmed the removal
	ReasonRemovalCancelled = "RemovalCancelled" // of RemovalHeld: the copies are wanted again
)

// Reasons of RolledOut.
const (
	ReasonRolloutComplete = "RolloutComplete"
	ReasonRolloutMoving   = "RolloutMoving"   // objects change, or wait for a wave
	ReasonRolloutFailed   = "RolloutFailed"   // an object has failed, and stops the rollouts of its placement
	ReasonRolledBack      = "RolledBack"      // objects have an older revision than the hub object
	ReasonBaselinePending = "BaselinePending" // objects have no revision yet, so no waves
)

// ReasonSuperseded is the reason of an event on an object. A new change of the object has begun although the previous
// revision had neither failed nor passed on all clusters.
const ReasonSuperseded = "Superseded"

// Reasons of events about a rollout, on the object and on its placement. The reasons RolloutFailed, RolledBack and
// RolloutComplete of the condition RolledOut are reasons of events, too.
const (
	ReasonWaveStarted        = "WaveStarted"        // the first cluster of a wave begins to change
	ReasonWaitingForApproval = "WaitingForApproval" // a user must approve a wave
	ReasonWaitingForClusters = "WaitingForClusters" // clusters of a wave cannot change, or have left
	ReasonRolloutApproved    = "RolloutApproved"    // the hub has recorded the approval of a wave
)

// Reasons of the rows of a binding, and of the conditions that summarize rows.
const (
	ReasonApplied            = "Applied"
	ReasonPending            = "Pending"
	ReasonAppliedEverywhere  = "AppliedEverywhere"
	ReasonFailedOnSome       = "FailedOnSome"
	ReasonWaitingOnSome      = "WaitingOnSome" // no cluster refuses the copy, and on some it waits for other objects or a user
	ReasonNotYetReported     = "NotYetReported"
	ReasonHealthyEverywhere  = "HealthyEverywhere"
	ReasonDegradedOnSome     = "DegradedOnSome"
	ReasonProgressingOnSome  = "ProgressingOnSome"
	ReasonUnknownOnSome      = "UnknownOnSome"
	ReasonPartiallyUnknown   = "PartiallyUnknown" // some clusters do not answer, all others are fine
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
	// ReasonSecretTypeRefused and ReasonPodSecurityViolation mean that the hub does not write the object to the cluster,
	// because package tenancy forbids it.
	ReasonSecretTypeRefused    = "SecretTypeRefused"
	ReasonPodSecurityViolation = "PodSecurityViolation"
	ReasonContested            = "Contested"
	ReasonPaused               = "Paused"
	ReasonServerError          = "ServerError"
	ReasonTooLarge             = "TooLarge"
	ReasonDeleting             = "Deleting"
	ReasonFinalizersRemain     = "FinalizersRemain"  // the deletion of the copy waits for finalizers of others
	ReasonDefinitionKept       = "DefinitionKept"    // a definition stays, because objects of its kind may exist
	ReasonStoredVersionKept    = "StoredVersionKept" // the member stores objects at a version that a definition lacks
	ReasonWithdrawn            = "Withdrawn"
	ReasonIsTemplate           = "IsTemplate"
	ReasonClusterMissing       = "ClusterMissing"
	ReasonTemplateMissing      = "TemplateMissing"
	ReasonCompleted            = "Completed"        // the copy ran to completion and is not created again
	ReasonNotRecreated         = "NotRecreated"     // the copy was deleted and apply.recreate is Never
	ReasonFieldsDropped        = "FieldsDropped"    // the copy lacks fields that the member does not know
	ReasonAutoscaled           = "Autoscaled"       // the copy lacks fields that a HorizontalPodAutoscaler sets
	ReasonChangedByCluster     = "ChangedByCluster" // the cluster has stored other values than the hub sent
	ReasonInSync               = "InSync"           // apply.mode is ReportOnly: no field would change
	ReasonDiffers              = "Differs"          // apply.mode is ReportOnly: these fields would change
	ReasonMissing              = "Missing"          // apply.mode is ReportOnly: the copy would be created
	ReasonRevisionMissing      = "RevisionMissing"  // the revision that the cluster shall hold is not stored any more
	ReasonHubIsOlder           = "HubIsOlder"       // the copy is from a later state of the hub, see docs/backup.md
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

// ReasonTooManyClusters is a reason of the condition Scheduled: a binding cannot store the decision.
const ReasonTooManyClusters = "TooManyClusters"

// Reasons of divided replicas. In the comments below, a decision is status.decision of a binding, a row is an item of
// its status.clusters, and Scheduled and Accepted are conditions.
const (
	ReasonDivisionRefused     = "DivisionRefused"     // of Scheduled and Accepted: the replicas cannot be divided
	ReasonReplicasUnplaced    = "ReplicasUnplaced"    // of Scheduled: the clusters have no room for all replicas
	ReasonNoReplicas          = "NoReplicas"          // of a decision: the cluster would get a share of zero replicas
	ReasonPathOwnedByDivision = "PathOwnedByDivision" // of a row: an override changes the divided number
	ReasonNotDivided          = "NotDivided"          // of a row: there is no share for the cluster yet
)
