package chart

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/hanse-dev/hanse/bundles/manifest"
)

// clusterScoped are the cluster-scoped kinds of Kubernetes.
var clusterScoped = sets.New(
	schema.GroupKind{Kind: "ComponentStatus"},
	schema.GroupKind{Kind: "Namespace"},
	schema.GroupKind{Kind: "Node"},
	schema.GroupKind{Kind: "PersistentVolume"},
	schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicy"},
	schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicyBinding"},
	schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"},
	schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy"},
	schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicyBinding"},
	schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"},
	schema.GroupKind{Group: "authentication.k8s.io", Kind: "SelfSubjectReview"},
	schema.GroupKind{Group: "authentication.k8s.io", Kind: "TokenReview"},
	schema.GroupKind{Group: "authorization.k8s.io", Kind: "SelfSubjectAccessReview"},
	schema.GroupKind{Group: "authorization.k8s.io", Kind: "SelfSubjectRulesReview"},
	schema.GroupKind{Group: "authorization.k8s.io", Kind: "SubjectAccessReview"},
	schema.GroupKind{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"},
	schema.GroupKind{Group: "certificates.k8s.io", Kind: "ClusterTrustBundle"},
	schema.GroupKind{Group: "flowcontrol.apiserver.k8s.io", Kind: "FlowSchema"},
	schema.GroupKind{Group: "flowcontrol.apiserver.k8s.io", Kind: "PriorityLevelConfiguration"},
	schema.GroupKind{Group: "internal.apiserver.k8s.io", Kind: "StorageVersion"},
	schema.GroupKind{Group: "networking.k8s.io", Kind: "IPAddress"},
	schema.GroupKind{Group: "networking.k8s.io", Kind: "IngressClass"},
	schema.GroupKind{Group: "networking.k8s.io", Kind: "ServiceCIDR"},
	schema.GroupKind{Group: "node.k8s.io", Kind: "RuntimeClass"},
	schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"},
	schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"},
	schema.GroupKind{Group: "resource.k8s.io", Kind: "DeviceClass"},
	schema.GroupKind{Group: "resource.k8s.io", Kind: "DeviceTaintRule"},
	schema.GroupKind{Group: "resource.k8s.io", Kind: "ResourcePoolStatusRequest"},
	schema.GroupKind{Group: "resource.k8s.io", Kind: "ResourceSlice"},
	schema.GroupKind{Group: "scheduling.k8s.io", Kind: "PriorityClass"},
	schema.GroupKind{Group: "storage.k8s.io", Kind: "CSIDriver"},
	schema.GroupKind{Group: "storage.k8s.io", Kind: "CSINode"},
	schema.GroupKind{Group: "storage.k8s.io", Kind: "StorageClass"},
	schema.GroupKind{Group: "storage.k8s.io", Kind: "VolumeAttachment"},
	schema.GroupKind{Group: "storage.k8s.io", Kind: "VolumeAttributesClass"},
	schema.GroupKind{Group: "storagemigration.k8s.io", Kind: "StorageVersionMigration"},
	// The scheme of the Kubernetes client does not have the API groups of CustomResourceDefinition and APIService.
	schema.GroupKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"},
	schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"},
)

// Namespaced reports whether a kind of Kubernetes is namespaced. known is false if the kind is not one of Kubernetes.
func Namespaced(gk schema.GroupKind) (namespaced, known bool) {
	if clusterScoped.Has(gk) {
		return false, true
	}
	known = len(scheme.Scheme.VersionsForGroupKind(gk)) > 0
	return known, known
}

// scopes has the kinds that the chart's CustomResourceDefinitions define. The value is true for a namespaced kind.
type scopes map[schema.GroupKind]bool

func scopesWith(definitions []*unstructured.Unstructured) scopes {
	out := scopes{}
	for _, d := range definitions {
		if gk, namespaced, ok := manifest.DefinedKind(d); ok {
			out[gk] = out[gk] || namespaced
		}
	}
	return out
}

// place sets the namespace of a namespaced object without a namespace to the namespace of the release. It removes the
// namespace of a cluster-scoped object. An object of an unknown kind is not changed.
func (s scopes) place(object *unstructured.Unstructured, namespace string) {
	gk := object.GroupVersionKind().GroupKind()
	namespaced, known := Namespaced(gk)
	if !known {
		namespaced, known = s[gk]
	}
	switch {
	case !known:
	case !namespaced:
		object.SetNamespace("")
	case object.GetNamespace() == "":
		object.SetNamespace(namespace)
	}
}
