package e2e

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// The second cluster of each region in lab/topologies/regions.yaml. No controllers run on these clusters.
const (
	shanghai2  = "cn-sha-2"
	singapore2 = "ap-se-2"
	frankfurt2 = "eu-fra-2"
)

var seconds = []string{singapore2, shanghai2, frankfurt2}

// clusterLabels are the labels of all six clusters in these tests.
var clusterLabels = map[string]map[string]string{
	singapore:  {"provider": "aws", "tier": "1"},
	singapore2: {"provider": "own"},
	shanghai:   {"provider": "ali", "tier": "1"},
	shanghai2:  {"provider": "ali", "tier": "2"},
	frankfurt:  {"provider": "aws", "tier": "1"},
	frankfurt2: {"provider": "own", "tier": "2"},
}

// TestObjectsSpreadMoveAndDrainOverRegions adds a second cluster to each region and places objects in all ways. It
// compares the whole text of every decision: for each cluster, the text has the share of the object, or the reason why
// the cluster has no copy.
func TestObjectsSpreadMoveAndDrainOverRegions(t *testing.T) {
	joinSeconds(t)
	t.Run("every way to choose and to divide", everyWayToChoose)
	t.Run("taints and tolerations", taintsAndTolerations)
	t.Run("the kind that is served, and one that can be divided if it is said of what", servedAndRefused)
	t.Run("rebalance", rebalanceMoves)
	t.Run("a closed cluster", aClosedCluster)
	t.Run("priority", priorityNamesTheLosers)
	t.Run("suspended scheduling", suspendedScheduling)
	t.Run("the hub is killed while a change goes in waves", theHubIsKilledInWaves)
	t.Run("a cluster is down in its wave", aClusterIsDownInItsWave)
	t.Run("no cluster of a manual wave changes without an approval", noChangeWithoutAnApproval)
	t.Run("the fleet changes in mid-wave", theFleetChangesInMidWave)
	t.Run("an operator refuses a change that goes in waves", anOperatorRefusesAChange)
	t.Run("failover and drain", func(t *testing.T) {
		hasty(t)
		t.Run("a region is lost and comes back", aRegionIsLost)
		t.Run("the hub is cut off from four of six", theHubIsCutOff)
		t.Run("a cluster is drained", aClusterIsDrained)
	})
}

// joinSeconds joins the second cluster of each region until the test ends.
func joinSeconds(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	t.Cleanup(func() { removeSeconds(t) })
	topology, err := filepath.Abs("../../lab/topologies/regions.yaml")
	must(t, err)
	must(t, suite.Extend(ctx, topology))
	for _, name := range seconds {
		must(t, applyCRD(ctx, suite.Members[name].Client, "testdata/widget-crd.yaml"))
		must(t, suite.InstallMember(ctx, suite.Members[name], grantedKinds()))
		must(t, suite.Join(ctx, suite.Members[name], clusterLabels[name]))
	}
	for _, name := range members {
		labelMember(t, name, clusterLabels[name])
	}
	for name := range clusterLabels {
		eventually(t, normal, func() error { return memberReady(ctx, name) })
		eventually(t, normal, func() error { return hasNodes(ctx, name) })
	}
	// Without the new labels of these clusters, the hub would keep its decision.
	hubHasSeen(t, slices.Sorted(maps.Keys(clusterLabels))...)
}

// hasNodes returns nil if the status of the MemberCluster has a capacity, and all its nodes are ready.
func hasNodes(ctx context.Context, name string) error {
	var m hubv1.MemberCluster
	if err := suite.Hub.Get(ctx, types.NamespacedName{Name: name}, &m); err != nil {
		return err
	}
	if m.Status.Nodes.Ready == 0 || m.Status.Nodes.Ready != m.Status.Nodes.Total || len(m.Status.Capacity) == 0 {
		return fmt.Errorf("%s has nodes %+v with %v", name, m.Status.Nodes, m.Status.Capacity)
	}
	return nil
}

// removeSeconds removes the second clusters and their MemberClusters, also after a failed test.
func removeSeconds(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 3*time.Minute)
	defer cancel()
	give := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"leave":{"whenUnreachable":"Abandon","timeoutSeconds":0}}}`))
	for _, name := range seconds {
		m := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		_ = suite.Hub.Patch(ctx, m, give)
		_ = suite.Hub.Delete(ctx, m)
	}
	for _, name := range seconds {
		must(t, poll(ctx, time.Minute, func() error { return gone(ctx, &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}) }))
		must(t, client.IgnoreNotFound(suite.Hub.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: name}})))
		must(t, suite.RemoveMember(ctx, name))
	}
}

// labelMember sets labels of a MemberCluster until the test ends.
func labelMember(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	patch := func(ctx context.Context, value func(string) string) error {
		var pairs []string
		for _, key := range slices.Sorted(maps.Keys(labels)) {
			pairs = append(pairs, fmt.Sprintf("%q:%s", key, value(key)))
		}
		m := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		return suite.Hub.Patch(ctx, m, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%s}}}`, strings.Join(pairs, ","))))
	}
	must(t, patch(t.Context(), func(key string) string { return fmt.Sprintf("%q", labels[key]) }))
	t.Cleanup(func() { must(t, patch(context.WithoutCancel(t.Context()), func(string) string { return "null" })) })
}

// patchMember applies a merge patch to the spec of a MemberCluster.
func patchMember(t *testing.T, name, spec string) {
	t.Helper()
	m := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	must(t, suite.Hub.Patch(context.WithoutCancel(t.Context()), m, client.RawPatch(types.MergePatchType, []byte(`{"spec":`+spec+`}`))))
}

func patchPlacement(t *testing.T, p *hubv1.Placement, spec string) {
	t.Helper()
	must(t, suite.Hub.Patch(t.Context(), p, client.RawPatch(types.MergePatchType, []byte(`{"spec":`+spec+`}`))))
}

// decided returns nil if the decision on the object has the wanted text. The first line of this text is the reason and
// message of the condition Scheduled. After it, each cluster of the hub has a line: "holds" with the share and the
// score, or the reason and message why the cluster has no copy.
func decided(ctx context.Context, obj *unstructured.Unstructured, want string) error {
	b, err := bindingOf(ctx, obj)
	if err != nil {
		return err
	}
	got, err := decisionText(b)
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(want), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	if diff := cmp.Diff(lines, got); diff != "" {
		return fmt.Errorf("what is decided on %s (-want +got):\n%s", obj.GetName(), diff)
	}
	return nil
}

func decisionText(b hubv1.BindingObject) ([]string, error) {
	status := b.BindingStatus()
	c := meta.FindStatusCondition(status.Conditions, hubv1.ConditionScheduled)
	if c == nil || status.ObservedGeneration != b.GetGeneration() {
		return nil, fmt.Errorf("the binding %s is at generation %d, its status at %d: %+v", b.GetName(), b.GetGeneration(), status.ObservedGeneration, c)
	}
	scores := map[string]int64{}
	var clusters []string
	if d := status.Decision; d != nil {
		for _, r := range d.Reasons {
			scores[r.Cluster] = r.Score
		}
		for _, r := range d.Rejected {
			for _, example := range r.Examples {
				name, why, _ := strings.Cut(example, ": ")
				clusters = append(clusters, name+" "+r.Reason+": "+why)
			}
		}
	}
	for _, e := range b.BindingSpec().Clusters {
		if e.State != hubv1.TargetPresent {
			continue
		}
		line := e.Name + " holds"
		if e.Replicas != nil {
			line += fmt.Sprintf(" %d", *e.Replicas)
		}
		if score := scores[e.Name]; score != 0 {
			line += fmt.Sprintf(" (score %d)", score)
		}
		clusters = append(clusters, line)
	}
	slices.Sort(clusters)
	lines := append([]string{c.Reason + ": " + c.Message}, clusters...)
	for i := range lines {
		lines[i] = stamp.ReplaceAllString(lines[i], "<time>")
	}
	return lines, nil
}

// stamp matches an RFC 3339 time in a message.
var stamp = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// heldBy returns nil if exactly these clusters have a copy of the object.
func heldBy(ctx context.Context, obj *unstructured.Unstructured, clusters ...string) error {
	return heldAmong(ctx, obj, slices.Collect(maps.Keys(clusterLabels)), clusters...)
}

// holders parses the text of a decision. It returns the clusters that hold the object, and their shares if the replicas
// are divided.
func holders(want string) (names []string, shares map[string]int64) {
	shares = map[string]int64{}
	for line := range strings.Lines(want) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[1] != "holds" {
			continue
		}
		names = append(names, fields[0])
		var n int64
		if len(fields) > 2 {
			if _, err := fmt.Sscanf(fields[2], "%d", &n); err == nil {
				shares[fields[0]] = n
			}
		}
	}
	return names, shares
}
