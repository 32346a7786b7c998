package v1alpha1

import corev1 "k8s.io/api/core/v1"

// ReplicasType sets whether every cluster gets all replicas.
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
// +kubebuilder:validation:XValidation:rule="self.type == 'Divide' || !has(self.path) && !has(self.requests) && !has(self.divide)",message="path, requests and divide are for type Divide"
// +kubebuilder:validation:XValidation:rule="!has(self.requests) || has(self.divide) && self.divide.by in ['Capacity', 'Pack']",message="requests are for divide.by Capacity and Pack"
type ReplicasPolicy struct {
	// type Duplicate sends the same number of replicas to every cluster. Divide gives each cluster a share of the
	// number. Default Duplicate.
	// +optional
	// +kubebuilder:default=Duplicate
	Type ReplicasType `json:"type,omitempty"`

	// path is the JSON pointer (RFC 6901) to the number that is divided. Unset for a Deployment or ReplicaSet:
	// /spec/replicas. Unset for a Job: /spec/completions, or /spec/parallelism if the Job has no completions. Required
	// for every other kind.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^(/([^/~]|~[01])+){2,}$`
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/metadata/') && !self.startsWith('/status/')",message="name a number of the object's spec, such as /spec/replicas, not metadata or status"
	Path string `json:"path,omitempty"`

	// requests are the resources that one replica needs, for divide.by Capacity and Pack. Unset: the requests of the pod
	// template at /spec/template. One pod is added to the requests, unless they name pods. At most 16.
	// +optional
	// +kubebuilder:validation:XValidation:rule="size(self) <= 16",message="name at most 16 resources"
	Requests corev1.ResourceList `json:"requests,omitempty"`

	// divide sets how the replicas are divided. Unset: equal shares.
	// +optional
	Divide *DividePolicy `json:"divide,omitempty"`
}

// DivideBy is a way to divide replicas.
// +kubebuilder:validation:Enum=Weight;Capacity;Pack;KubeFed
type DivideBy string

const (
	// DivideByWeight divides in proportion to weights.
	DivideByWeight DivideBy = "Weight"
	// DivideByCapacity divides in proportion to how many replicas fit on the nodes of each cluster.
	DivideByCapacity DivideBy = "Capacity"
	// DivideByPack fills one cluster after the other.
	DivideByPack DivideBy = "Pack"
	// DivideByKubeFed divides as KubeFed's ReplicaSchedulingPreference did.
	DivideByKubeFed DivideBy = "KubeFed"
)

// DividePolicy sets how replicas are divided between clusters.
//
// +kubebuilder:validation:XValidation:rule="!has(self.weights) || self.by in ['Weight', 'KubeFed']",message="weights are for by Weight and KubeFed"
// +kubebuilder:validation:XValidation:rule="!has(self.rebalance) || self.by == 'KubeFed'",message="rebalance is for by KubeFed"
type DividePolicy struct {
	// by is Weight, Capacity, Pack or KubeFed. Default Weight.
	// +optional
	// +kubebuilder:default=Weight
	By DivideBy `json:"by,omitempty"`

	// weights of clusters. The first entry that selects a cluster is used. A cluster that no entry selects has weight 0.
	// Unset: every cluster has the same weight. 1 to 64.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Weights []ReplicaWeight `json:"weights,omitempty"`

	// limits of the share of a cluster. The first entry that selects a cluster is used. At most 64.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Limits []ReplicaLimit `json:"limits,omitempty"`

	// rebalance true also moves running replicas, so that the shares follow the weights. Default false. Only KubeFed reads
	// this field. The other ways always rebalance, and move as few replicas as possible.
	// +optional
	Rebalance *bool `json:"rebalance,omitempty"`
}

// ReplicaWeight is the weight of some clusters.
type ReplicaWeight struct {
	// clusters with this weight. Unset: every cluster.
	// +optional
	Clusters *RuleClusters `json:"clusters,omitempty"`

	// weight of each of these clusters. 0 to 1000000. A cluster with weight 0 gets no more than its minReplicas.
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
	// clusters with these limits. Unset: every cluster.
	// +optional
	Clusters *RuleClusters `json:"clusters,omitempty"`

	// minReplicas is the minimum for each of these clusters, if there are enough replicas. Default 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// maxReplicas is the maximum for each of these clusters. Unset: no limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxReplicas *int32 `json:"maxReplicas,omitempty"`
}

// Division describes the number that the hub divides among the clusters of a binding.
type Division struct {
	// path is the JSON pointer to the number that was divided, such as /spec/replicas.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path"`

	// termsHash is a hash of the field replicas in the placement, and of the requests of one replica. It is set for
	// Capacity and Pack. While it is the same, a short change of a cluster's capacity moves no replicas.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	TermsHash string `json:"termsHash,omitempty"`
}

// Divides reports whether clusters get shares.
func (r *ReplicasPolicy) Divides() bool { return r.Type == ReplicasDivide }

// Way returns how replicas are divided, with the defaults set.
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
