// Products that share a large factor are computed together.

package native

import (
	"cmp"
	"slices"

	"github.com/miplc/miplc/compile/native/kernel"
)

// A factor of at least largeFactor elements is outside of the second cache, so that reading it takes longer than the
// multiplications with up to thinFactor rows or columns.
const (
	largeFactor = 1 << 19
	thinFactor  = 8
)

// joinPairs replaces pairs of products with one large factor in common, which it then reads once: the left factor of
// gates that read the same instances, and the right factor of their gradients. Other factors are copied side by side.
func (p *planner) joinPairs() {
	for i := 0; i < len(p.ops); i++ {
		for j := i + 1; j < len(p.ops); j++ {
			x, y := p.ops[i], p.ops[j]
			join := p.sharedFactor(x, y)
			if join == nil {
				continue
			}
			if at := p.jointPlace(i, j); at >= 0 {
				before, after := p.ops[:at:at], slices.Clone(p.ops[at:])
				p.ops, p.node = nil, x.node
				join(p, x, y)
				p.ops = slices.DeleteFunc(slices.Concat(before, p.ops, after), func(o *operation) bool { return o == x || o == y })
				break
			}
		}
	}
}

// sharedFactor returns the function that joins two products with the same large left factor and few columns, or with
// the same large right factor and few rows of transposed left factors. They must start from rows or from 0. It returns
// nil for other operations.
func (o *Options) sharedFactor(x, y *operation) func(p *planner, x, y *operation) {
	a, b := &x.args, &y.args
	initial, large := x.refs[opC].buffer != nil, cmp.Or(o.small, largeFactor)
	switch {
	case x.kernel != kernel.Gemm || y.kernel != kernel.Gemm || a.K != b.K || a.Then != b.Then ||
		a.Then == kernel.ThenMask || a.SC != 0 || b.SC != 0 || initial != (y.refs[opC].buffer != nil):
	case x.refs[opA] == y.refs[opA] && a.M == b.M && a.TA == b.TA && a.M*a.K >= large && max(a.N, b.N) <= thinFactor:
		return (*planner).joinColumns
	case x.refs[opB] == y.refs[opB] && a.N == b.N && a.K*a.N >= large && max(a.M, b.M) <= thinFactor && a.SA == 4 &&
		b.SA == 4 && !initial:
		return (*planner).joinRows
	}
	return nil
}

// jointPlace returns the place of the first of two operations if the operands of the second are ready there, else that
// of the second if nothing reads the result of the first before, or -1.
func (p *planner) jointPlace(i, j int) int {
	x, y, place := p.ops[i], p.ops[j], i
	for _, o := range p.ops[i:j] {
		if dst := o.refs[opDst].resolve().buffer; slices.ContainsFunc(y.refs[opA:], func(r ref) bool {
			return r.resolve().buffer == dst
		}) {
			place = j
		}
	}
	for _, o := range p.ops[i+1 : j+1] {
		o.each(func(r ref) {
			if place == j && r.buffer == x.refs[opDst].resolve().buffer {
				place = -1
			}
		})
	}
	return place
}

// joinColumns adds the product of the common left factor with the columns of both right factors.
func (p *planner) joinColumns(x, y *operation) {
	rows, inner, first, n := x.args.M, x.args.K, x.args.N, x.args.N+y.args.N
	right, initial, dst := p.temporary(inner*n), ref{}, p.temporary(rows*n)
	p.copyRows(right, x.refs[opB], inner, first, n, first)
	p.copyRows(right.plus(first), y.refs[opB], inner, n-first, n, n-first)
	if x.refs[opC].buffer != nil {
		initial = p.temporary(n)
		p.copyRows(initial, x.refs[opC], 1, first, 0, 0)
		p.copyRows(initial.plus(first), y.refs[opC], 1, n-first, 0, 0)
	}
	args := x.args
	args.N, args.SD, args.SB = n, 4*n, 4*n
	p.add(operation{kernel: kernel.Gemm, args: args, refs: [operands]ref{dst, x.refs[opA], right, initial}})
	p.copyRows(x.refs[opDst], dst, rows, first, first, n)
	p.copyRows(y.refs[opDst], dst.plus(first), rows, n-first, n-first, n)
}

// joinRows adds the product of the rows of both left factors with the common right factor. The results are parts of
// its result.
func (p *planner) joinRows(x, y *operation) {
	inner, columns, first, m := x.args.K, x.args.N, x.args.M, x.args.M+y.args.M
	left, dst := p.temporary(inner*m), p.temporary(m*columns)
	p.copyRows(left, x.refs[opA], inner, first, m, first)
	p.copyRows(left.plus(first), y.refs[opA], inner, m-first, m, m-first)
	args := x.args
	args.M, args.TA = m, 4*m
	p.add(operation{kernel: kernel.Gemm, args: args, refs: [operands]ref{dst, left, x.refs[opB], {}}})
	x.refs[opDst].buffer.in = dst.buffer
	y.refs[opDst].buffer.in, y.refs[opDst].buffer.at = dst.buffer, first*columns
}
