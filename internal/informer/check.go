package informer

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/answer"
)

// CheckObject returns an error if the name, namespace, UID or resourceVersion of an object is longer than API servers
// allow. Such an object is refused, because a shortened UID or name could equal that of another object.
func CheckObject(o metav1.Object) error {
	return checkTexts(o.GetNamespace(), o.GetName(), string(o.GetUID()), o.GetResourceVersion())
}

func checkTexts(namespace, name, uid, version string) error {
	for _, text := range []struct {
		field, value string
		maxBytes     int
	}{
		{"name", name, hubv1.MaxNameLength},
		{"namespace", namespace, hubv1.MaxNameLength},
		{"uid", uid, hubv1.MaxUIDLength},
		{"resourceVersion", version, hubv1.MaxVersionLength},
	} {
		if len(text.value) > text.maxBytes {
			return &ObjectError{Field: "metadata." + text.field, MaxBytes: text.maxBytes}
		}
	}
	return nil
}

// ObjectError means that a server sent an object that no API server would store.
type ObjectError struct {
	Field    string
	MaxBytes int // maximum size of the field, in bytes
}

// Error implements error.
func (e *ObjectError) Error() string {
	return fmt.Sprintf("the cluster answered with a %s of more than %d characters", e.Field, e.MaxBytes)
}

// checkList returns an error if the resourceVersion of a list, or its token for the next page, is longer than API
// servers make them.
func checkList(page *unstructured.UnstructuredList) error {
	if len(page.GetContinue()) > maxContinueLength {
		return &answer.TooLargeError{What: "the continue token of the list", Bound: fmt.Sprintf("%d KiB", maxContinueLength>>10)}
	}
	return checkTexts("", "", "", page.GetResourceVersion())
}

// check returns an error if the fields that identify the object are longer than API servers allow.
func (g *glance) check() error { return checkTexts(g.namespace, g.name, g.uid, g.version) }

// requested returns the kind of the objects that the server was asked for.
func (k *kind) requested() schema.GroupVersionKind {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.place.resource.Empty() {
		return k.gvk
	}
	return k.place.resource.GroupVersion().WithKind(k.gvk.Kind)
}

// checked prepares an object for Transform. It refuses an object that no API server would store. It sets apiVersion and
// kind to the requested ones, because a hostile server may send any text in these fields.
func (k *kind) checked(u *unstructured.Unstructured) error {
	if err := CheckObject(u); err != nil {
		return err
	}
	u.SetGroupVersionKind(k.requested())
	return nil
}
