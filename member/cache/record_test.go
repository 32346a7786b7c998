package cache

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/health"
)

var custom = health.Conventions{HasStatus: true}

// decoded returns an object as a watch delivers it.
func decoded(t *testing.T, name, specText string) *unstructured.Unstructured {
	t.Helper()
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "monitoring.coreos.com/v1", "kind": "Prometheus",
		"metadata": map[string]any{
			"name": name, "namespace": "monitoring", "uid": "b8f3a4d2-0001-4c53-9a65-" + name, "resourceVersion": "123456", "generation": 2,
			"labels": map[string]any{"hanse.dev/hub": "b8f3a4d2-0002-4c53-9a65-000000000000"},
			"annotations": map[string]any{
				"hanse.dev/owner":  "monitoring.coreos.com/Prometheus/monitoring/" + name + "/b8f3a4d2-0003-4c53-9a65-000000000000",
				"hanse.dev/digest": "9c1f9c1f9c1f9c1f",
			},
			"managedFields": []any{map[string]any{
				"manager": "hanse", "operation": "Apply", "apiVersion": "monitoring.coreos.com/v1", "fieldsType": "FieldsV1",
				"fieldsV1": map[string]any{"f:spec": map[string]any{"f:text": map[string]any{}}},
			}},
		},
		"spec": map[string]any{"text": specText},
		"status": map[string]any{"availableReplicas": 3, "replicas": 3, "conditions": []any{
			map[string]any{"type": "Available", "status": "True", "reason": "Up", "message": strings.Repeat("m", 2000)},
			map[string]any{"type": "Reconciled", "status": "False", "reason": "Broken", "message": strings.Repeat("m", 2000)},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestARecordDoesNotGrowWithTheObject(t *testing.T) {
	const many = 1000
	settled := func() (m runtime.MemStats) {
		for range 3 { // a pool of buffers is empty only after the second collection
			runtime.GC()
		}
		runtime.ReadMemStats(&m)
		return m
	}
	heap := func(specBytes int) float64 {
		before := settled()
		records := make([]*record, many)
		for i := range records {
			records[i] = newRecord(nil, decoded(t, fmt.Sprintf("web-%05d", i), strings.Repeat("s", specBytes)), custom, nil)
		}
		after := settled()
		runtime.KeepAlive(records)
		return float64(after.HeapAlloc-before.HeapAlloc) / many
	}
	small, large := heap(100), heap(50<<10)
	t.Logf("%.0f bytes per object, %.0f with 50 KiB in its spec", small, large)
	if small > 2048 || large > 1.1*small+64 {
		t.Errorf("a record takes %.0f bytes, and %.0f with 50 KiB in its spec", small, large)
	}
}

func TestInvalidMarksOnTheMemberAreIgnored(t *testing.T) {
	tests := map[string]struct {
		annotations map[string]string
		owner       bool
		digest      string
		paused      bool
	}{
		"what the hub writes": {
			map[string]string{hubv1.OwnerAnnotation: "g/K/ns/n/uid", hubv1.DigestAnnotation: "d", hubv1.PauseAnnotation: "2030-01-01T00:00:00Z"}, true, "d", true,
		},
		"words in place of an owner and a time": {
			map[string]string{hubv1.OwnerAnnotation: "me", hubv1.PauseAnnotation: "for ever"}, false, "", false,
		},
		"marks that are too long to keep": {
			map[string]string{
				hubv1.OwnerAnnotation:  "g/K/ns/" + strings.Repeat("n", 5000) + "/uid",
				hubv1.DigestAnnotation: strings.Repeat("d", 5000),
			}, false, "", false,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			u := decoded(t, "web", "")
			u.SetAnnotations(tc.annotations)
			o := newRecord(nil, u, health.Conventions{}, nil).observation()
			if (o.OwnerUID != "") != tc.owner || o.Digest != tc.digest || o.Paused.IsZero() == tc.paused {
				t.Errorf("%+v", o)
			}
		})
	}
}

func TestWhatCountsAsContent(t *testing.T) {
	tests := map[string]struct {
		edit           func(*unstructured.Unstructured)
		equal, content bool
	}{
		"nothing but the resourceVersion": {func(u *unstructured.Unstructured) { u.SetResourceVersion("9") }, true, true},
		"the generation":                  {func(u *unstructured.Unstructured) { u.SetGeneration(3) }, false, true},
		"the status":                      {func(u *unstructured.Unstructured) { u.Object["status"] = map[string]any{"replicas": int64(1)} }, false, true},
		"a field of ours":                 {func(u *unstructured.Unstructured) { u.Object["spec"] = map[string]any{"text": "x"} }, false, false},
		"another object of that name":     {func(u *unstructured.Unstructured) { u.SetUID("x") }, false, false},
		"the object starts to be deleted": {func(u *unstructured.Unstructured) { now := metav1.Now(); u.SetDeletionTimestamp(&now) }, false, false},
		"the pause": {func(u *unstructured.Unstructured) {
			annotate(u, hubv1.PauseAnnotation, time.Now().Format(time.RFC3339))
		}, false, false},
		"the digest":                           {func(u *unstructured.Unstructured) { annotate(u, hubv1.DigestAnnotation, "x") }, false, false},
		"the owner":                            {func(u *unstructured.Unstructured) { annotate(u, hubv1.OwnerAnnotation, "g/K/ns/n/uid") }, false, false},
		"an annotation that nobody looks at":   {func(u *unstructured.Unstructured) { annotate(u, "x", "y") }, true, true},
		"the ownership of our fields was lost": {func(u *unstructured.Unstructured) { u.SetManagedFields(nil) }, false, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before, u := newRecord(nil, decoded(t, "web", "s"), custom, nil), decoded(t, "web", "s")
			tc.edit(u)
			after := newRecord(nil, u, custom, nil)
			if before.equal(after) != tc.equal || before.sameContent(after) != tc.content {
				t.Errorf("equal %v, same content %v", before.equal(after), before.sameContent(after))
			}
		})
	}
}

func annotate(u *unstructured.Unstructured, key, value string) {
	a := u.GetAnnotations()
	a[key] = value
	u.SetAnnotations(a)
}

func TestARecordShowsThatACopyWasAdopted(t *testing.T) {
	for mark, want := range map[string]bool{"": false, "true": true, "yes": false} {
		u := decoded(t, "db", "text")
		annotations := u.GetAnnotations()
		annotations[hubv1.AdoptedAnnotation] = mark
		u.SetAnnotations(annotations)
		if o := newRecord(nil, u, custom, nil).observation(); o.Adopted != want {
			t.Errorf("with the mark %q, adopted is %v, want %v", mark, o.Adopted, want)
		}
	}
}

func TestTheStoredVersionsOfADefinitionAreObserved(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "rotors.example.com"},
		"status": map[string]any{"storedVersions": []any{"v1alpha1", "v1"}},
	}}
	for name, settings := range map[string]*health.Settings{"without settings": nil, "with settings": {Paths: []string{"/status/acceptedNames/kind"}}} {
		t.Run(name, func(t *testing.T) {
			p, err := health.ReadProjection(newRecord(nil, u, health.Conventions{}, settings).observation().Observed)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]any{"v1alpha1", "v1"}, p.Named["/storedVersions"]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
