// Matrix products and movements of elements.

package xla

import (
	"github.com/gomlx/compute"

	"github.com/miplc/miplc/compile/graph"
)

func lowerMatMul(l *lowerer, _ *graph.Node, in []tensor) tensor { return l.dot(in[0], 1, in[1], 0) }

func lowerTranspose(l *lowerer, n *graph.Node, in []tensor) tensor {
	return l.transpose(in[0], n.Attrs.Perm...)
}

// lowerReshape rejects shapes that split rows, because padding would move between them.
func lowerReshape(l *lowerer, n *graph.Node, in []tensor) tensor {
	if len(n.CombinedRows(0)) > 0 {
		graph.Fail("the reshape from %v to %v mixes the rows of instances with other axes; the XLA engine pads batches "+
			"and cannot do that", n.In[0].Shape, n.Shape)
	}
	return l.reshape(in[0], l.concrete(n.Shape)...)
}

func lowerExpand(l *lowerer, n *graph.Node, in []tensor) tensor {
	return l.broadcast(in[0], l.concrete(n.Shape), nil)
}

func lowerConcat(l *lowerer, n *graph.Node, in []tensor) tensor {
	return l.concat(n.Attrs.Axis, in...)
}

func lowerSlice(l *lowerer, n *graph.Node, in []tensor) tensor {
	return l.slice(in[0], n.Attrs.Axis, n.Attrs.Start, n.Attrs.End, 1)
}

func lowerPad(l *lowerer, n *graph.Node, in []tensor) tensor {
	axes := make([]compute.PadAxis, len(n.Shape))
	axes[n.Attrs.Axis] = compute.PadAxis{Start: n.Attrs.Start, End: n.Attrs.End}
	return l.pad(in[0], axes...)
}
