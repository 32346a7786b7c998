package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SpreadPolicy says how many of the selected clusters hold an object, and which. A cluster that holds it keeps it while
// it may.
//
// +kubebuilder:validation:XValidation:rule="!has(self.numberOfClusters) || !has(self.topologySpreadConstraints) || self.topologySpreadConstraints.all(c, !has(c.minDomains) || c.minDomains <= self.numberOfClusters)",message="minDomains must not exceed numberOfClusters"
type SpreadPolicy struct {
	// numberOfClusters that shall hold the object; fewer if fewer can. 1 to 2000. Unset: as many as the constraints let.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2000
	NumberOfClusters *int32 `json:"numberOfClusters,omitempty"`

	// topologySpreadConstraints bound how the clusters spread over regions, zones, or the values of any other label. All
	// hold; what an earlier one asks for is looked after first. At most 8.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.all(c, self.exists_one(d, d.topologyKey == c.topologyKey))",message="topologyKeys must be unique"
	TopologySpreadConstraints []TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// preferences add to the score of the clusters that they select; the cluster of the highest score is chosen first. At
	// most 32.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Preferences []ClusterPreference `json:"preferences,omitempty"`

	// scores weigh what is known of the clusters beside the preferences. Unset: they do not count.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Scores []WeighedScore `json:"scores,omitempty"`

	// affinityGroups are tried in order: one group holds the object, the first whose clusters satisfy everything else. The
	// group that holds it keeps it as long as its selected clusters could. At most 16. Unset: all selected clusters are
	// one group.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(g, self.exists_one(h, h.name == g.name))",message="names of affinityGroups must be unique"
	AffinityGroups []AffinityGroup `json:"affinityGroups,omitempty"`

	// rebalance Always chooses anew whenever the object is decided on, also if that moves it. Default Never.
	// +optional
	// +kubebuilder:default=Never
	Rebalance Rebalance `json:"rebalance,omitempty"`
}

// WhenUnsatisfiable says what to do if a constraint cannot hold.
// +kubebuilder:validation:Enum=DoNotSchedule;ScheduleAnyway
type WhenUnsatisfiable string

const (
	// DoNotSchedule keeps the clusters of before, and says so.
	DoNotSchedule WhenUnsatisfiable = "DoNotSchedule"
	// ScheduleAnyway takes the constraint for a wish.
	ScheduleAnyway WhenUnsatisfiable = "ScheduleAnyway"
)

// TopologySpreadConstraint bounds how clusters spread over the values of one label, its domains.
//
// +kubebuilder:validation:XValidation:rule="has(self.minDomains) || has(self.maxDomains) || has(self.clustersPerDomain) || has(self.maxSkew)",message="set minDomains, maxDomains, clustersPerDomain or maxSkew"
// +kubebuilder:validation:XValidation:rule="!has(self.minDomains) || !has(self.maxDomains) || self.minDomains <= self.maxDomains",message="minDomains must not exceed maxDomains"
type TopologySpreadConstraint struct {
	// topologyKey is a label of clusters, such as topology.kubernetes.io/region. A cluster without it gets no new objects,
	// unless whenUnsatisfiable is ScheduleAnyway.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	TopologyKey string `json:"topologyKey"`

	// minDomains that must hold the object. Unset: 1 is enough.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MinDomains *int32 `json:"minDomains,omitempty"`

	// maxDomains that may hold the object. Unset: all.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MaxDomains *int32 `json:"maxDomains,omitempty"`

	// clustersPerDomain is how many clusters of one domain may hold the object. Unset: all.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2000
	ClustersPerDomain *int32 `json:"clustersPerDomain,omitempty"`

	// maxSkew is how many clusters more than any other domain with a cluster that can take the object a domain may have.
	// It bounds what is added; it takes no object away unless rebalance is Always. Unset: any.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2000
	MaxSkew *int32 `json:"maxSkew,omitempty"`

	// whenUnsatisfiable is what happens if the constraint cannot hold. Default DoNotSchedule.
	// +optional
	// +kubebuilder:default=DoNotSchedule
	WhenUnsatisfiable WhenUnsatisfiable `json:"whenUnsatisfiable,omitempty"`
}

// ClusterPreference adds to the score of clusters.
//
// +kubebuilder:validation:XValidation:rule="has(self.labelSelector) != has(self.expression)",message="set labelSelector or expression"
type ClusterPreference struct {
	// weight is added to the score of each cluster that is selected. -100 to 100.
	// +required
	// +kubebuilder:validation:Minimum=-100
	// +kubebuilder:validation:Maximum=100
	Weight int32 `json:"weight"`

	// labelSelector over the labels of MemberClusters and their derived region and zone.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// expression in CEL, as in clusters.expression.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Expression string `json:"expression,omitempty"`
}

// ScoreName names what can be weighed.
// +kubebuilder:validation:Enum=AvailableCapacity;FewestObjects
type ScoreName string

const (
	// ScoreAvailableCapacity is 100 for the cluster with the most allocatable CPU and memory on ready, schedulable nodes,
	// 0 for one with none, in steps of 10.
	ScoreAvailableCapacity ScoreName = "AvailableCapacity"
	// ScoreFewestObjects is 100 for a cluster to which the hub sends no other object, 0 for the one with the most, in
	// steps of 10.
	ScoreFewestObjects ScoreName = "FewestObjects"
)

// WeighedScore weighs one score.
type WeighedScore struct {
	// name is AvailableCapacity or FewestObjects.
	// +required
	Name ScoreName `json:"name"`

	// weight is what a cluster with the full score gets; others get their share of it. -100 to 100.
	// +required
	// +kubebuilder:validation:Minimum=-100
	// +kubebuilder:validation:Maximum=100
	Weight int32 `json:"weight"`
}

// AffinityGroup is one of the groups of clusters that are tried in order. Everything that is set must hold.
//
// +kubebuilder:validation:XValidation:rule="has(self.names) || has(self.labelSelector)",message="set names or labelSelector; 'labelSelector: {}' is every cluster"
type AffinityGroup struct {
	// name of the group, for messages.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// names of MemberClusters. At most 1000.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=63
	Names []string `json:"names,omitempty"`

	// labelSelector over the labels of MemberClusters and their derived region and zone.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// Rebalance says whether objects move to better clusters.
// +kubebuilder:validation:Enum=Never;Always
type Rebalance string

const (
	// RebalanceNever moves nothing that may stay.
	RebalanceNever Rebalance = "Never"
	// RebalanceAlways chooses anew each time; a cluster that holds the object wins over one that is as good.
	RebalanceAlways Rebalance = "Always"
)
