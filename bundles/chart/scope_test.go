package chart

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
)

// TestNamespacedAgreesWithKubernetesClient compares the scope of each kind with the methods of client-go: the method
// Pods has a parameter for the namespace, and the method Nodes has none.
func TestNamespacedAgreesWithKubernetesClient(t *testing.T) {
	checked := 0
	client := reflect.TypeFor[kubernetes.Interface]()
	for i := range client.NumMethod() {
		group := client.Method(i)
		if group.Name == "Discovery" {
			continue
		}
		version := group.Type.Out(0)
		for j := range version.NumMethod() {
			method := version.Method(j)
			if method.Name == "RESTClient" {
				continue
			}
			gk, ok := kindOf(method.Type.Out(0))
			if !ok {
				continue
			}
			checked++
			want := method.Type.NumIn() == 1
			if got, known := Namespaced(gk); !known || got != want {
				t.Errorf("%s: namespaced %t (known %t), want %t", gk, got, known, want)
			}
		}
	}
	if checked < 80 {
		t.Errorf("only %d kinds were compared", checked)
	}
}

// kindOf returns the kind that a client creates.
func kindOf(client reflect.Type) (schema.GroupKind, bool) {
	create, ok := client.MethodByName("Create")
	if !ok {
		return schema.GroupKind{}, false
	}
	object, ok := reflect.New(create.Type.In(1).Elem()).Interface().(runtime.Object)
	if !ok {
		return schema.GroupKind{}, false
	}
	kinds, _, err := scheme.Scheme.ObjectKinds(object)
	if err != nil || strings.HasSuffix(kinds[0].Kind, "List") {
		return schema.GroupKind{}, false
	}
	return kinds[0].GroupKind(), true
}

func TestNamespacedKnowsNoOtherKinds(t *testing.T) {
	if _, known := Namespaced(schema.GroupKind{Group: "example.com", Kind: "Widget"}); known {
		t.Error("Widget.example.com is known")
	}
}
