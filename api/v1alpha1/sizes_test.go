package v1alpha1_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The cost of a CRD's validation rules is limited for each request. The largest valid spec must not exceed this limit,
// because its author would get an incomprehensible error. Each list is therefore filled with its most expensive
// elements. The server accepts at most 3 MiB, so longer lists are not tested.
func TestTheLargestSpecsAreAffordable(t *testing.T) {
	c := connect(t)
	long := strings.Repeat("a", 120)
	tests := map[string]struct{ kind, spec string }{
		"64 rules with 64 moves each": {"OverridePolicy", selectThings + "rules: " +
			many(64, "{name: "+strings.Repeat("r", 60)+"%d, patches: "+many(64, "{op: move, from: /metadata/annotations/"+long+"%d, path: /metadata/annotations/b"+long+"%d}")+"}")},
		"64 rules with 64 long paths each": {"OverridePolicy", selectThings + "rules: " +
			many(64, "{name: r%d, patches: "+many(64, "{op: remove, path: /metadata/labels/"+strings.Repeat("a", 470)+"%d}")+"}")},
		"64 selectors of long names": {"ClusterPlacement", "resourceSelectors: " + many(64, "{apiGroup: "+strings.Repeat("g", 250)+", kind: "+strings.Repeat("K", 60)+", name: "+strings.Repeat("n", 250)+"%d}") + `
clusters: {names: ` + many(1000, strings.Repeat("a", 59)+"%d") + `, excludedNames: ` + many(1000, strings.Repeat("b", 59)+"%d") + `}
suspend: {clusters: ` + many(1000, strings.Repeat("c", 59)+"%d") + `}`},
		"64 weights and limits of long names": {"Placement", placementSpec + "replicas: {type: Divide, path: /spec/replicas, divide: {weights: " +
			many(64, "{weight: 1, clusters: {names: "+many(256, strings.Repeat("a", 58)+"%d")+"}}") + ", limits: [{minReplicas: 1, maxReplicas: 2}]}}"},
		"8 constraints and 16 groups of long names": {"Placement", placementSpec + "spread: {numberOfClusters: 2000, topologySpreadConstraints: " +
			many(8, "{topologyKey: "+strings.Repeat("k", 310)+"%d, minDomains: 1, maxDomains: 2}") + ", affinityGroups: " +
			many(16, "{name: "+strings.Repeat("g", 60)+"%d, names: "+many(1000, strings.Repeat("a", 58)+"%d")+"}") +
			", preferences: " + many(32, "{weight: 1, expression: "+strings.Repeat("a", 4096)+"}") + "}"},
		"2000 absent targets":                    {"ClusterResourceBinding", thingRef + "clusters: " + many(2000, "{name: "+strings.Repeat("a", 59)+"%d, state: Absent, absent: {policy: Delete, uid: 01234567-89ab-cdef-0123-456789abcdef, reason: "+strings.Repeat("R", 64)+"}}")},
		"200 targets with 100 replacements each": {"ClusterResourceBinding", thingRef + "clusters: " + many(200, "{name: "+strings.Repeat("a", 59)+"%d, state: Evicting, evicting: {reason: Evicted, replacements: "+strings.ReplaceAll(many(100, "{cluster: "+strings.Repeat("a", 59)+"%d}"), "%", "%%")+"}}")},
		"1000 manifests and 16 ConfigMaps": {"Bundle", "manifests: " +
			many(1000, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a%d}, data: {a: "+strings.Repeat("a", 1000)+"}}") +
			"\nconfigMaps: " + many(16, "{name: "+strings.Repeat("a", 250)+"%d}")},
		"a MemberCluster with 32 long taints": {"MemberCluster", memberSpec + "taints: " + many(32, "{effect: PreferNoSchedule, key: "+strings.Repeat("k", 300)+"%d, value: "+strings.Repeat("v", 300)+"}")},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			obj := object(t, tc.kind, "x", tc.spec)
			text, err := obj.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Create(t.Context(), obj, client.DryRunAll); err != nil {
				t.Fatalf("%d KiB: %v", len(text)>>10, err)
			}
		})
	}
}
