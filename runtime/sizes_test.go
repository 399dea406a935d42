// Files whose parameters have the wrong sizes are accepted or refused by both back ends alike.

package runtime_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/runtime"
)

// A file whose parameter does not have the size that the graph needs was not written by miplc,
// but it can fulfil the contract. No back end may predict with it if onnxruntime does not.
func TestParametersOfOtherSizes(t *testing.T) {
	good, err := onnxpb.ReadBytes(readModel(t, "demipl-3x4.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range good.Graph.Initializer {
		for axis := range p.Dims {
			for _, size := range []int64{1, p.Dims[axis] - 1, p.Dims[axis] + 1, 2 * p.Dims[axis]} {
				if size < 1 || size == p.Dims[axis] || p.DataType != int32(onnxpb.TensorProto_FLOAT) {
					continue
				}
				data := edited(t, func(m *onnxpb.ModelProto) {
					dims := append([]int64{}, p.Dims...)
					dims[axis] = size
					n := int64(1)
					for _, d := range dims {
						n *= d
					}
					values := make([]float32, n)
					for j := range values {
						values[j] = float32(j%7) / 7
					}
					m.Graph.Initializer[i] = onnxpb.FloatTensor(p.Name, dims, values)
				})
				var errs [2]error
				for k, be := range backends {
					open(t, "demipl-3x4.onnx") // fails if the library is missing
					m, err := runtime.OpenBytes(data, be.opts...)
					if err == nil {
						_, err = m.Predict(context.Background(), randomBag(5, 3, 1))
						m.Close()
					}
					errs[k] = err
				}
				if (errs[0] == nil) != (errs[1] == nil) {
					t.Errorf("%s %v with %d on axis %d: %s says %v, %s says %v", p.Name, p.Dims, size, axis,
						backends[0].name, fmt.Sprint(errs[0]), backends[1].name, errs[1])
				}
			}
		}
	}
}
