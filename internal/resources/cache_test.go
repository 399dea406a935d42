// The cache forgets the oldest values.

package resources

import (
	"slices"
	"testing"
)

func TestCache(t *testing.T) {
	var dropped []string
	l := Cache[int, string]{MaxCount: 3, MaxSize: 10, OnEvict: func(v string) { dropped = append(dropped, v) }}
	expect := func(what string, want ...string) {
		t.Helper()
		if !slices.Equal(dropped, want) {
			t.Errorf("%s: dropped %q, want %q", what, dropped, want)
		}
		dropped = nil
	}
	take := func(key int, want string) {
		t.Helper()
		if got, ok := l.Take(key); got != want || ok != (want != "") {
			t.Errorf("key %d: took %q, %t, want %q", key, got, ok, want)
		}
	}
	take(1, "")
	l.Put(1, "a", 1)
	l.Put(2, "b", 1)
	l.Put(1, "c", 1)
	expect("three fit")
	take(1, "c")
	take(1, "a")
	take(1, "")
	l.Put(1, "a", 1)
	l.Put(1, "c", 1)
	l.Put(3, "d", 1)
	expect("one more than three", "b")
	l.Put(4, "e", 9)
	expect("more than there is room for", "a", "c")
	l.Put(5, "f", 11)
	expect("one that never fits", "d", "e", "f")
	l.Put(6, "g", 10)
	l.Clear()
	expect("clear", "g")
	take(6, "")
	l.Put(7, "h", 10)
	expect("room after clear")
}

// A removed or evicted value can be garbage collected.
func TestCacheForgets(t *testing.T) {
	l := Cache[int, *int]{MaxCount: 2}
	for i := range 5 {
		l.Put(i, new(int), 0)
	}
	l.Take(4)
	for _, e := range l.entries[len(l.entries):cap(l.entries)] {
		if e.value != nil {
			t.Error("a removed or evicted value is still referenced")
		}
	}
}
