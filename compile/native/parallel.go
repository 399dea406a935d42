// The division of large calls among threads.

package native

import (
	"cmp"

	"github.com/miplc/miplc/compile/native/kernel"
)

// defaultPartCost is the number of additions and multiplications that a thread must have to compute: those of about 20
// microseconds, because starting a thread takes some.
const defaultPartCost = 1 << 20

// unitCost are the additions and multiplications that take as long as one element of a kernel that is no product:
// reading and writing it, or computing a function.
const unitCost = 16

func (o *Options) partCost() int { return cmp.Or(o.small, defaultPartCost) }

// divide sets the parts of a call that is a kernel, or a loop of a given cost.
func (o *Options) divide(c *call, cost int) {
	if c.parts = 1; o.Threads < 2 {
		return
	}
	a := &c.args
	if c.loop == nil {
		cost = unitCost * max(a.M, 1) * a.N
		if c.kernel == kernel.Gemm {
			cost = 2 * a.M * a.N * a.K
		}
		split := c.kernel.Split()
		switch {
		case split&kernel.ByRows != 0 && (a.M >= a.N || split == kernel.ByRows || a.M >= 64):
			c.axis, c.units = kernel.ByRows, a.M
		case split&kernel.ByColumns != 0:
			c.axis, c.units = kernel.ByColumns, a.N
		}
	}
	c.parts = max(1, min(o.Threads, c.units, cost/o.partCost()))
}

// divideChain sets the blocks and parts of a chain.
func (p *planner) divideChain(c *call) {
	c.chain.size = blockSize
	if c.args.N >= longChain {
		c.chain.size = longBlockSize
	}
	c.units, c.parts = (c.args.N+c.chain.size-1)/c.chain.size, 1
	if p.Threads > 1 {
		c.parts = max(1, min(p.Threads, c.units, unitCost*c.args.N*len(c.chain.links)/p.partCost()))
	}
}
