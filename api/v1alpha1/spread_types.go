package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SpreadPolicy sets how many of the selected clusters hold an object, and which ones. A cluster that holds an object
// keeps it as long as the policy allows that.
//
// +kubebuilder:validation:XValidation:rule="!has(self.numberOfClusters) || !has(self.topologySpreadConstraints) || self.topologySpreadConstraints.all(c, !has(c.minDomains) || c.minDomains <= self.numberOfClusters)",message="minDomains must not exceed numberOfClusters"
type SpreadPolicy struct {
	// numberOfClusters is the number of clusters that hold the object. If fewer clusters can take the object, only these
	// hold it. 1 to 2000. Unset: as many clusters as the constraints allow.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2000
	NumberOfClusters *int32 `json:"numberOfClusters,omitempty"`

	// topologySpreadConstraints set how the clusters spread over regions, over zones, or over the values of another label.
	// All constraints must be met. Earlier constraints are met first. At most 8.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.all(c, self.exists_one(d, d.topologyKey == c.topologyKey))",message="topologyKeys must be unique"
	TopologySpreadConstraints []TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// preferences add their weights to the score of the clusters that they select. Clusters with the highest scores are
	// chosen first. At most 32.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Preferences []ClusterPreference `json:"preferences,omitempty"`

	// scores set how much the available capacity of a cluster, and the number of objects on it, add to its score. Unset:
	// neither counts.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Scores []WeighedScore `json:"scores,omitempty"`

	// affinityGroups are groups of clusters in order of preference. The object goes to the first group whose clusters can
	// meet all other rules. It stays in this group as long as the clusters can meet the rules. At most 16. Unset: all
	// selected clusters are one group.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(g, self.exists_one(h, h.name == g.name))",message="names of affinityGroups must be unique"
	AffinityGroups []AffinityGroup `json:"affinityGroups,omitempty"`

	// rebalance sets whether objects move to better clusters. Always chooses the best clusters at every decision, even if
	// the object must move. With Never, no object moves from a cluster that may still hold it. Default Never.
	// +optional
	// +kubebuilder:default=Never
	Rebalance Rebalance `json:"rebalance,omitempty"`
}

// WhenUnsatisfiable sets what happens if a constraint cannot be met.
// +kubebuilder:validation:Enum=DoNotSchedule;ScheduleAnyway
type WhenUnsatisfiable string

const (
	// DoNotSchedule leaves the object on its current clusters, and reports the constraint that cannot be met.
	DoNotSchedule WhenUnsatisfiable = "DoNotSchedule"
	// ScheduleAnyway places the object although the constraint cannot be met.
	ScheduleAnyway WhenUnsatisfiable = "ScheduleAnyway"
)

// TopologySpreadConstraint sets how clusters spread over the values of one label. All clusters with the same value are
// a domain.
//
// +kubebuilder:validation:XValidation:rule="has(self.minDomains) || has(self.maxDomains) || has(self.clustersPerDomain) || has(self.maxSkew)",message="set minDomains, maxDomains, clustersPerDomain or maxSkew"
// +kubebuilder:validation:XValidation:rule="!has(self.minDomains) || !has(self.maxDomains) || self.minDomains <= self.maxDomains",message="minDomains must not exceed maxDomains"
type TopologySpreadConstraint struct {
	// topologyKey is the key of a label of clusters, such as topology.kubernetes.io/region. A cluster without this label
	// gets no new objects, unless whenUnsatisfiable is ScheduleAnyway.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	TopologyKey string `json:"topologyKey"`

	// minDomains is the minimum number of domains with clusters that hold the object. Unset: 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MinDomains *int32 `json:"minDomains,omitempty"`

	// maxDomains is the maximum number of domains with clusters that hold the object. Unset: no limit.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MaxDomains *int32 `json:"maxDomains,omitempty"`

	// clustersPerDomain is the maximum number of clusters of one domain that hold the object. Unset: no limit.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2000
	ClustersPerDomain *int32 `json:"clustersPerDomain,omitempty"`

	// maxSkew is the maximum difference between the numbers of chosen clusters in any two domains. A domain without a
	// cluster that can take the object is ignored. The limit applies when clusters are added. It removes the object from a
	// cluster only if rebalance is Always. Unset: no limit.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2000
	MaxSkew *int32 `json:"maxSkew,omitempty"`

	// whenUnsatisfiable sets what happens if the constraint cannot be met. DoNotSchedule leaves the object on its current
	// clusters. ScheduleAnyway places the object although the constraint is not met. Unset: DoNotSchedule.
	// +optional
	WhenUnsatisfiable WhenUnsatisfiable `json:"whenUnsatisfiable,omitempty"`
}

// ClusterPreference adds a weight to the score of the clusters that it selects.
//
// +kubebuilder:validation:XValidation:rule="has(self.labelSelector) != has(self.expression)",message="set labelSelector or expression"
type ClusterPreference struct {
	// weight is added to the score of each selected cluster. -100 to 100.
	// +required
	// +kubebuilder:validation:Minimum=-100
	// +kubebuilder:validation:Maximum=100
	Weight int32 `json:"weight"`

	// labelSelector selects clusters by the labels of their MemberClusters. The region in status.topology counts as a
	// label, and so does the zone if there is only one.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// expression is a CEL expression that is true for the clusters to select, as in clusters.expression of the placement.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Expression string `json:"expression,omitempty"`
}

// ScoreName is the name of a built-in score of clusters, which is a number from 0 to 100.
// +kubebuilder:validation:Enum=AvailableCapacity;FewestObjects
type ScoreName string

const (
	// ScoreAvailableCapacity rates a cluster by the allocatable CPU and memory of its ready, schedulable nodes. It is 100
	// for the cluster with the most, 0 for a cluster with none, and a multiple of 10 for other clusters.
	ScoreAvailableCapacity ScoreName = "AvailableCapacity"
	// ScoreFewestObjects rates a cluster by the number of other objects that the hub sends to it. It is 100 for a cluster
	// with none, 0 for the cluster with the most, and a multiple of 10 for other clusters.
	ScoreFewestObjects ScoreName = "FewestObjects"
)

// WeighedScore gives a weight to one built-in score.
type WeighedScore struct {
	// name is AvailableCapacity or FewestObjects.
	// +required
	Name ScoreName `json:"name"`

	// weight is added to the score of a cluster for which the built-in score is 100. For other clusters, a part of the
	// weight is added, in proportion. -100 to 100.
	// +required
	// +kubebuilder:validation:Minimum=-100
	// +kubebuilder:validation:Maximum=100
	Weight int32 `json:"weight"`
}

// AffinityGroup is a group of clusters. A cluster belongs to the group if it matches all fields that are set.
//
// +kubebuilder:validation:XValidation:rule="has(self.names) || has(self.labelSelector)",message="set names or labelSelector; 'labelSelector: {}' is every cluster"
type AffinityGroup struct {
	// name of the group. Messages about decisions contain it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// names of the MemberClusters in the group. At most 1000.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=63
	Names []string `json:"names,omitempty"`

	// labelSelector selects clusters by the labels of their MemberClusters. The region in status.topology counts as a
	// label, and so does the zone if there is only one.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// Rebalance sets whether objects move to clusters with a better score.
// +kubebuilder:validation:Enum=Never;Always
type Rebalance string

const (
	// RebalanceNever moves no object from a cluster that may still hold the object.
	RebalanceNever Rebalance = "Never"
	// RebalanceAlways chooses the best clusters at every decision. Among equally good clusters, a cluster that holds the
	// object is preferred.
	RebalanceAlways Rebalance = "Always"
)
