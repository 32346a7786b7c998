package templates

import (
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"unsafe"

	"github.com/klauspost/compress/zstd"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/canonical"
)

// record is a template (a hub object, or an object of a bundle) in memory: its compressed JSON, and the values that are
// read most often. A record never changes.
type record struct {
	*metav1.ObjectMeta // always nil: only the values below can be read
	namespace, name    string
	uid                types.UID
	resourceVersion    string
	labels             map[string]string
	bundle             *hubv1.ObjectBundle // nil for an object of the hub itself
	rest               uint64              // hash of all parts except the status and the resourceVersion

	jsonSize   int
	compressed []byte
}

var (
	nothing = &metav1.ObjectMeta{}
	seed    = maphash.MakeSeed()
)

// GetNamespace implements metav1.Object.
func (r *record) GetNamespace() string { return r.namespace }

// GetName implements metav1.Object.
func (r *record) GetName() string { return r.name }

// GetUID implements metav1.Object.
func (r *record) GetUID() types.UID { return r.uid }

// GetResourceVersion implements metav1.Object.
func (r *record) GetResourceVersion() string { return r.resourceVersion }

// GetLabels implements metav1.Object.
func (r *record) GetLabels() map[string]string { return r.labels }

// GetAnnotations implements metav1.Object. It returns only the BundleAnnotation.
func (r *record) GetAnnotations() map[string]string {
	if r.bundle == nil {
		return nil
	}
	return map[string]string{hubv1.BundleAnnotation: r.bundle.Annotation()}
}

// The compressor and the decompressor are safe for concurrent use. A small compression window is enough, because most
// objects fit into it.
var (
	compressor = must(zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(256<<10), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false)))
	decompressor = must(zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderLowmem(true)))
)

// must panics on an error. The options are constants, so that an error is not possible.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// pack compresses an object into a record.
func pack(u *unstructured.Unstructured) *record {
	raw := canonical.Bytes(u.Object)
	packed := compressor.EncodeAll(raw, make([]byte, 0, len(raw)))
	exact := make([]byte, len(packed))
	copy(exact, packed)
	return &record{
		ObjectMeta: nothing,
		namespace:  u.GetNamespace(), name: u.GetName(), uid: u.GetUID(), resourceVersion: u.GetResourceVersion(), labels: u.GetLabels(), bundle: hubv1.BundleOf(u),
		rest: maphash.Bytes(seed, canonical.Bytes(withoutStatus(u))), jsonSize: len(raw), compressed: exact,
	}
}

// withoutStatus returns an object without its status, apiVersion and resourceVersion. It also removes the entries of
// managedFields that are about the status.
func withoutStatus(u *unstructured.Unstructured) map[string]any {
	out := maps.Clone(u.Object)
	delete(out, "status")
	delete(out, "apiVersion")
	if metadata, ok := out["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		delete(metadata, "resourceVersion")
		entries, _ := metadata["managedFields"].([]any)
		owners := slices.DeleteFunc(slices.Clone(entries), func(e any) bool {
			entry, _ := e.(map[string]any)
			return entry["subresource"] == "status"
		})
		if delete(metadata, "managedFields"); len(owners) > 0 {
			metadata["managedFields"] = owners
		}
		out["metadata"] = metadata
	}
	return out
}

// unpack is the inverse of pack. It panics on an error, which would mean that the memory of this process is corrupted.
func (r *record) unpack() *unstructured.Unstructured {
	raw, err := decompressor.DecodeAll(r.compressed, make([]byte, 0, r.jsonSize))
	u := &unstructured.Unstructured{}
	if err == nil {
		err = u.UnmarshalJSON(raw)
	}
	if err != nil {
		panic(fmt.Sprintf("unpacking %s/%s: %s", r.namespace, r.name, err))
	}
	return u
}

// These are approximate sizes in memory, in bytes: an entry of a map from strings to interface values at the usual
// load, a map of up to eight labels, and the two string headers of a label.
const (
	placeInKind = 64
	placeLabels = 320
	placeLabel  = 48
)

// held estimates the memory of the record in bytes, including its entry in the map of its kind.
func (r *record) held() int {
	n := int(unsafe.Sizeof(*r)) + cap(r.compressed) + len(r.namespace) + len(r.name) + len(r.uid) + len(r.resourceVersion)
	n += placeInKind + len(r.namespace) + len("/") + len(r.name)
	if len(r.labels) > 0 {
		n += placeLabels + placeLabel*len(r.labels)
	}
	return n
}
