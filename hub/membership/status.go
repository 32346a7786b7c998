package membership

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

// maxMessage limits the message of a condition, in characters.
const maxMessage = 4096

// observed copies the state of the link into the status of its MemberCluster. now is the time.
func observed(c *hubv1.MemberCluster, state member.LinkState, hubID string, now time.Time) {
	c.Status.ObservedGeneration = c.Generation
	// Before the end of the first connection attempt, the state of the link (the hub's connection) is not known. The
	// conditions then usually stay as they were before the restart of the hub. They are set only if there is no condition
	// Ready yet, or if the condition Ready has the reason SecretMissing.
	before := meta.FindStatusCondition(c.Status.Conditions, hubv1.ConditionReady)
	if state.Ready != metav1.ConditionUnknown || before == nil || before.Reason == hubv1.ReasonSecretMissing {
		message := state.Message
		if state.Ready == metav1.ConditionTrue && c.Status.ClusterID == hubID {
			message += "; this is the hub's own cluster, and the hub writes no copies to it"
		}
		setCondition(c, hubv1.ConditionReady, state.Ready, state.Reason, message)
		setCredentials(c, state)
		setTooLarge(c, state.TooLarge)
	}
	facts := state.Facts.Bounded()
	if facts.Kubernetes != "" {
		c.Status.Version.Kubernetes = facts.Kubernetes
	}
	if facts.Served != nil {
		c.Status.APIResources = served(facts.Served)
	}
	topology, moved := pinned(c.Status.Topology, c.Labels, facts)
	c.Status.Topology = topology
	if facts.Capacity == nil { // the nodes have not been read yet
		return
	}
	c.Status.Nodes = facts.Nodes
	count(c, facts, now)
	if moved != "" {
		setCondition(c, hubv1.ConditionTopologyChanged, metav1.ConditionTrue, hubv1.ReasonNodesMoved, moved)
		return
	}
	setCondition(c, hubv1.ConditionTopologyChanged, metav1.ConditionFalse, hubv1.ReasonTopologyStable, "status.topology matches the labels or the nodes")
}

// served returns the kinds as a list for the status, sorted by group and kind.
func served(kinds map[schema.GroupKind][]string) []hubv1.ServedKind {
	var out []hubv1.ServedKind
	for gk, versions := range kinds {
		out = append(out, hubv1.ServedKind{Group: gk.Group, Kind: gk.Kind, Versions: versions})
	}
	slices.SortFunc(out, func(a, b hubv1.ServedKind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
	})
	return out[:min(len(out), hubv1.MaxAPIResources)]
}

// pinned returns the topology of a cluster. The labels of the MemberCluster take precedence over values from nodes. A
// value from nodes never changes once it is set, even if nodes are removed. If the nodes now have another value, moved
// is a message with both values and the label that changes the topology. Otherwise moved is empty. An unknown region is
// set as soon as all nodes have the same region.
func pinned(before hubv1.ClusterTopology, labels map[string]string, facts member.Facts) (after hubv1.ClusterTopology, moved string) {
	after = before
	var news []string
	switch region := labels[hubv1.RegionLabel]; {
	case region != "":
		after.Region = region
	case before.Region == "":
		after.Region = facts.Region
	case facts.Region != "" && facts.Region != before.Region:
		news = append(news, fmt.Sprintf("the nodes are in region %s, but the region in status.topology stays %s: to change it, set the label %s on the MemberCluster",
			facts.Region, before.Region, hubv1.RegionLabel))
	}
	switch zone := labels[hubv1.ZoneLabel]; {
	case zone != "":
		after.Zones = []string{zone}
	case len(before.Zones) == 0:
		after.Zones = facts.Zones
	case slices.ContainsFunc(facts.Zones, func(z string) bool { return !slices.Contains(before.Zones, z) }):
		news = append(news, fmt.Sprintf("the nodes are in zones %s, but the zones in status.topology stay %s: to change them, set the label %s on the MemberCluster",
			listed(facts.Zones), listed(before.Zones), hubv1.ZoneLabel))
	}
	return after, strings.Join(news, "; ")
}

func listed(names []string) string {
	const shown = 5
	if len(names) > shown {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
	}
	return strings.Join(names, ", ")
}

func sameCapacity(a, b hubv1.MemberClusterStatus) bool {
	return a.Nodes == b.Nodes && equality.Semantic.DeepEqual(a.Capacity, b.Capacity) && equality.Semantic.DeepEqual(a.Allocatable, b.Allocatable) &&
		equality.Semantic.DeepEqual(a.CapacityGrowth, b.CapacityGrowth)
}

func setCredentials(c *hubv1.MemberCluster, state member.LinkState) {
	setCondition(c, hubv1.ConditionCredentialsValid, state.Credentials, state.CredentialsReason, state.CredentialsMessage)
}

// setTooLarge sets the condition for a cluster whose responses exceed a limit of the hub. `what` names the limit. If it
// is empty, the condition is removed.
func setTooLarge(c *hubv1.MemberCluster, what string) {
	if what == "" {
		meta.RemoveStatusCondition(&c.Status.Conditions, hubv1.ConditionAnswersTooLarge)
		return
	}
	setCondition(c, hubv1.ConditionAnswersTooLarge, metav1.ConditionTrue, hubv1.ReasonAnswerTooLarge, fmt.Sprintf(
		"an answer of cluster %s exceeds the limit of the hub (%s) and was dropped, so earlier facts stay: look for a faulty or hostile server or proxy there", c.Name, what))
}

// setUnclaimed sets the condition about the n copies on the cluster that no binding names. If n is 0, the condition is
// removed.
func setUnclaimed(c *hubv1.MemberCluster, n int) {
	if n == 0 {
		c.Status.Unclaimed = nil
		meta.RemoveStatusCondition(&c.Status.Conditions, hubv1.ConditionUnclaimed)
		return
	}
	c.Status.Unclaimed = ptr.To(int32(min(n, math.MaxInt32)))
	message := fmt.Sprintf("the hub wrote %d objects of the cluster and no binding claims them: hansectl prune lists them, and asks before it removes them", n)
	if n == 1 {
		message = "the hub wrote 1 object of the cluster and no binding claims it: hansectl prune lists it, and asks before it removes it"
	}
	setCondition(c, hubv1.ConditionUnclaimed, metav1.ConditionTrue, hubv1.ReasonCopiesUnclaimed, message)
}

func setCondition(c *hubv1.MemberCluster, conditionType string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{
		Type: conditionType, Status: status, Reason: reason, Message: member.Line(message, maxMessage), ObservedGeneration: c.Generation,
	})
}
