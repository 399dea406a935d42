package onnxpb

// Opsets that miplc writes and reads. The first is the oldest in which all the ops
// it writes mean what they mean today; the last is the newest that was tried.
const (
	MinOpset = 13
	MaxOpset = 22
)

// Since returns the oldest opset that has a node in the form in which miplc writes it.
func (n *NodeProto) Since() int64 {
	switch n.GetOpType() {
	case "ReduceMax":
		if len(n.GetInput()) > 1 { // its axes
			return 18
		}
	case "ScatterElements":
		switch reduction := n.Attr("reduction"); {
		case reduction == nil:
		case string(reduction.GetS()) == "add":
			return 16
		default:
			return 18
		}
	}
	return MinOpset
}

// irVersions gives the IR version that belongs to an opset: the one of the
// ONNX release that brought the opset.
var irVersions = map[int64]int64{13: 7, 14: 7, 15: 8, 16: 8, 17: 8, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10}

// IRVersion returns the IR version to write with an opset from MinOpset to MaxOpset.
func IRVersion(opset int64) int64 { return irVersions[opset] }
