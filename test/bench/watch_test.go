package main

import "testing"

func TestExpectation(t *testing.T) {
	w := &watcher{}
	x := w.expect("bench", 5, 2, 2, second.arrived) // widgets 5 and 6 on clusters 0 and 1
	type event struct {
		cluster, object int
		shape           shape
		namespace       string
		left            int // number of missing copies afterwards
	}
	for _, e := range []event{
		{cluster: 0, object: 5, shape: second, namespace: "bench", left: 3},
		{cluster: 0, object: 5, shape: second, namespace: "bench", left: 3}, // the same copy was seen before
		{cluster: 1, object: 5, shape: first, namespace: "bench", left: 3},  // the copy does not have the new shape yet
		{cluster: 1, object: 5, shape: second, namespace: "raw", left: 3},   // another namespace
		{cluster: 2, object: 5, shape: second, namespace: "bench", left: 3}, // the third cluster is not in the expectation
		{cluster: 0, object: 4, shape: second, namespace: "bench", left: 3}, // object 4 is not in the expectation
		{cluster: 0, object: 7, shape: second, namespace: "bench", left: 3},
		{cluster: 1, object: 5, shape: second, namespace: "bench", left: 2},
		{cluster: 0, object: 6, shape: second, namespace: "bench", left: 1},
		{cluster: 1, object: 6, shape: second, namespace: "bench", left: 0},
	} {
		w.see(e.cluster, widget(e.namespace, e.object, e.shape), false)
		if x.left != e.left {
			t.Fatalf("after %+v %d are left, want %d", e, x.left, e.left)
		}
	}
	select {
	case <-x.complete:
	default:
		t.Error("all have arrived, and the expectation is not complete")
	}
	for i, last := range x.last() {
		if last.IsZero() {
			t.Errorf("object %d has no time of arrival", i)
		}
	}
}
