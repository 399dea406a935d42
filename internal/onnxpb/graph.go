// Graphs: which values are read, renamed and dropped.

package onnxpb

import "slices"

// Add appends a node with one output, both with the given name, and returns the name.
func (x *GraphProto) Add(name, opType string, attributes []*AttributeProto, in ...string) string {
	x.Node = append(x.Node, &NodeProto{Name: name, OpType: opType, Attribute: attributes, Input: in,
		Output: []string{name}})
	return name
}

// Reads returns the names of the values that a node reads: its inputs, and the values
// outside of its subgraphs that these read.
func (n *NodeProto) Reads() []string {
	names := slices.Clone(n.GetInput())
	n.subgraphs(func(g *GraphProto) { names = append(names, g.free()...) })
	return names
}

// Rename replaces names of values that the node reads or makes.
func (n *NodeProto) Rename(to map[string]string) {
	renameAll(n.Input, to)
	renameAll(n.Output, to)
	n.subgraphs(func(g *GraphProto) {
		for _, inner := range g.GetNode() {
			inner.Rename(to)
		}
	})
}

func renameAll(names []string, to map[string]string) {
	for i, name := range names {
		if other, ok := to[name]; ok && name != "" {
			names[i] = other
		}
	}
}

func (n *NodeProto) subgraphs(f func(g *GraphProto)) {
	for _, a := range n.GetAttribute() {
		if g := a.GetG(); g != nil {
			f(g)
		}
		for _, g := range a.GetGraphs() {
			f(g)
		}
	}
}

// free returns the names that a subgraph reads and does not define.
func (x *GraphProto) free() (names []string) {
	defined := map[string]bool{}
	for _, v := range x.GetInput() {
		defined[v.GetName()] = true
	}
	for _, t := range x.GetInitializer() {
		defined[t.GetName()] = true
	}
	for _, n := range x.GetNode() {
		for _, in := range n.Reads() {
			if in != "" && !defined[in] {
				names = append(names, in)
			}
		}
		for _, out := range n.GetOutput() {
			defined[out] = true
		}
	}
	return names
}

// DropUnused removes the initializers that no node reads.
func (x *GraphProto) DropUnused() {
	used := map[string]bool{}
	for _, n := range x.GetNode() {
		for _, in := range n.Reads() {
			used[in] = true
		}
	}
	x.Initializer = slices.DeleteFunc(x.Initializer, func(t *TensorProto) bool { return !used[t.GetName()] })
}
