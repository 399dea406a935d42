//go:build cgo

// Batches as tensors: normalised instances and masks.

package ort

import (
	"fmt"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/compile/onnx"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/train"
)

// normalizedBytes is the maximum memory for normalised copies of the dataset.
const normalizedBytes = 256 << 20

// normalize makes a normalised copy of the instances for each different statistics, unless they
// need too much memory.
func (g *group) normalize() {
	d := g.runs[0].Data
	all := d.Offsets[d.Bags()] * d.Dim()
	copies := map[string][]float32{}
	for i, r := range g.runs {
		mean, std := g.statistics[i][compile.ParamMean], g.statistics[i][compile.ParamStd]
		if mean == nil {
			g.normalized[i] = r.Data.Instances[:all]
			continue
		}
		key := fmt.Sprint(mean, std)
		if copies[key] == nil {
			if (len(copies)+1)*4*all > normalizedBytes {
				continue
			}
			copies[key] = make([]float32, all)
			train.ZScores(copies[key], d.Instances[:all], mean, std)
		}
		g.normalized[i] = copies[key]
	}
}

// fill sets the instances of a batch of the run with index j. Each bag is padded with copies of
// its last instance. If there are fewer bags than in the graph, the first bag is repeated.
func (g *group) fill(b *batch, j int, bags []int, from []float32) {
	d, n := g.runs[0].Data, g.capacity.Instances
	if from == nil {
		from = d.Instances
	}
	dim := d.Dim()
	instances, rows, low := b.part(compile.InInstances, j), b.part(onnx.InReal, j), b.part(onnx.InPadding, j)
	for i := range b.on.bags {
		bag := bags[0]
		if i < len(bags) {
			bag = bags[i]
		}
		size := d.Size(bag)
		if instances != nil { // else the model uses their number only
			to, own := instances[i*n*dim:(i+1)*n*dim], from[d.Offsets[bag]*dim:][:size*dim]
			copy(to, own)
			for at := size * dim; at < len(to); at += dim {
				copy(to[at:], own[len(own)-dim:])
			}
		}
		if rows != nil {
			copy(rows[i*n:(i+1)*n], g.real[n-size:])
		}
		if low != nil {
			copy(low[i*n:(i+1)*n], g.lowest[n-size:])
		}
	}
}

// masks draws the dropout masks of a step, counted from 1, of the run with index j.
func (g *group) masks(b *batch, j int, bags []int, step int) {
	r, n := g.active.runs[j], g.capacity.Instances
	for i := range g.Masks {
		m := &g.Masks[i]
		to := b.part(m.Name, j)
		kept := make([]uint8, ndarray.Size(m.Shape.Concrete(r.Data.SizeOf(bags), len(bags))))
		train.DrawMask(kept, m, r.Seed(), r.Now().Epoch, step)
		drawn := m.Values(nil, kept)
		if m.Shape[0] != graph.N {
			copy(to, drawn)
			continue
		}
		width := ndarray.Size(m.Shape[1:].Concrete(0, len(bags)))
		for _, bag := range bags { // padding has the mask of the instance that it copies
			size := r.Data.Size(bag) * width
			copy(to, drawn[:size])
			for at := size; at < n*width; at += width {
				copy(to[at:at+width], drawn[size-width:size])
			}
			drawn, to = drawn[size:], to[n*width:]
		}
	}
}
