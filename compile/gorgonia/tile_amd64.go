// The kernel of the matrix product on processors with AVX2.

package gorgonia

import "golang.org/x/sys/cpu"

// accelerated reports whether the processor has the instructions that tile uses.
var accelerated = cpu.X86.HasAVX2 && cpu.X86.HasFMA

// tile adds the product of a panel a [d][6] and a panel b [d][16] to the tile c
// of 6 rows and 16 columns, whose rows are stride numbers apart.
//
//go:noescape
func tile(d int, a, b, c *float32, stride int)
