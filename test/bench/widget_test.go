package main

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestStates(t *testing.T) {
	reports := func(ready int64) *unstructured.Unstructured {
		w := widget("bench", 1, first)
		w.Object["status"] = map[string]any{"readyReplicas": ready}
		return w
	}
	tests := map[string]struct {
		state  func(*unstructured.Unstructured, bool) bool
		object *unstructured.Unstructured
		gone   bool
		want   bool
	}{
		"a copy of the shape has arrived":            {state: second.arrived, object: widget("bench", 1, second), want: true},
		"a copy with another image has not":          {state: second.arrived, object: widget("bench", 1, overridden)},
		"a copy that is gone has not":                {state: second.arrived, object: widget("bench", 1, second), gone: true},
		"a copy that is gone is removed":             {state: removed, object: widget("bench", 1, second), gone: true, want: true},
		"a status with all replicas is ready":        {state: readyIs(9), object: reports(9), want: true},
		"a status with fewer is not":                 {state: readyIs(9), object: reports(8)},
		"no status is not the same as no replicas":   {state: readyIs(0), object: widget("bench", 1, first)},
		"a status that says no replicas has none":    {state: readyIs(0), object: reports(0), want: true},
		"a status of an object that is gone is none": {state: readyIs(0), object: reports(0), gone: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tt.state(tt.object, tt.gone); got != tt.want {
				t.Errorf("reached is %v, want %v", got, tt.want)
			}
		})
	}
}

func TestVerifyCopy(t *testing.T) {
	good, changed := widget("bench", 3, second), widget("bench", 3, first)
	if err := verifyCopy(good, second); err != nil {
		t.Errorf("a copy as the user wrote it: %v", err)
	}
	if err := verifyCopy(changed, second); err == nil {
		t.Error("a copy of an older spec passes")
	}
	changed.SetName("gadget")
	if err := verifyCopy(changed, first); err == nil {
		t.Error("a copy that nobody wrote passes")
	}
}

func TestWidget(t *testing.T) {
	raw, err := widget("bench", 7, first).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) < 900 || len(raw) > 1200 {
		t.Errorf("a widget has %d bytes of JSON, want about 1 KiB", len(raw))
	}
	if raw, err = widget("bench", 7, shape{bytes: 50 << 10}).MarshalJSON(); err != nil || len(raw) < 48<<10 || len(raw) > 51<<10 {
		t.Errorf("a large widget has %d bytes of JSON, want about 50 KiB (%v)", len(raw), err)
	}
	if i, ok := widgetIndex(widgetName(7)); !ok || i != 7 {
		t.Errorf("the index of %s is %d, %v", widgetName(7), i, ok)
	}
}
