package dispatch

import (
	"runtime"
	"sync"
	"weak"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hanse-dev/hanse/internal/canonical"
	"github.com/hanse-dev/hanse/member/openapi"
	"github.com/hanse-dev/hanse/overrides"
)

// renderings caches, for each template in memory, the first steps of its rendering. These steps are equal for all
// members. A change of a template is processed for every member, and members without override rules even get the same
// manifest.
type renderings struct {
	denied []string
	key    canonical.Key // for the digests of Secrets

	mu sync.Mutex
	of map[versioned]*rendering
}

// versioned is the key of a rendering in renderings.of. template is a hub object, or an object of a bundle. version is
// the API version at which a cluster gets the copy.
type versioned struct {
	template weak.Pointer[unstructured.Unstructured]
	version  string
}

// rendering has the first steps of rendering one template at one version, which are equal for all members.
type rendering struct {
	once     sync.Once
	prepared *overrides.Prepared
	err      error

	mu sync.Mutex
	// shared is the manifest whose digest was computed last, and digest is its digest.
	shared       *unstructured.Unstructured
	salt, digest string
	// possible are the possible defaults of the template, by the schema hub.
	hub      *openapi.Schema
	possible []possibleDefault
	// left has the template without some of the possible defaults, by the paths of these values.
	left map[string]*overrides.Prepared
}

// get returns the rendering of a template at a version of its kind. Callers must not change the template, because all
// clusters share the rendering.
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

// digestOf returns the digest of a manifest. While clusters share the same manifest, digestOf computes its digest only
// once.
func (e *rendering) digestOf(key canonical.Key, manifest *unstructured.Unstructured, salt string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.shared != manifest || e.salt != salt {
		e.shared, e.salt, e.digest = manifest, salt, overrides.Digest(key, manifest, salt)
	}
	return e.digest
}
