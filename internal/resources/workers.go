// Functions that run in parallel and whose panics do not end the program.

package resources

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// PanicError is the error of a function that panicked, which is a defect of miplc.
type PanicError struct {
	Value any
	Stack []byte // of the goroutine that panicked
}

func (e *PanicError) Error() string { return fmt.Sprintf("this is a bug in miplc: %v", e.Value) }

// Recovered returns the error for a value that recover returned. The value may be the error of another goroutine, with
// which Group.Wait panics.
func Recovered(value any) *PanicError {
	if e, ok := value.(*PanicError); ok {
		return e
	}
	return &PanicError{value, debug.Stack()}
}

// Try calls f and returns its error, or a *PanicError if it panics.
func Try(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = Recovered(p)
		}
	}()
	return f()
}

// Group is a sync.WaitGroup whose goroutines do not end the program when they panic:
// Wait panics with the first one as a *PanicError, from which the caller can recover. The zero
// Group is ready to use.
type Group struct {
	wait     sync.WaitGroup
	once     sync.Once
	panicked *PanicError
}

// Go runs f in a new goroutine.
func (g *Group) Go(f func()) {
	g.wait.Go(func() {
		defer func() {
			if r := recover(); r != nil {
				g.once.Do(func() { g.panicked = Recovered(r) })
			}
		}()
		f()
	})
}

// Wait waits for all functions. It panics with a *PanicError if one of them did.
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
