package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

const regionByRegion = `
clusters: {labelSelector: {}}
rollout:
  settleSeconds: 0
  healthGate: {timeoutSeconds: 600, minObservedSeconds: 0}
  waves:
  - {name: europe, clusters: {labelSelector: {matchLabels: {topology.kubernetes.io/region: eu-central-1}}}, soakSeconds: 2}
  - {name: singapore, clusters: {expression: "region == 'ap-southeast-1'"}, maxConcurrent: 1, approval: Manual}
  - {name: rest}
`

// regionWaves are the clusters of each wave of regionByRegion.
var regionWaves = [][]string{{frankfurt, frankfurt2}, {singapore, singapore2}, {shanghai, shanghai2}}

// theHubIsKilledInWaves kills the hub in the first wave, in the pause before an approval, and in the second wave. Each
// time, a new process must continue the rollout. The audit logs of the members must show that each cluster changed only
// after all clusters of the previous wave.
func theHubIsKilledInWaves(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	w := placed(t, ns, "region-by-region", regionByRegion, 3)
	p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: w.GetName()}}
	eventually(t, normal, func() error { return heldBy(ctx, w, append(europe, asia...)...) })
	sayReadyEverywhere(t, w)
	eventually(t, normal, func() error { return rolloutIs(ctx, w, hubv1.RolloutComplete, "") })
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, seed))
	killSoon := func() {
		t.Helper()
		<-time.After(time.Duration(random.IntN(500)) * time.Millisecond) // kill the hub at a random moment
		must(t, suite.hub.Kill())
		startHub(t)
	}

	begin := time.Now()
	must(t, suite.Hub.Patch(ctx, w.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":7}}`))))
	eventually(t, normal, func() error { return replicasOn(ctx, frankfurt, w, 7) })
	killSoon()
	eventually(t, time.Minute, func() error { return rolloutIs(ctx, w, hubv1.RolloutWaitingForApproval, "singapore") })
	killSoon()
	must(t, rolloutIs(ctx, w, hubv1.RolloutWaitingForApproval, "singapore"))
	approve(t, p)
	eventually(t, time.Minute, func() error { return replicasOn(ctx, singapore, w, 7) })
	killSoon()
	eventually(t, 2*time.Minute, func() error { return rolloutIs(ctx, w, hubv1.RolloutComplete, "") })

	var before time.Time // the time of the last change in the previous wave
	for i, wave := range regionWaves {
		last := before
		for _, name := range wave {
			must(t, replicasOn(ctx, name, w, 7))
			copied, err := on(ctx, name, w)
			must(t, err)
			if got := copied.GetGeneration(); got != 2 {
				t.Errorf("the copy on %s changed %d times after its creation, want 1", name, got-1)
			}
			// If the hub is killed before it has recorded a write, the new process repeats the write. The second write changes
			// nothing.
			writes := writeTimes(t, suite.Members[name].AuditLog, w.GetName(), begin)
			if len(writes) == 0 {
				t.Errorf("%s got no write", name)
				continue
			}
			if writes[0].Before(before) {
				t.Errorf("%s of wave %d changed at %s, before the last cluster of the wave before at %s", name, i, writes[0], before)
			}
			if writes[0].After(last) {
				last = writes[0]
			}
		}
		before = last
	}
}

// writeTimes reads a member's audit log, and returns the times at which the hub wrote an object after the time from.
func writeTimes(t *testing.T, path, object string, from time.Time) []time.Time {
	t.Helper()
	var out []time.Time
	for _, e := range auditedWrites(t, path, func(e auditEvent) bool {
		return e.ObjectRef.Name == object && e.ResponseStatus.Code < 300 && e.StageTimestamp.After(from)
	}) {
		out = append(out, e.StageTimestamp.Time)
	}
	return out
}

// aClusterIsDownInItsWave stops a cluster of the first wave. The wave waits for this cluster until the test excludes it
// from the rollout.
func aClusterIsDownInItsWave(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	w := placed(t, ns, "down-in-its-wave", regionByRegion, 3)
	p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: w.GetName()}}
	eventually(t, normal, func() error { return heldBy(ctx, w, append(europe, asia...)...) })
	sayReadyEverywhere(t, w)
	eventually(t, normal, func() error { return rolloutIs(ctx, w, hubv1.RolloutComplete, "") })

	stop(t, frankfurt2)
	eventually(t, time.Minute, func() error { return memberIsNotReady(ctx, frankfurt2) })
	must(t, suite.Hub.Patch(ctx, w.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":7}}`))))
	eventually(t, normal, func() error { return replicasOn(ctx, frankfurt, w, 7) })
	eventually(t, normal, func() error { return rowIs(ctx, w, frankfurt, metav1.ConditionTrue, "") })
	must(t, rolloutIs(ctx, w, hubv1.RolloutProgressing, "europe"))
	approve(t, p)
	annotate(t, p, hubv1.RolloutSkipAnnotation, frankfurt2+"@"+time.Now().UTC().Format(time.RFC3339))
	for _, name := range asia {
		eventually(t, time.Minute, func() error { return replicasOn(ctx, name, w, 7) })
	}
	resume(t, frankfurt2)
	eventually(t, time.Minute, func() error { return replicasOn(ctx, frankfurt2, w, 7) })
	eventually(t, time.Minute, func() error { return rolloutIs(ctx, w, hubv1.RolloutComplete, "") })
}

// noChangeWithoutAnApproval cordons and suspends the clusters of a wave that waits for its approval. Their copies must
// not change before the approval, and an approval with a time to come is none.
func noChangeWithoutAnApproval(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	w := placed(t, ns, "not-approved", regionByRegion, 3)
	p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: w.GetName()}}
	eventually(t, normal, func() error { return heldBy(ctx, w, append(europe, asia...)...) })
	sayReadyEverywhere(t, w)
	eventually(t, normal, func() error { return rolloutIs(ctx, w, hubv1.RolloutComplete, "") })
	annotate(t, p, hubv1.RolloutApproveAnnotation, "singapore@2099-01-01T00:00:00Z")
	eventually(t, normal, func() error {
		return placementCondition(ctx, p, hubv1.ConditionAccepted, metav1.ConditionFalse, hubv1.ReasonRequestRefused, "2099-01-01T00:00:00Z")
	})
	begin := time.Now()
	waits := func() error { return rolloutIs(ctx, w, hubv1.RolloutWaitingForApproval, "singapore") }
	patchObject(t, w, `{"spec":{"replicas":7}}`)
	eventually(t, time.Minute, waits)

	for _, name := range regionWaves[1] {
		t.Cleanup(func() { patchMember(t, name, `{"unschedulable":null}`) })
		patchMember(t, name, `{"unschedulable":true}`)
	}
	decidedAgain := func(replicas int64) { // another change of the object passes the first wave, so the hub has seen the event
		t.Helper()
		patchObject(t, w, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
		eventually(t, normal, func() error { return replicasOn(ctx, frankfurt2, w, replicas) })
		eventually(t, time.Minute, waits)
	}
	decidedAgain(8)
	for _, name := range regionWaves[1] {
		patchMember(t, name, `{"unschedulable":null}`)
	}
	decidedAgain(9)
	patchPlacement(t, p, `{"suspend":{"clusters":["`+singapore+`","`+singapore2+`"]}}`)
	decidedAgain(10)
	patchPlacement(t, p, `{"suspend":null}`)
	decidedAgain(11)

	for _, name := range asia {
		if writes := writeTimes(t, suite.Members[name].AuditLog, w.GetName(), begin); len(writes) > 0 {
			t.Errorf("%s was written at %v, before the approval", name, writes)
		}
	}
	approve(t, p)
	eventually(t, 2*time.Minute, func() error { return rolloutIs(ctx, w, hubv1.RolloutComplete, "") })
	for _, name := range asia {
		must(t, replicasOn(ctx, name, w, 11))
	}
}

func memberIsNotReady(ctx context.Context, name string) error {
	if memberReady(ctx, name) == nil {
		return fmt.Errorf("%s is Ready", name)
	}
	return nil
}

func annotate(t *testing.T, p *hubv1.Placement, key, value string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, key, value)
	must(t, suite.Hub.Patch(t.Context(), p.DeepCopy(), client.RawPatch(types.MergePatchType, patch)))
}

const firstClustersRegionByRegion = `
clusters: {names: [ap-se-1, cn-sha-1, eu-fra-1]}
rollout:
  settleSeconds: 0
  onFailure: Rollback
  healthGate: {timeoutSeconds: 600, minObservedSeconds: 0}
  waves:
  - {name: europe, clusters: {labelSelector: {matchLabels: {topology.kubernetes.io/region: eu-central-1}}}, soakSeconds: 1}
  - {name: rest}
`

// anOperatorRefusesAChange sets spec.version of a Prometheus to "latest", which the real operator rejects. The hub must
// roll the change back, and must not send it to another region.
func anOperatorRefusesAChange(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	crds, err := suite.LabCommand(ctx, "crds", "prometheus-operator") // the operator waits for all its CRDs
	must(t, err)
	for _, crd := range documents(t, crds) {
		crd.SetLabels(map[string]string{"app.kubernetes.io/part-of": "prometheus-operator"})
		must(t, suite.Hub.Apply(ctx, client.ApplyConfigurationFromUnstructured(crd), client.FieldOwner("e2e"), client.ForceOwnership))
	}
	applyFile(t, "testdata/operator-crds.yaml")
	var spec hubv1.PlacementSpec
	must(t, yaml.UnmarshalStrict([]byte(firstClustersRegionByRegion), &spec))
	place(t, ns, "staged", hubv1.ResourceSelector{APIGroup: "monitoring.coreos.com", Kind: "Prometheus"}, spec)
	web := documents(t, strings.ReplaceAll("{apiVersion: monitoring.coreos.com/v1, kind: Prometheus, metadata: {namespace: NS, name: staged}, spec: {replicas: 1}}", "NS", ns))[0]
	eventually(t, normal, func() error { return client.IgnoreAlreadyExists(suite.Hub.Create(ctx, web.DeepCopy())) })
	t.Cleanup(func() { _ = suite.Hub.Delete(context.WithoutCancel(ctx), web.DeepCopy()) })
	eventually(t, 5*time.Minute, func() error { return bindingCondition(ctx, web, hubv1.ConditionHealthy, metav1.ConditionTrue, "") })
	eventually(t, normal, func() error { return rolloutIs(ctx, web, hubv1.RolloutComplete, "") })
	behindEurope := []string{singapore, shanghai}
	before := writesBehind(t, web, behindEurope)

	patchObject(t, web, `{"spec":{"version":"latest"}}`)
	eventually(t, time.Minute, func() error { return rolloutIs(ctx, web, hubv1.RolloutRolledBack, "") })
	if diff := cmp.Diff(before, writesBehind(t, web, behindEurope)); diff != "" {
		t.Errorf("the change that the operator refuses reached other regions (-before +after):\n%s", diff)
	}
	eventually(t, normal, func() error { return fieldOn(ctx, frankfurt, web, nil, "spec", "version") })
	eventually(t, time.Minute, func() error { return healthOn(ctx, web, frankfurt, hubv1.HealthHealthy) })

	patchObject(t, web, `{"spec":{"version":null,"logLevel":"debug"}}`)
	eventually(t, 2*time.Minute, func() error { return rolloutIs(ctx, web, hubv1.RolloutComplete, "") })
	for _, name := range members {
		must(t, fieldOn(ctx, name, web, "debug", "spec", "logLevel"))
	}
	deleteHeld(t, frankfurt, web)
}

func patchObject(t *testing.T, obj *unstructured.Unstructured, patch string) {
	t.Helper()
	must(t, suite.Hub.Patch(t.Context(), obj.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch))))
}

// fieldOn returns nil if a field of the copy on a member has this value. A nil value means that the field is not set.
func fieldOn(ctx context.Context, member string, obj *unstructured.Unstructured, want any, path ...string) error {
	copied, err := on(ctx, member, obj)
	if err != nil {
		return err
	}
	if got, _, _ := unstructured.NestedFieldNoCopy(copied.Object, path...); !cmp.Equal(got, want) {
		return fmt.Errorf("on %s: %s is %v, want %v", member, strings.Join(path, "."), got, want)
	}
	return nil
}
