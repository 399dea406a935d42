// Changes to the operations after lowering: values are computed where they are needed, element-wise operations join,
// and every buffer gets its place in memory.

package native

import (
	"slices"
	"unsafe"

	"github.com/miplc/miplc/compile/native/kernel"
	"github.com/miplc/miplc/graph"
)

// optimize removes copies and joins operations.
func (p *planner) optimize() {
	p.collectOutputs()
	p.joinPairs()
	p.computeInPlace()
	p.number()
	p.overwrite()
	p.update()
	p.join()
	p.number()
}

// collectOutputs lists the values of the outputs. It copies inputs, which do not belong to the plan.
func (p *planner) collectOutputs() {
	for _, o := range p.graph.Outputs {
		value := p.nodes[o.Node.ID].value
		if value.buffer.kind == isInput {
			p.node = o.Node
			copied := p.result(o.Node)
			p.copyRows(copied, value, 1, p.size(o.Node), 0, 0)
			value = copied
		}
		p.outputs = append(p.outputs, output{o.Name, value, p.size(o.Node)})
	}
}

// computeInPlace removes copies of whole buffers to a part of another one: the values are computed there.
func (p *planner) computeInPlace() {
	p.ops = slices.DeleteFunc(p.ops, func(o *operation) bool {
		if o.kernel != kernel.Copy || o.loop != nil {
			return false
		}
		from, to := o.refs[opA].resolve(), o.refs[opDst].resolve()
		if from.buffer.kind != inArena || from.at != 0 || from.buffer.size != o.args.N || from.buffer == to.buffer {
			return false
		}
		from.buffer.in, from.buffer.at = to.buffer, to.at
		return true
	})
}

// each calls f for the operands of an operation.
func (o *operation) each(f func(r ref)) {
	for _, r := range o.refs {
		if r.buffer != nil {
			f(r.resolve())
		}
	}
	for _, m := range o.more {
		f(m.resolve())
	}
	for _, link := range o.chain {
		link.each(f)
	}
}

// number finds the first and the last operation that touches each buffer.
func (p *planner) number() {
	for _, o := range p.ops {
		o.each(func(r ref) { r.buffer.first, r.buffer.last = -1, -1 })
	}
	for i, o := range p.ops {
		o.each(func(r ref) {
			if r.buffer.first < 0 {
				r.buffer.first = i
			}
			r.buffer.last = i
		})
	}
	for i := range p.outputs {
		p.outputs[i].value.resolve().buffer.kept = true
	}
}

// overwrite lets an operation write its result over an operand that nothing reads later.
func (p *planner) overwrite() {
	updated := map[*buffer]string{}
	for _, o := range p.outputs {
		if name, ok := p.Updates[o.name]; ok {
			if r := o.value.resolve(); r.at == 0 && r.buffer.size == o.size {
				updated[r.buffer] = name
			}
		}
	}
	for i, o := range p.ops {
		dst := o.refs[opDst].resolve()
		if dst.buffer.kind != inArena || dst.buffer.first != i || dst.at != 0 {
			continue
		}
		var over *buffer
		for k, shares := range o.shares {
			from := o.refs[k].resolve()
			if !shares || from.buffer == nil || from.at != 0 || from.buffer.size != dst.buffer.size || from.buffer.last != i ||
				from.buffer.kept || o.readsAgain(operand(k), from.buffer) {
				continue
			}
			if from.buffer.kind == inMemory && updated[dst.buffer] == from.buffer.name {
				over = from.buffer // rather than another one, from which the value would be copied
				break
			}
			if from.buffer.kind == inArena && over == nil {
				over = from.buffer
			}
		}
		if over != nil {
			over.last, over.kept = dst.buffer.last, dst.buffer.kept
			dst.buffer.in, dst.buffer.at = over, 0
		}
	}
}

// readsAgain reports whether the operation reads a buffer through another operand, in another order than it writes.
func (o *operation) readsAgain(shared operand, b *buffer) bool {
	for k, r := range o.refs {
		if k != int(shared) && k != int(opDst) && !o.shares[k] && r.resolve().buffer == b {
			return true
		}
	}
	return slices.ContainsFunc(o.more, func(m extent) bool { return m.resolve().buffer == b })
}

// update copies outputs to the values of Memory that they replace, unless they are computed there.
func (p *planner) update() {
	for _, o := range p.outputs {
		name, ok := p.Updates[o.name]
		if !ok {
			continue
		}
		data := p.Memory.Value(name)
		if len(data) != o.size {
			graph.Fail("%s has %d elements, the value %s that it replaces has %d", o.name, o.size, name, len(data))
		}
		p.node = p.graph.Output(o.name)
		from := o.value.resolve()
		switch {
		case from.buffer.kind == inMemory && from.buffer.name == name:
		case from.buffer.kind == inMemory:
			graph.NoForm("%s becomes a part of the value %s, which may change before", o.name, from.buffer.name)
		default:
			to := ref{&buffer{kind: inMemory, name: name, size: len(data), data: data}, 0}
			p.add(operation{kernel: kernel.Copy, args: kernel.Args{N: o.size}, refs: [operands]ref{to, o.value},
				flat: flatDst | flatA})
		}
	}
}

// join makes chains of element-wise operations on equally many elements.
func (p *planner) join() {
	var joined []*operation
	for len(p.ops) > 0 {
		n := p.chainLength()
		if n < 2 {
			joined, p.ops = append(joined, p.ops[0]), p.ops[1:]
			continue
		}
		chain := &operation{args: p.ops[0].args, chain: slices.Clone(p.ops[:n]), node: p.ops[0].node}
		joined, p.ops = append(joined, chain), p.ops[n:]
	}
	p.ops = joined
}

// chainLength returns how many of the next operations can be computed block by block.
func (p *planner) chainLength() int {
	n := 0
	for _, o := range p.ops {
		if o.flat == 0 || o.loop != nil || o.args.N != p.ops[0].args.N || o.args.N <= 2*blockSize {
			break
		}
		if slices.ContainsFunc(p.ops[:n], func(before *operation) bool { return crosses(before, o) }) {
			break
		}
		n++
	}
	return n
}

// crosses reports whether one operation writes what the other one reads or writes in another block.
func crosses(a, b *operation) bool {
	for _, pair := range [][2]*operation{{a, b}, {b, a}} {
		dst, n := pair[0].refs[opDst].resolve(), pair[0].args.N
		for i, r := range pair[1].refs {
			r, size := r.resolve(), 1
			if r.buffer != dst.buffer {
				continue
			}
			if i == int(opDst) || i < int(opC) && pair[1].flat&(1<<i) != 0 {
				size = n
			}
			if r.at < dst.at+n && dst.at < r.at+size && (r.at != dst.at || size != n) {
				return true
			}
		}
	}
	return false
}

// layout places the buffers of the arena so that those that are needed at the same time do not overlap.
func (p *planner) layout() {
	var begin, end = make([][]*buffer, len(p.ops)), make([][]*buffer, len(p.ops))
	seen := map[*buffer]bool{}
	for _, o := range p.ops {
		o.each(func(r ref) {
			if b := r.buffer; b.kind == inArena && !seen[b] {
				seen[b] = true
				begin[b.first] = append(begin[b.first], b)
				if !b.kept {
					end[b.last] = append(end[b.last], b)
				}
			}
		})
	}
	var a arena
	for i := range p.ops {
		for _, b := range begin[i] {
			b.offset = a.take(b.size)
		}
		for _, b := range end[i] {
			a.give(b.offset, b.size)
		}
	}
	p.plan.scratch = a.top
}

// arena assigns offsets in elements. Every size is rounded up to lines of the cache.
type arena struct {
	top  int
	free []span // ascending, not adjacent
}

type span struct{ start, end int }

func lines(size int) int { return (size + alignment - 1) / alignment * alignment }

// take returns the offset of a free place: the smallest that is large enough.
func (a *arena) take(size int) int {
	size = lines(size)
	best := -1
	for i, s := range a.free {
		if s.end-s.start >= size && (best < 0 || s.end-s.start < a.free[best].end-a.free[best].start) {
			best = i
		}
	}
	if best < 0 {
		if last := len(a.free) - 1; last >= 0 && a.free[last].end == a.top { // extend the free end
			start := a.free[last].start
			a.free, a.top = a.free[:last], start+size
			return start
		}
		a.top += size
		return a.top - size
	}
	s := &a.free[best]
	start := s.start
	if s.start += size; s.start == s.end {
		a.free = slices.Delete(a.free, best, best+1)
	}
	return start
}

// give frees a place.
func (a *arena) give(start, size int) {
	end := start + lines(size)
	i, _ := slices.BinarySearchFunc(a.free, start, func(s span, start int) int { return s.start - start })
	a.free = slices.Insert(a.free, i, span{start, end})
	if i+1 < len(a.free) && a.free[i].end == a.free[i+1].start {
		a.free[i].end = a.free[i+1].end
		a.free = slices.Delete(a.free, i+1, i+2)
	}
	if i > 0 && a.free[i-1].end == a.free[i].start {
		a.free[i-1].end = a.free[i].end
		a.free = slices.Delete(a.free, i, i+1)
	}
}

// bind makes the calls, with addresses. It checks that no call can leave its buffers.
func (p *planner) bind() {
	base := graph.Must(p.Memory.reserve(p.plan.scratch))
	p.plan.calls = make([]call, len(p.ops))
	for i, o := range p.ops {
		c := &p.plan.calls[i]
		if o.chain == nil {
			p.bindCall(c, o, base)
			continue
		}
		*c = call{args: o.args, chain: &chain{links: make([]link, len(o.chain))}, op: o.node.Op}
		for k, l := range o.chain {
			c.chain.links[k].flat = l.flat
			p.bindCall(&c.chain.links[k].call, l, base)
		}
		p.divideChain(c)
	}
	p.plan.outputs = map[string][]float32{}
	for _, o := range p.outputs {
		r := o.value.resolve()
		p.plan.outputs[o.name] = floats(address(r, base), o.size)
	}
}

func (p *planner) bindCall(c *call, o *operation, base []float32) {
	*c = call{kernel: o.kernel, loop: o.loop, args: o.args, op: o.node.Op, units: o.units, parts: 1}
	if c.loop == nil {
		c.run = p.Kernels.Run[o.kernel]
		sized := o.args
		if o.refs[opC].buffer != nil {
			sized.C = unsafe.Pointer(&sized) // Extent counts C only if there is one
		}
		o.bytes[opDst], o.bytes[opA], o.bytes[opB], o.bytes[opC] = o.kernel.Extent(&sized)
	}
	for k, pointer := range [operands]*unsafe.Pointer{&c.args.Dst, &c.args.A, &c.args.B, &c.args.C} {
		if o.refs[k].buffer == nil {
			if o.bytes[k] > 0 && !(operand(k) == opC && (o.kernel == kernel.Gemm || o.kernel == kernel.Gemv)) {
				graph.Fail("bug: %v without operand %d", o.kernel, k)
			}
			continue
		}
		p.bindPointer(pointer, o.refs[k], o.bytes[k], base)
	}
	for k, m := range o.more {
		p.bindPointer(o.pointers[k], m.ref, 4*m.size, base)
	}
	p.divide(c, o.cost)
}

// bindPointer sets the address of an operand of some bytes.
func (p *planner) bindPointer(to *unsafe.Pointer, r ref, bytes int, base []float32) {
	r = r.resolve()
	if r.at < 0 || bytes < 0 || 4*r.at+bytes > 4*r.buffer.size {
		graph.Fail("bug: %d bytes from element %d of a buffer of %d elements", bytes, r.at, r.buffer.size)
	}
	if r.buffer.kind == isInput {
		in := p.plan.inputs[r.buffer.name]
		in.places = append(in.places, inputPlace{to, 4 * r.at})
		return
	}
	*to = address(r, base)
}

// address returns the address of a place that is not in an input.
func address(r ref, base []float32) unsafe.Pointer {
	data := r.buffer.data
	if r.buffer.kind == inArena {
		data = base[r.buffer.offset:]
	}
	return unsafe.Pointer(&data[:r.at+1][r.at])
}
