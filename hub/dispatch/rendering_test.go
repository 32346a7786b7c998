package dispatch

import (
	"runtime"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hanse-dev/hanse/overrides"
)

func TestMembersShareWhatTheyHaveInCommonOfATemplate(t *testing.T) {
	r := &renderings{denied: []string{"internal.example.com/"}}
	template := configMap()
	template.SetLabels(map[string]string{"app": "web", "internal.example.com/team": "core"})
	first, second := r.get(template, "v1"), r.get(template, "v1")
	if first != second {
		t.Fatal("the same template was prepared twice")
	}
	result, err := first.prepared.Render(overrides.Cluster{Name: "eu-1"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := result.Manifest.GetLabels(); len(got) != 1 || got["app"] != "web" {
		t.Errorf("labels %v, want app only", got)
	}
	if got, want := first.digestOf(nil, result.Manifest, "uid"), overrides.Digest(nil, result.Manifest, "uid"); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
	if got, want := first.digestOf(nil, result.Manifest, "other"), overrides.Digest(nil, result.Manifest, "other"); got != want {
		t.Errorf("digest for another object %s, want %s", got, want)
	}
	if other := r.get(configMap(), "v1"); other == first {
		t.Error("another version of the object shares what the first one has")
	}
	runtime.KeepAlive(template)
}

func TestARenderingGoesWithItsTemplate(t *testing.T) {
	r := &renderings{}
	func() { // a function, so that no local variable keeps the template
		template := configMap()
		r.get(template, "v1")
	}()
	for begin := time.Now(); ; runtime.Gosched() {
		runtime.GC()
		r.mu.Lock()
		left := len(r.of)
		r.mu.Unlock()
		if left == 0 {
			return
		}
		if time.Since(begin) > 10*time.Second {
			t.Fatalf("%d renderings are left of templates that are gone", left)
		}
	}
}

func configMap() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "team-a"}, "data": map[string]any{"k": "v"},
	}}
}
