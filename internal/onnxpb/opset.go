package onnxpb

// Opsets that miplc writes and reads. The first is the oldest in which all the ops
// it writes mean what they mean today; the last is the newest that was tried.
const (
	MinOpset = 13
	MaxOpset = 22
)

// irVersions gives the IR version that belongs to an opset: the one of the
// ONNX release that brought the opset.
var irVersions = map[int64]int64{13: 7, 14: 7, 15: 8, 16: 8, 17: 8, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10}

// IRVersion returns the IR version to write with an opset, and false for an
// opset that is not in use here.
func IRVersion(opset int) (int64, bool) {
	v, ok := irVersions[int64(opset)]
	return v, ok
}
