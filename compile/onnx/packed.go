// Inputs and results of a step for many runs, packed into few tensors.

package onnx

import (
	"slices"

	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
)

// Inputs and outputs of a packed model.
const (
	InPacked   = "packed"             // [runs, Inputs.Size]
	InHistory  = "packed.history"     // [runs, rows, width]: results of earlier executions of the model
	OutHistory = "packed.new_history" // with the results of this execution in one row
	// InSlot is a part of InPacked, [rows]: 1 for the row to replace, 0 for the others.
	InSlot = "packed.slot"
)

// Packing says where the values of a packed model are. An execution of the model reads one tensor from the
// process, and its results are read together with those of other executions, because each copy between a
// process and a device takes about as long as several operations.
type Packing struct {
	Inputs  Layout // a row of InPacked
	Results Layout // a row of the history
	Rows    int    // of the history
}

// Layout says where each value is in a packed row.
type Layout struct {
	Parts map[string]Part
	Size  int
}

// Part is a value in a row.
type Part struct{ Start, Size int }

func (r *Layout) add(name string, size int) {
	if r.Parts == nil {
		r.Parts = map[string]Part{}
	}
	r.Parts[name] = Part{r.Size, size}
	r.Size += size
}

// Pack changes a model that LowerRuns made for a device to one with a single input and a single
// output in addition to stay, the inputs and outputs that stay on the device. The history has the given
// number of rows, which have at least the given width.
func Pack(m *onnxpb.ModelProto, stay []string, rows, width int) Packing {
	g, p := m.Graph, Packing{Rows: rows}
	runs := g.Input[0].Extents()[0]
	k := &packer{graph: g}
	inputs, outputs := k.takePorts(&g.Input, stay), k.takePorts(&g.Output, stay)

	for _, v := range inputs {
		p.Inputs.add(v.GetName(), volume(v))
	}
	p.Inputs.add(InSlot, rows)
	k.nodes = nil
	k.divide(&p.Inputs, append(inputs, onnxpb.Value(InSlot, onnxpb.TensorProto_FLOAT, onnxpb.Fixed(runs),
		onnxpb.Fixed(int64(rows)), onnxpb.Fixed(1))))
	first := k.nodes

	var results []string
	k.nodes = nil
	for _, v := range outputs {
		p.Results.add(v.GetName(), volume(v))
		results = append(results, k.reshape(v.GetName(), "packed.flat."+v.GetName(), runs, int64(volume(v))))
	}
	if p.Results.Size < width {
		results = append(results, k.constant("packed.unused", make([]float32, int(runs)*(width-p.Results.Size)), runs,
			int64(width-p.Results.Size)))
		p.Results.Size = width
	}
	row := results[0]
	if len(results) > 1 {
		row = k.op("Concat", "packed.results", results, onnxpb.IntAttr("axis", 1))
	}
	row = k.reshape(row, "packed.row", runs, 1, int64(p.Results.Size))
	replaced := k.op("Greater", "packed.chosen", []string{InSlot, k.constant("packed.half", []float32{0.5})})
	k.op("Where", OutHistory, []string{replaced, row, InHistory})

	g.Node = slices.Concat(first, g.Node, k.nodes)
	history := []*onnxpb.TensorShapeProto_Dimension{onnxpb.Fixed(runs), onnxpb.Fixed(int64(rows)),
		onnxpb.Fixed(int64(p.Results.Size))}
	g.Input = append(g.Input, onnxpb.Value(InPacked, onnxpb.TensorProto_FLOAT, onnxpb.Fixed(runs),
		onnxpb.Fixed(int64(p.Inputs.Size))),
		onnxpb.Value(InHistory, onnxpb.TensorProto_FLOAT, history...))
	g.Output = append(g.Output, onnxpb.Value(OutHistory, onnxpb.TensorProto_FLOAT, history...))
	return p
}

// ResultsWidth returns the number of values of a run in the outputs of a model except those that stay
// on the device.
func ResultsWidth(m *onnxpb.ModelProto, stay []string) (width int) {
	for _, v := range m.Graph.Output {
		if !slices.Contains(stay, v.GetName()) {
			width += volume(v)
		}
	}
	return width
}

// packer collects nodes.
type packer struct {
	graph *onnxpb.GraphProto
	nodes []*onnxpb.NodeProto
}

// takePorts removes all ports except those named in stay, and returns the removed ones.
func (k *packer) takePorts(ports *[]*onnxpb.ValueInfoProto, stay []string) (removed []*onnxpb.ValueInfoProto) {
	var left []*onnxpb.ValueInfoProto
	for _, v := range *ports {
		if slices.Contains(stay, v.GetName()) {
			left = append(left, v)
		} else {
			removed = append(removed, v)
		}
	}
	*ports = left
	return removed
}

// divide makes the inputs from the packed one.
func (k *packer) divide(r *Layout, inputs []*onnxpb.ValueInfoProto) {
	rest, at := InPacked, 0
	for len(inputs) > 0 {
		n := min(len(inputs), maxSplit)
		if len(inputs) > n {
			n-- // the last output is the rest
		}
		var names []string
		var sizes []int64
		for _, v := range inputs[:n] {
			names, sizes = append(names, "packed.part."+v.GetName()), append(sizes, int64(volume(v)))
			at += volume(v)
		}
		if len(inputs) > n {
			names, sizes = append(names, "packed.from."+inputs[n].GetName()), append(sizes, int64(r.Size-at))
		}
		if len(names) == 1 {
			names[0] = rest
		} else {
			k.nodes = append(k.nodes, &onnxpb.NodeProto{OpType: "Split", Name: names[0], Input: []string{rest,
				k.ints("packed.sizes."+names[0], sizes...)}, Output: names,
				Attribute: []*onnxpb.AttributeProto{onnxpb.IntAttr("axis", 1)}})
		}
		for i, v := range inputs[:n] {
			k.reshape(names[i], v.GetName(), v.Extents()...)
		}
		rest, inputs = names[len(names)-1], inputs[n:]
	}
}

// op adds a node with one output.
func (k *packer) op(op, output string, inputs []string, attributes ...*onnxpb.AttributeProto) string {
	k.nodes = append(k.nodes, &onnxpb.NodeProto{OpType: op, Name: output, Input: inputs, Output: []string{output},
		Attribute: attributes})
	return output
}

func (k *packer) reshape(value, output string, dims ...int64) string {
	return k.op("Reshape", output, []string{value, k.ints("packed.shape."+output, dims...)})
}

func (k *packer) constant(name string, v []float32, dims ...int64) string {
	k.graph.Initializer = append(k.graph.Initializer, onnxpb.FloatTensor(name, dims, v))
	return name
}

func (k *packer) ints(name string, v ...int64) string {
	k.graph.Initializer = append(k.graph.Initializer, onnxpb.IntTensor(name, []int64{int64(len(v))}, v))
	return name
}

// volume is the number of values of a run.
func volume(v *onnxpb.ValueInfoProto) int { return ndarray.Size(v.Extents()[1:]) }
