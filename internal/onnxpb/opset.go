// The operator set in which each operation first appeared.

package onnxpb

// Opsets that miplc writes and reads. MinOpset is the oldest one in which all ops that it writes
// have their present meaning; MaxOpset is the newest one that was tested.
const (
	MinOpset = 13
	MaxOpset = 22
)

// Since returns the oldest opset that supports a node in the form in which miplc writes it.
func (n *NodeProto) Since() int64 {
	switch n.GetOpType() {
	case "ReduceMax":
		if len(n.GetInput()) > 1 { // its axes
			return 18
		}
	case "Shape":
		if n.Attr("start") != nil {
			return 15
		}
	case "ScatterElements", "ScatterND":
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

// irVersions maps an opset to the IR version of the ONNX release that introduced it.
var irVersions = map[int64]int64{13: 7, 14: 7, 15: 8, 16: 8, 17: 8, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10}

// IRVersion returns the IR version to write with an opset from MinOpset to MaxOpset.
func IRVersion(opset int64) int64 { return irVersions[opset] }
