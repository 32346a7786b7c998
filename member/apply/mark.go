package apply

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

// mark returns the manifest to send, with the hub's labels and annotations. Of the metadata it keeps only the name, the
// namespace, labels and annotations, because finalizers and owners of the hub object have no meaning on the member. The
// result shares everything except the metadata with the manifest. This package does not change the shared part.
func (a *Applier) mark(in member.ApplyIntent) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: maps.Clone(in.Manifest.Object)}
	delete(out.Object, "status")
	delete(out.Object, "metadata")
	out.SetName(in.Manifest.GetName())
	out.SetNamespace(in.Manifest.GetNamespace())

	labels := foreign(in.Manifest.GetLabels())
	labels[hubv1.HubLabel] = string(a.hubUID)
	out.SetLabels(labels)

	annotations := foreign(in.Manifest.GetAnnotations())
	annotations[hubv1.OwnerAnnotation] = in.Owner.Owner(in.OwnerUID)
	annotations[hubv1.DigestAnnotation] = in.Digest
	setSource(annotations, in.Source.Mark)
	out.SetAnnotations(annotations)
	return out
}

// markAdopted adds the annotation of an adopted copy, and the copy's UID: an apply with a UID does not create a missing
// object. The metadata must not be shared with another manifest.
func markAdopted(manifest *unstructured.Unstructured, uid types.UID) {
	manifest.SetUID(uid)
	annotations := manifest.GetAnnotations()
	annotations[hubv1.AdoptedAnnotation] = adoptedValue
	manifest.SetAnnotations(annotations)
}

// isAdopted reports whether the object has the annotation of an adopted copy. If a user of the member adds the
// annotation, the hub orphans the object instead of deleting it.
func isAdopted(live *unstructured.Unstructured) bool {
	return live.GetAnnotations()[hubv1.AdoptedAnnotation] == adoptedValue
}

const adoptedValue = "true"

// withoutMarks returns the manifest without the hub's labels and annotations. The result shares everything except
// labels and annotations with the given manifest.
func withoutMarks(manifest *unstructured.Unstructured) *unstructured.Unstructured {
	out := onVersion(manifest, "")
	out.SetLabels(foreign(manifest.GetLabels()))
	out.SetAnnotations(foreign(manifest.GetAnnotations()))
	return out
}

// onVersion returns the manifest for a write at the given resourceVersion only. The result shares everything except the
// metadata with the given manifest.
func onVersion(manifest *unstructured.Unstructured, version string) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: maps.Clone(manifest.Object)}
	metadata, _ := manifest.Object["metadata"].(map[string]any)
	out.Object["metadata"] = maps.Clone(metadata)
	out.SetResourceVersion(version)
	return out
}

// foreign returns a copy of the map without Hanse's keys.
func foreign(in map[string]string) map[string]string {
	out := make(map[string]string, len(in)+3)
	for k, v := range in {
		if !strings.HasPrefix(k, hubv1.Prefix) {
			out[k] = v
		}
	}
	return out
}
