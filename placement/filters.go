package placement

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// filter checks whether one cluster may get the object. A cluster passes if check returns an empty reason.
type filter struct {
	name string
	// unselects is true if the filter also removes the object from a cluster that holds it. If unselects is false, the
	// filter only prevents new copies.
	unselects bool
	// remembered is true if the result depends only on the placement and the cluster, but not on the object. Such a result
	// is cached.
	remembered bool
	check      func(in *Input, c *Cluster) cause
}

// cause is the reason why a cluster does not get the object, or keeps an object that should leave it. The zero value
// means that there is no such reason.
type cause struct{ reason, message string }

// filterNoExecute is the name of the filter by NoExecute taints.
const filterNoExecute = "NoExecute taints"

// filters has all filters, in the order of their evaluation. Filters with unselects come first, so that their reason is
// reported if several filters reject a cluster. The comment of a filter says when the filter rejects a cluster ("it").
var filters = []filter{
	{"leaving", true, true, leaving},                  // it is being deleted, so only its leave policy counts
	{"excludedNames", true, true, excluded},           // excludedNames contains it
	{"names", true, true, notNamed},                   // names does not contain it
	{"labelSelector", true, true, labelsDiffer},       // labelSelector does not match its labels
	{"expression", true, true, mismatchOfUserData},    // expression is false, and reads only data that users set
	{"override rules", true, false, excludedByRule},   // a rule of an override policy excludes it by such data
	{filterNoExecute, true, false, noExecute},         // it has a NoExecute taint that is not or no longer tolerated
	{"expression now", false, true, mismatchOfFacts},  // expression is false or fails, and reads other data
	{"override rules now", false, false, excludedNow}, // a rule of an override policy excludes it by other data
	{"topologyKeys", false, true, topologyMissing},    // it lacks the label of a constraint's topologyKey
	{"allowedNamespaces", false, false, notAllowed},   // its allowedNamespaces exclude the object's namespace
	{"unschedulable", false, true, unschedulable},     // spec.unschedulable of the MemberCluster is true
	{"drain", false, true, draining},                  // it is being drained
	{"Ready", false, true, notReady},                  // its watch delivers no events, even before it has a taint
	{"NoSchedule taints", false, true, noSchedule},    // it has a NoSchedule taint that is not tolerated
	{"served", false, false, notServed},               // it is known to serve no usable version of the kind
}

func leaving(_ *Input, c *Cluster) cause {
	if !c.Leaving {
		return cause{}
	}
	return cause{hubv1.ReasonClusterLeaving, "the MemberCluster is being deleted"}
}

func excluded(in *Input, c *Cluster) cause {
	if !slices.Contains(in.Placement.excludedNames, c.Name) {
		return cause{}
	}
	return cause{hubv1.ReasonExcluded, fmt.Sprintf("%s is in excludedNames", c.Name)}
}

func notNamed(in *Input, c *Cluster) cause {
	names := in.Placement.names
	if len(names) == 0 || slices.Contains(names, c.Name) {
		return cause{}
	}
	return cause{hubv1.ReasonNotSelected, fmt.Sprintf("name %s is not in %s", c.Name, list(names))}
}

func labelsDiffer(in *Input, c *Cluster) cause {
	if why := failing(in.Placement.requirements, c.Labels); why != "" {
		return cause{hubv1.ReasonNotSelected, why}
	}
	return cause{}
}

// mismatchOfUserData rejects a cluster for which the expression is false, if the expression reads only data that users
// set. If the expression has no result for the cluster, the filter mismatchOfFacts rejects new copies.
func mismatchOfUserData(in *Input, c *Cluster) cause {
	e := in.Placement.expression
	if e == nil || !e.setByUsers {
		return cause{}
	}
	if holds, err := e.holds(c); holds || err != nil {
		return cause{}
	}
	return cause{hubv1.ReasonNotSelected, "expression is false: " + e.values(c)}
}

func mismatchOfFacts(in *Input, c *Cluster) cause {
	e := in.Placement.expression
	if e == nil {
		return cause{}
	}
	switch holds, err := e.holds(c); {
	case err != nil:
		return cause{hubv1.ReasonExpressionFailed, "expression fails: " + short(err.Error()) + "; " + e.values(c)}
	case !holds && !e.setByUsers:
		return cause{hubv1.ReasonExpressionFalse, "expression is false: " + e.values(c)}
	}
	return cause{}
}

func excludedByRule(in *Input, c *Cluster) cause {
	x, yes := in.Excluded[c.Name]
	if !yes || x.Passing {
		return cause{}
	}
	return cause{hubv1.ReasonExcludedByOverride, "excluded by " + x.Rule}
}

func excludedNow(in *Input, c *Cluster) cause {
	x, yes := in.Excluded[c.Name]
	if !yes || !x.Passing {
		return cause{}
	}
	return cause{hubv1.ReasonExcludedByOverride, "excluded for now by " + x.Rule + ": " + x.Why}
}

func short(text string) string {
	const maxBytes = 200
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= maxBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxBytes], "")
}

// noExecute rejects clusters with a NoExecute taint that is not tolerated. It ignores the taint that the hub sets on an
// unreachable cluster, because the object leaves such a cluster only if another cluster replaces it (see due). If a
// taint is tolerated for a limited time only, noExecute rejects clusters that do not hold the object, because a new
// copy would soon have to leave.
func noExecute(in *Input, c *Cluster) cause {
	for _, t := range c.Taints {
		if t.Effect != corev1.TaintEffectNoExecute || t.Key == hubv1.UnreachableTaint {
			continue
		}
		limit, yes := tolerance(in.Placement.tolerations, t)
		if !yes {
			return notTolerated(t)
		}
		if limit == nil {
			continue
		}
		there := in.Held[c.Name] || in.Evicting[c.Name]
		if _, passed := left(t, limit, in.Now); passed || !there {
			return cause{hubv1.ReasonTaintNotTolerated, fmt.Sprintf("taint %s is tolerated for %d s only", t.ToString(), max(*limit, 0))}
		}
	}
	return cause{}
}

func noSchedule(in *Input, c *Cluster) cause {
	for _, t := range c.Taints {
		if t.Effect != corev1.TaintEffectNoSchedule {
			continue
		}
		if _, yes := tolerance(in.Placement.tolerations, t); !yes {
			return notTolerated(t)
		}
	}
	return cause{}
}

func notTolerated(t corev1.Taint) cause {
	return cause{hubv1.ReasonTaintNotTolerated, fmt.Sprintf("taint %s is not tolerated", t.ToString())}
}

// tolerates reports whether a toleration matches a taint, by the rules for pods. A toleration with the operator Lt or
// Gt matches no taint, because Kubernetes has these operators only behind a feature gate.
func tolerates(t corev1.Toleration, taint corev1.Taint) bool {
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
}

func topologyMissing(in *Input, c *Cluster) cause {
	for _, t := range in.Placement.constraints {
		if !t.anyway && c.Labels[t.key] == "" {
			return cause{hubv1.ReasonTopologyMissing, subject(t.key) + " is not set, and topologySpreadConstraints need it"}
		}
	}
	return cause{}
}

func notAllowed(_ *Input, c *Cluster) cause {
	if c.NamespaceAllowed {
		return cause{}
	}
	return cause{hubv1.ReasonNamespaceNotAllowed, "the cluster's allowedNamespaces do not include the object's namespace"}
}

func unschedulable(_ *Input, c *Cluster) cause {
	if !c.Unschedulable {
		return cause{}
	}
	return cause{hubv1.ReasonUnschedulable, "the cluster is marked unschedulable"}
}

func draining(_ *Input, c *Cluster) cause {
	if !c.Draining {
		return cause{}
	}
	return cause{hubv1.ReasonDraining, "the cluster is being drained"}
}

// notServed rejects two kinds of clusters. Some have reported about other kinds, but not about the object's kind yet.
// Others do not serve the object's kind at a suitable version. A cluster that has reported about no kind, or about too
// many to store them all, passes, because it may serve the kind.
func notServed(in *Input, c *Cluster) cause {
	kind := in.Object.GVK.GroupKind()
	versions, known := c.Served[kind]
	switch {
	case !known && c.ServedInFull:
		return cause{hubv1.ReasonKindNotServed, fmt.Sprintf("the cluster has not reported yet whether it serves %s", kind)}
	case !known || in.Object.CopyVersion(versions) != "":
		return cause{}
	case len(versions) == 0:
		return cause{hubv1.ReasonKindNotServed, fmt.Sprintf("the cluster does not serve %s", kind)}
	}
	return cause{hubv1.ReasonVersionNotServed, fmt.Sprintf("the cluster serves %s at %s, not at %s", kind, list(versions), in.Object.GVK.Version)}
}

func notReady(_ *Input, c *Cluster) cause {
	if c.Ready {
		return cause{}
	}
	return cause{hubv1.ReasonClusterNotReady, "the cluster is not Ready"}
}
