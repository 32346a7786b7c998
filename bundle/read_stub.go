package bundle

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

type Input struct {
	Namespace  string
	Manifests  []runtime.RawExtension
	ConfigMaps []corev1.ConfigMap
	Namespaced func(schema.GroupKind) (namespaced, known bool)
}

func Read(in Input) ([]*unstructured.Unstructured, error) { return nil, nil }
