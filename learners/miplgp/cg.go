package miplgp

import (
	"context"
	"errors"
	"math"

	"github.com/miplc/miplc/internal/stream"
)

// conjugate solves with all instances by preconditioned conjugate gradients.
// Traces are estimated with probe vectors that are drawn once, so that the
// objective stays the same function throughout a fit and the solutions of one
// iteration are good first guesses for the next.
//
// Kernel and squared distances are kept as float32 [n, n]; the vectors of all
// classes stand side by side, so that one pass over the kernel serves them all:
// column c*(1+probes) is the system of class c's targets, the others of class c
// are its probes.
type conjugate struct {
	*multiplier
	p        *problem
	s        Settings
	x        matrix
	shift    []float32
	squared  matrix // [n, n]
	kernel   matrix // [n, n]
	normal   matrix // [n, columns] standard normal numbers behind the probes
	lowRank  matrix // [rank, columns] likewise
	solution matrix // [n, columns] of the last iteration
}

func newCG(ctx context.Context, p *problem, s Settings) (*conjugate, error) {
	g := &conjugate{multiplier: &multiplier{products: s.Products}, p: p, s: s, shift: meanOf(p.X, p.Dim)}
	g.s.Rank = min(s.Rank, p.n())
	g.x = centred(p.X, p.Dim, g.shift)
	g.squared = squaredDistances(ctx, g.x, g.x, g.multiplier)
	if err := errors.Join(ctx.Err(), g.err()); err != nil {
		return nil, err
	}
	g.kernel = newMatrix(p.n(), p.n())
	columns := p.outputs() * (1 + s.Probes)
	g.solution = newMatrix(p.n(), columns)
	rng := stream.New(s.Seed, "miplgp probes")
	g.normal, g.lowRank = newMatrix(p.n(), columns), newMatrix(g.s.Rank, columns)
	for _, m := range []matrix{g.normal, g.lowRank} {
		for i := range m.Data {
			m.Data[i] = float32(rng.NormFloat64())
		}
	}
	return g, nil
}

// fillKernel computes the kernel at the hyper-parameters.
func (g *conjugate) fillKernel(h hyper) {
	rows(g.p.n(), func(lo, hi int) {
		from, to := rowsOf(g.squared, lo, hi), rowsOf(g.kernel, lo, hi)
		for i, v := range from.Data {
			k, _ := matern(float64(v), h.length)
			to.Data[i] = float32(h.scale * k)
		}
	})
}

// cgSteps bounds the steps of one solution.
const cgSteps = 1000

// solve makes x the solution of (K + noise) x = b for all columns, starting
// from what x holds, until every residual is below tolerance.
func (g *conjugate) solve(ctx context.Context, x, b matrix, pre *preconditioner, tolerance float64) error {
	columns := b.Cols
	r, z, v, w := like(b), like(b), like(b), like(b)
	if err := g.apply(ctx, r, x, pre); err != nil {
		return err
	}
	for i := range r.Data {
		r.Data[i] = b.Data[i] - r.Data[i]
	}
	pre.solve(z, r)
	copy(v.Data, z.Data)
	size, rz := columnDots(b, b), columnDots(r, z)
	for range cgSteps {
		if converged(columnDots(r, r), size, tolerance) {
			return nil
		}
		if err := g.apply(ctx, w, v, pre); err != nil {
			return err
		}
		vw := columnDots(v, w)
		step := make([]float32, columns)
		for j := range step {
			if vw[j] > 0 {
				step[j] = float32(rz[j] / vw[j])
			}
		}
		rows(b.Rows, func(lo, hi int) {
			for i := lo * columns; i < hi*columns; i++ {
				s := step[i%columns]
				x.Data[i] += s * v.Data[i]
				r.Data[i] -= s * w.Data[i]
			}
		})
		pre.solve(z, r)
		next := columnDots(r, z)
		turn := make([]float32, columns)
		for j := range turn {
			if rz[j] > 0 {
				turn[j] = float32(next[j] / rz[j])
			}
		}
		rows(b.Rows, func(lo, hi int) {
			for i := lo * columns; i < hi*columns; i++ {
				v.Data[i] = z.Data[i] + turn[i%columns]*v.Data[i]
			}
		})
		rz = next
	}
	return nil
}

// converged compares squared residuals with the squared right sides.
func converged(residual, size []float64, tolerance float64) bool {
	for j, r := range residual {
		if r > tolerance*tolerance*size[j] {
			return false
		}
	}
	return true
}

func like(m matrix) matrix { return newMatrix(m.Rows, m.Cols) }

// apply makes y = (K + noise) x.
func (g *conjugate) apply(ctx context.Context, y, x matrix, pre *preconditioner) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	rows(x.Rows, func(lo, hi int) {
		piece := rowsOf(y, lo, hi)
		g.mul(false, false, rowsOf(g.kernel, lo, hi), x, piece)
		for i := lo; i < hi; i++ {
			for j := range x.Cols {
				piece.Data[(i-lo)*x.Cols+j] += pre.noise(i, j) * x.Data[i*x.Cols+j]
			}
		}
	})
	return g.err()
}

// columnDots gives the dot product of each pair of columns. Pieces are summed
// in order.
func columnDots(a, b matrix) []float64 {
	pieces := make([][]float64, (a.Rows+rowBlock-1)/rowBlock)
	rows(a.Rows, func(lo, hi int) {
		sum := make([]float64, a.Cols)
		for i := lo; i < hi; i++ {
			for j := range sum {
				sum[j] += float64(a.Data[i*a.Cols+j]) * float64(b.Data[i*a.Cols+j])
			}
		}
		pieces[lo/rowBlock] = sum
	})
	total := make([]float64, a.Cols)
	for _, sum := range pieces {
		for j, v := range sum {
			total[j] += v
		}
	}
	return total
}

// rightSides gives the residuals of the targets and the probes, which are
// normal with the covariance of the preconditioner.
func (g *conjugate) rightSides(h hyper, t *targets, pre *preconditioner) matrix {
	n, width := g.p.n(), 1+g.s.Probes
	b := like(g.normal)
	if g.s.Rank > 0 {
		g.mul(false, false, pre.factor, g.lowRank, b)
	}
	for i := range n {
		for j := range b.Cols {
			at := i*b.Cols + j
			if c := j / width; j%width == 0 {
				b.Data[at] = float32(t.y[c*n+i] - h.mean[c])
			} else {
				b.Data[at] += float32(math.Sqrt(float64(pre.noise(i, j)))) * g.normal.Data[at]
			}
		}
	}
	return b
}

// evaluate gives as loss the one with the determinant of the preconditioner in
// place of that of the kernel matrix, which is never smaller: a lower bound. The
// gradient is an unbiased estimate of that of the marginal likelihood.
func (g *conjugate) evaluate(ctx context.Context, h hyper, t *targets) (*evaluation, error) {
	g.fillKernel(h)
	pre, err := newPreconditioner(g, h, t)
	if err != nil {
		return nil, err
	}
	b := g.rightSides(h, t, pre)
	if err := g.solve(ctx, g.solution, b, pre, g.s.Tolerance); err != nil {
		return nil, err
	}
	// The trace of A^-1 dA is the mean of (A^-1 z) dA (P^-1 z); the data term is
	// alpha dA alpha. So the left and right vectors are:
	left, right := g.solution, like(b)
	pre.solve(right, b)
	width := 1 + g.s.Probes
	for i := range right.Rows {
		for j := 0; j < right.Cols; j += width {
			right.Data[i*right.Cols+j] = left.Data[i*right.Cols+j]
		}
	}
	kr, dr := like(b), like(b)
	if err := g.products(ctx, h, right, kr, dr); err != nil {
		return nil, err
	}
	return g.gather(h, t, pre, b, left, right, columnDots(left, kr), columnDots(left, dr)), nil
}

// products makes k = K x and d = dK x, dK by the lengthscale.
func (g *conjugate) products(ctx context.Context, h hyper, x, k, d matrix) error {
	rows(x.Rows, func(lo, hi int) {
		if ctx.Err() != nil {
			return
		}
		g.mul(false, false, rowsOf(g.kernel, lo, hi), x, rowsOf(k, lo, hi))
		from := rowsOf(g.squared, lo, hi)
		slope := newMatrix(from.Rows, from.Cols)
		for i, v := range from.Data {
			_, dLength := matern(float64(v), h.length)
			slope.Data[i] = float32(h.scale * dLength)
		}
		g.mul(false, false, slope, x, rowsOf(d, lo, hi))
	})
	return errors.Join(ctx.Err(), g.err())
}

// gather sums the parts of loss and gradient.
func (g *conjugate) gather(h hyper, t *targets, pre *preconditioner, b, left, right matrix, k, d []float64) *evaluation {
	n, outputs, width := g.p.n(), g.p.outputs(), 1+g.s.Probes
	out := &evaluation{grad: newHyper(outputs), f: make([]float64, n*outputs)}
	share := 1 / float64(n*outputs)
	fit, plain := columnDots(b, left), columnDots(left, right)
	for c := range outputs {
		j := c * width
		scale, length, noise := -k[j]/h.scale, -d[j], -plain[j]
		for q := j + 1; q < j+width; q++ {
			scale += k[q] / h.scale / float64(g.s.Probes)
			length += d[q] / float64(g.s.Probes)
			noise += plain[q] / float64(g.s.Probes)
		}
		out.loss += share * (fit[j] + pre.logDet[c] + float64(n)*math.Log(2*math.Pi)) / 2
		out.grad.scale += share * scale / 2
		out.grad.length += share * length / 2
		out.grad.noise[c] = share * noise / 2
		for i := range n {
			alpha := float64(left.Data[i*left.Cols+j])
			out.grad.mean[c] -= share * alpha
			out.f[c*n+i] = t.y[c*n+i] - (t.noise[c*n+i]+h.noise[c])*alpha
		}
	}
	return out
}

// finalTolerance is that of the systems behind predictions.
const finalTolerance = 1e-5

// posterior has the mean from all instances; the variance is that of inducing
// points, since the exact one needs an [n, n] matrix a class.
func (g *conjugate) posterior(ctx context.Context, h hyper, t *targets) (*posterior, error) {
	few := newInducing(ctx, g.p, g.s)
	q, err := few.posterior(ctx, h, t)
	if err != nil {
		return nil, err
	}
	g = g.withoutProbes()
	g.fillKernel(h)
	pre, err := newPreconditioner(g, h, t)
	if err != nil {
		return nil, err
	}
	if err := g.solve(ctx, g.solution, g.rightSides(h, t, pre), pre, finalTolerance); err != nil {
		return nil, err
	}
	n, outputs := g.p.n(), g.p.outputs()
	all := &posterior{multiplier: g.multiplier, classes: g.p.Classes, h: h, shift: g.shift, points: newMatrix(n, g.p.Dim)}
	all.v, all.white, all.reduce = q.v, q.white, q.reduce
	all.alpha = make([]float32, n*outputs)
	for u, i := range firstThese(few.chosen, n) {
		copy(all.points.Data[u*g.p.Dim:(u+1)*g.p.Dim], g.x.Data[i*g.p.Dim:(i+1)*g.p.Dim])
		for c := range outputs {
			all.alpha[u*outputs+c] = g.solution.Data[i*outputs+c]
		}
	}
	return all, nil
}

// withoutProbes has one column a class, that of the targets.
func (g *conjugate) withoutProbes() *conjugate {
	few := *g
	few.s.Probes = 0
	few.solution = newMatrix(g.p.n(), g.p.outputs())
	few.normal, few.lowRank = like(few.solution), newMatrix(g.s.Rank, g.p.outputs())
	return &few
}

// firstThese gives the numbers below n, the chosen ones first, else in order.
func firstThese(chosen []int, n int) []int {
	order := append([]int(nil), chosen...)
	taken := make([]bool, n)
	for _, i := range chosen {
		taken[i] = true
	}
	for i := range n {
		if !taken[i] {
			order = append(order, i)
		}
	}
	return order
}
