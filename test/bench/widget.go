package main

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// widgetCRD is the kind that the benchmark sends.
//
//go:embed testdata/widget-crd.yaml
var widgetCRD []byte

var (
	widgets    = schema.GroupVersionResource{Group: "bench.hanse.dev", Version: "v1", Resource: "widgets"}
	widgetKind = widgets.GroupVersion().WithKind("Widget")
)

// widget is object i of a namespace as the user writes it, about 1 KiB of JSON.
func widget(namespace string, i int, revision int64) *unstructured.Unstructured {
	env := make([]any, 6)
	for e := range env {
		env[e] = map[string]any{"name": fmt.Sprintf("OPTION_%d", e), "value": fmt.Sprintf("value-%d-of-%d", e, i)}
	}
	w := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"replicas": int64(3),
		"revision": revision,
		"image":    "registry.example.com/widgets/server:v1.4.2",
		"args":     []any{"--listen=:8080", "--log-level=info", "--retention=15d", "--shards=4"},
		"note":     strings.Repeat("What a user says about this widget. ", 7),
		"resources": map[string]any{
			"requests": map[string]any{"cpu": "250m", "memory": "512Mi"},
			"limits":   map[string]any{"cpu": "1", "memory": "1Gi"},
		},
		"env": env,
	}}}
	w.SetGroupVersionKind(widgetKind)
	w.SetNamespace(namespace)
	w.SetName(widgetName(i))
	w.SetLabels(map[string]string{"app.kubernetes.io/name": "widget", "app.kubernetes.io/part-of": "bench"})
	return w
}

func widgetName(i int) string { return fmt.Sprintf("widget-%05d", i) }

// widgetIndex is the inverse of widgetName.
func widgetIndex(name string) (int, bool) {
	i, err := strconv.Atoi(strings.TrimPrefix(name, "widget-"))
	return i, err == nil
}

// revisionOf is the spec.revision that a widget carries.
func revisionOf(w *unstructured.Unstructured) int64 {
	r, _, _ := unstructured.NestedInt64(w.Object, "spec", "revision")
	return r
}
