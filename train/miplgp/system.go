// The linear system as graphs, in blocks of columns.

package miplgp

import (
	"fmt"
	"math"

	"github.com/miplc/miplc/graph"
)

// system has the graphs of conjugate gradients for the systems (K + noise) x = b of all classes.
// Column c*width belongs to the targets of class c, the next width-1 columns to its probes. K is
// the kernel between n instances, in blocks of rows. Most graphs process one block after the other,
// so that intermediate values stay small. Names are names of values in a workspace.
type system struct {
	n, dim, outputs, width, rank int

	distances *graph.Graph // a block of distances from the instances
	kernel    *graph.Graph // a block of the kernel from the distances
	inner     *graph.Graph // factor' noise^-1 factor of each class
	start     *graph.Graph // right sides, and the state of the solution before the first step
	step      *graph.Graph // one step of conjugate gradients
	sides     *graph.Graph // left and right vectors of the gradient
	slopes    *graph.Graph // the gradient with respect to the rows of a block
}

// Names of the values of a system. Names of values of a block are followed by its number.
const (
	inInstances = "instances" // [n, dim]
	inRows      = "rows"      // [N, dim] of a block
	inDistance  = "distance"  // [N, n] of a block
	inKernel    = "kernel"    // [N, n] of a block
	inScale     = "scale"     // [N, 1] of a block, the same in all rows
	inLength    = "length"    // likewise
	inNoise     = "noise"     // [n, columns]
	inFactor    = "factor"    // [n, rank]
	inInner     = "inner"     // [outputs*rank, rank]
	inRoots     = "roots"     // [outputs*rank, rank]
	inNormal    = "normal"    // [n, columns]
	inLowRank   = "lowrank"   // [rank, columns]
	inProbes    = "probes"    // [1, columns], 1 for probes, else 0
	inShares    = "shares"    // [1, columns], the weight of a column in the gradient
	inResidual  = "residual"  // [n, columns], of the targets, 0 for probes
	inRight     = "b"         // [n, columns] right sides; of the gradient: "right"
	inSolution  = "x"         // [n, columns]
	inRest      = "r"         // b - (K + noise) x
	inWay       = "v"         // the direction of the next step
	outRZ       = "rz"        // [1, columns]
	outRR       = "rr"        // [1, columns] squared norms of the residuals
	outBB       = "bb"        // squared norms of the right sides
	outFit      = "fit"       // [1, columns] b x
	outPlain    = "plain"     // [1, columns] left right
	inLeft      = "left"      // [N, columns] of a block
	inWeighted  = "right"     // [n, columns]
	totalName   = "total"
)

// systemRows is the number of rows of a block.
const systemRows = 1024

// blocks returns the number of blocks.
func (s *system) blocks() int { return (s.n + systemRows - 1) / systemRows }

// block returns the range of rows of a block.
func (s *system) block(b int) (lo, hi int) { return b * systemRows, min(s.n, (b+1)*systemRows) }

func (s *system) columns() int { return s.outputs * s.width }

// numbered returns the name of a value of a block.
func numbered(name string, block int) string { return fmt.Sprint(name, block) }

func newSystem(n, dim, outputs, width, rank int) *system {
	s := &system{n: n, dim: dim, outputs: outputs, width: width, rank: rank}
	plain := func(name string, write func(*systemWriter)) *graph.Graph {
		w := &systemWriter{graph.NewBuilder(name), s, map[string]*graph.Node{}}
		write(w)
		return graph.Must(w.Graph())
	}
	made := func(name string, write func(*systemWriter)) *graph.Graph {
		return graph.Must(graph.Optimize(plain(name, write)))
	}
	s.distances = made("distances", (*systemWriter).distances)
	s.kernel = made("kernel", (*systemWriter).kernel)
	s.inner = made("inner", (*systemWriter).inner)
	s.start = made("start", (*systemWriter).start)
	s.step = made("step", (*systemWriter).step)
	s.sides = made("sides", (*systemWriter).sides)
	slopes := graph.Must(graph.Gradient(plain("slopes", (*systemWriter).slopes), totalName, []string{inScale, inLength}))
	slopes.Outputs = slopes.Outputs[1:] // the total is not needed
	s.slopes = graph.Must(graph.Optimize(slopes))
	return s
}

// systemWriter writes one graph of a system.
type systemWriter struct {
	*graph.Builder
	s  *system
	in map[string]*graph.Node
}

// matrix declares an input, once.
func (w *systemWriter) matrix(name string, rows, columns graph.Dim) *graph.Node {
	if w.in[name] == nil {
		w.in[name] = w.Input(name, graph.Float, graph.Shape{rows, columns})
	}
	return w.in[name]
}

func (w *systemWriter) factor() *graph.Node {
	return w.matrix(inFactor, graph.Dim(w.s.n), graph.Dim(w.s.rank))
}

// all declares an input with a row per instance and a column per system.
func (w *systemWriter) all(name string) *graph.Node {
	return w.matrix(name, graph.Dim(w.s.n), graph.Dim(w.s.columns()))
}

// each declares an input with one number per system.
func (w *systemWriter) each(name string) *graph.Node {
	return w.matrix(name, 1, graph.Dim(w.s.columns()))
}

// dots returns the dot product of each pair of columns.
func (w *systemWriter) dots(x, y *graph.Node) *graph.Node { return w.Sum(w.Mul(x, y), true, 0) }

func (w *systemWriter) distances() {
	rows := w.matrix(inRows, graph.N, graph.Dim(w.s.dim))
	all := w.matrix(inInstances, graph.Dim(w.s.n), graph.Dim(w.s.dim))
	norms := w.Add(w.Sum(w.Mul(rows, rows), true, 1), w.Transpose(w.Sum(w.Mul(all, all), true, 1), 1, 0))
	cross := w.MatMul(rows, w.Transpose(all, 1, 0))
	squared := w.Relu(w.Sub(norms, w.Mul(cross, w.Scalar(2)))) // rounding could make it negative
	w.Output(inDistance, w.Sqrt(squared))
}

func (w *systemWriter) kernel() { w.Output(inKernel, w.kernelRows()) }

// kernelRows returns a block of the kernel. Scale and lengthscale are repeated in every row, so
// that their gradient is a sum of only n numbers.
func (w *systemWriter) kernelRows() *graph.Node {
	distance := w.matrix(inDistance, graph.N, graph.Dim(w.s.n))
	scale, length := w.matrix(inScale, graph.N, 1), w.matrix(inLength, graph.N, 1)
	u := w.Mul(distance, w.Div(w.Scalar(math.Sqrt(5)), length))
	return w.Mul(matern52(w.Builder, u, w.Mul(u, u)), scale)
}

// matern52 returns the Matern-5/2 kernel of unit variance at distances in units of
// lengthscale / sqrt(5), and their squares.
func matern52(b *graph.Builder, distance, squared *graph.Node) *graph.Node {
	polynomial := b.Add(b.Add(b.Mul(squared, b.Scalar(1./3)), distance), b.Scalar(1))
	return b.Mul(polynomial, b.Exp(b.Neg(distance)))
}

// inner reads the noise of a class from the column of its targets.
func (w *systemWriter) inner() {
	s := w.s
	noise := w.all(inNoise)
	if s.rank == 0 {
		w.Output(inInner, noise)
		return
	}
	factor := w.factor()
	var parts []*graph.Node
	for c := range s.outputs {
		weighted := w.Div(factor, w.Slice(noise, 1, c*s.width, c*s.width+1))
		parts = append(parts, w.MatMul(w.Transpose(weighted, 1, 0), factor))
	}
	w.Output(inInner, w.Concat(0, parts...))
}

// preconditioner returns the function y -> P^-1 y of each system, see conjugate.precondition.
func (w *systemWriter) preconditioner(noise *graph.Node) func(y *graph.Node) *graph.Node {
	s := w.s
	if s.rank == 0 {
		return func(y *graph.Node) *graph.Node { return w.Div(y, noise) }
	}
	factor := w.factor()
	roots := w.matrix(inRoots, graph.Dim(s.outputs*s.rank), graph.Dim(s.rank))
	return func(y *graph.Node) *graph.Node {
		scaled := w.Div(y, noise)
		low := w.MatMul(w.Transpose(factor, 1, 0), scaled)
		var parts []*graph.Node
		for c := range s.outputs {
			root := w.Slice(roots, 0, c*s.rank, (c+1)*s.rank)
			own := w.MatMul(root, w.Slice(low, 1, c*s.width, (c+1)*s.width))
			parts = append(parts, w.MatMul(w.Transpose(root, 1, 0), own))
		}
		return w.Sub(scaled, w.Div(w.MatMul(factor, w.Concat(1, parts...)), noise))
	}
}

// operator returns the function x -> (K + noise) x.
func (w *systemWriter) operator(noise *graph.Node) func(x *graph.Node) *graph.Node {
	var kernel []*graph.Node
	for b := range w.s.blocks() {
		lo, hi := w.s.block(b)
		kernel = append(kernel, w.matrix(numbered(inKernel, b), graph.Dim(hi-lo), graph.Dim(w.s.n)))
	}
	return func(x *graph.Node) *graph.Node {
		var parts []*graph.Node
		for _, k := range kernel {
			parts = append(parts, w.MatMul(k, x))
		}
		all := parts[0]
		if len(parts) > 1 {
			all = w.Concat(0, parts...)
		}
		return w.Add(all, w.Mul(noise, x))
	}
}

// start draws the probes from a normal distribution with the covariance of the preconditioner.
func (w *systemWriter) start() {
	s := w.s
	noise := w.all(inNoise)
	apply, precondition := w.operator(noise), w.preconditioner(noise)
	b := w.all(inResidual)
	if s.width > 1 {
		random := w.Mul(w.Sqrt(noise), w.all(inNormal))
		if s.rank > 0 {
			random = w.Add(random, w.MatMul(w.factor(), w.matrix(inLowRank, graph.Dim(s.rank), graph.Dim(s.columns()))))
		}
		b = w.Add(b, w.Mul(random, w.each(inProbes)))
	}
	r := w.Sub(b, apply(w.all(inSolution)))
	z := precondition(r)
	w.Output(inRight, b)
	w.Output(inRest, r)
	w.Output(inWay, z)
	w.Output(outRZ, w.dots(r, z))
	w.Output(outRR, w.dots(r, r))
	w.Output(outBB, w.dots(b, b))
}

// tiny is the lower bound of divisors.
const tiny = 1e-30

// positiveShare returns x / y, or 0 if y is not positive.
func (w *systemWriter) positiveShare(x, y *graph.Node) *graph.Node {
	return w.Div(w.Mul(w.Greater(y, w.Scalar(0)), x), w.Maximum(y, w.Scalar(tiny)))
}

func (w *systemWriter) step() {
	noise := w.all(inNoise)
	apply, precondition := w.operator(noise), w.preconditioner(noise)
	x, r, v, rz := w.all(inSolution), w.all(inRest), w.all(inWay), w.each(outRZ)
	along := apply(v)
	step := w.positiveShare(rz, w.dots(v, along))
	x = w.Add(x, w.Mul(v, step))
	r = w.Sub(r, w.Mul(along, step))
	z := precondition(r)
	next := w.dots(r, z)
	w.Output(inSolution, x)
	w.Output(inRest, r)
	w.Output(inWay, w.Add(z, w.Mul(v, w.positiveShare(next, rz))))
	w.Output(outRZ, next)
	w.Output(outRR, w.dots(r, r))
}

// sides computes the vectors of the gradient. The trace of A^-1 dA is the mean of (A^-1 z) dA (P^-1
// z) over the probes z; the data term is alpha dA alpha. The weights of the columns are part of the
// right vectors.
func (w *systemWriter) sides() {
	s := w.s
	b, x, probes := w.all(inRight), w.all(inSolution), w.each(inProbes)
	solved := w.preconditioner(w.all(inNoise))(b)
	right := w.Add(w.Mul(solved, probes), w.Mul(x, w.Sub(w.Scalar(1), probes)))
	right = w.Mul(right, w.each(inShares))
	w.Output(outFit, w.dots(b, x))
	w.Output(outPlain, w.dots(x, right))
	w.Output(inWeighted, right)
	for b := range s.blocks() {
		lo, hi := s.block(b)
		w.Output(numbered(inLeft, b), w.Slice(x, 0, lo, hi))
	}
}

// slopes computes the sum of left K right over the columns, whose derivatives are the gradient.
func (w *systemWriter) slopes() {
	columns := graph.Dim(w.s.columns())
	left, right := w.matrix(inLeft, graph.N, columns), w.matrix(inWeighted, graph.Dim(w.s.n), columns)
	w.Output(totalName, w.Sum(w.Mul(w.kernelRows(), w.MatMul(left, w.Transpose(right, 1, 0))), false, 0, 1))
}
