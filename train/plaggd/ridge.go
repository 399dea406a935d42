// Kernel ridge regression.

package plaggd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// ridge is kernel ridge regression with a bias on the training vectors: the minimum over a, b of |F
// - P|^2 + gamma tr(a^T K a) with F = K a + 1 b^T, that is, (K + gamma I) a = P - 1 b^T with
// columns of a that sum to 0.
type ridge struct {
	gamma  float64
	width  float64
	factor mat.Cholesky  // of K + gamma I
	ones   *mat.VecDense // solution of (K + gamma I) ones = 1
}

// solution is the result of one regression.
type solution struct {
	coefficients *mat.Dense // a [m, k]
	bias         []float64  // b [k]
	outputs      *mat.Dense // F [m, k]
	norm2        float64    // tr(a^T K a), the squared norm of f
}

func newRidge(ctx context.Context, m *model, set Settings) (*ridge, error) {
	r := &ridge{gamma: set.Gamma, width: set.Width}
	k := distances2(m.centered)
	if r.width == 0 {
		r.width = meanDistance(k)
		if r.width <= sameVector*mat.Norm(m.vectors, math.Inf(1)) { // means of equal instances differ by rounding
			r.width = 0
		}
	}
	if r.width == 0 {
		return nil, errors.New("pl-aggd: all training bags have the same vector: they cannot be distinguished")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	n := k.SymmetricDim()
	for i := range n {
		for j := i; j < n; j++ {
			v := math.Exp(-k.At(i, j) / (2 * r.width * r.width))
			if i == j {
				v += r.gamma
			}
			k.SetSym(i, j, v)
		}
	}
	if !r.factor.Factorize(k) {
		return nil, fmt.Errorf("pl-aggd: the kernel matrix cannot be solved with gamma %g; a larger one helps", r.gamma)
	}
	one := mat.NewVecDense(n, slices.Repeat([]float64{1}, n))
	r.ones = mat.NewVecDense(n, nil)
	return r, usable(r.factor.SolveVecTo(r.ones, one))
}

// usable ignores the warning about an ill-conditioned matrix: with gamma on the diagonal, the
// solution is still far more accurate than float32.
func usable(err error) error {
	if _, ok := err.(mat.Condition); ok {
		return nil
	}
	return err
}

// distances2 returns the squared distances between the rows of x.
func distances2(x *mat.Dense) *mat.SymDense {
	m, _ := x.Dims()
	d := mat.NewSymDense(m, nil)
	d.SymOuterK(1, x)
	norms := make([]float64, m)
	for i := range m {
		norms[i] = d.At(i, i)
	}
	for i := range m {
		for j := i; j < m; j++ {
			v := math.Max(0, norms[i]+norms[j]-2*d.At(i, j))
			if i == j {
				v = 0
			}
			d.SetSym(i, j, v)
		}
	}
	return d
}

// sameVector is the mean distance, relative to the largest vector, up to which vectors are
// considered equal, because rounding explains the difference.
const sameVector = 1e-12

// meanDistance returns the mean distance of two different points.
func meanDistance(d2 *mat.SymDense) float64 {
	n, sum := d2.SymmetricDim(), 0.0
	for i := range n {
		row := 0.0
		for j := i + 1; j < n; j++ {
			row += math.Sqrt(d2.At(i, j))
		}
		sum += row
	}
	return sum / (float64(n) * float64(n-1) / 2)
}

// solve fits the confidences p [m, k].
func (r *ridge) solve(p *mat.Dense) solution {
	m, k := p.Dims()
	s := solution{bias: make([]float64, k), coefficients: mat.NewDense(m, k, nil), outputs: mat.NewDense(m, k, nil)}
	total := mat.Sum(r.ones)
	for c := range k {
		s.bias[c] = mat.Dot(r.ones, p.ColView(c)) / total
	}
	right := mat.DenseCopyOf(p)
	for i := range m {
		floats.Sub(right.RawRowView(i), s.bias)
	}
	// SolveTo returns only a warning about the condition, see usable.
	_ = r.factor.SolveTo(s.coefficients, right)
	a, f := s.coefficients.RawMatrix().Data, s.outputs.RawMatrix().Data
	for i, v := range p.RawMatrix().Data {
		f[i] = v - r.gamma*a[i] // F = K a + b = P - gamma a
		s.norm2 += a[i] * (right.RawMatrix().Data[i] - r.gamma*a[i])
	}
	return s
}
