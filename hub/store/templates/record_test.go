package templates

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// sized returns a widget whose spec has about the given number of bytes, with repeated names, numbers and words as in a
// real spec.
func sized(i, bytes int) *unstructured.Unstructured {
	random := rand.New(rand.NewPCG(1, uint64(i)))
	u := widget("pack.example.com", fmt.Sprintf("widget-%05d", i))
	u.SetUID(types.UID(fmt.Sprintf("0f4b1c7e-9d3a-4c55-8a11-%012x", i)))
	u.SetResourceVersion(fmt.Sprint(100000 + i))
	u.SetLabels(map[string]string{"app.kubernetes.io/name": "widget", "app.kubernetes.io/part-of": "test"})
	var env []any
	for size := 0; size < bytes; size += 100 {
		env = append(env, map[string]any{
			"name": fmt.Sprintf("OPTION_%d", len(env)), "value": fmt.Sprintf("%x", random.Uint64()), "weight": random.Int64N(1000), "ratio": 0.5, "optional": false,
			"from": map[string]any{"configMap": "settings", "key": nil},
		})
	}
	u.Object["spec"] = map[string]any{"replicas": int64(3), "env": env}
	return u
}

func TestARecordUnpacksToWhatWasPacked(t *testing.T) {
	t.Parallel()
	owned := sized(1, 100)
	owned.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "hanse", Operation: metav1.ManagedFieldsOperationApply, Subresource: "status"}})
	for name, u := range map[string]*unstructured.Unstructured{
		"a small object":                    sized(1, 100),
		"a large object":                    sized(2, 60<<10),
		"with owners of the status":         owned,
		"with a field that is called items": {Object: map[string]any{"apiVersion": "v1", "kind": "Shelf", "items": []any{"a", int64(1), 1.5, nil}}},
	} {
		want := u.DeepCopy()
		r := pack(u)
		if diff := cmp.Diff(want.Object, r.unpack().Object); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		type head struct {
			namespace, name, resourceVersion string
			uid                              types.UID
			labels                           map[string]string
		}
		asked := func(o metav1.Object) head {
			return head{o.GetNamespace(), o.GetName(), o.GetResourceVersion(), o.GetUID(), o.GetLabels()}
		}
		if diff := cmp.Diff(asked(want), asked(r), cmp.AllowUnexported(head{})); diff != "" {
			t.Errorf("head of %s (-want +got):\n%s", name, diff)
		}
	}
}

// heap returns the bytes of live objects on the heap.
func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

func TestRecordsTakeHalfOfTheirJSONAndLittleMore(t *testing.T) { // not parallel, because it measures the heap
	for _, bytes := range []int{1 << 10, 50 << 10} {
		const objects = 100
		warm := pack(sized(0, bytes)) // creates the compressor's tables
		before := heap()
		kept := map[string]metav1.Object{}
		var json, held int
		for i := range objects {
			r := pack(sized(i, bytes))
			json, held = json+r.jsonSize, held+r.held()
			kept["default/"+strings.Clone(r.name)] = r
		}
		took := heap() - before
		t.Logf("%d objects of %d bytes of JSON: %d bytes on the heap each, %d by estimate", objects, json/objects, took/objects, held/objects)
		if most := json/2 + objects*2<<10; took > most {
			t.Errorf("%d objects of %d bytes of JSON take %d bytes, want %d at most", objects, json/objects, took, most)
		}
		if held < took*3/4 || held > took*5/4 {
			t.Errorf("%d objects take %d bytes, estimated as %d", objects, took, held)
		}
		runtime.KeepAlive(kept)
		runtime.KeepAlive(warm)
	}
}

func TestUnpackedObjectsAreKeptForAWhile(t *testing.T) {
	t.Parallel()
	r := pack(sized(1, 1000))
	var c recent
	first := c.get(r)
	c.age()
	if c.get(r) != first {
		t.Error("an object that was asked for a generation ago is unpacked again")
	}
	c.age()
	c.age()
	if c.size() != 0 {
		t.Errorf("%d objects are kept that nobody asks for", c.size())
	}
	if c.get(r) == first {
		t.Error("an object that nobody asked for is kept")
	}

	const large = 100 << 10
	for range 100 {
		another := *r
		another.jsonSize = large
		c.get(&another)
	}
	if most := 2 * recentBytes / large; c.size() > most || c.size() < most/4 {
		t.Errorf("%d large objects are kept, want about %d", c.size(), most)
	}
}

func TestARecordDistinguishesStatusFromOtherChanges(t *testing.T) {
	t.Parallel()
	before := pack(sized(1, 100))
	for name, test := range map[string]struct {
		change func(*unstructured.Unstructured)
		same   bool
	}{
		"its status, and who writes to it": {func(u *unstructured.Unstructured) {
			u.Object["status"] = map[string]any{"ready": int64(1)}
			u.SetResourceVersion("200001")
			u.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "hanse", Operation: metav1.ManagedFieldsOperationApply, Subresource: "status"}})
		}, true},
		"its spec":              {func(u *unstructured.Unstructured) { u.Object["spec"].(map[string]any)["replicas"] = int64(4) }, false},
		"a field beside spec":   {func(u *unstructured.Unstructured) { u.Object["data"] = map[string]any{"status": "on"} }, false},
		"an annotation":         {func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{"a": "b"}) }, false},
		"a label":               {func(u *unstructured.Unstructured) { u.SetLabels(nil) }, false},
		"its generation":        {func(u *unstructured.Unstructured) { u.SetGeneration(7) }, false},
		"its uid":               {func(u *unstructured.Unstructured) { u.SetUID("other") }, false},
		"that it is to be gone": {func(u *unstructured.Unstructured) { u.SetDeletionTimestamp(&metav1.Time{}) }, false},
	} {
		u := sized(1, 100)
		test.change(u)
		if same := pack(u).rest == before.rest; same != test.same {
			t.Errorf("%s changed: the rest is the same: %t, want %t", name, same, test.same)
		}
	}
}

// TestTheOwnersOfFieldsTakeLittleMemory compares records with and without owners.
func TestTheOwnersOfFieldsTakeLittleMemory(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		entries func(spec map[string]any) []any
		most    int // bytes per object
	}{
		"created by a client that sends all fields": {func(spec map[string]any) []any {
			return []any{map[string]any{"manager": "kubectl-create", "operation": "Update", "apiVersion": "example.com/v1", "fieldsV1": map[string]any{"f:spec": fieldsOf(spec)}}}
		}, 64},
		"applied, with some fields of the API server": {func(spec map[string]any) []any {
			fields := fieldsOf(spec)
			delete(fields, "f:replicas")
			return []any{map[string]any{"manager": "flux", "operation": "Apply", "apiVersion": "example.com/v1", "fieldsV1": map[string]any{"f:spec": fields}}}
		}, 256},
	} {
		const objects = 100
		var without, with int
		for i := range objects {
			u := sized(i, 1<<10)
			u.SetAPIVersion("example.com/v1")
			trim(u)
			without += pack(u).held()
			u.Object["metadata"].(map[string]any)["managedFields"] = test.entries(u.Object["spec"].(map[string]any))
			trim(u)
			with += pack(u).held()
		}
		t.Logf("%s: %d bytes on the heap each, %d without owners", name, with/objects, without/objects)
		if more := (with - without) / objects; more > test.most {
			t.Errorf("%s: the owners take %d bytes each, want %d at most", name, more, test.most)
		}
	}
}

// fieldsOf returns the fields of a value as managedFields has them.
func fieldsOf(value map[string]any) map[string]any {
	out := map[string]any{}
	for name, v := range value {
		below := map[string]any{}
		if m, ok := v.(map[string]any); ok {
			below = fieldsOf(m)
		}
		out["f:"+name] = below
	}
	return out
}
