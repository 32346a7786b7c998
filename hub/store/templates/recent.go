package templates

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// recentBytes is the maximum size of the objects in one of the two generations of the cache (young and old), as JSON.
	// In memory, these objects need about five times as much.
	recentBytes = 2 << 20
	// recentFor is the minimum time for which an unused object stays cached. The maximum is twice as long. Type places
	// caches the resource of a kind for the same time.
	recentFor = 10 * time.Second
)

// recent caches unpacked objects. After a change, scheduling, the dispatch to each member and the report read the same
// object one after the other. The cache has a young and an old generation. An object that is used goes into the young
// one. When a new generation begins, the young one becomes the old one, and the former old one is dropped.
//
// The key of a cached object is its record, which is the compressed object. Each version of an object has another
// record, so that a key never changes its meaning.
type recent struct {
	mu         sync.Mutex
	young, old map[*record]*unstructured.Unstructured
	bytes      int // bytes of the objects in the young generation
}

// get returns the unpacked object of a record, from the cache if possible.
func (c *recent) get(r *record) *unstructured.Unstructured {
	c.mu.Lock()
	u, young := c.young[r]
	if !young {
		if u = c.old[r]; u != nil {
			c.add(r, u)
		}
	}
	c.mu.Unlock()
	if u == nil {
		u = r.unpack()
		c.put(r, u)
	}
	return u
}

func (c *recent) put(r *record, u *unstructured.Unstructured) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(r, u)
}

// add puts an object into the young generation. If this generation is full, add begins a new one. The caller holds
// c.mu.
func (c *recent) add(r *record, u *unstructured.Unstructured) {
	if c.bytes += r.jsonSize; c.bytes > recentBytes {
		c.next()
		c.bytes = r.jsonSize
	}
	if c.young == nil {
		c.young = map[*record]*unstructured.Unstructured{}
	}
	c.young[r] = u
}

func (c *recent) next() { c.old, c.young, c.bytes = c.young, nil, 0 }

// age begins a new generation of the cache. This drops the objects that were not used since the last call of age.
func (c *recent) age() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next()
}

// size returns the number of objects in the cache.
func (c *recent) size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.young)
	for r := range c.old {
		if _, both := c.young[r]; !both {
			n++
		}
	}
	return n
}
