package gorgonia

import (
	"runtime"
	"sync"
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
	workers := min(runtime.GOMAXPROCS(0), n)
	if n < least || workers < 2 {
		f(0, n)
		return
	}
	var wg sync.WaitGroup
	var failed any // a panic of a worker, to be raised where it can be caught
	var once sync.Once
	for w := 1; w < workers; w++ {
		wg.Go(func() {
			defer func() {
				if r := recover(); r != nil {
					once.Do(func() { failed = r })
				}
			}()
			f(n*w/workers, n*(w+1)/workers)
		})
	}
	f(0, n/workers)
	wg.Wait()
	if failed != nil {
		panic(failed)
	}
}
