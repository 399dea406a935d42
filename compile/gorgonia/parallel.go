// Division of loops among processors, with the same bits on any number of them.

package gorgonia

import (
	"runtime"

	"github.com/miplc/miplc/internal/workers"
)

// Smallest numbers of elements for which a second goroutine is faster.
const (
	costly = 2048  // about one exponential per element
	cheap  = 65536 // about one addition per element
)

// parallel divides 0 to n among the processors if n is at least least. The results must not depend
// on the division.
func parallel(n, least int, f func(from, to int)) {
	parts := min(runtime.GOMAXPROCS(0), n)
	if n < least || parts < 2 {
		f(0, n)
		return
	}
	var wg workers.Group
	for p := 1; p < parts; p++ {
		wg.Go(func() { f(n*p/parts, n*(p+1)/parts) })
	}
	f(0, n/parts)
	wg.Wait()
}
