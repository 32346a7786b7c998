package v1alpha1

const (
	// SystemNamespace has the hub's own objects and all Secrets with credentials.
	SystemNamespace = "hanse-system"

	// Prefix is the prefix of every label, annotation and finalizer of Hanse. The hub never copies keys with this prefix
	// to members.
	Prefix = "hanse.dev/"

	// HubLabel is set on every object that a hub writes to a member. Its value is the UID of the hub's namespace
	// kube-system. The hub watches only objects of members that have this label. The label does not prove that an object
	// is a copy, because operators copy labels to other objects.
	HubLabel = Prefix + "hub"

	// OwnerAnnotation on a member's object names the one hub object of which it is the copy. ObjectIdentity.Owner makes
	// its value.
	OwnerAnnotation = Prefix + "owner"

	// DigestAnnotation on a copy has the digest of the manifest that the hub last applied to it.
	DigestAnnotation = Prefix + "digest"

	// ReloadAnnotation is set on the pod template in a copy. Its value is a digest of the ConfigMaps and Secrets that the
	// pods read, so that the pods restart when one of them changes. See ReferenceRule.Restart.
	ReloadAnnotation = Prefix + "reload"

	// SourceAnnotation on a copy names the state of the hub that wrote it. Its value has the generation of the hub object
	// and the hub's epoch, such as 7;1764028800-3f9c01ab. An epoch is a period of the hub's work. A new one begins with
	// the first write after a start, and about every ten minutes while the hub writes. A hub that was restored from a
	// backup does not know the epochs after the backup. See package epoch.
	SourceAnnotation = Prefix + "source"

	// DecisionAnnotation on a copy names the decision that the hub carried out when it wrote the copy. Its value has the
	// UID and the generation of the binding, such as 0c5a7f9e-6f0e-4a52-9a3b-2f1a5c1f6d11;12. A hub that was restored
	// from a backup thus finds copies of later decisions. See package epoch.
	DecisionAnnotation = Prefix + "decision"

	// AcceptSourceAnnotation on a hub object lists values of SourceAnnotation, separated by commas. A user sets it after
	// the hub was restored from a backup. The hub then overwrites or withdraws copies with these values, although the hub
	// wrote them after the backup.
	AcceptSourceAnnotation = Prefix + "accept-source"

	// TraceParentAnnotation on a hub object has the trace and span of the user's write. Its value is a W3C traceparent
	// such as 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01, and a user sets it. The spans in which the hub
	// processes this change belong to the same trace.
	TraceParentAnnotation = Prefix + "traceparent"

	// WithdrawAnnotation on a hub object has the UID of the object's binding. A user sets it to withdraw all copies of an
	// object that no placement selects. The binding is deleted after the last copy, and a new binding has another UID, so
	// the annotation works only once.
	WithdrawAnnotation = Prefix + "withdraw"

	// EpochsConfigMap is the ConfigMap in hanse-system that stores the list of the hub's epochs. An epoch is a period of
	// the hub's work, which SourceAnnotation on the copies names.
	EpochsConfigMap = "hanse-epochs"
	// EpochsKey is the key in the EpochsConfigMap. Its value has one epoch per line. An epoch is a period of the hub's
	// work.
	EpochsKey = "epochs"

	// OnDemandLabel marks a namespace on a member. The hub created the namespace because a copy needed it.
	OnDemandLabel = Prefix + "on-demand"

	// AdoptedAnnotation with the value "true" marks a copy that existed on the member before the hub adopted it. The
	// digest of the copy's manifest does not include this annotation.
	AdoptedAnnotation = Prefix + "adopted"

	// PauseAnnotation on a copy has a time in RFC 3339 format. An admin of the member sets it. Until that time, the hub
	// does not write the copy.
	PauseAnnotation = Prefix + "pause"

	// DeletionProtectionLabel with the value "true" protects a hub object, its namespace and its CustomResourceDefinition
	// from deletion. Each of these can be deleted only if it has an AllowDeletionAnnotation. The admission policies of the
	// chart hanse-hub enforce this.
	DeletionProtectionLabel = Prefix + "deletion-protection"

	// AllowDeletionAnnotation on a protected object has the object's UID. It permits the deletion of the object.
	AllowDeletionAnnotation = Prefix + "allow-deletion"

	// ConfirmRemovalAnnotation on a placement, a MemberCluster or a bundle confirms the removals that the hub holds.
	// Its value is the id in status.removalHeld of this object. An id is valid once.
	ConfirmRemovalAnnotation = Prefix + "confirm-removal"

	// RevisionLabel is set on Secrets in hanse-system that store the contents of revisions. A revision is one state of a
	// hub object and its override rules.
	RevisionLabel = Prefix + "revision"
	// RevisionSecretType is the type of the Secrets that store revisions.
	RevisionSecretType = Prefix + "revision"

	// BundleAnnotation is set on the objects of bundles in the hub's memory, and never stored. Its value is an
	// ObjectBundle as JSON. See BundleOf.
	BundleAnnotation = Prefix + "bundle"

	// ManifestLabel is set on the Secrets in hanse-system that store the objects of bundles.
	ManifestLabel = Prefix + "manifest"
	// ManifestSecretType is the type of the Secrets that store the objects of bundles.
	ManifestSecretType = Prefix + "manifest"

	// SetLabel is set on the Secrets in hanse-system that store revisions of bundles: lists of objects, and the objects.
	SetLabel = Prefix + "set"
	// SetListSecretType is the type of the Secrets that store lists of objects of bundles.
	SetListSecretType = Prefix + "set-list"
	// SetPartSecretType is the type of the Secrets that store the objects in such lists.
	SetPartSecretType = Prefix + "set-part"
	// SetsAnnotation on the Lease of a replica says which rules for bundles as a whole the replica knows. Its value is
	// SetsVersion. Replicas of earlier versions of the hub do not set it.
	SetsAnnotation = Prefix + "sets"
	// SetsVersion is the version of the rules for bundles as a whole.
	SetsVersion = "1"
	// SetFollowedAnnotation is on a binding that follows the SetRollout of its bundle. If the SetRollout is lost, the
	// clusters keep the content that the binding gives them.
	SetFollowedAnnotation = Prefix + "set-followed"

	// GeneratedValuesSecretType is the type of the Secrets in hanse-system that keep the values which the templates of a
	// chart made.
	GeneratedValuesSecretType = Prefix + "generated-values"
	// RegenerateValuesAnnotation on a FederatedOperator requests that its chart makes all kept values anew. A user sets it
	// to the id in status.generatedValues of this operator. The new values have another id, so the annotation works only
	// once.
	RegenerateValuesAnnotation = Prefix + "regenerate-values"

	// TestSinkAnnotation on a NotificationSink requests a test message. Its value is any new id of at most 64 characters,
	// which status.test shows with the result.
	TestSinkAnnotation = Prefix + "test-sink"

	// RolloutApproveAnnotation on a placement lists waves that a user has approved, each with a time, such as
	// asia@2026-11-26T10:00:00Z. The waves are separated by commas. The approval applies to changes that began before this
	// time.
	RolloutApproveAnnotation = Prefix + "rollout-approve"

	// RolloutPauseAnnotation on a placement with the value "true" pauses its rollouts. Clusters that have begun to change
	// continue.
	RolloutPauseAnnotation = Prefix + "rollout-pause"

	// RolloutSkipAnnotation on a placement lists clusters and waves that a user has skipped, each with a time, such as
	// eu-fra-1@2026-11-26T10:00:00Z or wave/asia@2026-11-26T10:00:00Z. The items are separated by commas. For changes that
	// began before this time, no wave waits for the cluster, or for the clusters of the wave.
	RolloutSkipAnnotation = Prefix + "rollout-skip"

	// RolloutPromoteAnnotation on a placement has a time and a reason, such as "2026-11-26T10:00:00Z CVE-2026-1". Changes
	// that began before this time are sent to all clusters at once.
	RolloutPromoteAnnotation = Prefix + "rollout-promote"

	// ChangedByAnnotation on a policy or a bundle has the name of the user who last changed its spec, or one of its
	// annotations hanse.dev/rollout-*. The hub's webhook sets it, and users cannot set another name. The annotation is
	// missing if the user is not known.
	ChangedByAnnotation = Prefix + "changed-by"

	// RolloutUndoAnnotation on a hub object or a bundle has the number of a revision. All clusters return to this
	// revision, wave by wave. They keep the content of this revision until the hub object, or the bundle, changes.
	RolloutUndoAnnotation = Prefix + "rollout-undo"

	// RolloutUndoAcknowledgeAnnotation on a CustomResourceDefinition of the hub lists API versions, separated by commas.
	// An undo may return to a revision without these versions, although clusters store objects at them.
	RolloutUndoAcknowledgeAnnotation = Prefix + "rollout-undo-acknowledge"

	// RotateCredentialsAnnotation on a MemberCluster requests new credentials. A user sets it to the id in
	// status.credentials of this MemberCluster. The hub then replaces and revokes these credentials. The new credentials
	// have another id, so the annotation works only once.
	RotateCredentialsAnnotation = Prefix + "rotate-credentials"

	// CredentialsRevokedAnnotation is set on the kubeconfig Secret of a cluster whose MemberCluster was deleted. The value
	// "true" means that the hub has revoked the token in the kubeconfig. Any other value is the reason why the token was
	// not revoked.
	CredentialsRevokedAnnotation = Prefix + "credentials-revoked"

	// TunnelSecret is the Secret in hanse-system with the key by which agents of members know the hub.
	TunnelSecret = "hanse-tunnel"
	// FingerprintAnnotation is set on the TunnelSecret. The value is the fingerprint of the key.
	FingerprintAnnotation = Prefix + "fingerprint"

	// JoinSecretType is the type of the Secrets in hanse-system by which an agent may ask for its approval, once. The name
	// of such a Secret is JoinSecretPrefix and the name of the MemberCluster. It has no token, but JoinDigestKey: the
	// SHA-256 of the token in hexadecimal digits, and JoinExpiryKey: the time until which a key may use it, by RFC 3339.
	JoinSecretType = "hanse.dev/join"
	// JoinSecretPrefix begins the name of a Secret of JoinSecretType.
	JoinSecretPrefix = "hanse-join-"
	// JoinDigestKey is the key of a token's digest in a Secret of JoinSecretType.
	JoinDigestKey = "sha256"
	// JoinExpiryKey is the key of a token's end in a Secret of JoinSecretType.
	JoinExpiryKey = "expires"

	// TokenOfAnnotation is set on a Secret of a member to which a token is bound. The value tells which hub uses the
	// token: it is the UID of that hub's namespace kube-system.
	TokenOfAnnotation = Prefix + "token-of"

	// ManagedByLabel with the value ManagedByHansectl is on all objects that hansectl creates. The hub writes only to
	// kubeconfig Secrets with this label.
	ManagedByLabel = "app.kubernetes.io/managed-by"

	// ManagedByHansectl is the value of ManagedByLabel on the objects of hansectl.
	ManagedByHansectl = "hansectl"

	// VersionLabel is the Kubernetes label for a version. On the Lease hanse-hub, it has the version of the leading
	// replica, with "_" in place of "+". On a workload of an operator, it has the version of the operator.
	VersionLabel = "app.kubernetes.io/version"

	// WithdrawFinalizer is set on bindings and MemberClusters. It delays their deletion until the members have confirmed
	// that the copies are withdrawn.
	WithdrawFinalizer = Prefix + "withdraw"

	// FieldManager is the field manager with which the hub applies objects to members.
	FieldManager = "hanse"

	// StatusFieldManager is the field manager with which the hub applies the status of hub objects.
	StatusFieldManager = "hanse-status"

	// UnreachableTaint is the key of the taints that the hub sets on a cluster that does not answer. See
	// MemberClusterStatus.Taints.
	UnreachableTaint = Prefix + "unreachable"

	// RegionLabel is Kubernetes' label for the region.
	RegionLabel = "topology.kubernetes.io/region"
	// ZoneLabel is Kubernetes' label for the zone.
	ZoneLabel = "topology.kubernetes.io/zone"
)
