package decide

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement"
)

func condition(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: hubv1.ConditionScheduled, Status: status, Reason: reason, Message: message}
}

// inWords maps rejection reasons to words such as "tainted". A message has these words after the number of clusters, as
// in "2 tainted".
var inWords = map[string]string{
	hubv1.ReasonNotSelected:         "not selected",
	hubv1.ReasonNotInRevision:       "with a revision of the bundle without the object",
	hubv1.ReasonExcluded:            "excluded",
	hubv1.ReasonExcludedByOverride:  "excluded by override policies",
	hubv1.ReasonUnschedulable:       "unschedulable",
	hubv1.ReasonTaintNotTolerated:   "tainted",
	hubv1.ReasonNamespaceNotAllowed: "do not allow the namespace",
	hubv1.ReasonClusterNotReady:     "not ready",
	hubv1.ReasonClusterLeaving:      "leaving",
	hubv1.ReasonNoReplicas:          "without a share of the replicas",
	hubv1.ReasonExpressionFalse:     "do not meet the expression",
	hubv1.ReasonExpressionFailed:    "where the expression fails",
	hubv1.ReasonKindNotServed:       "do not serve the kind",
	hubv1.ReasonVersionNotServed:    "do not serve the version",
	hubv1.ReasonTopologyMissing:     "in no domain",
	hubv1.ReasonOtherAffinityGroup:  "in other affinity groups",
	hubv1.ReasonNotChosen:           "not needed",
	hubv1.ReasonSpreadConstraint:    "excluded by a spread constraint",
	hubv1.ReasonSpreadUnsatisfied:   "wait for the spread to be satisfied",
	hubv1.ReasonDraining:            "drained",
	hubv1.ReasonEvicting:            "replaced by other clusters",
}

// summary returns the condition Scheduled of a decision, with a message such as "3 of 12 clusters: 6 not selected, 2
// tainted".
func summary(spec *hubv1.BindingSpec, d placement.Decision, clusters int) metav1.Condition {
	selected := 0
	for _, e := range spec.Clusters {
		if e.State == hubv1.TargetPresent || e.Returns() {
			selected++
		}
	}
	message := fmt.Sprintf("%d of %s", selected, clusterCount(clusters))
	var parts []string
	for _, r := range rejections(d) {
		parts = append(parts, fmt.Sprintf("%d %s", r.Count, cmp.Or(inWords[r.Reason], r.Reason)))
	}
	if len(d.Missing) > 0 {
		parts = append(parts, fmt.Sprintf("%d without a MemberCluster", len(d.Missing)))
	}
	if len(parts) > 0 {
		message += ": " + strings.Join(parts, ", ")
	}
	if d.Group != "" {
		message += "; affinity group " + d.Group
	}
	short := false
	for _, s := range d.Shortfalls {
		message += "; " + s.Message
		short = short || s.Serious
	}
	if d.Kept {
		message += "; every cluster keeps its copy"
	}
	waits := slices.ContainsFunc(d.Rejected, func(r placement.Rejection) bool { return r.Reason == hubv1.ReasonNotInRevision })
	switch {
	case selected == 0 && waits:
		return condition(metav1.ConditionTrue, hubv1.ReasonNotInRevision, message)
	case selected == 0 && !d.Kept:
		return condition(metav1.ConditionFalse, hubv1.ReasonNoClusterSelected, message)
	case short:
		return condition(metav1.ConditionFalse, hubv1.ReasonSpreadUnsatisfied, message)
	}
	return condition(metav1.ConditionTrue, hubv1.ReasonScheduled, message)
}

// explained returns the reasons of the decision d for the binding's status. It is nil if there are none. spreads is
// true if the placement spreads objects over a number of clusters. The result then also says why each chosen cluster
// was chosen.
func explained(d placement.Decision, spreads bool) *hubv1.DecisionStatus {
	const named = 100
	out := &hubv1.DecisionStatus{Rejected: rejections(d)}
	for _, t := range d.Targets {
		if len(out.Reasons) < named && (spreads || t.Reason != hubv1.ReasonScheduled) {
			out.Reasons = append(out.Reasons, hubv1.ChosenCluster{Cluster: t.Cluster, Reason: t.Reason, Score: t.Score})
		}
	}
	if out.Rejected == nil && out.Reasons == nil {
		return nil
	}
	return out
}

// rejections counts the rejected clusters by reason, the most frequent first.
func rejections(d placement.Decision) []hubv1.RejectedClusters {
	const named = 20
	byReason := map[string]*hubv1.RejectedClusters{}
	all := slices.Concat(d.Rejected, d.Withdraw)
	for _, r := range d.Evict {
		all = append(all, placement.Rejection{Cluster: r.Cluster, Reason: hubv1.ReasonEvicting, Message: r.Message})
	}
	slices.SortFunc(all, func(a, b placement.Rejection) int { return cmp.Compare(a.Cluster, b.Cluster) })
	for _, r := range all {
		group := byReason[r.Reason]
		if group == nil {
			group = &hubv1.RejectedClusters{Reason: r.Reason}
			byReason[r.Reason] = group
		}
		if group.Count++; len(group.Examples) < named {
			group.Examples = append(group.Examples, r.Cluster+": "+r.Message)
		}
	}
	var out []hubv1.RejectedClusters
	for _, reason := range sets.List(sets.KeySet(byReason)) {
		out = append(out, *byReason[reason])
	}
	slices.SortStableFunc(out, func(a, b hubv1.RejectedClusters) int { return cmp.Compare(b.Count, a.Count) })
	return out
}

func clusterCount(n int) string {
	if n == 1 {
		return "1 cluster"
	}
	return fmt.Sprintf("%d clusters", n)
}

// Short cuts a text to the maximum length that messages of conditions and events may have.
func Short(text string) string {
	const maxBytes = 1000
	if len(text) <= maxBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxBytes], "")
}
