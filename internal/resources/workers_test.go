// A panic in a worker reaches the caller.

package resources_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/miplc/miplc/internal/resources"
)

func TestWaitRaisesWhatAWorkerPanickedWith(t *testing.T) {
	var done atomic.Int32
	var g resources.Group
	for i := range 8 {
		g.Go(func() {
			if i == 3 {
				panic("worker 3")
			}
			done.Add(1)
		})
	}
	defer func() {
		r, _ := recover().(*resources.PanicError)
		if r == nil || r.Value != "worker 3" || !strings.Contains(string(r.Stack), "workers_test.go") || done.Load() != 7 {
			t.Errorf("recovered %v after %d workers", r, done.Load())
		}
	}()
	g.Wait()
}

func TestWait(t *testing.T) {
	var g resources.Group
	g.Wait()
	done := false
	g.Go(func() { done = true })
	if g.Wait(); !done {
		t.Error("Wait did not wait")
	}
}
