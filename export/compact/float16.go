package compact

import (
	"encoding/binary"

	"github.com/x448/float16"

	"github.com/miplc/miplc/internal/onnxpb"
)

// halve keeps the large parameters in half precision. They are widened when the model
// is opened and the model computes in single precision: features as they are measured
// may be larger than half precision knows, and processors have no arithmetic for it.
// Parameters beyond its range stay as they are.
func (r *rewriter) halve() {
	for _, t := range r.g.Initializer {
		if !matrix(t) {
			continue
		}
		if raw, ok := halves(t.Floats()); ok {
			wide := t.GetName()
			t.Name, t.DataType, t.RawData, t.FloatData = wide+".float16", int32(onnxpb.TensorProto_FLOAT16), raw, nil
			r.cast(wide, t.Name, onnxpb.TensorProto_FLOAT)
			r.changed++
		}
	}
	r.g.Node = append(r.g.Node, r.old...)
}

// halves rounds to the nearest in half precision, little-endian; false where a number
// is too large.
func halves(values []float32) ([]byte, bool) {
	raw := make([]byte, 0, 2*len(values))
	for _, v := range values {
		h := float16.Fromfloat32(v)
		if h.IsInf(0) {
			return nil, false
		}
		raw = binary.LittleEndian.AppendUint16(raw, h.Bits())
	}
	return raw, true
}
