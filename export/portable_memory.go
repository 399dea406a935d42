package export

import (
	"github.com/miplc/miplc/export/onnxpb"
)

// onnx-go runs on gorgonia, whose ops overwrite their inputs where they take
// them to be unused afterwards. It does not know that the result of Reshape
// and Flatten shares memory with their input. The functions in this file give
// a value memory of its own where another one would see the overwriting.

// constant gives the initializer of that name, or nil.
func (e *emitter) constant(name string) *onnxpb.TensorProto {
	for _, t := range e.out.Initializer {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// copyOf writes nodes that copy a value exactly, whatever its shape: its sign
// times its size. gorgonia sees through shorter ways, such as Neg of Neg.
func copyOf(name, value string) []*onnxpb.NodeProto {
	sign, size := name+".sign", name+".abs"
	return []*onnxpb.NodeProto{
		{OpType: "Sign", Name: sign, Input: []string{value}, Output: []string{sign}},
		{OpType: "Abs", Name: size, Input: []string{value}, Output: []string{size}},
		{OpType: "Mul", Name: name, Input: []string{sign, size}, Output: []string{name}},
	}
}

// own gives the value, or a copy of it for the output of that name if another
// node uses it: onnx-go returns zeros or overwritten numbers for such outputs.
func (e *emitter) own(output, value string) string {
	uses := e.uses()
	if made, isNode := uses.of[value]; isNode && made == 0 {
		return value
	}
	name := e.unique(output + ".copy")
	e.out.Node = append(e.out.Node, copyOf(name, value)...)
	return name
}

// copyBeforeViews copies the input of a Reshape or Flatten that is an input of
// the file or a parameter, or that another node uses as well.
func (e *emitter) copyBeforeViews() {
	uses := e.uses()
	var nodes []*onnxpb.NodeProto
	for _, n := range e.out.Node {
		if n.OpType == "Reshape" || n.OpType == "Flatten" {
			if made, isNode := uses.of[uses.source(n.Input[0])]; !isNode || made > 1 {
				name := e.unique(n.Name + ".copy")
				nodes = append(nodes, copyOf(name, n.Input[0])...)
				n.Input[0] = name
			}
		}
		nodes = append(nodes, n)
	}
	e.out.Node = nodes
}

// useCount tells how many nodes use each value that a node makes. Identity is
// the same value to onnx-go.
type useCount struct {
	of    map[string]int
	alias map[string]string
}

func (u *useCount) source(value string) string {
	for {
		next, ok := u.alias[value]
		if !ok {
			return value
		}
		value = next
	}
}

func (e *emitter) uses() *useCount {
	u := &useCount{map[string]int{}, map[string]string{}}
	for _, n := range e.out.Node {
		if n.OpType == "Identity" {
			u.alias[n.Output[0]] = n.Input[0]
			continue
		}
		for _, out := range n.Output {
			u.of[out] = 0
		}
		for _, in := range n.Input {
			if made, isNode := u.of[u.source(in)]; isNode {
				u.of[u.source(in)] = made + 1
			}
		}
	}
	return u
}

// dropUnused leaves out parameters that are stored in another shape only.
func (e *emitter) dropUnused() {
	used := map[string]bool{}
	for _, n := range e.out.Node {
		for _, in := range n.Input {
			used[in] = true
		}
	}
	kept := e.out.Initializer[:0]
	for _, t := range e.out.Initializer {
		if used[t.Name] {
			kept = append(kept, t)
		}
	}
	e.out.Initializer = kept
}
