package xla

import (
	"fmt"

	"github.com/gomlx/compute"

	"github.com/miplc/miplc/graph"
)

// lowerMatMul leaves padding out of sums over instances or bags. Both factors
// are masked: 0 times what a padded row holds need not be 0.
func lowerMatMul(l *lowering, n *graph.Node, in []tensor) tensor {
	x := l.masked(in[0], n.In[0].Shape, []int{1}, 0)
	y := l.masked(in[1], n.In[1].Shape, []int{0}, 0)
	return l.dot(x, 1, y, 0)
}

func lowerTranspose(l *lowering, n *graph.Node, in []tensor) tensor {
	return l.transpose(in[0], n.Attrs.Perm...)
}

// lowerReshape refuses shapes in which a symbol changes its distance between
// neighbours: padding would slip in between the rows.
func lowerReshape(l *lowering, n *graph.Node, in []tensor) tensor {
	from, to := symbols(n.In[0].Shape), symbols(n.Shape)
	for i := range from {
		if from[i] != to[i] {
			fail(fmt.Errorf("the reshape from %v to %v mixes the rows of instances with other axes; the XLA engine pads batches and cannot do that", n.In[0].Shape, n.Shape))
		}
	}
	return l.reshape(in[0], l.concrete(n.Shape)...)
}

// symbol is an occurrence of N or B in a shape and how many elements one step
// along it passes, counted in constants and in symbols.
type symbol struct {
	d            graph.Dim
	step, ns, bs int
}

// symbols lists the occurrences from the right.
func symbols(s graph.Shape) []symbol {
	var list []symbol
	at := symbol{step: 1}
	for i := len(s) - 1; i >= 0; i-- {
		switch at.d = s[i]; s[i] {
		case graph.N:
			list = append(list, at)
			at.ns++
		case graph.B:
			list = append(list, at)
			at.bs++
		default:
			at.step *= int(s[i])
		}
	}
	return list
}

func lowerExpand(l *lowering, n *graph.Node, in []tensor) tensor {
	return l.broadcast(in[0], l.concrete(n.Shape), nil)
}

func lowerConcat(l *lowering, n *graph.Node, in []tensor) tensor {
	return l.concat(n.Attrs.Axis, in...)
}

func lowerSlice(l *lowering, n *graph.Node, in []tensor) tensor {
	return l.slice(in[0], n.Attrs.Axis, n.Attrs.Start, n.Attrs.End, 1)
}

func lowerPad(l *lowering, n *graph.Node, in []tensor) tensor {
	axes := make([]compute.PadAxis, len(n.Shape))
	axes[n.Attrs.Axis] = compute.PadAxis{Start: n.Attrs.Start, End: n.Attrs.End}
	return l.pad(in[0], axes...)
}
