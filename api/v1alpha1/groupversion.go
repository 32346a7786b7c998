package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is hanse.dev/v1alpha1.
var GroupVersion = schema.GroupVersion{Group: "hanse.dev", Version: "v1alpha1"}

// SchemeBuilder registers the kinds of this package.
var SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

// AddToScheme adds the kinds of this package to a scheme.
var AddToScheme = SchemeBuilder.AddToScheme

func addKnownTypes(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&MemberCluster{}, &MemberClusterList{},
		&Placement{}, &PlacementList{},
		&ClusterPlacement{}, &ClusterPlacementList{},
		&OverridePolicy{}, &OverridePolicyList{},
		&ClusterOverridePolicy{}, &ClusterOverridePolicyList{},
		&Bundle{}, &BundleList{},
		&ClusterBundle{}, &ClusterBundleList{},
		&FederatedOperator{}, &FederatedOperatorList{},
		&NotificationSink{}, &NotificationSinkList{},
		&ResourceBinding{}, &ResourceBindingList{},
		&ClusterResourceBinding{}, &ClusterResourceBindingList{},
		&SetRollout{}, &SetRolloutList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
