package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// FederatedOperator installs an operator on members. An operator is a program that reconciles custom resources. Like a
// ClusterBundle, a FederatedOperator has the objects of a Helm chart or of manifests. The hub does not create these
// objects on its own API server. A ClusterPlacement that selects the FederatedOperator sends them to clusters. The hub
// creates custom resources of the operator's kinds on such a cluster only after the operator is ready there.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=hanse,shortName=fop
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.chart.version`
// +kubebuilder:printcolumn:name="Clusters",type=integer,JSONPath=`.status.total`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.ready`
// +kubebuilder:printcolumn:name="Stored",type=string,JSONPath=`.status.conditions[?(@.type=="Stored")].status`
// +kubebuilder:printcolumn:name="Applied",type=string,JSONPath=`.status.conditions[?(@.type=="Applied")].status`
// +kubebuilder:printcolumn:name="Healthy",type=string,JSONPath=`.status.conditions[?(@.type=="Healthy")].status`
// +kubebuilder:printcolumn:name="Held",type=integer,JSONPath=`.status.removalHeld.copies`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type FederatedOperator struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec has the Helm chart or the manifests of the operator.
	// +required
	// +kubebuilder:validation:XValidation:rule="has(self.chart) != (has(self.manifests) || has(self.configMaps))",message="either chart, or manifests and configMaps, is required"
	Spec FederatedOperatorSpec `json:"spec"`

	// status says on which clusters the operator is ready.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status FederatedOperatorStatus `json:"status,omitempty"`
}

// FederatedOperatorList is a list of FederatedOperators.
//
// +kubebuilder:object:root=true
type FederatedOperatorList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []FederatedOperator `json:"items"`
}

// FederatedOperatorSpec has the objects of an operator. It also names a ServiceAccount: the operator may contain only
// objects that this account may write on the hub.
type FederatedOperatorSpec struct {
	BundleSpec `json:",inline"`

	// chart names the Helm chart that contains the objects of the operator. Either chart, or manifests and configMaps, is
	// required.
	// +optional
	Chart *OperatorChart `json:"chart,omitempty"`

	// acknowledge lists changes of CustomResourceDefinitions that a user permits, although they may break objects in use.
	// The message of the condition Stored names the changes that need a permission. At most 100.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Acknowledge []AcknowledgedChange `json:"acknowledge,omitempty"`

	// removal sets what happens if the FederatedOperator is deleted while a placement sends objects of the operator's
	// kinds to clusters. With Refuse, the webhook refuses the deletion. With Allow, the operator is removed, and the
	// objects of its kinds stay.
	// +optional
	// +kubebuilder:default=Refuse
	// +kubebuilder:validation:Enum=Refuse;Allow
	Removal OperatorRemoval `json:"removal,omitempty"`
}

// AcknowledgedChange is a change of a CustomResourceDefinition that a user permits, although it may break objects in
// use.
type AcknowledgedChange struct {
	// crd is the name of the CustomResourceDefinition.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	CRD string `json:"crd"`

	// rule is the name of the compatibility rule that the change breaks, such as existingFieldRemoval. The message of the
	// condition Stored has this name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Rule string `json:"rule"`

	// path is the path of the changed field, such as /spec/size. The message of the condition Stored has this path.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path"`
}

// OperatorRemoval sets what happens if a FederatedOperator is deleted while objects of its kinds are in use.
type OperatorRemoval string

// The values of OperatorRemoval.
const (
	OperatorRemovalRefuse OperatorRemoval = "Refuse"
	OperatorRemovalAllow  OperatorRemoval = "Allow"
)

// OperatorChart names the archive of a Helm chart, and sets the values and versions with which the hub renders the
// chart.
//
// +kubebuilder:validation:XValidation:rule="has(self.archive) != has(self.repository)",message="either archive or repository is required"
type OperatorChart struct {
	// archive names a ConfigMap with the chart's archive, as the command helm package writes it. Either archive or
	// repository is required.
	// +optional
	Archive *ArchiveSource `json:"archive,omitempty"`

	// repository is the Helm repository from which the hub fetches the chart. Either archive or repository is required.
	// +optional
	Repository *ChartRepository `json:"repository,omitempty"`

	// digest is the SHA-256 digest that the archive must have, written as sha256: and 64 hex digits. Unset: any archive is
	// accepted.
	// +optional
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	Digest string `json:"digest,omitempty"`

	// namespace of the Helm release. Namespaced objects of the chart that set no namespace get this namespace. The
	// namespace must exist on the hub.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace"`

	// releaseName is the name of the Helm release. Default: the name of the chart.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=53
	ReleaseName string `json:"releaseName,omitempty"`

	// valuesFrom names ConfigMaps with values, which replace the chart's own values. A later entry replaces values of an
	// earlier entry. The field values replaces values of all entries. At most 10.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	ValuesFrom []ValuesSource `json:"valuesFrom,omitempty"`

	// values replace the chart's own values, as with helm's flag -f.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Values *runtime.RawExtension `json:"values,omitempty"`

	// kubernetesVersion is the Kubernetes version that the templates see, such as v1.36.0 or v1.36.2-gke.1443001. The
	// field kubeVersion of Chart.yaml is compared without the suffix, as helm does it. Unset: the version of the
	// Kubernetes client libraries in the hub. The command hansectl operators rbac has the same default.
	// +optional
	// +kubebuilder:validation:Pattern=`^v1\.[0-9]{1,3}(\.[0-9]{1,3}([-+][0-9A-Za-z.+-]{1,50})?)?$`
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`

	// apiVersions are API versions that members serve in addition to the versions of Kubernetes itself, such as
	// monitoring.coreos.com/v1. The templates see all these versions. At most 100.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=253
	APIVersions []string `json:"apiVersions,omitempty"`

	// hooks sets what happens to the hooks of the chart. A hook is an object that helm creates at a certain step of a
	// release. With Refuse, a chart with hooks is refused, except hooks that are tests or that helm itself ignores. With
	// Skip, hooks are left out. Default Refuse.
	// +optional
	// +kubebuilder:default=Refuse
	// +kubebuilder:validation:Enum=Refuse;Skip
	Hooks ChartHooks `json:"hooks,omitempty"`

	// generatedValues sets what happens to values that templates make at random or from the time, such as passwords and
	// certificates. With Keep, the hub keeps the first value of a field of a Secret or of a field caBundle, and uses it at
	// each later rendering. The command hansectl operators regenerate replaces all kept values. Any other field with such
	// a value is refused. With Refuse, no field may have such a value. Default Keep.
	// +optional
	// +kubebuilder:default=Keep
	// +kubebuilder:validation:Enum=Keep;Refuse
	GeneratedValues ChartGeneratedValues `json:"generatedValues,omitempty"`
}

// ChartGeneratedValues sets what happens to values that the templates of a chart make at random or from the time.
type ChartGeneratedValues string

// The values of ChartGeneratedValues.
const (
	ChartGeneratedKeep   ChartGeneratedValues = "Keep"
	ChartGeneratedRefuse ChartGeneratedValues = "Refuse"
)

// ChartHooks sets what happens to the hooks of a chart.
type ChartHooks string

// The values of ChartHooks.
const (
	ChartHooksRefuse ChartHooks = "Refuse"
	ChartHooksSkip   ChartHooks = "Skip"
)

// ArchiveSource names the ConfigMap with the archive of a chart.
type ArchiveSource struct {
	// configMap is the name of a ConfigMap in hanse-system. The ConfigMap has the archive in its field binaryData.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ConfigMap string `json:"configMap"`

	// key of the archive in binaryData. Default: the only key.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}

// ChartRepository names one version of a chart in an OCI registry, or in a Helm repository that is served over HTTPS.
//
// +kubebuilder:validation:XValidation:rule="!has(self.caBundle) || self.caBundle.matches('^[A-Za-z0-9+/\\n]+={0,2}\\n?$')",fieldPath=".caBundle",message="want PEM encoded in base64, as base64 -w0 ca.crt prints it"
type ChartRepository struct {
	// url of the repository, without the name of the chart. It is oci://HOST/PATH for an OCI registry, or
	// https://HOST/PATH for a folder with an index.yaml. The value operators.repositories of the chart hanse-hub must
	// allow this url.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^(oci|https)://[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*/?$`
	URL string `json:"url"`

	// name of the chart.
	// +required
	// +kubebuilder:validation:MaxLength=250
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`
	Name string `json:"name"`

	// version of the chart in its Chart.yaml, such as 1.0.0. A range of versions is not allowed.
	// +required
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9.+-]*$`
	Version string `json:"version"`

	// secret is the name of a Secret in hanse-system of the type kubernetes.io/dockerconfigjson. The Secret has a user and
	// a password for the repository's host. Unset: the hub sends no credentials.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Secret string `json:"secret,omitempty"`

	// caBundle has the CA certificates that the hub trusts for this repository: PEM, encoded in base64, as "base64 -w0
	// ca.crt" prints it. Unset: the hub trusts the CAs of its container image.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	CABundle string `json:"caBundle,omitempty"`
}

// ValuesSource names a ConfigMap with values for a chart.
type ValuesSource struct {
	// configMap is the name of a ConfigMap in hanse-system.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ConfigMap string `json:"configMap"`

	// key of the values in the ConfigMap. The values are YAML. Default: values.yaml.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`

	// optional is true if the ConfigMap or the key may be missing. Default false: a missing one is an error.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// FederatedOperatorStatus counts the objects of an operator, and the clusters on which it is placed and ready.
type FederatedOperatorStatus struct {
	BundleStatus `json:",inline"`

	// chart is the chart from which the stored objects were rendered. Unset: the objects come from manifests.
	// +optional
	Chart *RenderedChart `json:"chart,omitempty"`

	// generatedValues describes the values that templates of the chart made, and that the hub keeps. Unset: no values are
	// kept.
	// +optional
	GeneratedValues *GeneratedValuesStatus `json:"generatedValues,omitempty"`

	// provides are the kinds that the operator's CustomResourceDefinitions define, written as Kind.group and sorted.
	// +optional
	// +listType=atomic
	Provides []string `json:"provides,omitempty"`

	// total is the number of clusters on which the operator is placed.
	// +optional
	// +kubebuilder:default=0
	Total int32 `json:"total"`

	// ready is the number of clusters on which the operator is placed and ready. An operator is ready when its workloads,
	// CustomResourceDefinitions, webhook configurations and APIServices are applied and healthy there.
	// +optional
	// +kubebuilder:default=0
	Ready int32 `json:"ready"`

	// notReady are the clusters on which the operator is not ready, sorted by name. At most 100.
	// +optional
	// +listType=map
	// +listMapKey=name
	NotReady []OperatorOnCluster `json:"notReady,omitempty"`

	// newest is the newest version of the chart in its repository. The hub asks the repository at most once an hour.
	// Unset: the value operators.checkForNewVersions of the chart hanse-hub is false, the chart comes from no repository,
	// or the hub has not asked the repository yet.
	// +optional
	Newest *NewestChart `json:"newest,omitempty"`
}

// NewestChart is the newest version of a chart in its repository, and the error of the last check.
type NewestChart struct {
	// repository that the hub has asked, with the name of the chart: URL/NAME.
	// +required
	Repository string `json:"repository"`

	// version is the highest semantic version of the chart in the repository. Pre-releases count only if
	// spec.chart.repository.version is one. After a failed check, it is the version that an earlier check has found.
	// Unset: no check has found a version.
	// +optional
	Version string `json:"version,omitempty"`

	// error says why the last check has failed. Unset: it has succeeded. At most 512 characters.
	// +optional
	Error string `json:"error,omitempty"`

	// since is the time of the first check that found this version or, if error is set, of the first failed check. Later
	// checks with the same result do not change it.
	// +required
	Since metav1.Time `json:"since"`
}

// GeneratedValuesStatus describes the values that templates of a chart made, and that the hub keeps.
type GeneratedValuesStatus struct {
	// id changes when the values are replaced. The annotation hanse.dev/regenerate-values names it.
	// +required
	ID string `json:"id"`

	// values is the number of kept values.
	// +required
	Values int32 `json:"values"`

	// certificateExpires is the time at which the first of the kept certificates expires. Unset: no kept value is a
	// certificate.
	// +optional
	CertificateExpires *metav1.Time `json:"certificateExpires,omitempty"`
}

// RenderedChart describes a chart that the hub has rendered into objects.
type RenderedChart struct {
	// name of the chart.
	// +required
	Name string `json:"name"`

	// version of the chart.
	// +required
	Version string `json:"version"`

	// appVersion of the chart: by Helm's convention, the version of the operator.
	// +optional
	AppVersion string `json:"appVersion,omitempty"`

	// digest of the chart's archive.
	// +required
	Digest string `json:"digest"`

	// repository from which the hub fetched the archive, with the name and version of the chart: URL/NAME:VERSION. Unset:
	// the archive comes from a ConfigMap.
	// +optional
	Repository string `json:"repository,omitempty"`

	// lookups are the templates of the chart that call the function lookup. This function finds no object on the hub, so
	// such a template may render other objects than helm on a cluster. At most 20, the first by path.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Lookups []string `json:"lookups,omitempty"`
}

// OperatorOnCluster names a cluster on which an operator is not ready, and says why.
type OperatorOnCluster struct {
	// name of the cluster.
	// +required
	Name string `json:"name"`

	// message names the objects that are not ready yet.
	// +required
	Message string `json:"message"`
}
