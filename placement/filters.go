package placement

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// A filter returns an empty reason to keep the cluster.
type filter func(s selection, c Cluster) (reason, message string)

// unselecting filters take an object away from a cluster that holds it.
var unselecting = []filter{
	leaving,          // its MemberCluster is being deleted; first, because then its leave policy counts and no other
	excluded,         // excludedNames subtracts it
	notNamed,         // names does not hold it
	labelsDiffer,     // labelSelector does not match its labels
	noExecuteRefused, // it carries a NoExecute taint that is not tolerated
}

// gating filters keep an object away from a cluster that does not hold it yet.
var gating = []filter{
	namespaceRefused,  // its allowedNamespaces leave the object's namespace out
	unschedulable,     // its admin wants no new objects on it
	noScheduleRefused, // it carries a NoSchedule taint that is not tolerated
	notReady,          // its watches do not deliver
}

func first(filters []filter, s selection, c Cluster) (reason, message string) {
	for _, f := range filters {
		if reason, message := f(s, c); reason != "" {
			return reason, message
		}
	}
	return "", ""
}

func leaving(_ selection, c Cluster) (reason, message string) {
	if !c.Leaving {
		return "", ""
	}
	return hubv1.ReasonClusterLeaving, "the MemberCluster is being deleted"
}

func excluded(s selection, c Cluster) (reason, message string) {
	if !slices.Contains(s.excludedNames, c.Name) {
		return "", ""
	}
	return hubv1.ReasonExcluded, fmt.Sprintf("%s is in excludedNames", c.Name)
}

func notNamed(s selection, c Cluster) (reason, message string) {
	if len(s.names) == 0 || slices.Contains(s.names, c.Name) {
		return "", ""
	}
	return hubv1.ReasonNotSelected, fmt.Sprintf("name %s is not in %s", c.Name, list(s.names))
}

func labelsDiffer(s selection, c Cluster) (reason, message string) {
	for _, r := range s.requirements {
		if why := r.fails(c.Labels); why != "" {
			return hubv1.ReasonNotSelected, why
		}
	}
	return "", ""
}

func noExecuteRefused(s selection, c Cluster) (reason, message string) {
	return taintRefused(s, c, corev1.TaintEffectNoExecute)
}

func noScheduleRefused(s selection, c Cluster) (reason, message string) {
	return taintRefused(s, c, corev1.TaintEffectNoSchedule)
}

func taintRefused(s selection, c Cluster, effect corev1.TaintEffect) (reason, message string) {
	for _, t := range c.Taints {
		if t.Effect == effect && !tolerated(s.tolerations, t) {
			return hubv1.ReasonTaintNotTolerated, fmt.Sprintf("taint %s is not tolerated", t.ToString())
		}
	}
	return "", ""
}

// tolerated follows the rules for pods; the numeric operators Lt and Gt, which Kubernetes keeps behind a gate, match nothing.
func tolerated(tolerations []corev1.Toleration, taint corev1.Taint) bool {
	return slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool {
		if (t.Effect != "" && t.Effect != taint.Effect) || (t.Key != "" && t.Key != taint.Key) {
			return false
		}
		switch t.Operator {
		case "", corev1.TolerationOpEqual:
			return t.Value == taint.Value
		case corev1.TolerationOpExists:
			return true
		}
		return false
	})
}

func namespaceRefused(_ selection, c Cluster) (reason, message string) {
	if c.NamespaceAllowed {
		return "", ""
	}
	return hubv1.ReasonNamespaceNotAllowed, "the cluster's allowedNamespaces leave the object's namespace out"
}

func unschedulable(_ selection, c Cluster) (reason, message string) {
	if !c.Unschedulable {
		return "", ""
	}
	return hubv1.ReasonUnschedulable, "the cluster is marked unschedulable"
}

func notReady(_ selection, c Cluster) (reason, message string) {
	if c.Ready {
		return "", ""
	}
	return hubv1.ReasonClusterNotReady, "the cluster is not Ready"
}
