package v1alpha1

import corev1 "k8s.io/api/core/v1"

// ReplicasType sets whether every cluster gets all replicas of an object, or a share of them.
// +kubebuilder:validation:Enum=Duplicate;Divide
type ReplicasType string

const (
	// ReplicasDuplicate sends the same number of replicas to every cluster.
	ReplicasDuplicate ReplicasType = "Duplicate"
	// ReplicasDivide divides the number of replicas between the clusters.
	ReplicasDivide ReplicasType = "Divide"
)

// ReplicasPolicy sets how many replicas each cluster gets.
//
// +kubebuilder:validation:XValidation:rule="self.type == 'Divide' || !has(self.path) && !has(self.requests) && !has(self.divide)",message="set path, requests and divide only if type is Divide"
// +kubebuilder:validation:XValidation:rule="!has(self.requests) || has(self.divide) && self.divide.by in ['Capacity', 'Pack']",message="set requests only if divide.by is Capacity or Pack"
type ReplicasPolicy struct {
	// type sets how many replicas each cluster gets. Duplicate sends the object's number of replicas to every cluster.
	// Divide divides this number among the clusters. Default Duplicate.
	// +optional
	// +kubebuilder:default=Duplicate
	Type ReplicasType `json:"type,omitempty"`

	// path is the JSON pointer (RFC 6901) to the number that is divided. If it is unset, /spec/replicas of a Deployment or
	// ReplicaSet is divided. For a Job, it is /spec/completions, or /spec/parallelism if the Job has no completions. For
	// every other kind, path is required.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^(/([^/~]|~[01])+){2,}$`
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/metadata/') && !self.startsWith('/status/')",message="name a number of the object's spec, such as /spec/replicas, not metadata or status"
	Path string `json:"path,omitempty"`

	// requests are the resources that one replica needs. They are used if divide.by is Capacity or Pack. Unset: the
	// requests of the pod template at /spec/template. Each replica also counts as one pod, unless requests has a number of
	// pods. At most 16.
	// +optional
	// +kubebuilder:validation:XValidation:rule="size(self) <= 16",message="name at most 16 resources"
	Requests corev1.ResourceList `json:"requests,omitempty"`

	// divide sets how the replicas are divided. Unset: every cluster gets an equal share.
	// +optional
	Divide *DividePolicy `json:"divide,omitempty"`
}

// DivideBy is a rule by which replicas are divided.
// +kubebuilder:validation:Enum=Weight;Capacity;Pack;KubeFed
type DivideBy string

const (
	// DivideByWeight divides in proportion to weights.
	DivideByWeight DivideBy = "Weight"
	// DivideByCapacity divides in proportion to the number of replicas that fit on the nodes of each cluster.
	DivideByCapacity DivideBy = "Capacity"
	// DivideByPack fills one cluster with replicas before it uses the next one.
	DivideByPack DivideBy = "Pack"
	// DivideByKubeFed divides by weights with the planner of KubeFed, as a ReplicaSchedulingPreference of KubeFed did.
	DivideByKubeFed DivideBy = "KubeFed"
)

// DividePolicy sets how replicas are divided between clusters.
//
// +kubebuilder:validation:XValidation:rule="!has(self.weights) || self.by in ['Weight', 'KubeFed']",message="set weights only if by is Weight or KubeFed"
// +kubebuilder:validation:XValidation:rule="!has(self.rebalance) || self.by == 'KubeFed'",message="set rebalance only if by is KubeFed"
type DividePolicy struct {
	// by is the rule by which replicas are divided: Weight, Capacity, Pack or KubeFed. Default Weight.
	// +optional
	// +kubebuilder:default=Weight
	By DivideBy `json:"by,omitempty"`

	// weights sets the weights of clusters. The first entry that selects a cluster sets the weight of this cluster. A
	// cluster that no entry selects has weight 0. Unset: every cluster has the same weight. 1 to 64 entries.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Weights []ReplicaWeight `json:"weights,omitempty"`

	// limits sets the minimum and maximum shares of clusters. The first entry that selects a cluster sets the limits of
	// this cluster. At most 64 entries.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Limits []ReplicaLimit `json:"limits,omitempty"`

	// rebalance true also moves running replicas, so that the shares follow the weights. It is used only if by is KubeFed.
	// The other rules always rebalance, and move as few replicas as possible. Default false.
	// +optional
	Rebalance *bool `json:"rebalance,omitempty"`
}

// ReplicaWeight is the weight of some clusters.
type ReplicaWeight struct {
	// clusters that have the weight. Unset: every cluster.
	// +optional
	Clusters *RuleClusters `json:"clusters,omitempty"`

	// weight of each selected cluster. A cluster with a higher weight gets more replicas, in proportion. 0 to 1000000. A
	// cluster with weight 0 gets no more than its minReplicas.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Weight int32 `json:"weight"`
}

// ReplicaLimit limits the share of some clusters.
//
// +kubebuilder:validation:XValidation:rule="has(self.minReplicas) || has(self.maxReplicas)",message="set minReplicas or maxReplicas"
// +kubebuilder:validation:XValidation:rule="!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",message="minReplicas must not be more than maxReplicas"
type ReplicaLimit struct {
	// clusters to which minReplicas and maxReplicas apply. Unset: every cluster.
	// +optional
	Clusters *RuleClusters `json:"clusters,omitempty"`

	// minReplicas is the minimum share of each selected cluster. A cluster gets less only if there are too few replicas.
	// Default 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// maxReplicas is the maximum share of each selected cluster. Unset: no limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxReplicas *int32 `json:"maxReplicas,omitempty"`
}

// Division describes the number that the hub divides among the clusters of a binding.
type Division struct {
	// path is the JSON pointer to the divided number in the hub object, such as /spec/replicas.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path"`

	// termsHash is a hash of the field replicas.divide of the placement, and of the requests of one replica. It is set if
	// replicas are divided by Capacity or Pack. While the hash does not change, a short change of a cluster's capacity
	// moves no replicas.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	TermsHash string `json:"termsHash,omitempty"`
}

// Divides reports whether each cluster gets a share of the replicas.
func (r *ReplicasPolicy) Divides() bool { return r.Type == ReplicasDivide }

// Way returns the field divide, with defaults for fields that are not set.
func (r *ReplicasPolicy) Way() DividePolicy {
	way := DividePolicy{By: DivideByWeight}
	if r.Divide != nil {
		way = *r.Divide
	}
	if way.By == "" {
		way.By = DivideByWeight
	}
	return way
}
