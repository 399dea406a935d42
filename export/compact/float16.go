package compact

import (
	"encoding/binary"

	"github.com/x448/float16"

	"github.com/miplc/miplc/internal/onnxpb"
)

// halve stores the large parameters in half precision. They are converted when the model is opened,
// and the model computes in single precision: measured features may exceed the range of half
// precision, and processors have no arithmetic for it. Parameters beyond its range do not change.
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

// halves rounds values to the nearest in half precision, little-endian. ok is false if a value is
// too large.
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
