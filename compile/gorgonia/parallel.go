package gorgonia

import (
	"runtime"

	"github.com/miplc/miplc/internal/workers"
)

// Smallest numbers of elements for which a second goroutine pays.
const (
	costly = 2048  // an exponential or so for each
	cheap  = 65536 // an addition or so for each
)

// parallel splits 0 to n among the processors when n reaches least. The parts
// must be independent of each other, so that the number of processors changes
// no result.
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
