// A bounded cache that evicts the oldest values.

package resources

import "slices"

// Cache stores values by key; several values may have the same key. When it is full, Put evicts the values that were
// added first. It is not safe for concurrent use.
type Cache[K comparable, V any] struct {
	MaxCount int     // maximum number of values
	MaxSize  int     // maximum sum of the sizes; 0: no maximum
	OnEvict  func(V) // frees a value; may be nil

	entries []cacheEntry[K, V] // the newest last
	size    int
}

type cacheEntry[K comparable, V any] struct {
	key   K
	value V
	size  int
}

// Take removes the newest value of a key and returns it.
func (c *Cache[K, V]) Take(key K) (value V, ok bool) {
	for i := len(c.entries) - 1; i >= 0; i-- {
		if e := c.entries[i]; e.key == key {
			c.entries = slices.Delete(c.entries, i, i+1)
			c.size -= e.size
			return e.value, true
		}
	}
	return value, false
}

// Put adds a value with its size and evicts others until the bounds hold.
func (c *Cache[K, V]) Put(key K, value V, size int) {
	c.entries = append(c.entries, cacheEntry[K, V]{key, value, size})
	c.size += size
	n := 0
	for n < len(c.entries) && (len(c.entries)-n > c.MaxCount || c.MaxSize > 0 && c.size > c.MaxSize) {
		c.size -= c.entries[n].size
		n++
	}
	c.drop(n)
}

// Clear evicts all values.
func (c *Cache[K, V]) Clear() {
	c.size = 0
	c.drop(len(c.entries))
}

// drop evicts the oldest n values.
func (c *Cache[K, V]) drop(n int) {
	for _, e := range c.entries[:n] {
		if c.OnEvict != nil {
			c.OnEvict(e.value)
		}
	}
	c.entries = slices.Delete(c.entries, 0, n)
}
