package content

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/canonical"
)

// Changes returns the paths at which two states of one object differ, sorted, such as .spec.replicas. It ignores the
// status, server-side metadata, and the hub's own labels and annotations.
func Changes(before, after *unstructured.Unstructured) []string {
	c := &changes{}
	c.maps("", counted(before), counted(after))
	return c.paths
}

// counted returns the part of an object that Changes compares.
func counted(obj *unstructured.Unstructured) map[string]any {
	out := maps.Clone(obj.Object)
	delete(out, "status")
	metadata := map[string]any{}
	for name, values := range map[string]map[string]string{"labels": obj.GetLabels(), "annotations": obj.GetAnnotations()} {
		foreign := map[string]any{}
		for k, v := range values {
			if !strings.HasPrefix(k, hubv1.Prefix) {
				foreign[k] = v
			}
		}
		metadata[name] = foreign
	}
	out["metadata"] = metadata
	return out
}

type changes struct{ paths []string }

func (c *changes) maps(path string, before, after map[string]any) {
	names := maps.Clone(before)
	maps.Copy(names, after)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		b, was := before[name]
		a, is := after[name]
		c.values(path+"."+name, b, a, was == is)
	}
}

// values compares the values at one path of two states of an object. both is false if only one of the states has the
// path.
func (c *changes) values(path string, before, after any, both bool) {
	if both {
		switch b := before.(type) {
		case map[string]any:
			if a, ok := after.(map[string]any); ok {
				c.maps(path, b, a)
				return
			}
		case []any:
			if a, ok := after.([]any); ok && len(a) == len(b) {
				for i := range b {
					c.values(path+"["+strconv.Itoa(i)+"]", b[i], a[i], true)
				}
				return
			}
		}
		if sameJSON(before, after) {
			return
		}
	}
	c.paths = append(c.paths, path)
}

// sameJSON compares two values of unstructured objects.
func sameJSON(a, b any) bool { return bytes.Equal(canonical.Bytes(a), canonical.Bytes(b)) }
