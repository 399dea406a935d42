// Package recent keeps what is costly to make for the next time that it is needed.
package recent

import "slices"

// List holds values by key, of which several may be equal. Beyond its bounds the values
// that were put in first are dropped. It is not safe for concurrent use.
type List[K comparable, V any] struct {
	Most int     // values kept
	Room int     // sum of the sizes of the values kept; 0: any
	Drop func(V) // frees a value; nil: there is nothing to free

	entries []entry[K, V] // the newest last
	size    int
}

type entry[K comparable, V any] struct {
	key   K
	value V
	size  int
}

// Take takes the newest value of a key out.
func (l *List[K, V]) Take(key K) (value V, ok bool) {
	for i := len(l.entries) - 1; i >= 0; i-- {
		if e := l.entries[i]; e.key == key {
			l.entries = slices.Delete(l.entries, i, i+1)
			l.size -= e.size
			return e.value, true
		}
	}
	return value, false
}

// Put puts a value of some size in, as the newest.
func (l *List[K, V]) Put(key K, value V, size int) {
	l.entries = append(l.entries, entry[K, V]{key, value, size})
	l.size += size
	n := 0
	for n < len(l.entries) && (len(l.entries)-n > l.Most || l.Room > 0 && l.size > l.Room) {
		l.size -= l.entries[n].size
		n++
	}
	l.drop(n)
}

// Clear drops all values.
func (l *List[K, V]) Clear() {
	l.size = 0
	l.drop(len(l.entries))
}

// drop frees the oldest n values.
func (l *List[K, V]) drop(n int) {
	for _, e := range l.entries[:n] {
		if l.Drop != nil {
			l.Drop(e.value)
		}
	}
	l.entries = slices.Delete(l.entries, 0, n)
}
