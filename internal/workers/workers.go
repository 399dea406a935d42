// Package workers runs functions side by side.
package workers

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Group is a sync.WaitGroup of which no goroutine ends the program: what one panics
// with is raised again by Wait, where the caller's own goroutine can recover it.
// The zero Group is ready.
type Group struct {
	wait     sync.WaitGroup
	once     sync.Once
	panicked any
}

// Go runs f in a goroutine of its own.
func (g *Group) Go(f func()) {
	g.wait.Go(func() {
		defer func() {
			if r := recover(); r != nil {
				g.once.Do(func() { g.panicked = r })
			}
		}()
		f()
	})
}

// Wait returns when all functions have; it panics with what the first of them
// panicked with.
func (g *Group) Wait() {
	g.wait.Wait()
	if g.panicked != nil {
		panic(g.panicked)
	}
}

// Each runs f on the numbers below n, at most so many at a time; 0: as many as there
// are processors.
func Each(n, atATime int, f func(i int)) {
	if atATime < 1 {
		atATime = runtime.GOMAXPROCS(0)
	}
	var next atomic.Int64
	var running Group
	for range min(n, atATime) {
		running.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	running.Wait()
}
