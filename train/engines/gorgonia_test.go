// The machines of an engine, their memory and speed, and batches that it rejects.

package engines

import (
	"runtime"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/testkit/modeltest"
	"github.com/miplc/miplc/train"
)

// startedGorgonia returns an engine with the untrained state of a program.
func startedGorgonia(t testing.TB, p *compile.Program) *gorgoniaEngine {
	t.Helper()
	e, err := NewGorgonia(p)
	if err == nil {
		err = e.SetState(train.UntrainedState(p, 3))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e.(*gorgoniaEngine)
}

// The engine keeps only the most recently used machines.
func TestMachinesAreBounded(t *testing.T) {
	p := modeltest.Shipped(t, "demipl")
	e := startedGorgonia(t, p)
	e.infer.bySize.MaxCount = 4
	for n := 1; n <= 9; n++ {
		for _, size := range []int{n, 1} { // bags of one instance stay in use
			if _, _, err := e.Predict(make([]float32, 7*size), make([]int, size), 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	for n := range 10 {
		want := n == 1 || n >= 7
		if _, ok := e.infer.bySize.Take(machineSize{n, 1}); ok != want {
			t.Errorf("the machine for %d instances is kept: %t, want %t", n, ok, want)
		}
	}
}

func TestBadBatches(t *testing.T) {
	p := modeltest.Shipped(t, "demipl")
	e := startedGorgonia(t, p)
	for _, c := range []struct {
		bagOf []int
		bags  int
	}{{[]int{0, 2}, 2}, {[]int{0, 0}, 2}, {[]int{1, 1}, 2}, {[]int{0, 1, 0}, 2}, {[]int{0, -1}, 1}, {nil, 0}, {nil, 1}} {
		if _, _, err := e.Predict(make([]float32, 6*len(c.bagOf)), c.bagOf, c.bags); err == nil {
			t.Errorf("bag_of %v of %d bags is accepted", c.bagOf, c.bags)
		}
	}
	if _, _, err := e.Predict(make([]float32, 5), []int{0}, 1); err == nil {
		t.Error("5 features are accepted where 6 are wanted")
	}
}

// Many steps over batches of different sizes leak no goroutines and no memory.
func TestStepsLeakNothing(t *testing.T) {
	p := modeltest.Shipped(t, "demipl")
	e := startedGorgonia(t, p)
	var batches []*train.Batch
	for _, sizes := range [][]int{{9}, {1}, {70}, {3, 1, 5}, {4, 9, 1, 7, 3, 3, 8, 2, 6, 5, 4, 1, 1, 9, 2, 3}} {
		batches = append(batches, modeltest.Batch(p, uint64(len(batches)), sizes...))
	}
	steps := func(n int) (heap uint64, goroutines int) {
		for i := range n {
			b := batches[i%len(batches)]
			if _, err := e.Step(b); err != nil {
				t.Fatal(err)
			}
			if _, _, err := e.Predict(b.Instances, b.BagOf, b.Bags); err != nil {
				t.Fatal(err)
			}
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc, runtime.NumGoroutine()
	}
	before, goroutines := steps(20)
	after, now := steps(2000)
	if now > goroutines {
		t.Errorf("%d goroutines before, %d after", goroutines, now)
	}
	if grown := int64(after) - int64(before); grown > 1<<20 {
		t.Errorf("2000 steps leaked %d bytes", grown)
	}
}

// BenchmarkNewSize measures the first step of a batch of a new size, which builds a machine.
func BenchmarkNewSize(b *testing.B) {
	p := modeltest.Shipped(b, "demipl")
	for b.Loop() {
		b.StopTimer()
		e, batch := startedGorgonia(b, p), modeltest.Batch(p, 1, 37)
		b.StartTimer()
		if _, err := e.Step(batch); err != nil {
			b.Fatal(err)
		}
	}
}
