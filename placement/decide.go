package placement

import (
	"cmp"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Cluster is what a decision sees of one MemberCluster.
type Cluster struct {
	Name string
	// Labels that selectors see, with the derived region and zone: MemberCluster.SelectableLabels.
	Labels        map[string]string
	Taints        []corev1.Taint
	Unschedulable bool
	Ready         bool
	// Leaving is true once the MemberCluster has a deletionTimestamp; LeavePolicy is then what becomes of its objects.
	Leaving     bool
	LeavePolicy hubv1.RemovalPolicy
	// NamespaceAllowed says whether the cluster takes objects of this object's namespace.
	NamespaceAllowed bool
}

// Input is everything that one decision depends on.
type Input struct {
	Spec     *hubv1.PlacementSpec
	Clusters []Cluster
	// Held names the clusters that have a Present entry now.
	Held map[string]bool
}

// Decision says which clusters shall hold an object. Every list is sorted by cluster.
type Decision struct {
	// Targets shall hold the object.
	Targets []Target
	// Withdraw names the clusters that hold the object and shall no longer. With reason ClusterLeaving the cluster's LeavePolicy
	// says what becomes of it.
	Withdraw []Rejection
	// Rejected names the clusters that do not hold the object and were left out.
	Rejected []Rejection
	// Missing names the clusters that hold the object and were not in the Input: nothing is decided about them.
	Missing []string
}

// Target is a cluster that shall hold the object. Reason is Scheduled, or what would keep the object away if it were not there already.
type Target struct{ Cluster, Reason, Message string }

// Rejection is a cluster that shall not hold the object. Reason is a constant of api/v1alpha1.
type Rejection struct{ Cluster, Reason, Message string }

// Decide returns the clusters that shall hold an object. An error means that the selection cannot be read; the caller keeps the
// previous decision.
func Decide(in Input) (Decision, error) {
	if in.Spec == nil {
		return Decision{}, errors.New("deciding on clusters: there is no placement spec")
	}
	sel, err := compile(in.Spec.Clusters)
	if err != nil {
		return Decision{}, err
	}
	var d Decision
	seen := make(map[string]bool, len(in.Clusters))
	for _, c := range in.Clusters {
		seen[c.Name] = true
		d.add(sel, c, in.Held[c.Name])
	}
	for name, held := range in.Held {
		if held && !seen[name] {
			d.Missing = append(d.Missing, name)
		}
	}
	slices.SortFunc(d.Targets, func(a, b Target) int { return cmp.Compare(a.Cluster, b.Cluster) })
	slices.SortFunc(d.Withdraw, byCluster)
	slices.SortFunc(d.Rejected, byCluster)
	slices.Sort(d.Missing)
	return d, nil
}

func (d *Decision) add(sel selection, c Cluster, held bool) {
	if reason, message := first(unselecting, sel, c); reason != "" {
		r := Rejection{Cluster: c.Name, Reason: reason, Message: message}
		if held {
			d.Withdraw = append(d.Withdraw, r)
		} else {
			d.Rejected = append(d.Rejected, r)
		}
		return
	}
	switch reason, message := first(gating, sel, c); {
	case reason == "":
		d.Targets = append(d.Targets, Target{Cluster: c.Name, Reason: hubv1.ReasonScheduled})
	case held:
		d.Targets = append(d.Targets, Target{Cluster: c.Name, Reason: reason, Message: message})
	default:
		d.Rejected = append(d.Rejected, Rejection{Cluster: c.Name, Reason: reason, Message: message})
	}
}

func byCluster(a, b Rejection) int { return cmp.Compare(a.Cluster, b.Cluster) }
