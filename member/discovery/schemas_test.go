package discovery_test

import (
	"io"
	"math/rand"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/randfill"
)

// If the hub read a schema wrongly, it would refuse a manifest that the server accepts. Therefore the test sets each
// field of these types and requires that the schema has it.
func TestEveryFieldOfNativeTypesIsKnown(t *testing.T) {
	w := newWorld(t)
	fill := randfill.NewWithSeed(1).NilChance(0).NumElements(1, 1).MaxDepth(40).Funcs(
		func(q *resource.Quantity, _ randfill.Continue) { *q = resource.MustParse("1") },
		func(v *intstr.IntOrString, _ randfill.Continue) { *v = intstr.FromInt32(1) },
		func(v *metav1.Time, _ randfill.Continue) { *v = metav1.Unix(1, 0) },
		func(v *metav1.MicroTime, _ randfill.Continue) { v.Time = metav1.Unix(1, 0).Time },
		func(v *metav1.FieldsV1, _ randfill.Continue) { v.SetRawBytes([]byte(`{"f:spec":{}}`)) },
		func(v *k8sruntime.RawExtension, _ randfill.Continue) { v.Raw = []byte(`{"a":{"b":1}}`) },
	).RandSource(rand.NewSource(1))
	for gvk, object := range map[schema.GroupVersionKind]any{
		corev1.SchemeGroupVersion.WithKind("Pod"):                            &corev1.Pod{},
		corev1.SchemeGroupVersion.WithKind("Service"):                        &corev1.Service{},
		corev1.SchemeGroupVersion.WithKind("ConfigMap"):                      &corev1.ConfigMap{},
		corev1.SchemeGroupVersion.WithKind("Secret"):                         &corev1.Secret{},
		corev1.SchemeGroupVersion.WithKind("PersistentVolume"):               &corev1.PersistentVolume{},
		appsv1.SchemeGroupVersion.WithKind("Deployment"):                     &appsv1.Deployment{},
		appsv1.SchemeGroupVersion.WithKind("StatefulSet"):                    &appsv1.StatefulSet{},
		appsv1.SchemeGroupVersion.WithKind("ControllerRevision"):             &appsv1.ControllerRevision{},
		batchv1.SchemeGroupVersion.WithKind("CronJob"):                       &batchv1.CronJob{},
		rbacv1.SchemeGroupVersion.WithKind("ClusterRole"):                    &rbacv1.ClusterRole{},
		networkingv1.SchemeGroupVersion.WithKind("Ingress"):                  &networkingv1.Ingress{},
		autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"): &autoscalingv2.HorizontalPodAutoscaler{},
	} {
		fill.Fill(object)
		content, err := k8sruntime.DefaultUnstructuredConverter.ToUnstructured(object)
		must(t, err)
		manifest := &unstructured.Unstructured{Object: content}
		manifest.SetGroupVersionKind(gvk)
		if _, got := w.kinds.Fit(t.Context(), manifest); got != nil {
			t.Errorf("%s: %v is unknown", gvk, got)
		}
		for _, fault := range w.kinds.Faults(t.Context(), manifest) {
			// The generated values violate enums, and empty texts are left out, so that these two faults are expected.
			if !strings.HasPrefix(fault.Message, "must be one of ") && fault.Message != "is required" {
				t.Errorf("%s: %s", gvk, fault)
			}
		}
		must(t, unstructured.SetNestedField(content, "x", "odd"))
		if _, got := w.kinds.Fit(t.Context(), manifest); !cmp.Equal(got, []string{".odd"}) {
			t.Errorf("%s: %v is unknown, want .odd", gvk, got)
		}
	}
}

func TestARealDefinitionWithEmbeddedNativeTypes(t *testing.T) {
	w := newWorld(t)
	kind := schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "Prometheus"}
	crd := prometheusDefinition(t)
	must(t, w.admin.Create(t.Context(), crd))
	w.watched(kind)
	until(t, "the kind", func() bool { return isServed(w.kinds, kind) })
	manifest := thing(kind, map[string]any{
		"replicas": int64(3), "colour": "red", "paused": true,
		"podMetadata": map[string]any{"labels": map[string]any{"a": "b"}, "finalizers": []any{"x"}},
		"containers": []any{map[string]any{
			"name": "p", "resources": map[string]any{"limits": map[string]any{"cpu": "1"}},
			"ports": []any{map[string]any{"containerPort": int64(1), "speed": "high"}},
		}},
		"storage": map[string]any{"volumeClaimTemplate": map[string]any{"metadata": map[string]any{"name": "x"}, "spec": map[string]any{"accessModes": []any{"x"}}}},
	})
	until(t, "the schema", func() bool {
		_, got := w.kinds.Fit(t.Context(), manifest)
		return got != nil
	})
	_, got := w.kinds.Fit(t.Context(), manifest)
	var faults []string
	for _, f := range w.kinds.Faults(t.Context(), thing(kind, map[string]any{
		"replicas": "three", "retention": "1 day", "logLevel": "loud", "containers": []any{map[string]any{"image": int64(1)}},
		"storage": map[string]any{"volumeClaimTemplate": map[string]any{"spec": map[string]any{"resources": map[string]any{"requests": map[string]any{"storage": true}}}}},
	})) {
		faults = append(faults, f.Path)
	}
	wrong := []string{
		"/spec/containers/0/image", "/spec/containers/0/name", "/spec/logLevel", "/spec/replicas", "/spec/retention",
		"/spec/storage/volumeClaimTemplate/spec/resources/requests/storage",
	}
	if diff := cmp.Diff(wrong, slices.Compact(faults)); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	want := []string{".spec.colour", ".spec.containers[0].ports[0].speed", ".spec.podMetadata.finalizers"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The stored schema must be small, and members that publish equal documents must share it.
func TestWhatIsKeptOfALargeSchemaIsSmallAndShared(t *testing.T) {
	w := newWorld(t)
	manifest := thing(appsv1.SchemeGroupVersion.WithKind("Deployment"), nil)
	keep := func() any {
		kinds, _ := w.as(apiServer)
		kinds.Fit(t.Context(), manifest)
		return kinds
	}
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	warm := keep()
	runtime.KeepAlive(warm)
	before := heap()
	first := keep()
	one := int64(heap()) - int64(before)
	others := []any{keep(), keep(), keep(), keep(), keep()}
	six := int64(heap()) - int64(before)
	t.Logf("one member: %d KiB, six: %d KiB", one>>10, six>>10)
	if six > 2<<20 {
		t.Errorf("six members take %d KiB", six>>10)
	}
	runtime.KeepAlive(first)
	runtime.KeepAlive(others)
}

func TestASchemaIsReadOnceAndOnlyIfItIsPublished(t *testing.T) {
	tests := map[string]struct {
		answer *answer // nil: the response of the server
		reads  int32
		want   []string
	}{
		"published":    {reads: 1, want: []string{".odd"}},
		"not found":    {reads: 1, answer: newAnswer(http.StatusNotFound, "")},
		"empty":        {reads: 1, answer: newAnswer(http.StatusOK, "")},
		"forbidden":    {reads: 1, answer: newAnswer(http.StatusForbidden, "{}")},
		"in trouble":   {reads: 1, answer: newAnswer(http.StatusInternalServerError, "oops")},
		"no document":  {reads: 1, answer: newAnswer(http.StatusOK, "<html>")},
		"without kind": {reads: 1, answer: newAnswer(http.StatusOK, `{"components":{"schemas":{}}}`)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var reads atomic.Int32
			config := rest.CopyConfig(apiServer)
			config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return roundTrip(func(r *http.Request) (*http.Response, error) {
					if !strings.HasPrefix(r.URL.Path, "/openapi/v3") {
						return next.RoundTrip(r)
					}
					reads.Add(1)
					if tt.answer != nil {
						return &http.Response{StatusCode: tt.answer.code, Request: r, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(tt.answer.body))}, nil
					}
					return next.RoundTrip(r)
				})
			})
			kinds, _ := w.as(config)
			manifest := thing(corev1.SchemeGroupVersion.WithKind("ConfigMap"), nil)
			delete(manifest.Object, "spec")
			manifest.Object["odd"] = "x"
			for range 3 {
				fitting, got := kinds.Fit(t.Context(), manifest)
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if tt.want == nil && fitting != manifest {
					t.Error("it is another manifest")
				}
				if faults := kinds.Faults(t.Context(), manifest); len(faults) != len(tt.want) {
					t.Errorf("faults %v", faults)
				}
			}
			if got := reads.Load(); got != tt.reads {
				t.Errorf("%d reads, want %d", got, tt.reads)
			}
		})
	}
}

// answer is a response that replaces the response of the server.
type answer struct {
	code int
	body string
}

func newAnswer(code int, body string) *answer { return &answer{code, body} }

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
