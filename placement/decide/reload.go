package decide

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/canonical"
)

// The annotation hanse.dev/reload in a pod template has a digest of the ConfigMaps and Secrets that the pods read. The
// digest depends only on the content that the hub sends to one cluster. Every replica of the hub therefore writes the
// same value, and a restart of the hub does not change the value.

// ReadByPods returns the ConfigMaps and Secrets that the pods of a manifest read. paths are the paths of the pod
// templates in the manifest. For a Job it returns no object, because the pod template of a Job cannot change. It
// returns an error if the pods read more than 64 objects (maxReferences).
func ReadByPods(manifest *unstructured.Unstructured, paths []string) ([]hubv1.ObjectIdentity, error) {
	var out []hubv1.ObjectIdentity
	seen := map[hubv1.ObjectIdentity]bool{}
	err := eachPodTemplate(manifest, paths, func(_ map[string]any, read []hubv1.ObjectIdentity) {
		for _, id := range read {
			if !seen[id] {
				seen[id] = true
				out = append(out, id)
			}
		}
	})
	if err == nil && len(out) > maxReferences {
		return nil, fmt.Errorf("references: the pods read %d ConfigMaps and Secrets, and at most %d are allowed: let the pods read fewer", len(out), maxReferences)
	}
	return out, err
}

// WithReload returns a manifest with the annotation hanse.dev/reload in its pod templates at the paths. contents has
// the manifests of the ConfigMaps and Secrets that the hub sends to the same cluster. A pod template that reads none of
// them gets no annotation. The value of the annotation is a digest with a secret key. From a digest without a key, the
// values of Secrets could be guessed.
func WithReload(
	key canonical.Key, manifest *unstructured.Unstructured, paths []string, contents map[hubv1.ObjectIdentity]*unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	out := manifest.DeepCopy()
	err := eachPodTemplate(out, paths, func(template map[string]any, read []hubv1.ObjectIdentity) {
		held := map[string]any{}
		for _, id := range read {
			if o := contents[id]; o != nil {
				held[id.String()] = contentOf(o)
			}
		}
		if len(held) > 0 {
			annotate(template, digest(key, held))
		}
	})
	return out, err
}

// eachPodTemplate calls the function do with each pod template of the manifest at the paths, and with the ConfigMaps
// and Secrets that its pods read.
func eachPodTemplate(manifest *unstructured.Unstructured, paths []string, do func(template map[string]any, read []hubv1.ObjectIdentity)) error {
	switch manifest.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Group: "batch", Kind: "Job"}, schema.GroupKind{Kind: "ConfigMap"}, schema.GroupKind{Kind: "Secret"}:
		return nil
	}
	if manifest.GetNamespace() == "" {
		return nil
	}
	for _, path := range paths {
		values, err := at(manifest.Object, hubv1.PointerKeys(path))
		if err != nil {
			return fmt.Errorf("references: path %s: %w", path, err)
		}
		for _, value := range values {
			fields, t, err := readPodTemplate(value)
			if err != nil {
				return fmt.Errorf("references: path %s: %w", path, err)
			}
			var read []hubv1.ObjectIdentity
			readByPods(t, func(kind, name string) {
				r := hubv1.BindingReference{Kind: kind, Name: name}
				if name != "" && !ofEveryNamespace(r) {
					read = append(read, r.In(manifest.GetNamespace()))
				}
			})
			do(fields, read)
		}
	}
	return nil
}

// contentOf returns the fields of the ConfigMap or Secret o that pods can read.
func contentOf(o *unstructured.Unstructured) map[string]any {
	out := map[string]any{}
	for _, field := range []string{"data", "binaryData", "stringData"} {
		if v, has := o.Object[field]; has {
			out[field] = v
		}
	}
	return out
}

// annotate sets the annotation hanse.dev/reload of a pod template. The maps metadata and annotations may be missing or
// null.
func annotate(template map[string]any, value string) {
	metadata, _ := template["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		template["metadata"] = metadata
	}
	annotations, _ := metadata["annotations"].(map[string]any)
	if annotations == nil {
		annotations = map[string]any{}
		metadata["annotations"] = annotations
	}
	annotations[hubv1.ReloadAnnotation] = value
}
