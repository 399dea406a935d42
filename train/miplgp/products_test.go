// Matrix products of a device are used.

package miplgp

import (
	"errors"
	"sync/atomic"
	"testing"

	"gonum.org/v1/gonum/blas/blas32"
)

// counted counts calls of gonum's products and returns errors from a given call on.
type counted struct {
	calls atomic.Int64
	fails int64
}

var errProduct = errors.New("product failed")

func (p *counted) Gemm(transA, transB bool, a, b, c blas32.General) error {
	if n := p.calls.Add(1); p.fails > 0 && n >= p.fails {
		return errProduct
	}
	for _, m := range []blas32.General{a, b, c} {
		if m.Stride != m.Cols || len(m.Data) < m.Rows*m.Cols {
			return errors.New("a matrix has gaps")
		}
	}
	blas32.Gemm(transposed(transA), transposed(transB), 1, a, b, 0, c)
	return nil
}

// Fits use Settings.Products and return their errors.
func TestProducts(t *testing.T) {
	for _, solver := range []string{solverCG, solverInducing} {
		p, s := prototypes(t), quick(solver)
		s.Iterations = 2
		plain := mustFit(t, s, p, nil)
		works := &counted{}
		s.Products = works
		given := mustFit(t, s, p, nil)
		bag := bagValues(p.Data, 0)
		want, _, _ := plain.Predict(bag, p.Data.Size(0))
		got, _, err := given.Predict(bag, p.Data.Size(0))
		if err != nil {
			t.Fatal(err)
		}
		near(t, solver, got, want, 1e-6)
		calls := works.calls.Load()
		if calls == 0 {
			t.Errorf("%s does not use Products", solver)
		}
		for _, at := range []int64{1, calls/2 + 1, calls} {
			s.Products = &counted{fails: at}
			_, err := New(s).Fit(t.Context(), p, nil)
			if !errors.Is(err, errProduct) {
				t.Errorf("%s: product %d of %d fails: %v", solver, at, calls, err)
			}
		}
	}
}
