//go:build cgo

// What a prediction costs in addition to the bare run of onnxruntime.

package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/runtime"
)

// BenchmarkOverhead compares Predict with a bare run of onnxruntime on tensors that are already
// bound and filled, without the copies that a service needs. The model is the shipped spec with
// the shapes of Birdsong-MIPL, which has 37 instances per bag on average.
func BenchmarkOverhead(b *testing.B) {
	data := exported(b, "demipl")
	for _, n := range []int{1, 5, 12, 37, 100, 500} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m := openBytes(b, data)
			bag := randomBag(n, 38, 1)
			bags, to := []runtime.Bag{bag}, make([]runtime.Prediction, 1)
			each := inTurn(b, func() error { _, err := m.PredictBatch(context.Background(), bags, to); return err },
				newBareRun(b, data, bag, 13))
			b.ReportMetric(each[0], "ns/predict")
			b.ReportMetric(each[1], "ns/bare")
			b.ReportMetric(100*(each[0]/each[1]-1), "%overhead")
		})
	}
}

// newBareRun binds a bag to a session of the onnxruntime binding and returns its run.
func newBareRun(b *testing.B, data []byte, bag runtime.Bag, classes int64) func() error {
	b.Helper()
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	options, err := ort.NewSessionOptions()
	must(err)
	defer options.Destroy()
	must(errors.Join(options.SetIntraOpNumThreads(1), options.SetInterOpNumThreads(1)))
	session, err := ort.NewDynamicAdvancedSessionWithONNXData(data, nil, nil, options)
	must(err)
	bound, err := session.CreateIoBinding()
	must(err)
	n := int64(bag.N)
	instances, err := ort.NewTensor(ort.NewShape(n, int64(len(bag.Instances))/n), bag.Instances)
	must(err)
	probabilities, err := ort.NewEmptyTensor[float32](ort.NewShape(1, classes))
	must(err)
	attention, err := ort.NewEmptyTensor[float32](ort.NewShape(1, n))
	must(err)
	must(errors.Join(bound.BindInput(contract.Instances, instances),
		bound.BindOutput(contract.Probabilities, probabilities), bound.BindOutput(contract.Attention, attention)))
	b.Cleanup(func() {
		must(errors.Join(bound.Destroy(), session.Destroy(), instances.Destroy(), probabilities.Destroy(),
			attention.Destroy()))
	})
	return func() error { return session.RunWithBinding(bound) }
}
