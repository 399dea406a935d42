// Conjugate gradients, with probes for traces.

package miplgp

import (
	"context"
	"math"
	"slices"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
)

// conjugate solves with all instances by preconditioned conjugate gradients. Traces are
// estimated with probe vectors that are drawn once, so that the objective is the same function
// throughout a fit and the solutions of one iteration are good first guesses for the next.
//
// Distances and kernel stay in the workspace. The vectors of all classes are columns of one matrix, so
// that one pass over the kernel serves all of them, see type system. Small computations (pivots,
// Cholesky factors, sums) are done here in float64.
type conjugate struct {
	*system
	p      *problem
	s      Settings
	shift  []float32
	x      matrix // centered instances
	pivots *pivots
	space  *workspace
}

// newCG builds the graphs and copies the constant values to the workspace.
func newCG(p *problem, s Settings) (g *conjugate, err error) {
	defer graph.Catch(&err, "preparing conjugate gradients")
	s.Rank = min(s.Rank, p.n())
	g = &conjugate{p: p, s: s, space: newWorkspace(s.Kernels)}
	g.x, g.shift = p.centered()
	g.pivots = &pivots{x: g.x, distances: map[int][]float64{}}
	n, width := p.n(), 1+s.Probes
	g.system = newSystem(n, p.Dim, p.outputs(), width, s.Rank)
	columns := g.columns()
	rng := ndarray.NewStream(g.s.Seed, "miplgp probes")
	draw := func(rows int) []float32 {
		values := make([]float32, rows*columns)
		for i := range values {
			values[i] = float32(rng.NormFloat64())
		}
		return values
	}
	probes, shares := make([]float32, columns), make([]float32, columns)
	for j := range columns {
		if probes[j], shares[j] = 1, 1/float32(g.s.Probes); j%width == 0 {
			probes[j], shares[j] = 0, -1
		}
	}
	g.space.Put(inInstances, g.x.Data, n, g.p.Dim)
	g.space.Put(inSolution, make([]float32, n*columns), n, columns)
	g.space.Put(inProbes, probes, 1, columns)
	g.space.Put(inShares, shares, 1, columns)
	if g.s.Probes > 0 {
		g.space.Put(inNormal, draw(n), n, columns)
		if g.s.Rank > 0 {
			g.space.Put(inLowRank, draw(g.s.Rank), g.s.Rank, columns)
		}
	}
	for b := range g.blocks() {
		lo, hi := g.block(b)
		g.space.Put(inRows, rowsOf(g.x, lo, hi).Data, hi-lo, g.p.Dim)
		g.space.Run(g.distances, hi-lo, map[string]string{inDistance: numbered(inDistance, b)})
	}
	return g, nil
}

// ofBlock maps the names of values in a graph to those of a block in the workspace.
func ofBlock(b int, names ...string) map[string]string {
	own := map[string]string{}
	for _, name := range names {
		own[name] = numbered(name, b)
	}
	return own
}

// fillKernel computes the kernel at the hyper-parameters.
func (g *conjugate) fillKernel(h hyper) {
	for b := range g.blocks() {
		lo, hi := g.block(b)
		g.space.Put(numbered(inScale, b), slices.Repeat([]float32{float32(h.scale)}, hi-lo), hi-lo, 1)
		g.space.Put(numbered(inLength, b), slices.Repeat([]float32{float32(h.length)}, hi-lo), hi-lo, 1)
		g.space.Run(g.kernel, hi-lo, ofBlock(b, inDistance, inScale, inLength, inKernel))
	}
}

// cgSteps bounds the steps of one solution.
const cgSteps = 1000

// solve solves (K + noise) x = b for all columns, starting from the previous solutions, until every
// residual is below tolerance.
func (g *conjugate) solve(ctx context.Context, h hyper, t *targets, tolerance float64) error {
	n, columns := g.p.n(), g.columns()
	residual := make([]float32, n*columns)
	for i := range n {
		for c := range g.outputs {
			residual[i*columns+c*g.width] = float32(t.y[c*n+i] - h.mean[c])
		}
	}
	g.space.Put(inResidual, residual, n, columns)
	g.space.Run(g.start, n, nil)
	size := g.space.Get(outBB)
	for range cgSteps {
		rest := g.space.Get(outRR)
		if err := ctx.Err(); err != nil || converged(rest, size, tolerance) {
			return err
		}
		g.space.Run(g.step, n, nil)
	}
	return nil
}

// converged reports whether all squared residuals are small relative to the squared right sides.
func converged(residual, size []float32, tolerance float64) bool {
	for j, r := range residual {
		if float64(r) > tolerance*tolerance*float64(size[j]) {
			return false
		}
	}
	return true
}

// evaluate returns a lower bound of the loss: it uses the determinant of the preconditioner, which
// is never larger than that of the kernel matrix. The gradient is an unbiased estimate of that of
// the marginal likelihood.
func (g *conjugate) evaluate(ctx context.Context, h hyper, t *targets) (out *evaluation, err error) {
	defer graph.Catch(&err, "conjugate gradients")
	g.fillKernel(h)
	logDet, err := g.precondition(h, t)
	if err != nil {
		return nil, err
	}
	if err := g.solve(ctx, h, t, g.s.Tolerance); err != nil {
		return nil, err
	}
	g.space.Run(g.sides, g.p.n(), nil)
	out = g.gather(h, t, logDet)
	out.grad.scale, out.grad.length, err = g.slopesOf(ctx)
	return out, err
}

// slopesOf returns the gradient of the loss with respect to scale and lengthscale.
func (g *conjugate) slopesOf(ctx context.Context) (scale, length float64, err error) {
	for b := range g.blocks() {
		if err := ctx.Err(); err != nil {
			return 0, 0, err
		}
		lo, hi := g.block(b)
		g.space.Run(g.slopes, hi-lo, ofBlock(b, inDistance, inScale, inLength, inLeft))
		byScale, byLength := g.space.Get(graph.GradPrefix+inScale), g.space.Get(graph.GradPrefix+inLength)
		for i, v := range byLength {
			scale, length = scale+float64(byScale[i]), length+float64(v)
		}
	}
	share := 1 / float64(g.p.n()*g.outputs)
	return share * scale / 2, share * length / 2, nil
}

// gather computes the parts of loss and gradient that do not involve the kernel.
func (g *conjugate) gather(h hyper, t *targets, logDet []float64) *evaluation {
	n, columns := g.p.n(), g.columns()
	out := &evaluation{grad: newHyper(g.outputs), f: make([]float64, n*g.outputs)}
	share := 1 / float64(n*g.outputs)
	fit, plain, solution := g.space.Get(outFit), g.space.Get(outPlain), g.space.Get(inSolution)
	for c := range g.outputs {
		j := c * g.width
		for _, v := range plain[j : j+g.width] {
			out.grad.noise[c] += share * float64(v) / 2
		}
		out.loss += share * (float64(fit[j]) + logDet[c] + float64(n)*math.Log(2*math.Pi)) / 2
		for i := range n {
			alpha := float64(solution[i*columns+j])
			out.grad.mean[c] -= share * alpha
			out.f[c*n+i] = t.y[c*n+i] - (t.noise[c*n+i]+h.noise[c])*alpha
		}
	}
	return out
}

// finalTolerance is the tolerance of the systems that predictions use.
const finalTolerance = 1e-5

// posterior uses all instances for the mean and inducing points for the variance: the exact
// variance needs an [n, n] matrix per class.
func (g *conjugate) posterior(ctx context.Context, h hyper, t *targets) (q *posterior, err error) {
	defer graph.Catch(&err, "conjugate gradients")
	few := newInducing(ctx, g.p, g.s)
	if q, err = few.posterior(ctx, h, t); err != nil {
		return nil, err
	}
	withoutProbes := g.s // one column per class, that of the targets
	withoutProbes.Probes = 0
	alone, err := newCG(g.p, withoutProbes)
	if err != nil {
		return nil, err
	}
	alone.fillKernel(h)
	if _, err := alone.precondition(h, t); err != nil {
		return nil, err
	}
	if err := alone.solve(ctx, h, t, finalTolerance); err != nil {
		return nil, err
	}
	solution := alone.space.Get(inSolution)
	n, outputs := g.p.n(), g.outputs
	q.shift, q.points, q.beta, q.alpha = g.shift, newMatrix(n, g.p.Dim), nil, make([]float32, n*outputs)
	order := slices.Clone(few.chosen) // first the inducing points, then the others
	for i := range n {
		if _, found := slices.BinarySearch(few.chosen, i); !found {
			order = append(order, i)
		}
	}
	for u, i := range order {
		copy(q.points.Data[u*g.p.Dim:(u+1)*g.p.Dim], g.x.Data[i*g.p.Dim:(i+1)*g.p.Dim])
		copy(q.alpha[u*outputs:(u+1)*outputs], solution[i*outputs:(i+1)*outputs])
	}
	return q, nil
}
