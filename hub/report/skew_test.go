package report

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/apiserver"
)

// TestAnOlderReplicaDoesNotFightOverFieldsThatItDoesNotKnow simulates a newer replica: it writes the row of cluster b,
// with fields that the reporter's version does not have. The reporter leads, and has cluster a in its shard. The test
// changes a CRD, so it cannot run in parallel with other tests.
func TestAnOlderReplicaDoesNotFightOverFieldsThatItDoesNotKnow(t *testing.T) {
	w := newWorld(t, "Widget")
	err := apiserver.AddNewerField(t.Context(), hubConfig, "resourcebindings.hanse.dev", []string{"status"}, []string{"status", "clusters", "items"})
	if err != nil {
		t.Fatal(err)
	}
	w.cluster("a")
	w.cluster("b")
	w.holds = func(cluster string) bool { return cluster == "a" }
	w.start()
	o := w.object("web", present("a"), present("b"))
	w.newerReplicaWrites("b")
	w.applied(o, "a", hubv1.HealthHealthy, two)
	w.until("conditions of both rows", func(s *hubv1.BindingStatus) bool { return s.Summary.Healthy == 2 })
	w.quiet()
	w.newerReplicaWrites("b") // writes the new fields again, which the older replica removed
	writes := w.writes(&hubv1.ResourceBindingList{})
	w.quiet()
	if status, row := w.newerFields("b"); !status || !row || writes() > 0 {
		t.Errorf("the older replica writes although no field that it knows has changed: %d writes, newer fields: %t, %t", writes(), status, row)
	}

	w.observe(o, "a", hubv1.HealthDegraded, two)
	w.until("the row of a to change", func(s *hubv1.BindingStatus) bool { return s.Row("a").Health == hubv1.HealthDegraded })
	w.quiet()
	if status, row := w.newerFields("b"); status || row {
		t.Errorf("a write of the older replica keeps newer fields: %t, %t; docs/upgrade.md says that it does not", status, row)
	}
	if b := w.until("both rows", func(s *hubv1.BindingStatus) bool { return len(s.Clusters) == 2 }); b.Status.Row("b").Health != hubv1.HealthHealthy {
		t.Errorf("the older replica changed the row of the newer one: %+v", b.Status.Row("b"))
	}
}

// newerReplicaWrites writes a healthy row of the cluster, with newer fields in the row and in the status. It repeats
// the write until these fields are stored.
func (w *world) newerReplicaWrites(cluster string) {
	w.t.Helper()
	w.eventually("newer fields to be stored", func() (bool, string) {
		b := w.rawBinding()
		status, _ := b.Object["status"].(map[string]any)
		if status == nil {
			status = map[string]any{}
			b.Object["status"] = status
		}
		rows, _ := status["clusters"].([]any)
		rows = slices.DeleteFunc(rows, func(row any) bool { return row.(map[string]any)["name"] == cluster })
		status["clusters"] = append(rows, map[string]any{
			"name": cluster, "uid": "member", "generation": int64(1), "digest": "digest-1", "hash": "hash",
			"applied": "True", "health": "Healthy", apiserver.NewerField: "row",
		})
		status[apiserver.NewerField] = "status"
		if err := w.client.Status().Update(w.t.Context(), b); err != nil {
			return false, err.Error()
		}
		inStatus, inRow := w.newerFields(cluster)
		return inStatus && inRow, fmt.Sprint(inStatus, inRow)
	})
}

// newerFields reports whether the newer fields are stored in the status and in the cluster's row.
func (w *world) newerFields(cluster string) (inStatus, inRow bool) {
	w.t.Helper()
	b := w.rawBinding()
	_, inStatus, _ = unstructured.NestedString(b.Object, "status", apiserver.NewerField)
	rows, _, _ := unstructured.NestedSlice(b.Object, "status", "clusters")
	for _, raw := range rows {
		if row, _ := raw.(map[string]any); row["name"] == cluster {
			_, inRow = row[apiserver.NewerField]
		}
	}
	return inStatus, inRow
}

// rawBinding reads the binding of the object web as unstructured content. Unlike the Go types, it keeps fields that a
// newer version of the API has added.
func (w *world) rawBinding() *unstructured.Unstructured {
	w.t.Helper()
	b := &unstructured.Unstructured{Object: map[string]any{}}
	b.SetGroupVersionKind(hubv1.GroupVersion.WithKind("ResourceBinding"))
	if err := w.client.Get(w.t.Context(), w.id("web").BindingKey(), b); err != nil {
		w.t.Fatal(err)
	}
	return b
}
