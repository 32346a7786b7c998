package v1alpha1

const (
	// SystemNamespace holds the hub's own objects and every credential Secret.
	SystemNamespace = "hanse-system"

	// Prefix starts every label, annotation and finalizer of Hanse. Keys below it never travel from the hub to a member.
	Prefix = "hanse.dev/"

	// HubLabel is set on every object that a hub writes to a member; its value is the UID of the hub's kube-system
	// namespace. It selects what member informers watch and proves nothing: operators copy labels to children.
	HubLabel = Prefix + "hub"

	// OwnerAnnotation names the one hub object that a member object is the copy of, see ObjectIdentity.Owner.
	OwnerAnnotation = Prefix + "owner"

	// DigestAnnotation is the digest of the manifest that was last applied.
	DigestAnnotation = Prefix + "digest"

	// SourceAnnotation tells from which state of the hub a copy was written: the generation of the hub object and the
	// hub's epoch, such as 7;1764028800-3f9c01ab. See package source.
	SourceAnnotation = Prefix + "source"

	// AcceptSourceAnnotation, set by a user on a hub object to the values of SourceAnnotation of some copies, separated by
	// commas, lets the hub overwrite or withdraw these copies although a later state of the hub wrote them.
	AcceptSourceAnnotation = Prefix + "accept-source"

	// WithdrawAnnotation, set by a user on a hub object to the UID of its binding, lets the hub withdraw all copies of the
	// object if no placement selects it any more. The binding goes with the last copy, so that the annotation has no
	// effect twice.
	WithdrawAnnotation = Prefix + "withdraw"

	// EpochsConfigMap is the ConfigMap in the hub's namespace with the hub's epochs, one per line under the key EpochsKey.
	EpochsConfigMap = "hanse-epochs"
	// EpochsKey is the key in the EpochsConfigMap.
	EpochsKey = "epochs"

	// OnDemandLabel marks a namespace that the hub created on a member because a federated object needed it.
	OnDemandLabel = Prefix + "on-demand"

	// AdoptedAnnotation marks a copy that was on the member before the hub took it over, with the value "true". It is
	// outside of the digest.
	AdoptedAnnotation = Prefix + "adopted"

	// PauseAnnotation, set by a member's admin on a member object to an RFC 3339 time, makes the hub leave the object
	// alone until then.
	PauseAnnotation = Prefix + "pause"

	// DeletionProtectionLabel with the value "true" on a hub object lets the object, its namespace and its
	// CustomResourceDefinition be deleted only with an AllowDeletionAnnotation. The chart's policies enforce it.
	DeletionProtectionLabel = Prefix + "deletion-protection"

	// AllowDeletionAnnotation on a protected object, with the object's uid as value, lets it be deleted.
	AllowDeletionAnnotation = Prefix + "allow-deletion"

	// ConfirmRemovalAnnotation, set on a Placement, ClusterPlacement or MemberCluster to the id in its status.removalHeld,
	// lets the held removals go. An id is good once.
	ConfirmRemovalAnnotation = Prefix + "confirm-removal"

	// RotateCredentialsAnnotation, set by a user on a MemberCluster to its status.credentials.id, lets the hub replace
	// these credentials by new ones and revoke them. It has no effect on the new ones.
	RotateCredentialsAnnotation = Prefix + "rotate-credentials"

	// CredentialsRevokedAnnotation on the Secret with the kubeconfig of a cluster that has left says that the hub has
	// revoked its token there ("true"), or why it has not.
	CredentialsRevokedAnnotation = Prefix + "credentials-revoked"

	// TokenOfAnnotation on a Secret of a member that a token is bound to has the UID of the namespace kube-system of the
	// hub that the token is for.
	TokenOfAnnotation = Prefix + "token-of"

	// ManagedByLabel with the value ManagedByHansectl is on what hansectl makes. The hub writes only to kubeconfig Secrets
	// that have it.
	ManagedByLabel = "app.kubernetes.io/managed-by"

	// ManagedByHansectl is the value of ManagedByLabel on the objects of hansectl.
	ManagedByHansectl = "hansectl"

	// VersionLabel on the Lease hanse-hub is the version of the replica that leads.
	VersionLabel = "app.kubernetes.io/version"

	// WithdrawFinalizer is on bindings and MemberClusters only: it holds them until the members have confirmed.
	WithdrawFinalizer = Prefix + "withdraw"

	// FieldManager owns what the hub applies to members.
	FieldManager = "hanse"

	// StatusFieldManager owns what the hub writes to the status of a hub object.
	StatusFieldManager = "hanse-status"

	// UnreachableTaint is the key of the taints that the hub sets on a cluster that does not answer, see
	// MemberClusterStatus.Taints.
	UnreachableTaint = Prefix + "unreachable"

	// RegionLabel is the well-known label for the region.
	RegionLabel = "topology.kubernetes.io/region"
	// ZoneLabel is the well-known label for the zone.
	ZoneLabel = "topology.kubernetes.io/zone"
)
