// The objective with inducing points.

package miplgp

import (
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/resources"
)

// inducing is the variational approximation of Titsias (2009). The inducing points are instances,
// drawn once. With U the kernel between the m points, F the kernel between instances and points, L
// L' = U and
//
//	phi = F L'^-1 [n, m],  W = noise^-1,  B = I + phi' W phi,
//
// the covariance phi phi' replaces the kernel, and the bound subtracts half the sum of W (k(x,x) -
// |phi_x|^2).
//
// All instances for which a class is not a candidate have the same noise. The sums over instances
// are therefore one sum for all classes plus corrections for the few instances with another noise.
// Products are float32, summed over blocks in float64.
type inducing struct {
	p       *problem
	chosen  []int // [m] indices of the instances
	shift   []float32
	points  matrix        // [m, d]
	squared matrix        // [n, m]
	between *mat.SymDense // squared distances of the points
	phi     matrix        // [n, m]
}

// jitter is added to the kernel between inducing points, relative to its scale.
const jitter = 1e-5

func newInducing(ctx context.Context, p *problem, s Settings) *inducing {
	chosen := ndarray.NewStream(s.Seed, "miplgp inducing").Perm(p.n())[:min(s.Inducing, p.n())]
	slices.Sort(chosen)
	return newInducingAt(ctx, p, chosen)
}

// newInducingAt uses the chosen instances as inducing points.
func newInducingAt(ctx context.Context, p *problem, chosen []int) *inducing {
	m := len(chosen)
	x, shift := p.centered()
	o := &inducing{p: p, chosen: chosen, shift: shift, points: newMatrix(m, p.Dim)}
	for u, i := range chosen {
		copy(o.points.Data[u*p.Dim:(u+1)*p.Dim], x.Data[i*p.Dim:(i+1)*p.Dim])
	}
	o.squared = squaredDistances(ctx, x, o.points)
	o.between = mat.NewSymDense(m, ndarray.Convert[float64](squaredDistances(ctx, o.points, o.points).Data))
	for i := range m {
		o.between.SetSym(i, i, 0)
	}
	o.phi = newMatrix(p.n(), m)
	return o
}

// basis has the kernel between the inducing points at some hyper-parameters.
type basis struct {
	h     hyper
	slope *mat.Dense // L^-1 dU L'^-1, dU the derivative with respect to the lengthscale
	right matrix     // L^-1 in float32
}

func (o *inducing) basis(h hyper) (*basis, error) {
	u, du := kernels(o.between, h)
	atZero, _ := matern(0, h.length)
	for i := range o.points.Rows {
		u.SetSym(i, i, h.scale*(atZero+jitter))
	}
	var chol mat.Cholesky
	if !chol.Factorize(u) {
		return nil, errNotPositive
	}
	inverse, right, err := inverseFactor(&chol)
	if err != nil {
		return nil, err
	}
	b := &basis{h: h, slope: mat.DenseCopyOf(du), right: right}
	blas64.Trmm(blas.Left, blas.NoTrans, 1, inverse.RawTriangular(), b.slope.RawMatrix())
	blas64.Trmm(blas.Right, blas.Trans, 1, inverse.RawTriangular(), b.slope.RawMatrix())
	return b, nil
}

// sums are the sums over all instances for one class.
type sums struct {
	gram   *mat.Dense // phi' W phi
	cross  *mat.Dense // phi' W psi, psi = dF L'^-1
	square *mat.Dense // phi' W^2 phi
	p, dp  []float64  // phi' W r and psi' W r, r the residuals
	rWr    float64    // r' W r
	w, w2  float64    // traces of W and W^2
	w2q    float64    // sum of W^2 |phi|^2
	logD   float64    // log determinant of the noise
}

// gather makes one pass over the instances. Without slopes it skips what only gradients need.
func (o *inducing) gather(ctx context.Context, b *basis, t *targets, slopes bool) ([]sums, error) {
	n, m, outputs := o.p.n(), o.points.Rows, o.p.outputs()
	parts := 1
	if slopes {
		parts = 2
	}
	all := mat.NewDense(m, parts*m, nil)
	weights, own := make([]weights, outputs), make([]*mat.Dense, outputs)
	found := make([]sums, outputs)
	for c := range found {
		weights[c] = o.weights(b.h, t, c)
		if !slopes {
			weights[c].columns = 1
		}
		own[c] = mat.NewDense(m, weights[c].columns*m, nil)
		found[c].p, found[c].dp = make([]float64, m), make([]float64, m)
	}
	for lo := 0; lo < n; lo += gatherRows {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		hi := min(n, lo+gatherRows)
		wide := o.features(b, lo, hi, parts)
		phi := rowsOf(o.phi, lo, hi)
		resources.Each(outputs+1, 0, func(c int) {
			if c == outputs {
				addProduct(all, phi, wide)
				return
			}
			o.addClass(&found[c], own[c], b.h, t, weights[c], c, lo, wide)
		})
	}
	for c := range found {
		found[c].combine(all, own[c], weights[c])
	}
	return found, nil
}

// combine adds the sums over all instances and those over instances with other weights.
func (s *sums) combine(all, own *mat.Dense, w weights) {
	m := len(s.p)
	part := func(of *mat.Dense, n int) mat.Matrix { return of.Slice(0, m, n*m, (n+1)*m) }
	sum := func(factor float64, a, b mat.Matrix) *mat.Dense {
		out := new(mat.Dense)
		out.Scale(factor, a)
		out.Add(out, b)
		return out
	}
	s.gram = sum(w.base, part(all, 0), part(own, 0))
	if w.columns == 1 {
		return
	}
	s.cross = sum(w.base, part(all, 1), part(own, 1))
	squares := new(mat.Dense)
	if squares.Scale(w.base+w.other, part(own, 0)); w.columns == 3 {
		squares = mat.DenseCopyOf(part(own, 2))
	}
	s.square = sum(w.base*w.base, part(all, 0), squares)
}

// gatherRows is the number of instances whose products are summed in float32.
const gatherRows = 2048

// features computes phi for the instances lo to hi and returns it, or [phi | psi] for two parts.
func (o *inducing) features(b *basis, lo, hi, parts int) matrix {
	m := o.points.Rows
	wide := newMatrix(hi-lo, parts*m)
	from := rowsOf(o.squared, lo, hi)
	rows(hi-lo, func(first, last int) {
		f, df := newMatrix(last-first, m), newMatrix(last-first, m)
		for i, v := range rowsOf(from, first, last).Data {
			k, d := matern(float64(v), b.h.length)
			f.Data[i], df.Data[i] = float32(b.h.scale*k), float32(b.h.scale*d)
		}
		part := rowsOf(wide, first, last)
		phi := rowsOf(o.phi, lo+first, lo+last)
		multiply(false, true, f, b.right, phi)
		psi := newMatrix(phi.Rows, phi.Cols)
		if parts == 2 {
			multiply(false, true, df, b.right, psi)
		}
		for i := range part.Rows {
			row := part.Data[i*part.Cols : (i+1)*part.Cols]
			copy(row, phi.Data[i*m:(i+1)*m])
			copy(row[m:], psi.Data[i*m:(i+1)*m])
		}
	})
	return wide
}

// weights are the weights 1/noise of the instances for one class.
type weights struct {
	base  float64 // of instances for which the class is not a candidate
	other float64 // of all other instances, if they have the same weight
	// columns is 2 if they have, else 3. It is the number of parts of the products with phi: phi,
	// psi, and phi times the factor that turns a difference of W into one of W^2.
	columns int
}

func (o *inducing) weights(h hyper, t *targets, c int) weights {
	n := o.p.n()
	_, none := dirichlet(t.eps)
	w := weights{base: 1 / (none + h.noise[c]), columns: 2}
	if c == o.p.Classes { // the class of negatives is a candidate of all instances
		w.base = 1 / (t.noise[c*n] + h.noise[c])
	}
	for _, noise := range t.noise[c*n : (c+1)*n] {
		switch v := 1 / (noise + h.noise[c]); {
		case same(v, w.base) || same(v, w.other):
		case w.other == 0:
			w.other = v
		default:
			w.columns = 3
			return w
		}
	}
	return w
}

func same(v, w float64) bool { return math.Abs(v-w) <= 1e-12*w }

// addClass adds the instances from lo to the sums of a class.
func (o *inducing) addClass(s *sums, own *mat.Dense, h hyper, t *targets, weight weights, c, lo int, wide matrix) {
	n, m := o.p.n(), o.points.Rows
	weighted := newMatrix(wide.Rows, 1)
	var differ []int
	for i := range wide.Rows {
		at := c*n + lo + i
		noise := t.noise[at] + h.noise[c]
		w, r := 1/noise, t.y[at]-h.mean[c]
		weighted.Data[i] = float32(w * r)
		s.rWr += w * r * r
		s.w += w
		s.w2 += w * w
		s.logD += math.Log(noise)
		norm := 0.0
		for _, v := range wide.Data[i*wide.Cols : i*wide.Cols+m] {
			norm += float64(v) * float64(v)
		}
		s.w2q += w * w * norm
		if !same(w, weight.base) {
			differ = append(differ, i)
		}
	}
	vector := newMatrix(wide.Cols, 1)
	multiply(true, false, wide, weighted, vector)
	for j := range m {
		s.p[j] += float64(vector.Data[j])
		if wide.Cols > m {
			s.dp[j] += float64(vector.Data[m+j])
		}
	}
	if len(differ) == 0 {
		return
	}
	left, right := newMatrix(len(differ), m), newMatrix(len(differ), weight.columns*m)
	for q, i := range differ {
		w := 1 / (t.noise[c*n+lo+i] + h.noise[c])
		row := wide.Data[i*wide.Cols : (i+1)*wide.Cols]
		copy(right.Data[q*right.Cols:], row)
		for j, v := range row[:m] {
			left.Data[q*m+j] = float32(w-weight.base) * v
			if weight.columns == 3 {
				right.Data[q*right.Cols+2*m+j] = float32(w+weight.base) * v
			}
		}
	}
	addProduct(own, left, right)
}

// addProduct adds a'b to the sum.
func addProduct(sum *mat.Dense, a, b matrix) {
	part := newMatrix(a.Cols, b.Cols)
	multiply(true, false, a, b, part)
	to := sum.RawMatrix().Data
	for i, v := range part.Data {
		to[i] += float64(v)
	}
}

// solution is computed from B for one class.
type solution struct {
	v       *mat.VecDense // B^-1 phi' W r = phi' alpha
	inverse *mat.SymDense // B^-1
	logDet  float64       // of B
	trace   float64       // of B
}

func (s *sums) solve() (*solution, error) {
	m := len(s.p)
	b := mat.NewSymDense(m, nil)
	out := &solution{v: mat.NewVecDense(m, nil), inverse: new(mat.SymDense)}
	for i := range m {
		for j := i; j < m; j++ {
			b.SetSym(i, j, (s.gram.At(i, j)+s.gram.At(j, i))/2)
		}
		b.SetSym(i, i, b.At(i, i)+1)
		out.trace += b.At(i, i)
	}
	var chol mat.Cholesky
	if !chol.Factorize(b) {
		return nil, errNotPositive
	}
	out.logDet = chol.LogDet()
	if chol.SolveVecTo(out.v, mat.NewVecDense(m, s.p)) != nil || chol.InverseTo(out.inverse) != nil {
		return nil, errNotPositive
	}
	return out, nil
}

func (o *inducing) evaluate(ctx context.Context, h hyper, t *targets) (*evaluation, error) {
	b, err := o.basis(h)
	if err != nil {
		return nil, err
	}
	found, err := o.gather(ctx, b, t, true)
	if err != nil {
		return nil, err
	}
	n, m, outputs := o.p.n(), o.points.Rows, o.p.outputs()
	out := &evaluation{grad: newHyper(outputs)}
	v := newMatrix(m, outputs)
	share := 1 / float64(n*outputs)
	for c := range found {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		sol, err := found[c].solve()
		if err != nil {
			return nil, err
		}
		o.addLoss(out, b, &found[c], sol, c, share)
		for j := range m {
			v.Data[j*outputs+c] = float32(sol.v.AtVec(j))
		}
	}
	o.finish(out, h, t, v, share)
	return out, nil
}

// addLoss adds the parts of the bound and its gradient that need no further pass over the
// instances.
func (o *inducing) addLoss(out *evaluation, b *basis, s *sums, sol *solution, c int, share float64) {
	n, m := float64(o.p.n()), float64(o.points.Rows)
	scale := b.h.scale
	fit := s.rWr - mat.Dot(mat.NewVecDense(len(s.p), s.p), sol.v)
	out.loss += share * (fit + sol.logDet + s.logD + n*math.Log(2*math.Pi) + scale*s.w - sol.trace + m) / 2

	// T is L^-1 (F' (W - A^-1 + alpha alpha') F) L'^-1. Derivatives of the bound are half its sums
	// with derivatives.
	vv := mat.Dot(sol.v, sol.v)
	tr := sol.trace - 2*m + mat.Trace(sol.inverse)
	out.grad.scale -= share * ((vv+tr)/scale - s.w) / 2

	// First the part of the mean at the instances, then that at the points.
	var half mat.VecDense
	half.MulVec(s.cross, sol.v)
	length := mat.Dot(mat.NewVecDense(len(s.dp), s.dp), sol.v) - mat.Dot(sol.v, &half)
	length += mat.Trace(s.cross) - sumProduct(sol.inverse, s.cross)
	half.MulVec(b.slope, sol.v)
	length -= mat.Dot(sol.v, &half) / 2
	length -= (sumProduct(s.gram, b.slope) - mat.Trace(b.slope) + sumProduct(sol.inverse, b.slope)) / 2
	out.grad.length -= share * length

	// Trace of A^-1 minus the last term of the bound.
	inverse := s.w - sumProduct(sol.inverse, s.square)
	out.grad.noise[c] += share * (inverse - (scale*s.w2 - s.w2q)) / 2
}

// sumProduct returns the trace of a b for a symmetric a.
func sumProduct(a, b mat.Matrix) float64 {
	n, _ := a.Dims()
	sum := 0.0
	for i := range n {
		for j := range n {
			sum += a.At(i, j) * b.At(i, j)
		}
	}
	return sum
}

// finish adds the parts that need the posterior means at the instances.
func (o *inducing) finish(out *evaluation, h hyper, t *targets, v matrix, share float64) {
	n, outputs := o.p.n(), o.p.outputs()
	f := newMatrix(n, outputs)
	rows(n, func(lo, hi int) {
		multiply(false, false, rowsOf(o.phi, lo, hi), v, rowsOf(f, lo, hi))
	})
	out.f = make([]float64, n*outputs)
	for c := range outputs {
		for i := range n {
			at := c*n + i
			fit := float64(f.Data[i*outputs+c])
			alpha := (t.y[at] - h.mean[c] - fit) / (t.noise[at] + h.noise[c])
			out.f[at] = h.mean[c] + fit
			out.grad.mean[c] -= share * alpha
			out.grad.noise[c] -= share * alpha * alpha / 2
		}
	}
}

// posterior computes, with phi = F_x L'^-1, the mean phi v and the variance k(x,x) - phi (I - B^-1)
// phi'.
func (o *inducing) posterior(ctx context.Context, h hyper, t *targets) (*posterior, error) {
	b, err := o.basis(h)
	if err != nil {
		return nil, err
	}
	found, err := o.gather(ctx, b, t, false)
	if err != nil {
		return nil, err
	}
	m, outputs := o.points.Rows, o.p.outputs()
	q := &posterior{classes: o.p.Classes, h: h, shift: o.shift, points: o.points, v: m, white: b.right.Data}
	q.beta = make([]float32, m*outputs)
	for c := range found {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		sol, err := found[c].solve()
		if err != nil {
			return nil, err
		}
		reduce := mat.NewSymDense(m, nil)
		reduce.ScaleSym(-1, sol.inverse)
		for i := range m {
			reduce.SetSym(i, i, 1+reduce.At(i, i))
			q.beta[i*outputs+c] = float32(sol.v.AtVec(i))
		}
		q.reduce = append(q.reduce, narrow(reduce))
	}
	return q, nil
}
