package templates

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// recentBytes bounds the objects of one generation, by their size as JSON; in memory they take some five times that.
	recentBytes = 2 << 20
	// recentFor is how long an object without requests is kept at least; at most twice as long.
	recentFor = 10 * time.Second
)

// recent keeps the objects that were unpacked last. One change wakes scheduling, each member's dispatch and the report
// one after the other, and they share one object. An object without a request during a whole generation is dropped.
//
// It is keyed by the record, which is never changed: another version of an object is another record.
type recent struct {
	mu         sync.Mutex
	young, old map[*record]*unstructured.Unstructured
	bytes      int // of the young
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

// add and next are called with the lock held.
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

// size is the number of objects.
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
