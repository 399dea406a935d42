// Graphs with a long chain of nodes are opened or refused at once, and never exhaust the stack.

package runtime_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/runtime"
)

// onnxruntime opens a graph with a long chain of nodes. onnx-go rejects it at once instead of
// building it for minutes.
func TestLongChains(t *testing.T) {
	for _, be := range backends {
		for nodes, refused := range map[int]bool{300: false, 3000: be.name == contract.BackendONNXGo} {
			open(t, "demipl-3x4.onnx") // fails if the library is missing
			m, err := runtime.OpenBytes(edited(t, func(m *onnxpb.ModelProto) { chain(m, nodes) }), be.opts...)
			switch {
			case refused && (err == nil || !strings.Contains(err.Error(), "3020 nodes, more than") ||
				!strings.Contains(err.Error(), "onnxruntime")):
				t.Errorf("%s, %d nodes: error %v", be.name, nodes, err)
			case !refused && err != nil:
				t.Errorf("%s, %d nodes: %v", be.name, nodes, err)
			}
			if err == nil {
				m.Close()
			}
		}
	}
}

// chain inserts the given number of nodes before the probabilities.
func chain(m *onnxpb.ModelProto, nodes int) {
	for _, n := range m.Graph.Node {
		if n.Output[0] == contract.Probabilities {
			n.Output[0] = "link0"
		}
	}
	for i := range nodes {
		to := fmt.Sprint("link", i+1)
		if i == nodes-1 {
			to = contract.Probabilities
		}
		m.Graph.Node = append(m.Graph.Node, &onnxpb.NodeProto{Name: to, OpType: "Abs", Input: []string{fmt.Sprint("link", i)},
			Output: []string{to}})
	}
}
