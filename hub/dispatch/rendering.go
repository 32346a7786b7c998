package dispatch

import (
	"runtime"
	"sync"
	"weak"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hanse-dev/hanse/canonical"
	"github.com/hanse-dev/hanse/overrides"
)

// renderings caches the prepared form of a template while the template is in memory. All members share it: a change
// queues the key for every member, and without override rules all members get the same manifest.
type renderings struct {
	denied []string
	key    canonical.Key // for the digests of Secrets

	mu sync.Mutex
	of map[versioned]*rendering
}

// versioned is a template together with the version of its kind that clusters get.
type versioned struct {
	template weak.Pointer[unstructured.Unstructured]
	version  string
}

// rendering is the prepared form of one template at one version.
type rendering struct {
	once     sync.Once
	prepared *overrides.Prepared
	err      error

	mu sync.Mutex
	// shared is the last manifest with a digest, and digest is its digest.
	shared       *unstructured.Unstructured
	salt, digest string
}

// get returns the rendering of a template at a version of its kind. Callers must not change the template, because the
// renderings of all clusters share it.
func (r *renderings) get(template *unstructured.Unstructured, version string) *rendering {
	e := r.entry(template, version)
	e.once.Do(func() { e.prepared, e.err = overrides.Prepare(overrides.AtVersion(template, version), r.denied) })
	return e
}

func (r *renderings) entry(template *unstructured.Unstructured, version string) *rendering {
	key := versioned{weak.Make(template), version}
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.of[key]; e != nil {
		return e
	}
	if r.of == nil {
		r.of = map[versioned]*rendering{}
	}
	e := &rendering{}
	r.of[key] = e
	runtime.AddCleanup(template, r.forget, key)
	return e
}

func (r *renderings) forget(key versioned) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, key)
}

// digestOf returns the digest of a manifest. If clusters share the manifest, it computes the digest only once.
func (e *rendering) digestOf(key canonical.Key, manifest *unstructured.Unstructured, salt string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.shared != manifest || e.salt != salt {
		e.shared, e.salt, e.digest = manifest, salt, overrides.Digest(key, manifest, salt)
	}
	return e.digest
}
