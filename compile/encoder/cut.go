// The part of a network up to the features.

package encoder

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
)

// cutter takes the nodes that a value depends on out of a file and gives them the form of the
// encoder part of a model file.
type cutter struct {
	model  *onnxpb.ModelProto
	input  contract.EncoderInput
	output string // value of the file that is the features

	graph *onnxpb.GraphProto
	opset int64
	last  string // name of output in graph
}

// cut builds c.graph for the features in output.
func (c *cutter) cut(output string) error {
	if v := c.opset; v < oldestOpset || v > onnxpb.MaxOpset {
		return advice(exportAgain, "the file uses opset %d, supported are %d to %d", v, oldestOpset, onnxpb.MaxOpset)
	}
	images, err := c.images()
	if err != nil {
		return err
	}
	nodes, err := c.needed(output)
	if err != nil {
		return err
	}
	if err := c.take(nodes, images); err != nil {
		return err
	}
	if err := c.check(images); err != nil {
		return err
	}
	c.rename(images)
	if err := c.modernize(); err != nil {
		return err
	}
	return c.finish()
}

// images returns the input for the images.
func (c *cutter) images() (string, error) {
	constant := map[string]bool{}
	for _, t := range c.model.Graph.Initializer {
		constant[t.GetName()] = true
	}
	var inputs []*onnxpb.ValueInfoProto
	var names []string
	for _, v := range c.model.Graph.Input {
		if !constant[v.GetName()] {
			inputs, names = append(inputs, v), append(names, v.GetName())
		}
	}
	if len(inputs) != 1 || names[0] == "" {
		return "", advice(exportAgain, "the encoder has %s (%s), expected one, the images", diag.Count(len(inputs), "input"),
			diag.Words(names))
	}
	kind := onnxpb.TensorProto_DataType(inputs[0].GetType().GetTensorType().GetElemType())
	if kind != onnxpb.TensorProto_FLOAT {
		return "", advice(exportAgain, "the input %q has the element type %v, expected float", names[0], kind)
	}
	dims := inputs[0].Extents()
	if len(dims) != 4 || dims[1] > 0 && dims[1] != 3 {
		return "", advice(exportAgain, "the input %q has the shape %v (-1: any), expected [n, 3, height, width]", names[0],
			dims)
	}
	for i, d := range dims[2:] {
		if d > 0 && d != int64(c.input.Size) {
			return "", advice(fmt.Sprintf("set input.size to %d", d), "the input %q has %d pixels on axis %d, input.size is %d",
				names[0], d, i+2, c.input.Size)
		}
	}
	return names[0], nil
}

// needed returns the nodes that the output depends on, in their order.
func (c *cutter) needed(output string) ([]*onnxpb.NodeProto, error) {
	g := c.model.Graph
	if output == "" {
		var names []string
		for _, v := range g.Output {
			names = append(names, v.GetName())
		}
		if len(names) != 1 {
			return nil, advice("name the features with output", "the encoder has %s: %s", diag.Count(len(names), "output"),
				diag.Words(names))
		}
		output = names[0]
	}
	c.output = output
	want := map[string]bool{output: true}
	var nodes []*onnxpb.NodeProto
	for _, n := range slices.Backward(g.Node) {
		if slices.ContainsFunc(n.Output, func(name string) bool { return name != "" && want[name] }) {
			for _, name := range n.Reads() {
				want[name] = true
			}
			nodes = append(nodes, n)
		}
	}
	slices.Reverse(nodes)
	if len(nodes) == 0 {
		return nil, advice("set output to the pooled features: "+diag.Words(c.pooled()),
			"no node of the encoder makes a value %q", output)
	}
	if len(nodes) > maxNodes {
		return nil, fmt.Errorf("the encoder has %d nodes, more than the limit of %d", len(nodes), maxNodes)
	}
	return nodes, nil
}

// pooled lists values that are probably features, and the outputs.
func (c *cutter) pooled() (names []string) {
	for _, n := range c.model.Graph.Node {
		if op := n.GetOpType(); (op == "GlobalAveragePool" || op == "Flatten" || op == "ReduceMean") && len(n.Output) > 0 {
			names = append(names, n.Output[0])
		}
	}
	if len(names) > 3 {
		names = names[len(names)-3:]
	}
	for _, v := range c.model.Graph.Output {
		if !slices.Contains(names, v.GetName()) {
			names = append(names, v.GetName())
		}
	}
	return names
}

// take copies nodes to the graph, and the constants that they read. Nodes that make constants become
// initializers.
func (c *cutter) take(nodes []*onnxpb.NodeProto, images string) error {
	reads := map[string]bool{}
	for i, n := range nodes {
		if err := checkNode(n); err != nil {
			return fmt.Errorf("node %d %q (%s): %w", i+1, n.GetName(), n.GetOpType(), err)
		}
		for _, name := range n.Input {
			reads[name] = true
		}
		if n.GetOpType() == "Constant" {
			t, err := constantOf(n)
			if err != nil {
				return fmt.Errorf("node %d %q: %w", i+1, n.GetName(), err)
			}
			c.graph.Initializer = append(c.graph.Initializer, t)
			continue
		}
		c.graph.Node = append(c.graph.Node, plainNode(n))
	}
	for _, t := range c.model.Graph.Initializer {
		if reads[t.GetName()] && t.GetName() != images {
			c.graph.Initializer = append(c.graph.Initializer, t)
		}
	}
	for _, t := range c.graph.Initializer {
		if err := t.Check(); err != nil {
			return advice("set output to a value before the node that reads it, perhaps pooled features: "+
				diag.Words(c.pooled())+"; or "+exportAgain, "%v", err)
		}
	}
	return nil
}

// checkNode rejects what an encoder must not contain.
func checkNode(n *onnxpb.NodeProto) error {
	op := n.GetOpType()
	if d := n.GetDomain(); d != "" && d != "ai.onnx" {
		return advice("cut the encoder before this node with output, or export it with standard operators",
			"the operator is of the domain %q", d)
	}
	for _, a := range n.GetAttribute() {
		if a.GetG() != nil || len(a.GetGraphs()) > 0 {
			return advice("cut the encoder before this node with output, or export it without control flow",
				"the operator contains a graph")
		}
		if a.GetRefAttrName() != "" || len(a.GetTensors()) > 0 {
			return advice(exportAgain, "the attribute %q is not a plain value", a.GetName())
		}
	}
	if op != "Constant" && op != "Dropout" && !contract.IsEncoderOp(op) {
		return advice("cut the encoder before this node with output, or export it again for inference",
			"the operator is not one that an encoder may use")
	}
	return nil
}

// plainNode copies a node without documentation.
func plainNode(n *onnxpb.NodeProto) *onnxpb.NodeProto {
	out := &onnxpb.NodeProto{Name: n.GetName(), OpType: n.GetOpType(), Input: slices.Clone(n.Input),
		Output: slices.Clone(n.Output)}
	for _, a := range n.GetAttribute() {
		a = proto.Clone(a).(*onnxpb.AttributeProto)
		a.DocString = ""
		out.Attribute = append(out.Attribute, a)
	}
	if out.OpType == "Dropout" {
		out.OpType, out.Attribute, out.Input, out.Output = "Identity", nil, out.Input[:min(1, len(out.Input))],
			out.Output[:min(1, len(out.Output))]
	}
	if out.OpType == "BatchNormalization" {
		out.Output = out.Output[:min(1, len(out.Output))]
	}
	return out
}

// constantOf returns the tensor that a node Constant makes.
func constantOf(n *onnxpb.NodeProto) (*onnxpb.TensorProto, error) {
	if len(n.Output) != 1 || len(n.Attribute) != 1 {
		return nil, advice(exportAgain, "the constant has %d outputs and %d values", len(n.Output), len(n.Attribute))
	}
	name := n.Output[0]
	switch a := n.Attribute[0]; a.GetName() {
	case "value":
		if a.GetT() == nil {
			break
		}
		t := proto.Clone(a.GetT()).(*onnxpb.TensorProto)
		t.Name = name
		return t, nil
	case "value_float":
		return onnxpb.FloatTensor(name, nil, []float32{a.GetF()}), nil
	case "value_floats":
		return onnxpb.FloatTensor(name, []int64{int64(len(a.GetFloats()))}, a.GetFloats()), nil
	case "value_int":
		return onnxpb.IntTensor(name, nil, []int64{a.GetI()}), nil
	case "value_ints":
		return onnxpb.IntTensor(name, []int64{int64(len(a.GetInts()))}, a.GetInts()), nil
	}
	return nil, advice(exportAgain, "the constant is not a tensor of numbers")
}

// check checks the order of the nodes, and that the features depend on the images.
func (c *cutter) check(images string) error {
	if _, err := contract.Order(c.graph, images); err != nil {
		return advice("export the encoder again: the nodes of a file are in the order in which they run", "%v", err)
	}
	if len(c.graph.Node) == 0 || !slices.ContainsFunc(c.graph.Node, func(n *onnxpb.NodeProto) bool {
		return slices.Contains(n.Input, images)
	}) {
		return advice("name another value with output", "%s does not depend on the images", c.output)
	}
	return nil
}

// rename gives all values of the graph short names of the encoder part.
func (c *cutter) rename(images string) {
	to := map[string]string{images: contract.EncoderPrefix + "input"}
	next := func(name string) {
		if name != "" {
			to[name] = fmt.Sprintf("%s%d", contract.EncoderPrefix, len(to))
		}
	}
	for _, n := range c.graph.Node {
		for _, out := range n.Output {
			next(out)
		}
	}
	for i, t := range c.graph.Initializer {
		next(t.GetName())
		t = proto.Clone(t).(*onnxpb.TensorProto)
		t.Name, t.DocString = to[t.GetName()], ""
		c.graph.Initializer[i] = t
	}
	for _, n := range c.graph.Node {
		n.Rename(to)
		n.Name = n.Output[0]
	}
	c.last = to[c.output]
}

// modernize brings the graph to the oldest opset of model files.
func (c *cutter) modernize() error {
	if c.opset >= onnxpb.MinOpset {
		return nil
	}
	whole := cutter{input: c.input, graph: cloned(c.graph)}
	whole.preprocess()
	shapes, err := whole.shapes()
	if err != nil {
		return err
	}
	if err := upgrade(c.graph, c.opset, onnxpb.MinOpset, shapes); err != nil {
		return err
	}
	c.opset = onnxpb.MinOpset
	return nil
}

// finish adds the preprocessing, and gives the features two axes.
func (c *cutter) finish() error {
	c.preprocess()
	c.graph.Add(contract.EncoderFeatures, "Flatten", []*onnxpb.AttributeProto{onnxpb.IntAttr("axis", 1)}, c.last)
	shapes, err := c.shapes()
	if err != nil {
		return err
	}
	shape := shapes[c.last]
	if len(shape) < 2 || len(shape) > 4 || slices.ContainsFunc(shape[2:], func(d int64) bool { return d != 1 }) {
		return advice("set output to a pooled value: "+diag.Words(c.pooled()),
			"%s has the shape %v for one image, expected [1, features] or [1, features, 1, 1]", c.output, shape)
	}
	return nil
}

// shapes returns the shapes of all values for one image.
func (c *cutter) shapes() (map[string][]int64, error) {
	shapes, err := contract.NewFootprint(c.graph, []int{3, c.input.Size, c.input.Size}, true).Shapes(1)
	if err != nil {
		return nil, advice(exportAgain, "the shapes inside the encoder cannot be determined: %v", err)
	}
	return shapes, nil
}

// preprocess puts the order of the channels and their normalisation before the nodes.
func (c *cutter) preprocess() {
	pre := &onnxpb.GraphProto{}
	name := func(s string) string { return contract.EncoderPrefix + s }
	constant := func(s string, values []float64) string {
		pre.Initializer = append(pre.Initializer, onnxpb.FloatTensor(name(s), []int64{1, 3, 1, 1},
			ndarray.Convert[float32](values)))
		return name(s)
	}
	x := contract.Instances
	if c.input.Order == contract.BGR {
		pre.Initializer = append(pre.Initializer, onnxpb.IntTensor(name("order"), []int64{3}, []int64{2, 1, 0}))
		x = pre.Add(name("ordered"), "Gather", []*onnxpb.AttributeProto{onnxpb.IntAttr("axis", 1)}, x, name("order"))
	}
	x = pre.Add(name("centred"), "Sub", nil, x, constant("mean", c.input.Mean))
	pre.Add(name("input"), "Div", nil, x, constant("std", c.input.Std))
	c.graph.Node = append(pre.Node, c.graph.Node...)
	c.graph.Initializer = append(pre.Initializer, c.graph.Initializer...)
}

func cloned(g *onnxpb.GraphProto) *onnxpb.GraphProto {
	out := &onnxpb.GraphProto{Initializer: slices.Clone(g.Initializer)}
	for _, n := range g.Node {
		out.Node = append(out.Node, proto.Clone(n).(*onnxpb.NodeProto))
	}
	return out
}
