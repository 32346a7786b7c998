package v1alpha1

const (
	// SystemNamespace has the hub's own objects and all Secrets with credentials.
	SystemNamespace = "hanse-system"

	// Prefix is the prefix of every label, annotation and finalizer of Hanse. The hub never copies keys with this prefix
	// to members.
	Prefix = "hanse.dev/"

	// HubLabel is set on every object that a hub writes to a member; its value is the UID of the hub's kube-system
	// namespace. Informers of members select objects by it. It is no proof of ownership, because operators copy labels
	// to other objects.
	HubLabel = Prefix + "hub"

	// OwnerAnnotation names the one hub object that a member object is the copy of, see ObjectIdentity.Owner.
	OwnerAnnotation = Prefix + "owner"

	// DigestAnnotation has the digest of the manifest that was last applied.
	DigestAnnotation = Prefix + "digest"

	// ReloadAnnotation of a pod template in a copy is a digest of the ConfigMaps and Secrets that the pods read, see
	// ReferenceRule.Restart.
	ReloadAnnotation = Prefix + "reload"

	// SourceAnnotation names the state of the hub from which a copy was written. It has the generation of the hub
	// object and the epoch of the hub, such as 7;1764028800-3f9c01ab. See package source.
	SourceAnnotation = Prefix + "source"

	// AcceptSourceAnnotation on a hub object lists values of SourceAnnotation, separated by commas. A user sets it. The
	// hub then overwrites or withdraws copies with these values, although a later state of the hub wrote them.
	AcceptSourceAnnotation = Prefix + "accept-source"

	// TraceParentAnnotation on a hub object is the span of the user's write, as a W3C traceparent such as
	// 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01. A user sets it. The spans of the change are in this trace.
	TraceParentAnnotation = Prefix + "traceparent"

	// WithdrawAnnotation on a hub object has the UID of its binding. A user sets it. If no placement selects the object,
	// the hub then withdraws all its copies. The binding is deleted after the last copy, so that the annotation works only
	// once.
	WithdrawAnnotation = Prefix + "withdraw"

	// EpochsConfigMap is the ConfigMap in the hub's namespace with the hub's epochs, one per line under the key EpochsKey.
	EpochsConfigMap = "hanse-epochs"
	// EpochsKey is the key in the EpochsConfigMap.
	EpochsKey = "epochs"

	// OnDemandLabel marks a namespace that the hub created on a member because a federated object needed it.
	OnDemandLabel = Prefix + "on-demand"

	// AdoptedAnnotation with the value "true" marks a copy that was on the member before the hub adopted it. The digest
	// does not include it.
	AdoptedAnnotation = Prefix + "adopted"

	// PauseAnnotation on a copy has an RFC 3339 time. An admin of the member sets it. Until that time, the hub does not
	// write the copy.
	PauseAnnotation = Prefix + "pause"

	// DeletionProtectionLabel with the value "true" protects a hub object, its namespace and its
	// CustomResourceDefinition. They can be deleted only with an AllowDeletionAnnotation. The chart's policies enforce
	// that.
	DeletionProtectionLabel = Prefix + "deletion-protection"

	// AllowDeletionAnnotation on a protected object has the object's UID. It permits the deletion of the object.
	AllowDeletionAnnotation = Prefix + "allow-deletion"

	// ConfirmRemovalAnnotation on a Placement, ClusterPlacement or MemberCluster has the id of its status.removalHeld. It
	// confirms the held removals. An id is valid once.
	ConfirmRemovalAnnotation = Prefix + "confirm-removal"

	// RevisionLabel is on the Secrets in the hub's namespace that store the contents of revisions.
	RevisionLabel = Prefix + "revision"
	// RevisionSecretType is the type of these Secrets.
	RevisionSecretType = Prefix + "revision"

	// BundleAnnotation is on the objects of bundles in the hub's memory, see BundleOf. Its value is an ObjectBundle as
	// JSON.
	BundleAnnotation = Prefix + "bundle"

	// ManifestLabel is on the Secrets in the hub's namespace that store the objects of bundles.
	ManifestLabel = Prefix + "manifest"
	// ManifestSecretType is the type of these Secrets.
	ManifestSecretType = Prefix + "manifest"

	// RolloutApproveAnnotation on a placement lists approved waves, separated by commas, such as
	// asia@2026-11-26T10:00:00Z. The approval applies to changes that began before this time.
	RolloutApproveAnnotation = Prefix + "rollout-approve"

	// RolloutPauseAnnotation on a placement with the value "true" pauses its rollouts. Clusters that have begun to change
	// continue.
	RolloutPauseAnnotation = Prefix + "rollout-pause"

	// RolloutSkipAnnotation on a placement lists skipped clusters, separated by commas, such as
	// eu-fra-1@2026-11-26T10:00:00Z. For changes that began before this time, no wave waits for the cluster.
	RolloutSkipAnnotation = Prefix + "rollout-skip"

	// RolloutPromoteAnnotation on a placement has a time and a reason, such as "2026-11-26T10:00:00Z CVE-2026-1". Changes
	// that began before that time are sent to all clusters at once.
	RolloutPromoteAnnotation = Prefix + "rollout-promote"

	// RolloutUndoAnnotation on a hub object has the number of a revision. All clusters return to this revision, wave by
	// wave. They keep its template until the hub object changes.
	RolloutUndoAnnotation = Prefix + "rollout-undo"

	// RotateCredentialsAnnotation on a MemberCluster has its status.credentials.id. A user sets it. The hub then
	// replaces and revokes these credentials. New credentials have another id.
	RotateCredentialsAnnotation = Prefix + "rotate-credentials"

	// CredentialsRevokedAnnotation is on the kubeconfig Secret of a cluster that has left. "true" means that the hub
	// has revoked its token. Another value is the reason why the token was not revoked.
	CredentialsRevokedAnnotation = Prefix + "credentials-revoked"

	// TokenOfAnnotation is on a Secret of a member to which a token is bound. Its value is the UID of the namespace
	// kube-system of the hub that uses the token.
	TokenOfAnnotation = Prefix + "token-of"

	// ManagedByLabel with the value ManagedByHansectl is on all objects that hansectl creates. The hub writes only to
	// kubeconfig Secrets with this label.
	ManagedByLabel = "app.kubernetes.io/managed-by"

	// ManagedByHansectl is the value of ManagedByLabel on the objects of hansectl.
	ManagedByHansectl = "hansectl"

	// VersionLabel on the Lease hanse-hub is the version of the leading replica, with "_" instead of "+". On a workload of
	// an operator, it is the version of the operator.
	VersionLabel = "app.kubernetes.io/version"

	// WithdrawFinalizer is on bindings and MemberClusters. It delays their deletion until the members have confirmed
	// the withdrawals.
	WithdrawFinalizer = Prefix + "withdraw"

	// FieldManager is the field manager of the hub on members.
	FieldManager = "hanse"

	// StatusFieldManager is the field manager of the hub for the status of hub objects.
	StatusFieldManager = "hanse-status"

	// UnreachableTaint is the key of the taints that the hub sets on a cluster that does not answer. See
	// MemberClusterStatus.Taints.
	UnreachableTaint = Prefix + "unreachable"

	// RegionLabel is the well-known label for the region.
	RegionLabel = "topology.kubernetes.io/region"
	// ZoneLabel is the well-known label for the zone.
	ZoneLabel = "topology.kubernetes.io/zone"
)
