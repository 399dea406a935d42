package compact

import (
	"math"
	"slices"

	"github.com/miplc/miplc/internal/onnxpb"
)

// quantize computes products of features and parameters in 8-bit integers. Features are scaled for
// each bag (DynamicQuantizeLinear), parameters for each column, symmetrically around zero. They are
// stored as unsigned 128 plus the integer, for which no kernel of onnxruntime saturates.
func (r *rewriter) quantize() {
	weights := map[string]*onnxpb.TensorProto{}
	for _, t := range r.g.Initializer {
		if matrix(t) && len(t.GetDims()) == 2 {
			weights[t.GetName()] = t
		}
	}
	measured, made := map[string][]string{}, map[string]bool{}
	for _, n := range r.old {
		w := (*onnxpb.TensorProto)(nil)
		if n.GetOpType() == "MatMul" {
			w = weights[n.Input[1]]
		}
		if w == nil {
			r.g.Node = append(r.g.Node, n)
			continue
		}
		x, y, name := n.Input[0], n.Output[0], w.GetName()
		if !made[name] {
			made[name] = true
			r.changed++
			r.columns(w)
		}
		if measured[x] == nil {
			measured[x] = []string{x + ".uint8", x + ".scale", x + ".zero"}
			r.g.Node = append(r.g.Node, &onnxpb.NodeProto{Name: x + ".uint8", OpType: "DynamicQuantizeLinear", Input: []string{x}, Output: measured[x]})
		}
		q := measured[x]
		sum := r.g.Add(y+".int32", "MatMulInteger", nil, q[0], name+".uint8", q[2], zeroName)
		scale := r.g.Add(y+".factor", "Mul", nil, q[1], name+".scale")
		r.g.Add(y, "Mul", nil, r.cast(y+".float", sum, onnxpb.TensorProto_FLOAT), scale)
	}
	if r.changed > 0 {
		r.g.Initializer = append(r.g.Initializer, &onnxpb.TensorProto{Name: zeroName, DataType: int32(onnxpb.TensorProto_UINT8), RawData: []byte{zero}})
	}
}

// zero is the stored value of the parameter 0.
const (
	zero     = 128
	zeroName = "int8.zero"
)

// columns adds a matrix in 8-bit integers and the scale of each of its columns.
func (r *rewriter) columns(w *onnxpb.TensorProto) {
	rows, columns := int(w.Dims[0]), int(w.Dims[1])
	values := w.Floats()
	scales, raw := make([]float32, columns), make([]byte, len(values))
	for j := range columns {
		largest := float32(0)
		for i := range rows {
			largest = max(largest, float32(math.Abs(float64(values[i*columns+j]))))
		}
		if scales[j] = largest / (zero - 1); scales[j] == 0 {
			scales[j] = 1
		}
		for i := range rows {
			raw[i*columns+j] = byte(zero + math.RoundToEven(float64(values[i*columns+j]/scales[j])))
		}
	}
	r.g.Initializer = append(r.g.Initializer,
		&onnxpb.TensorProto{Name: w.GetName() + ".uint8", Dims: slices.Clone(w.Dims), DataType: int32(onnxpb.TensorProto_UINT8), RawData: raw},
		onnxpb.FloatTensor(w.GetName()+".scale", []int64{int64(columns)}, scales))
}
