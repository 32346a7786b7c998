package main

import (
	_ "embed"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// widgetCRD is the definition of the kind that the benchmark uses.
//
//go:embed testdata/widget-crd.yaml
var widgetCRD []byte

var (
	widgets    = schema.GroupVersionResource{Group: "bench.hanse.dev", Version: "v1", Resource: "widgets"}
	widgetKind = widgets.GroupVersion().WithKind("Widget")
)

// shape has the values in which widgets of one name can differ.
type shape struct {
	revision int64
	image    string
	bytes    int // minimum size of the JSON; 0 gives about 1 KiB
}

// The shapes of a widget: first after its creation, second after the user's update, and overridden after the change of
// the policy.
var (
	first      = shape{revision: 1, image: "registry.example.com/widgets/server:v1.4.2"}
	second     = shape{revision: 2, image: first.image}
	overridden = shape{revision: 2, image: "registry.example.com/widgets/server:v1.5.0"}
)

// arrived reports whether a copy exists and has this shape. gone is true if the copy was deleted.
func (s shape) arrived(copied *unstructured.Unstructured, gone bool) bool {
	revision, _, _ := unstructured.NestedInt64(copied.Object, "spec", "revision")
	image, _, _ := unstructured.NestedString(copied.Object, "spec", "image")
	return !gone && revision == s.revision && image == s.image
}

// removed reports whether a copy was deleted.
func removed(_ *unstructured.Unstructured, gone bool) bool { return gone }

// widget returns object i of a namespace as the user writes it.
func widget(namespace string, i int, s shape) *unstructured.Unstructured {
	random := rand.New(rand.NewPCG(uint64(i), 0))
	env := make([]any, 6)
	for e := range env {
		env[e] = map[string]any{"name": fmt.Sprintf("OPTION_%d", e), "value": fmt.Sprintf("value-%d-of-%d", e, i)}
	}
	spec := map[string]any{
		"replicas": int64(3),
		"revision": s.revision,
		"image":    s.image,
		"args":     []any{"--listen=:8080", "--log-level=info", "--retention=15d", "--shards=4"},
		"note":     prose(random, 252),
		"resources": map[string]any{
			"requests": map[string]any{"cpu": "250m", "memory": "512Mi"},
			"limits":   map[string]any{"cpu": "1", "memory": "1Gi"},
		},
		"env": env,
	}
	if files := (s.bytes - 1024) / fileBytes; files > 0 {
		content := map[string]any{}
		for f := range files {
			// A file has fileBytes bytes. Its name and the punctuation around it take 20 of them.
			content[fmt.Sprintf("part-%02d.conf", f)] = prose(random, fileBytes-20)
		}
		spec["files"] = content
	}
	w := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	w.SetGroupVersionKind(widgetKind)
	w.SetNamespace(namespace)
	w.SetName(widgetName(i))
	w.SetLabels(map[string]string{"app.kubernetes.io/name": "widget", "app.kubernetes.io/part-of": "bench"})
	return w
}

// fileBytes is the size of each file in a large widget.
const fileBytes = 2048

// prose returns n bytes of text that compresses as well as typical configuration: few different words, and random
// numbers.
func prose(random *rand.Rand, n int) string {
	words := strings.Fields("listen address timeout retention upstream cluster region replica interval enabled disabled true false default limit " +
		"request memory storage volume target scrape rule alert label match action keep drop source regex path port host name value")
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(words[random.IntN(len(words))])
		if random.IntN(4) == 0 {
			fmt.Fprintf(&b, "=%d", random.IntN(100000))
		}
		b.WriteByte(' ')
	}
	return b.String()[:n]
}

func widgetName(i int) string { return fmt.Sprintf("widget-%05d", i) }

// widgetIndex returns the index of the widget with this name.
func widgetIndex(name string) (int, bool) {
	i, err := strconv.Atoi(strings.TrimPrefix(name, "widget-"))
	return i, err == nil
}

// allReady is the value of spec.replicas of every widget.
const allReady = 3

// readyIs returns a function that reports whether a widget's status has this number of ready replicas.
func readyIs(want int64) func(*unstructured.Unstructured, bool) bool {
	return func(w *unstructured.Unstructured, gone bool) bool {
		ready, found, _ := unstructured.NestedInt64(w.Object, "status", "readyReplicas")
		return !gone && found && ready == want
	}
}
