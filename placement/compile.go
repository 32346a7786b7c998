package placement

import (
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Compiled is a PlacementSpec with parsed selectors and expressions. It has only the fields that choose clusters. A
// spec is compiled once, and concurrent decisions may share the result. Compiled also caches the results of filters for
// each cluster whose field Revision is set.
type Compiled struct {
	selection
	scoring
	tolerations []corev1.Toleration
	evictAfter  *int64 // seconds until an eviction; nil: never

	number      int // number of clusters; 0 for all
	constraints []constraint
	groups      []group
	rebalance   bool

	seen sync.Map // *findings by name of the cluster
}

// constraint is a parsed TopologySpreadConstraint. A 0 in one of its numbers means that there is no bound.
type constraint struct {
	key                               string
	minimum, maximum, perDomain, skew int
	anyway                            bool // whether the constraint is a preference (ScheduleAnyway)
}

// group is a parsed AffinityGroup: a set of clusters that may hold an object together.
type group struct {
	name         string
	names        []string
	requirements []requirement
}

// Compile parses the selectors and expressions of a spec. Its error contains the reason and the name of the invalid
// field.
func Compile(spec *hubv1.PlacementSpec) (*Compiled, error) {
	c := &Compiled{tolerations: spec.Clusters.Tolerations}
	if after := spec.Failover.EvictAfterSeconds; after != nil {
		c.evictAfter = ptr.To(int64(*after))
	}
	var err error
	if c.selection, err = readSelection(spec.Clusters); err != nil {
		return nil, fmt.Errorf("reading spec.clusters%w", err)
	}
	if spec.Spread != nil {
		if err := c.readSpread(spec.Spread); err != nil {
			return nil, fmt.Errorf("reading spec.spread.%w", err)
		}
	}
	return c, nil
}

// CheckTolerations returns the error of a toleration that Kubernetes would refuse in a pod, because it does not say
// which taints it tolerates.
func CheckTolerations(tolerations []corev1.Toleration) error {
	for i, t := range tolerations {
		equal := t.Operator == "" || t.Operator == corev1.TolerationOpEqual
		switch {
		case !equal && t.Operator != corev1.TolerationOpExists:
			return fmt.Errorf("spec.clusters.tolerations[%d].operator: %q is neither Exists nor Equal", i, t.Operator)
		case equal && t.Key == "":
			return fmt.Errorf("spec.clusters.tolerations[%d].key: is required with operator Equal: name the key of the taint, or use operator Exists, which tolerates all taints", i)
		}
	}
	return nil
}

func (c *Compiled) readSpread(s *hubv1.SpreadPolicy) error {
	c.number = bound(s.NumberOfClusters)
	c.rebalance = s.Rebalance == hubv1.RebalanceAlways
	for _, t := range s.TopologySpreadConstraints {
		c.constraints = append(c.constraints, constraint{
			key: t.TopologyKey, minimum: bound(t.MinDomains), maximum: bound(t.MaxDomains), perDomain: bound(t.ClustersPerDomain), skew: bound(t.MaxSkew),
			anyway: t.WhenUnsatisfiable == hubv1.ScheduleAnyway,
		})
	}
	var err error
	if c.scoring, err = readScoring(s); err != nil {
		return err
	}
	for i, g := range s.AffinityGroups {
		read := group{name: g.Name, names: g.Names}
		if read.requirements, err = requirements(g.LabelSelector); err != nil {
			return fmt.Errorf("affinityGroups[%d].labelSelector%w", i, err)
		}
		c.groups = append(c.groups, read)
	}
	return nil
}

// bound returns *n, or 0 if n is nil or not positive. 0 means that there is no bound.
func bound(n *int32) int { return max(0, int(ptr.Deref(n, 0))) }

// ReadsFacts reports whether decisions depend on data of clusters that changes without an action of a user: version,
// nodes, capacity, operators and annotations. The condition Ready and the served kinds do not count, because every
// decision depends on them.
func (c *Compiled) ReadsFacts() bool {
	return c.expression.readsFacts() || c.scoring.readsFacts()
}
