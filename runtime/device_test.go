//go:build cgo

// Predictions on devices agree with those on the CPU.

package runtime_test

import (
	"context"
	"sync"
	"testing"

	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/internal/testkit/testsupport"
	"github.com/miplc/miplc/runtime"
)

// deviceAgreement is the largest accepted difference between predictions on a device and on the CPU.
const deviceAgreement = 1e-5

func TestPredictOnWebGPU(t *testing.T) {
	if testsupport.InProcess(t, enginetest.WebGPU) {
		predictOn(t, "webgpu")
	}
}

// The built-in OpenVINO provider shares the memory of the CPU. Only TestPredictOnWebGPU notices
// inputs that are not bound again.
func TestPredictOnOpenVINO(t *testing.T) {
	if testsupport.InProcess(t, testsupport.OpenVINO) {
		predictOn(t, "openvino")
	}
}

// predictOn compares a provider with the CPU: bags of one size in sequence, which share a
// binding, then batches, then calls from several goroutines.
func predictOn(t *testing.T, provider string) {
	for _, name := range []string{"saturated-3x4.onnx", "batch-3x4.onnx", "image-12x12.onnx"} {
		t.Run(name, func(t *testing.T) {
			cpu, device := open(t, name), open(t, name, runtime.WithProvider(provider, nil))
			size := 1
			for _, d := range cpu.Info().InputShape {
				size *= d
			}
			var bags []runtime.Bag
			for i, n := range []int{1, 1, 3, 40, 40, 3, 1} {
				bags = append(bags, randomBag(n, size, uint64(i)))
			}
			want := predictAll(t, cpu, bags)
			worst := furthestPrediction(want, predictAll(t, device, bags))
			batch, err := device.PredictBatch(context.Background(), bags, nil)
			if err != nil {
				t.Fatal(err)
			}
			worst = max(worst, furthestPrediction(want, batch))
			var together sync.WaitGroup
			found := make([][]runtime.Prediction, 3)
			for g := range found {
				together.Go(func() { found[g] = predictAll(t, device, bags) })
			}
			together.Wait()
			for _, f := range found {
				worst = max(worst, furthestPrediction(want, f))
			}
			t.Logf("largest difference to the CPU: %.1e", worst)
			if !(worst <= deviceAgreement) {
				t.Errorf("predictions on %s are %g away from those on the CPU", provider, worst)
			}
		})
	}
}
