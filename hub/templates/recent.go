package templates

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// recentBytes limits the objects of one generation, by their size as JSON; in memory they take about five times
	// that.
	recentBytes = 2 << 20
	// recentFor is the minimum time for which an object without requests is kept; the maximum is twice that. It is also
	// how long the resource of a kind is kept.
	recentFor = 10 * time.Second
)

// recent caches recently unpacked objects. One change runs scheduling, each member's dispatch and the report one after
// the other, and they share one object. An object without a request during a whole generation is dropped.
//
// The key is the record, which is never changed: another version of an object is another record.
type recent struct {
	mu         sync.Mutex
	young, old map[*record]*unstructured.Unstructured
	bytes      int // bytes of the young objects
}

// get unpacks the record unless it was unpacked recently.
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

// age drops objects without a request since the last call.
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
