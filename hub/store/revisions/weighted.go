package revisions

import (
	"container/list"
	"sync"
)

// weighted is a cache that keeps the values that were used last, up to a sum of weights. Its zero value with max set is
// empty.
type weighted struct {
	max int

	mu      sync.Mutex
	sum     int
	entries map[string]*list.Element
	order   list.List // of weightedEntry, the one that was used last first
}

type weightedEntry struct {
	key    string
	value  any
	weight int
}

// get returns the value of a key. It returns nil if the cache does not have the key.
func (c *weighted) get(key string) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[key]
	if !ok {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(weightedEntry).value
}

// add stores a value, and drops the values that were used longest ago until the rest fits. A value that alone does not
// fit is not stored.
func (c *weighted) add(key string, value any, weight int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[key]; ok {
		c.remove(e)
	}
	if weight > c.max {
		return
	}
	for c.sum+weight > c.max {
		c.remove(c.order.Back())
	}
	if c.entries == nil {
		c.entries = map[string]*list.Element{}
	}
	c.sum += weight
	c.entries[key] = c.order.PushFront(weightedEntry{key, value, weight})
}

func (c *weighted) remove(e *list.Element) {
	entry := c.order.Remove(e).(weightedEntry)
	c.sum -= entry.weight
	delete(c.entries, entry.key)
}
