package templates

import (
	"fmt"
	"hash/maphash"
	"maps"
	"unsafe"

	"github.com/klauspost/compress/zstd"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hanse-dev/hanse/canonical"
)

// record is a kept template: compressed JSON, and the values that are read most often. It is never changed.
type record struct {
	*metav1.ObjectMeta // nothing: of the metadata only the following can be asked
	namespace, name    string
	uid                types.UID
	resourceVersion    string
	labels             map[string]string
	rest               uint64 // changes with every part but status and version

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

// Both may be used by many goroutines at once. A window as large as most objects ever are keeps the compressor small.
var (
	compressor = must(zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(256<<10), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false)))
	decompressor = must(zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderLowmem(true)))
)

// must is for options that are constants.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// pack makes the record of an object.
func pack(u *unstructured.Unstructured) *record {
	raw := canonical.Bytes(u.Object)
	packed := compressor.EncodeAll(raw, make([]byte, 0, len(raw)))
	exact := make([]byte, len(packed))
	copy(exact, packed)
	return &record{
		ObjectMeta: nothing,
		namespace:  u.GetNamespace(), name: u.GetName(), uid: u.GetUID(), resourceVersion: u.GetResourceVersion(), labels: u.GetLabels(),
		rest: maphash.Bytes(seed, canonical.Bytes(withoutStatus(u))), jsonSize: len(raw), compressed: exact,
	}
}

// withoutStatus returns an object without its status, the managers of the status, apiVersion and resourceVersion.
func withoutStatus(u *unstructured.Unstructured) map[string]any {
	out := maps.Clone(u.Object)
	delete(out, "status")
	delete(out, "apiVersion")
	if metadata, ok := out["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		delete(metadata, "resourceVersion")
		delete(metadata, "managedFields")
		out["metadata"] = metadata
	}
	return out
}

// unpack is the inverse of pack. It panics on an error, because then this process has corrupted its own data.
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

// What a map takes, roughly: one entry with a string for key and an interface for value at the usual load; a map of up
// to eight labels, and each label's two words.
const (
	placeInKind = 64
	placeLabels = 320
	placeLabel  = 48
)

// held estimates the memory that the record takes, its place among the others of its kind included.
func (r *record) held() int {
	n := int(unsafe.Sizeof(*r)) + cap(r.compressed) + len(r.namespace) + len(r.name) + len(r.uid) + len(r.resourceVersion)
	n += placeInKind + len(r.namespace) + len("/") + len(r.name)
	if len(r.labels) > 0 {
		n += placeLabels + placeLabel*len(r.labels)
	}
	return n
}
