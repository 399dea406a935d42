// Many goroutines can share one model for long: results stay the same and memory does not grow.

package runtime_test

import (
	"context"
	"flag"
	goruntime "runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/testkit/testsupport"
	"github.com/miplc/miplc/runtime"
)

var predictions = flag.Int("predictions", 20_000, "how many predictions TestManyGoroutines makes in each back end; "+
	"onnx-go makes a hundredth")

// 64 goroutines predict bags of ten sizes with one model. Every prediction is bit-identical to
// that of a single call, and memory does not grow. Fewer than 10,000 predictions would not show
// a leak.
func TestManyGoroutines(t *testing.T) {
	const goroutines = 64
	for _, be := range backends {
		t.Run(be.name, func(t *testing.T) {
			m := open(t, "demipl-38x13.onnx", be.opts...)
			var bags []runtime.Bag
			var want []runtime.Prediction
			for i := range 10 {
				bags = append(bags, randomBag(1+i*i, 38, uint64(i)))
				p, err := m.Predict(context.Background(), bags[i])
				if err != nil {
					t.Fatal(err)
				}
				want = append(want, p)
			}
			many := *predictions
			if be.name == contract.BackendONNXGo {
				many /= 100
			}
			var next atomic.Int64
			round := func(upTo int) {
				var wg sync.WaitGroup
				for range goroutines {
					wg.Go(func() {
						for n := next.Add(1); n <= int64(upTo); n = next.Add(1) {
							i := n % int64(len(bags))
							p, err := m.Predict(context.Background(), bags[i])
							if err != nil {
								t.Error(err)
								return
							}
							if p.Label != want[i].Label || !slices.Equal(p.Probabilities, want[i].Probabilities) ||
								!slices.Equal(p.Attention, want[i].Attention) {
								t.Errorf("prediction %d, a bag of %d instances: %v, by itself %v", n, bags[i].N, p, want[i])
								return
							}
						}
					})
				}
				wg.Wait()
			}
			round(many / 5)
			heap, resident := memory(t)
			next.Store(0)
			round(many)
			heapLater, residentLater := memory(t)
			t.Logf("%d predictions: heap %d kB, then %d kB; resident %d kB, then %d kB", many, heap>>10, heapLater>>10,
				resident>>10, residentLater>>10)
			const room = 64 << 20
			outside := be.name == contract.BackendORT // onnx-go allocates on the Go heap, and its garbage counts as resident
			if many >= 10_000 && (heapLater > heap+room || outside && residentLater > resident+room) {
				t.Error("memory grew")
			}
		})
	}
}

// memory returns the size of the Go heap after a collection, and the resident memory of the
// process, 0 if the system does not report it.
func memory(t *testing.T) (heap, resident int64) {
	t.Helper()
	goruntime.GC()
	var s goruntime.MemStats
	goruntime.ReadMemStats(&s)
	return int64(s.HeapAlloc), testsupport.Resident(t)
}
