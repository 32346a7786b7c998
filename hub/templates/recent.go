package templates

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// recentBytes limits the cached objects of one generation, measured as JSON. In memory they take about five times
	// that size.
	recentBytes = 2 << 20
	// recentFor is the minimum time for which an unused object is cached; the maximum is twice that. The resource of a
	// kind is cached for the same time.
	recentFor = 10 * time.Second
)

// recent caches recently unpacked objects. After a change, scheduling, the dispatch to each member and the report read
// the same object one after the other. There are two generations of objects; one that is not used during a whole
// generation is dropped.
//
// The key is the record. A record never changes, because another version of an object has another record.
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

// The caller of add and next holds the lock.
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

// age drops the objects that were not used since the last call.
func (c *recent) age() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next()
}

// size returns the number of objects.
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
