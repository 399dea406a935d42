//go:build amd64 || arm64

// Division of a product into parts that stay in the cache and in registers.

package kernel

import "unsafe"

// A large right factor is divided into blocks that stay in the second-level cache: of at most cacheBytes and
// blockColumns, but of at least minBlock rows, because each block reads and writes the result. With a row-major left
// factor and strips of at least tallStrip rows, which compute long enough for each row of the block to hide misses of
// the cache for addresses, blocks have up to tallBytes and tallColumns. If there is only one strip of rows, blocks have
// all columns and rowBytes, so that the memory of the factor is read nearly in order. Blocks of a masked product have
// all rows of the factor and at least minColumns.
const (
	cacheBytes   = 256 << 10
	blockColumns = 512
	minBlock     = 128

	tallStrip   = 12
	tallBytes   = 512 << 10
	tallColumns = 256

	rowBytes = 32 << 10
	minRows  = 16

	minColumns = 32
)

// rowsAhead is the number of rows of a transposed left factor between the row that a strip multiplies and the one that
// it prefetches.
const rowsAhead = 4

// product is a loop over the parts of a product: blocks of columns, in them blocks of the inner index in ascending
// order, which adds the same numbers in the same order as the whole product, in them strips of rows of nearly equal
// height.
//
//	for p.start(a, height); p.next(); {
type product struct {
	part   Args // the strip to compute
	whole  *Args
	height int // of strips, at most

	columns, inner int // of blocks, at most
	n, k           int // place of the block in the whole product

	low, higher, strips int // rows of a strip; strips with one row more; strips that are left in the block
}

// start begins the loop over strips of at most height rows.
func (p *product) start(a *Args, height int) {
	p.whole, p.height, p.columns, p.inner = a, height, a.N, a.K
	if a.M <= 0 || a.N <= 0 {
		return
	}
	bytes, columns := cacheBytes, blockColumns
	if a.TA == elem && height >= tallStrip {
		bytes, columns = tallBytes, tallColumns
	}
	switch {
	case a.K*a.N*elem <= bytes:
	case a.Then == ThenMask: // the sums of a block would be stored over the mask
		p.columns = min(a.N, max(minColumns, bytes/elem/a.K/minColumns*minColumns))
	case a.M <= height:
		p.inner = max(minRows, rowBytes/elem/a.N)
	default:
		if a.N >= 2*columns {
			p.columns = columns
		}
		p.inner = max(minBlock, bytes/elem/p.columns)
	}
	p.startBlock()
}

// startBlock sets part to the block at n and k, without rows.
func (p *product) startBlock() {
	p.part = *p.whole
	if p.part.K <= 0 { // the factors have no elements, so their pointers must stay
		p.part.SA = 0
	}
	if p.columns < p.part.N {
		p.part = Gemm.Part(p.whole, ByColumns, p.n, min(p.n+p.columns, p.part.N))
	}
	if p.inner < p.part.K {
		p.part.A = unsafe.Add(p.part.A, p.k*p.part.TA)
		p.part.B = unsafe.Add(p.part.B, p.k*p.part.SB)
		p.part.K = min(p.inner, p.part.K-p.k)
		if p.k+p.part.K < p.whole.K {
			p.part.Then = 0
		}
		if p.k > 0 {
			p.part.C, p.part.SC = p.part.Dst, p.part.SD
		}
	}
	p.strips = (p.part.M + p.height - 1) / p.height
	p.low, p.higher, p.part.M = p.part.M/p.strips, p.part.M%p.strips, 0
	p.prefetch()
}

// prefetch sets what the strips of the block load into the cache while they multiply: the next strip of a row-major
// left factor without gaps between its rows, or later rows of a transposed one.
func (p *product) prefetch() {
	rows := p.low + min(p.higher, 1)
	p.part.Ahead, p.part.AheadStep = rows*p.part.SA, rows*elem
	if p.part.TA != elem {
		p.part.Ahead, p.part.AheadStep = rowsAhead*p.part.TA, p.part.TA
	}
}

// next sets part to the next strip, and reports whether there is one.
func (p *product) next() bool {
	if p.strips == 0 && !p.nextBlock() {
		return false
	}
	if before := p.part.M; before > 0 {
		p.part.A = unsafe.Add(p.part.A, before*p.part.SA)
		p.part.Dst = unsafe.Add(p.part.Dst, before*p.part.SD)
		if p.part.C != nil {
			p.part.C = unsafe.Add(p.part.C, before*p.part.SC)
		}
	}
	p.part.M = p.low
	if p.higher > 0 {
		p.part.M++
		p.higher--
	}
	p.strips--
	return true
}

// nextBlock begins the next block, and reports whether there is one.
func (p *product) nextBlock() bool {
	if p.k += p.inner; p.k >= p.whole.K {
		p.k = 0
		p.n += p.columns
	}
	if p.n >= p.whole.N || p.whole.M <= 0 {
		return false
	}
	p.startBlock()
	return true
}
