//go:build !race

package cache

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/canonical"
	"github.com/hanse-dev/hanse/internal/informer"
	"github.com/hanse-dev/hanse/member/health"
	"github.com/hanse-dev/hanse/test/heap"
)

// maxKept is the largest memory of a record, and maxUnclaimed that of a record of an object that no binding claims.
// Both are in docs/scale.md.
const maxKept, maxUnclaimed = 8 << 10, 4 << 10

// texts draws texts of many lengths, up to some times the longest text that a record keeps.
func texts(t *rapid.T, what string) string {
	length := rapid.SampledFrom([]int{0, 1, 7, 36, 63, 128, 253, 254, 900, 5000}).Draw(t, what)
	return strings.Repeat(rapid.SampledFrom([]string{"x", "é", "😀", "\n", "9", "/"}).Draw(t, what), length)
}

// names draws texts that an API server would store as a name. Some are too long for a UID.
func names(t *rapid.T, what string) string {
	return strings.Repeat("n", rapid.SampledFrom([]int{1, 10, 36, 63, 100, 120, 128, 253}).Draw(t, what))
}

// values draws JSON values with texts in them.
func values(t *rapid.T, depth int) any {
	switch rapid.IntRange(0, 5).Draw(t, "kind of value") {
	case 0:
		return texts(t, "text")
	case 1:
		return rapid.Int64().Draw(t, "number")
	case 2:
		return rapid.Bool().Draw(t, "boolean")
	}
	if depth == 0 {
		return nil
	}
	if rapid.Bool().Draw(t, "list") {
		list := []any{}
		for range rapid.IntRange(0, 5).Draw(t, "entries") {
			list = append(list, values(t, depth-1))
		}
		return list
	}
	object := map[string]any{}
	for range rapid.IntRange(0, 5).Draw(t, "fields") {
		object[rapid.StringN(0, 40, -1).Draw(t, "field")] = values(t, depth-1)
	}
	return object
}

// objects draws an object as a hostile member may send it.
func objects(t *rapid.T) map[string]any {
	annotation := map[string]any{"other": strings.Repeat("x", rapid.SampledFrom([]int{0, 20_000}).Draw(t, "other annotation"))}
	owner := fmt.Sprintf("%s/%s/%s/%s/%s", names(t, "group"), names(t, "owner's kind"), names(t, "owner's namespace"), names(t, "owner's name"), names(t, "owner's uid"))
	marks := map[string][]string{
		hubv1.OwnerAnnotation:  {"", owner, owner[:min(len(owner), 1000)], texts(t, "owner")},
		hubv1.DigestAnnotation: {"", strings.Repeat("d", 128), texts(t, "digest")},
		hubv1.SourceAnnotation: {"", "7;3-" + strings.Repeat("a", 16), "7;3-" + texts(t, "epoch"), texts(t, "source")},
		hubv1.PauseAnnotation:  {"", "2030-01-01T00:00:00Z", texts(t, "pause")},
	}
	for name, choices := range marks {
		if text := rapid.SampledFrom(choices).Draw(t, name); text != "" {
			annotation[name] = text
		}
	}
	condition := func() any {
		return map[string]any{
			"type": texts(t, "type"), "status": rapid.SampledFrom([]string{"True", "False", "Unknown"}).Draw(t, "status"),
			"reason": texts(t, "reason"), "message": texts(t, "message"),
		}
	}
	return map[string]any{
		"apiVersion": texts(t, "apiVersion"), "kind": texts(t, "kind"),
		"metadata": map[string]any{
			"name": names(t, "name"), "namespace": names(t, "namespace"), "uid": names(t, "uid"), "resourceVersion": names(t, "version"),
			"generation": 3, "labels": map[string]any{"hanse.dev/hub": texts(t, "label")}, "annotations": annotation,
			"managedFields": []any{map[string]any{
				"manager": "hanse", "operation": "Apply", "apiVersion": texts(t, "manager's version"), "fieldsType": "FieldsV1",
				"fieldsV1": map[string]any{"f:spec": map[string]any{}},
			}},
		},
		"spec": values(t, 1),
		"status": rapid.SampledFrom([]any{values(t, 3), map[string]any{
			"replicas": 3, "observedGeneration": 3, "phase": texts(t, "phase"), "conditions": []any{condition(), condition(), condition()}, "more": values(t, 2),
		}}).Draw(t, "status"),
	}
}

// decodeEach decodes many copies of an object whose texts differ, so that equal texts cannot share memory.
func decodeEach(t *rapid.T, object map[string]any, many int, visit func(*unstructured.Unstructured)) {
	text, err := utiljson.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	for i := range many {
		unique := fmt.Sprintf("%03d", i)
		// A letter of each run of letters that is longer than a number becomes part of the number.
		raw := strings.NewReplacer("nnnn", "n"+unique, "xxxx", "x"+unique, "dddd", "d"+unique, "aaaa", "a"+unique).Replace(string(text))
		u := &unstructured.Unstructured{}
		if err := utiljson.Unmarshal([]byte(raw), &u.Object); err != nil {
			t.Fatal(err)
		}
		u.SetGroupVersionKind(schema.GroupVersionKind{Group: "shop.example.com", Version: "v1", Kind: "Widget"}) // as package informer does
		visit(u)
	}
}

func TestARecordKeepsNoMoreOfAnyObjectThanItSays(t *testing.T) {
	const many = 100
	rapid.Check(t, func(t *rapid.T) {
		object := objects(t)
		claimed := rapid.Bool().Draw(t, "claimed")
		settings := rapid.SampledFrom([]*health.Settings{nil, {Paths: []string{"/status/phase", "/status/more", "/status/conditions"}}}).Draw(t, "settings")
		ob := &Observer{options: Options{
			Key: canonical.Key("key"), Claimed: func(hubv1.ObjectIdentity) bool { return claimed },
			Conventions: func(schema.GroupVersionKind) health.Conventions { return health.Conventions{HasStatus: true} },
			Settings:    func(hubv1.ObjectIdentity) *health.Settings { return settings },
		}}
		decodeEach(t, object, 1, func(u *unstructured.Unstructured) { ob.reduce(u) }) // fills pools and caches
		reported, largest := int64(0), int64(0)
		kept := 0
		took := heap.Kept(func() any {
			records := make([]*record, 0, many)
			decodeEach(t, object, many, func(u *unstructured.Unstructured) {
				if informer.CheckObject(u) == nil {
					records = append(records, ob.reduce(u))
				}
			})
			for _, r := range records {
				reported += r.Size()
				largest = max(largest, r.Size())
			}
			kept = len(records)
			return records
		})
		const noise = 8 << 10 // what the runtime and the test itself keep
		if took > reported+noise {
			t.Fatalf("%d records take %d bytes, and say that they take %d", kept, took, reported)
		}
		most := int64(maxKept)
		if !claimed {
			most = maxUnclaimed
		}
		if largest > most {
			t.Fatalf("a record says that it takes %d bytes, at most %d are allowed", largest, most)
		}
	})
}
