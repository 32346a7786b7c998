package health

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

func TestProject(t *testing.T) {
	tests := map[string]struct {
		status string
		want   string
	}{
		"no status": {status: "{}", want: ""},
		"numbers, booleans and short strings are kept, prose is not": {
			status: "{replicas: 3, paused: false, version: v2.1, empty: '', text: 'this string is longer than sixty-four characters and is therefore prose'}",
			want:   `{"paused":false,"replicas":3,"version":"v2.1"}`,
		},
		"conditions lose messages and times and are sorted by type": {
			status: "{conditions: [{type: Ready, status: 'True', reason: Up, message: fine, lastTransitionTime: '2026-01-01T00:00:00Z', observedGeneration: 4}, {type: Available, status: Degraded}]}",
			want:   `{"conditions":[{"status":"Degraded","type":"Available"},{"observedGeneration":4,"reason":"Up","status":"True","type":"Ready"}]}`,
		},
		"arrays are dropped, scalars of nested maps kept": {
			status: "{list: [1, 2], nested: {a: 1, deep: {b: x}, list: [3]}, nothing: {list: [1]}}",
			want:   `{"nested":{"a":1,"deep":{"b":"x"}}}`,
		},
		"a fraction is dropped, a whole number in floating point kept": {
			status: "{ratio: 0.5, whole: 2.0}", want: `{"whole":2}`,
		},
		"what belongs to one cluster is left out": {
			status: "{selector: a=b, shards: 2, currentPrimary: web-1, credentialsSecretName: s, secretRef: {name: x}, podIP: 10.0.0.1, url: 'http://x', updateRevision: web-7, timelineID: 3, replicas: 1, recip: 1}",
			want:   `{"recip":1,"replicas":1}`,
		},
		"a heartbeat is dropped, an expiry and a failure time are kept": {
			status: "{lastSync: '2026-01-01T00:00:00Z', notAfter: '2030-01-01T00:00:00Z', lastFailureTime: '2026-01-01T00:00:00+01:00'}",
			want:   `{"lastFailureTime":"2026-01-01T00:00:00+01:00","notAfter":"2030-01-01T00:00:00Z"}`,
		},
		"lists of named entries keep what can be merged of them": {
			status: "{pools: [{name: web, readyReplicas: 2, image: v1, phase: Ready, nodeName: n1, notAfter: '2030-01-01T00:00:00Z', conditions: [{type: Ready, status: 'True', message: fine}]}]}",
			want:   `{"pools":[{"conditions":[{"status":"True","type":"Ready"}],"name":"web","notAfter":"2030-01-01T00:00:00Z","phase":"Ready","readyReplicas":2}]}`,
		},
		"lists in them as well": {
			status: "{pools: [{name: web, zones: [{zone: a, replicas: 2}]}]}", want: `{"pools":[{"name":"web","zones":[{"replicas":2,"zone":"a"}]}]}`,
		},
		"a list in which nothing can be merged is dropped": {
			status: "{resources: [{kind: Service, name: web, status: Synced}]}", want: "",
		},
		"of a list of entries without names it is said that it is there": {
			status: "{pools: [{readyReplicas: 2}], jobs: [{name: a, failed: 1}, {failed: 1}]}", want: `{"jobs":null,"pools":null}`,
		},
		"of a list of 17 entries as well": {
			status: "{pools: [" + strings.Repeat("{name: web, readyReplicas: 2}, ", 17) + "]}", want: `{"pools":null}`,
		},
		"of one in an entry as well": {
			status: "{pools: [{name: web, zones: [" + strings.Repeat("{zone: a, replicas: 2}, ", 17) + "]}]}", want: `{"pools":[{"name":"web","zones":null}]}`,
		},
		"of one whose entries are not all maps as well": {status: "{pools: [web, {name: web, readyReplicas: 2}]}", want: `{"pools":null}`},
		"a list of 17 entries in which nothing can be merged is dropped": {
			status: "{resources: [" + strings.Repeat("{kind: Service, name: web, status: Synced}, ", 17) + "]}", want: "",
		},
		"an empty list is dropped":                          {status: "{pools: [], nested: {pools: []}}", want: ""},
		"names that projections use themselves are dropped": {status: "{'~': 1, /a: 2, replicas: 3}", want: `{"replicas":3}`},
		"conditions that are no list are dropped": {
			status: "{conditions: {a: 1}, replicas: 1}", want: `{"replicas":1}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var status map[string]any
			if err := yaml.Unmarshal([]byte(tc.status), &status); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(Project(schema.GroupKind{}, status))); diff != "" {
				t.Errorf("projection (-want +got):\n%s", diff)
			}
		})
	}
	if got := Project(schema.GroupKind{}, nil); got != nil {
		t.Errorf("no status gives %s", got)
	}
}

// survivors returns the groups of the status of TestAProjectionLosesTheLightestFirst that a projection still has
// completely.
func survivors(t *testing.T, p Projection, bad int) []string {
	t.Helper()
	of := map[string]map[string]any{}
	conditions, _ := p.Fields["conditions"].([]any)
	failing, failingReasons := 0, 0
	for _, e := range conditions {
		c := e.(map[string]any)
		of[conditionType(c)] = c
		if strings.HasSuffix(conditionType(c), "Failed") {
			failing++
			if c["reason"] != nil {
				failingReasons++
			}
		}
	}
	nested, _ := p.Fields["nested"].(map[string]any)
	var out []string
	for _, group := range []struct {
		name string
		has  bool
	}{
		{"details", p.Fields["version"] != nil && nested["image"] != nil && p.Fields["temperature"] != nil},
		{"good reasons", of["DiskReady"]["reason"] != nil && of["Ready"]["reason"] != nil},
		{"booleans", p.Fields["flag"] != nil},
		{"parts", of["DiskReady"] != nil && of["Odd"] != nil},
		{"words", p.Fields["phase"] != nil},
		{"nested", nested["replicas"] != nil},
		{"counts", p.Fields["replicas"] != nil},
		{"bad reasons", failingReasons == bad},
		{"whole", of["Ready"] != nil},
		{"bad", failing == bad},
	} {
		if group.has {
			out = append(out, group.name)
		}
	}
	return out
}

// Each further failing condition takes space from the values that weigh less than it.
func TestAProjectionLosesTheLightestFirst(t *testing.T) {
	order := []string{"details", "good reasons", "booleans", "parts", "words", "nested", "counts", "bad reasons", "whole", "bad"}
	seen := map[int]bool{}
	for bad := range 30 {
		list := []any{
			map[string]any{"type": "Ready", "status": "True", "reason": "Up", "observedGeneration": int64(3)},
			map[string]any{"type": "DiskReady", "status": "True", "reason": "DiskReady"},
			map[string]any{"type": "Odd", "status": "Maybe"},
		}
		for i := range bad {
			list = append(list, map[string]any{"type": fmt.Sprintf("Part%02dFailed", i), "status": "True", "reason": "Overloaded"})
		}
		data := Project(schema.GroupKind{}, map[string]any{
			"conditions": list, "flag": true, "replicas": int64(7), "phase": "Running", "observedGeneration": int64(3),
			"version": strings.Repeat("v", 64), "temperature": int64(20), "nested": map[string]any{"replicas": int64(3), "image": strings.Repeat("i", 60)},
		})
		p, err := ReadProjection(data)
		if err != nil || len(data) > MaxProjection {
			t.Fatalf("%d bytes, %v", len(data), err)
		}
		got := survivors(t, p, bad)
		seen[len(got)] = true
		if want := order[len(order)-len(got):]; !slices.Equal(want, got) {
			t.Errorf("with %d failing conditions it has %v, want %v: %s", bad, got, want, data)
		}
		if p.Fields["observedGeneration"] == nil {
			t.Errorf("with %d failing conditions the generation is lost", bad)
		}
		if (p.Lost == LostNothing) != (len(got) == len(order)) {
			t.Errorf("with %d failing conditions %v is left, and the loss is %b", bad, got, p.Lost)
		}
	}
	for _, left := range []int{len(order), 2, 0} {
		if !seen[left] {
			t.Errorf("no projection has %d groups: the test tries too few sizes", left)
		}
	}
}

func TestAProjectionKeepsAllConditionsOfAManyPartObject(t *testing.T) {
	parts := []string{
		"Available", "ControlPlaneAvailable", "ControlPlaneInitialized", "ControlPlaneMachinesReady", "ControlPlaneMachinesUpToDate", "InfrastructureReady",
		"RemoteConnectionProbe", "TopologyReconciled", "WorkerMachinesReady", "WorkerMachinesUpToDate", "WorkersAvailable",
	}
	var list []any
	want := map[string]string{}
	add := func(kind, status, reason string) {
		list = append(list, map[string]any{"type": kind, "status": status, "reason": reason, "observedGeneration": int64(1)})
		want[kind] = status
	}
	for _, kind := range parts {
		add(kind, "True", kind)
	}
	for _, kind := range []string{"Deleting", "Paused", "Remediating", "ScalingDown", "ScalingUp"} {
		add(kind, "False", "Not"+kind)
	}
	add("RollingOut", "True", "RollingOut")
	sums := func() map[string]any {
		return map[string]any{"desiredReplicas": int64(5), "replicas": int64(5), "readyReplicas": int64(5), "availableReplicas": int64(5), "upToDateReplicas": int64(2)}
	}
	kind := schema.GroupKind{Group: "cluster.x-k8s.io", Kind: "Cluster"}
	data := Project(kind, map[string]any{"conditions": list, "phase": "Provisioned", "observedGeneration": int64(1), "workers": sums(), "controlPlane": sums()})
	p, err := ReadProjection(data)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, c := range readConditions(p.Fields) {
		got[c.kind] = c.status
		if c.kind == "RollingOut" && c.reason != "RollingOut" {
			t.Errorf("the condition that tells what happens lost its reason: %s", data)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	if workers, _ := p.Fields["workers"].(map[string]any); len(workers) != 5 || p.Lost != LostReasons {
		t.Errorf("workers %v, loss %b", workers, p.Lost)
	}
}

func TestAProjectionOfAnEarlierVersionIsRead(t *testing.T) {
	tests := map[string]struct {
		data string
		want Loss
	}{
		"nothing lost":        {`{"replicas":1}`, LostNothing},
		"strings":             {`{"~":1}`, LostDetails | LostWords},
		"up to numbers":       {`{"~":5}`, LostDetails | LostWords | LostNested | LostReasons | LostBooleans | LostCounts},
		"all":                 {`{"~":7}`, LostEverything},
		"what no version has": {`{"~":"x"}`, LostEverything},
		"a negative number":   {`{"~":-1}`, LostEverything},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ReadProjection([]byte(tc.data))
			if err != nil || got.Lost != tc.want {
				t.Errorf("%b, %v; want %b", got.Lost, err, tc.want)
			}
		})
	}
}

func TestProjectionIsBoundedAndStable(t *testing.T) {
	word := rapid.StringMatching(`[a-zA-Z]{1,20}`)
	leaf := rapid.OneOf(
		rapid.Map(rapid.Int64(), func(i int64) any { return i }),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(rapid.StringN(0, 70, -1), func(s string) any { return s }),
		rapid.Map(rapid.MapOfN(word, rapid.Int64(), 0, 5), func(m map[string]int64) any {
			out := map[string]any{}
			for k, v := range m {
				out[k] = v
			}
			return out
		}),
		rapid.Just[any]([]any{map[string]any{"replicas": int64(1)}}),
	)
	rapid.Check(t, func(t *rapid.T) {
		status := rapid.MapOfN(word, leaf, 0, 40).Draw(t, "status")
		var list []any
		for range rapid.IntRange(0, 15).Draw(t, "conditions") {
			list = append(list, map[string]any{"type": word.Draw(t, "type"), "status": "True", "reason": word.Draw(t, "reason")})
		}
		status["conditions"] = list
		first := Project(schema.GroupKind{}, status)
		if len(first) > MaxProjection || (first != nil && !json.Valid(first)) {
			t.Fatalf("%d bytes: %s", len(first), first)
		}
		if second := Project(schema.GroupKind{}, status); string(first) != string(second) {
			t.Fatalf("first %s\nthen %s", first, second)
		}
		if first == nil {
			return
		}
		var again map[string]any
		if err := json.Unmarshal(first, &again); err != nil {
			t.Fatal(err)
		}
		// encoding/json decodes numbers beyond 2^53 as float64. A second projection drops such numbers, so the test removes
		// them first.
		for name, v := range again {
			if f, ok := v.(float64); ok && math.Abs(f) >= 1<<53 {
				delete(again, name)
			}
		}
		if got := Project(schema.GroupKind{}, again); len(got) > len(first) {
			t.Fatalf("projected again %s grows to %s", first, got)
		}
	})
}

func BenchmarkProject(b *testing.B) {
	status := map[string]any{}
	for i := range 1000 {
		status[fmt.Sprintf("field%d", i)] = "some short text"
	}
	for b.Loop() {
		Project(schema.GroupKind{}, status)
	}
}

func TestProjectKeepsWhatIsNamed(t *testing.T) {
	tests := map[string]struct {
		status string
		paths  []string
		want   string
	}{
		"whatever it is":             {status: "{tags: [a, b], lag: 0.5, at: '2030-01-01T00:00:00Z'}", paths: []string{"/status/tags", "/status/lag", "/status/at"}, want: `{"/at":"2030-01-01T00:00:00Z","/lag":0.5,"/tags":["a","b"]}`},
		"beside what is kept anyway": {status: "{disk: {used: 1Gi}}", paths: []string{"/status/disk/used"}, want: `{"/disk/used":"1Gi","disk":{"used":"1Gi"}}`},
		"a name with a slash":        {status: "{a/b: [1]}", paths: []string{"/status/a~1b"}, want: `{"/a~1b":[1]}`},
		"nothing where there is none": {
			status: "{disk: full}", paths: []string{"/status/disk/used", "/status/none"}, want: `{"/disk/used":null,"/none":null,"disk":"full"}`,
		},
		"nothing but numbers where it belongs to one cluster": {
			status: "{url: 'http://a', shards: 2}", paths: []string{"/status/url", "/status/shards"}, want: `{"/shards":2,"/url":null}`,
		},
		"a large value is missing, and nothing else is": {
			status: "{replicas: 1, at: [b], tags: ['" + strings.Repeat("t", 300) + "']}", paths: []string{"/status/tags", "/status/at"}, want: `{"/at":["b"],"replicas":1}`,
		},
		"a large value alone": {status: "{tags: ['" + strings.Repeat("t", 300) + "']}", paths: []string{"/status/tags"}, want: ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var status map[string]any
			if err := yaml.Unmarshal([]byte(tc.status), &status); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(Project(schema.GroupKind{}, status, tc.paths...))); diff != "" {
				t.Errorf("projection (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAProjectionSaysWhatItMayHaveLost(t *testing.T) {
	named := make([]string, 0, 16)
	status := map[string]any{"replicas": int64(1), "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
	for i := range 16 {
		field := fmt.Sprintf("f%02d", i)
		status[field], named = strings.Repeat("v", 61), append(named, "/status/"+field)
	}
	lists := map[string]any{"replicas": int64(1)}
	for i := range 120 {
		lists[fmt.Sprintf("f%02d", i)] = []any{map[string]any{"replicas": int64(1)}}
	}
	tests := map[string]struct {
		status map[string]any // if it differs from that of the case before
		paths  []string
		lost   Loss
	}{
		"long strings":                                {lost: LostDetails},
		"lists that could not be kept anyway":         {status: lists, lost: LostNested},
		"everything else before some named ones":      {paths: named, lost: LostDetails | LostReasons | LostCounts | LostConditions | LostNamed},
		"strings that nobody named go before the one": {paths: named[:1], lost: LostDetails},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.status == nil {
				tc.status = status
			}
			data := Project(schema.GroupKind{}, tc.status, tc.paths...)
			got, err := ReadProjection(data)
			if err != nil || len(data) > MaxProjection {
				t.Fatalf("%d bytes, %v", len(data), err)
			}
			if got.Lost != tc.lost {
				t.Errorf("lost %b, want %b, in %s", got.Lost, tc.lost, data)
			}
			if !tc.lost.Has(LostNamed) && len(got.Named) != len(tc.paths) {
				t.Errorf("named values of %s", data)
			}
			for name := range got.Fields {
				if reserved(name) {
					t.Errorf("%s is no field of the status", name)
				}
			}
		})
	}
}
