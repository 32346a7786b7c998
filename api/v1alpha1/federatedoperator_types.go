package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// FederatedOperator installs an operator on members: a program that reconciles custom resources. It has the objects of
// a Helm chart or of manifests, like a ClusterBundle. The hub does not create these objects on its own API server. A
// ClusterPlacement that selects the FederatedOperator sends them to clusters. The hub creates custom resources of the
// operator's kinds on such a cluster only after the operator is ready there.
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
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type FederatedOperator struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec has the chart or the manifests.
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

// FederatedOperatorSpec has the objects of an operator, and the ServiceAccount whose rights the objects must not
// exceed.
type FederatedOperatorSpec struct {
	BundleSpec `json:",inline"`

	// chart has the objects of the operator. Either chart, or manifests and configMaps, is required.
	// +optional
	Chart *OperatorChart `json:"chart,omitempty"`

	// acknowledge permits single changes of CustomResourceDefinitions that break objects in use. The condition Stored
	// names such changes. At most 100.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Acknowledge []AcknowledgedChange `json:"acknowledge,omitempty"`

	// removal sets what happens if the FederatedOperator is deleted while a placement sends objects of its kinds to
	// clusters. With Refuse, the webhook refuses the deletion. With Allow, the operator is removed, and the objects of its
	// kinds stay.
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

	// rule that the change breaks, as the condition Stored names it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Rule string `json:"rule"`

	// path of the field, as the condition Stored names it.
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

// OperatorChart names the archive of a Helm chart, and sets the values and versions with which it is rendered.
//
// +kubebuilder:validation:XValidation:rule="has(self.archive) != has(self.repository)",message="either archive or repository is required"
type OperatorChart struct {
	// archive has the chart, as helm package writes it. Either archive or repository is required.
	// +optional
	Archive *ArchiveSource `json:"archive,omitempty"`

	// repository is the Helm repository from which the hub fetches the chart. Either archive or repository is required.
	// +optional
	Repository *ChartRepository `json:"repository,omitempty"`

	// digest that the archive must have: sha256: and 64 hex digits. Unset: any archive is accepted.
	// +optional
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	Digest string `json:"digest,omitempty"`

	// namespace of the release. Objects without a namespace get it. It must exist on the hub.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace"`

	// releaseName of the chart. Default: the name of the chart.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=53
	ReleaseName string `json:"releaseName,omitempty"`

	// valuesFrom has more values, which replace the chart's own values. A later entry replaces values of an earlier one,
	// and the field values replaces values of all entries. At most 10.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	ValuesFrom []ValuesSource `json:"valuesFrom,omitempty"`

	// values replace the chart's own, as with helm's flag -f.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Values *runtime.RawExtension `json:"values,omitempty"`

	// kubernetesVersion is the version that the templates see, such as v1.36.0. The default is the version that hansectl
	// operator rbac uses.
	// +optional
	// +kubebuilder:validation:Pattern=`^v1\.[0-9]{1,3}(\.[0-9]{1,3})?$`
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`

	// apiVersions are versions that members serve in addition to those of Kubernetes itself, such as
	// monitoring.coreos.com/v1. The templates see them. At most 100.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=253
	APIVersions []string `json:"apiVersions,omitempty"`

	// hooks sets what happens to the hooks of the chart. A hook is an object that helm creates at a certain step of a
	// release. With Refuse, a chart with hooks other than tests is refused. With Skip, hooks are left out.
	// +optional
	// +kubebuilder:default=Refuse
	// +kubebuilder:validation:Enum=Refuse;Skip
	Hooks ChartHooks `json:"hooks,omitempty"`
}

// ChartHooks sets what happens to the hooks of a chart.
type ChartHooks string

// The values of ChartHooks.
const (
	ChartHooksRefuse ChartHooks = "Refuse"
	ChartHooksSkip   ChartHooks = "Skip"
)

// ArchiveSource names the ConfigMap with the archive of a chart.
type ArchiveSource struct {
	// configMap is the name of a ConfigMap in hanse-system, with the archive in binaryData.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ConfigMap string `json:"configMap"`

	// key of the archive. Default: the only key.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}

// ChartRepository names one version of a chart in an OCI registry or in an HTTPS repository of Helm.
type ChartRepository struct {
	// url of the repository without the name of the chart: oci://HOST/PATH for a registry, https://HOST/PATH for a folder
	// with an index.yaml. The value operators.repositories of the hub's chart must allow it.
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

	// secret is the name of a Secret in hanse-system with user and password of the repository's host. Its type is
	// kubernetes.io/dockerconfigjson. Unset: the hub sends no credentials.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Secret string `json:"secret,omitempty"`

	// caBundle has the CA certificates in PEM that the hub trusts for this repository. Unset: the CAs of the hub's image.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	CABundle []byte `json:"caBundle,omitempty"`
}

// ValuesSource names a ConfigMap with values for a chart.
type ValuesSource struct {
	// configMap is the name of a ConfigMap in hanse-system.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ConfigMap string `json:"configMap"`

	// key of the values, which are YAML. Default: values.yaml.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`

	// optional is true if the ConfigMap or the key may be missing. Default false.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// FederatedOperatorStatus has the numbers of objects and clusters of an operator.
type FederatedOperatorStatus struct {
	BundleStatus `json:",inline"`

	// chart of the stored objects.
	// +optional
	Chart *RenderedChart `json:"chart,omitempty"`

	// provides are the kinds that the operator's CustomResourceDefinitions define, as Kind.group. Sorted.
	// +optional
	// +listType=atomic
	Provides []string `json:"provides,omitempty"`

	// total is the number of clusters on which the operator is placed.
	// +optional
	// +kubebuilder:default=0
	Total int32 `json:"total"`

	// ready is the number of these clusters on which the operator is ready: its CustomResourceDefinitions are
	// established, and its workloads are available.
	// +optional
	// +kubebuilder:default=0
	Ready int32 `json:"ready"`

	// notReady are clusters on which the operator is not ready, by name. At most 100.
	// +optional
	// +listType=map
	// +listMapKey=name
	NotReady []OperatorOnCluster `json:"notReady,omitempty"`
}

// RenderedChart is a chart that was rendered.
type RenderedChart struct {
	// name of the chart.
	// +required
	Name string `json:"name"`

	// version of the chart.
	// +required
	Version string `json:"version"`

	// appVersion of the chart, which is the version of the operator.
	// +optional
	AppVersion string `json:"appVersion,omitempty"`

	// digest of the archive.
	// +required
	Digest string `json:"digest"`

	// repository from which the hub fetched the archive, with name and version of the chart, as URL/NAME:VERSION. It is
	// unset if the archive is from a ConfigMap.
	// +optional
	Repository string `json:"repository,omitempty"`
}

// OperatorOnCluster is an operator on a cluster where it is not ready.
type OperatorOnCluster struct {
	// name of the cluster.
	// +required
	Name string `json:"name"`

	// message names the objects that are not ready yet.
	// +required
	Message string `json:"message"`
}
