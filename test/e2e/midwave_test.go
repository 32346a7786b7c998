package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// stagedClusters selects the clusters with a label, and rolls changes out in waves. After the wave europe, the rollout
// soaks until the test changes the placement.
const stagedClusters = `
clusters: {labelSelector: {matchLabels: {example.org/staged: "yes"}}}
rollout:
  settleSeconds: 0
  healthGate: {timeoutSeconds: 600, minObservedSeconds: 0}
  waves:
  - {name: europe, clusters: {labelSelector: {matchLabels: {topology.kubernetes.io/region: eu-central-1}}}, soakSeconds: 3600}
  - {name: singapore, clusters: {expression: "region == 'ap-southeast-1'"}}
  - {name: rest}
`

// withoutSoak is a merge patch for the rollout of stagedClusters: it removes the soak, and sets the shortest time-out
// of the health gate.
const withoutSoak = `{"rollout":{"healthGate":{"timeoutSeconds":30},"waves":[
	{"name":"europe","clusters":{"labelSelector":{"matchLabels":{"topology.kubernetes.io/region":"eu-central-1"}}}},
	{"name":"singapore","clusters":{"expression":"region == 'ap-southeast-1'"}},
	{"name":"rest"}]}}`

// theFleetChangesInMidWave makes a change, and a second change while the first wave soaks. During the soak, two
// clusters join, one is cordoned, and one is drained. An administrator of a member pauses a copy, which holds the
// rollout of the second change, and so does the cordoned cluster. The audit logs must show that later waves got only
// the second change, and got it after the first wave.
func theFleetChangesInMidWave(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	join := func(name string) { labelMember(t, name, map[string]string{"example.org/staged": "yes"}) }
	here := []string{frankfurt, singapore, singapore2, shanghai}
	for _, name := range here {
		join(name)
	}
	w := placed(t, ns, "mid-wave", stagedClusters, 3)
	p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: w.GetName()}}
	eventually(t, normal, func() error { return heldBy(ctx, w, here...) })
	sayReadyEverywhere(t, w)
	eventually(t, normal, func() error { return rolloutIs(ctx, w, hubv1.RolloutComplete, "") })
	begin := time.Now()

	patchObject(t, w, `{"spec":{"replicas":7}}`)
	eventually(t, normal, func() error { return rolloutIs(ctx, w, hubv1.RolloutSoaking, "europe") })
	must(t, replicasOn(ctx, frankfurt, w, 7))
	join(frankfurt2)
	join(shanghai2)
	eventually(t, normal, func() error { return replicasOn(ctx, frankfurt2, w, 7) })
	eventually(t, normal, func() error { return replicasOn(ctx, shanghai2, w, 3) })
	eventually(t, normal, func() error { return rolloutIs(ctx, w, hubv1.RolloutProgressing, "europe") })
	must(t, sayReady(ctx, frankfurt2, w))
	must(t, sayReady(ctx, shanghai2, w))
	eventually(t, normal, func() error { return rolloutIs(ctx, w, hubv1.RolloutSoaking, "europe") })
	for _, name := range []string{singapore2, shanghai2} {
		t.Cleanup(func() { patchMember(t, name, `{"drain":null,"unschedulable":null}`) })
	}
	patchMember(t, singapore2, `{"unschedulable":true}`)
	patchMember(t, shanghai2, `{"drain":{"evict":true}}`)
	eventually(t, normal, func() error { return goneFrom(ctx, shanghai2, w) })
	pauseCopy(t, frankfurt2, w, fmt.Sprintf("%q", time.Now().Add(time.Hour).UTC().Format(time.RFC3339)))
	eventually(t, normal, func() error { return rowIs(ctx, w, frankfurt2, metav1.ConditionTrue, hubv1.ReasonPaused) })
	must(t, rolloutIs(ctx, w, hubv1.RolloutSoaking, "europe"))

	patchObject(t, w, `{"spec":{"replicas":9}}`)
	eventually(t, normal, func() error { return replicasOn(ctx, frankfurt, w, 9) })
	eventually(t, normal, func() error { return rowIs(ctx, w, frankfurt2, metav1.ConditionFalse, hubv1.ReasonPaused) })
	patchPlacement(t, p, withoutSoak)
	eventually(t, time.Minute, func() error {
		return placementCondition(ctx, p, hubv1.ConditionRolledOut, metav1.ConditionFalse, hubv1.ReasonRolloutMoving, "an admin of eu-fra-2 has paused the copy there")
	})
	must(t, rolloutIs(ctx, w, hubv1.RolloutProgressing, "europe"))
	must(t, replicasOn(ctx, frankfurt2, w, 7))
	pauseCopy(t, frankfurt2, w, "null")
	eventually(t, time.Minute, func() error { return rolloutIs(ctx, w, hubv1.RolloutWaitingForClusters, "singapore") })
	must(t, replicasOn(ctx, singapore, w, 9))
	must(t, replicasOn(ctx, singapore2, w, 3)) // this cluster is cordoned, so it keeps the old revision, and the wave waits
	must(t, replicasOn(ctx, shanghai, w, 3))
	must(t, goneFrom(ctx, shanghai2, w))
	patchMember(t, singapore2, `{"unschedulable":null}`)
	eventually(t, time.Minute, func() error { return rolloutIs(ctx, w, hubv1.RolloutComplete, "") })
	patchMember(t, shanghai2, `{"drain":null}`)
	for _, name := range []string{singapore2, shanghai2} {
		eventually(t, normal, func() error { return replicasOn(ctx, name, w, 9) })
	}

	europeEnds := slices.MaxFunc(append(midWaveWrites(t, w, begin, frankfurt, 2), midWaveWrites(t, w, begin, frankfurt2, 2)...), time.Time.Compare)
	for _, name := range []string{singapore, singapore2, shanghai} {
		must(t, replicasOn(ctx, name, w, 9))
		for _, at := range midWaveWrites(t, w, begin, name, 1) {
			if at.Before(europeEnds) {
				t.Errorf("%s changed at %s, before the last cluster of Europe at %s", name, at, europeEnds)
			}
		}
	}
}

// midWaveWrites returns the times of the hub's writes to the copy on a member after begin. It fails the test if their
// number is not want.
func midWaveWrites(t *testing.T, w *unstructured.Unstructured, begin time.Time, member string, want int) []time.Time {
	t.Helper()
	writes := writeTimes(t, suite.Members[member].AuditLog, w.GetName(), begin)
	if len(writes) != want {
		t.Fatalf("%s got %d writes, want %d: %v", member, len(writes), want, writes)
	}
	return writes
}

// pauseCopy acts as an administrator of the member: it sets the annotation hanse.dev/pause of a copy. until is a time
// as a JSON string, or null to remove the annotation.
func pauseCopy(t *testing.T, member string, w *unstructured.Unstructured, until string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	copied, err := on(ctx, member, w)
	must(t, err)
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, hubv1.PauseAnnotation, until)
	must(t, suite.Members[member].Patch(ctx, copied, client.RawPatch(types.MergePatchType, patch)))
}
