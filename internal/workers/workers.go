// Package workers runs functions in parallel and keeps their panics from ending the
// program.
package workers

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// PanicError is the error of a function that panicked, which is a defect of miplc.
type PanicError struct{ Value any }

func (e *PanicError) Error() string { return fmt.Sprintf("this is a bug in miplc: %v", e.Value) }

// Try calls f and returns its error, or a *PanicError if it panics.
func Try(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{p}
		}
	}()
	return f()
}

// Group is a sync.WaitGroup whose goroutines do not end the program when they panic:
// Wait raises the first panic again, where the caller can recover from it. The zero
// Group is ready to use.
type Group struct {
	wait     sync.WaitGroup
	once     sync.Once
	panicked any
}

// Go runs f in a new goroutine.
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

// Wait waits for all functions. It panics if one of them did, with the same value.
func (g *Group) Wait() {
	g.wait.Wait()
	if g.panicked != nil {
		panic(g.panicked)
	}
}

// Each calls f with the numbers from 0 to n-1, at most atATime in parallel (0: the
// number of processors).
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
