//go:build cgo

// Matrix products, and wrong devices.

package ort

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"

	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/internal/testkit/enginetest"
)

// Products of matrices of many sizes agree with gonum's, also from several goroutines.
func TestProducts(t *testing.T) {
	p, err := NewProducts(Options{Library: enginetest.Library(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	rng := ndarray.NewStream(1, "products")
	draw := func(r, c int) blas32.General {
		m := blas32.General{Rows: r, Cols: c, Stride: c, Data: make([]float32, r*c)}
		for i := range m.Data {
			m.Data[i] = float32(rng.IntN(9) - 4) // sums of small integers are exact
		}
		return m
	}
	var all sync.WaitGroup
	for i := range 40 {
		m, k, n := 1+rng.IntN(70), 1+rng.IntN(300), 1+rng.IntN(70)
		transA, transB := i%2 == 1, i/2%2 == 1
		a, b := draw(m, k), draw(k, n)
		ta, tb := blas.NoTrans, blas.NoTrans
		if transA {
			a, ta = draw(k, m), blas.Trans
		}
		if transB {
			b, tb = draw(n, k), blas.Trans
		}
		got, want := draw(m, n), draw(m, n)
		blas32.Gemm(ta, tb, 1, a, b, 0, want)
		all.Go(func() {
			if err := p.Gemm(transA, transB, a, b, got); err != nil {
				t.Error(err)
			}
			if !slices.Equal(got.Data, want.Data) {
				t.Errorf("%d x %d x %d, transposed %v %v: wrong product", m, k, n, transA, transB)
			}
		})
	}
	all.Wait()
	if err := p.Gemm(false, false, draw(2, 3), draw(4, 2), draw(2, 2)); err == nil {
		t.Error("factors of incompatible sizes were accepted")
	}
	gap := draw(4, 4)
	gap.Cols = 3
	if err := p.Gemm(false, false, gap, draw(3, 2), draw(4, 2)); err == nil {
		t.Error("a matrix with gaps was accepted")
	}
}

// Swapped sessions simulate a device that computes wrong products.
func TestWrongProductsAreRefused(t *testing.T) {
	p, err := NewProducts(Options{Library: enginetest.Library(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	device := Options{Provider: onnxruntime.WebGPU}
	if err := p.check(device); err != nil {
		t.Errorf("correct products are rejected: %v", err)
	}
	p.sessions[0][1], p.sessions[1][0] = p.sessions[1][0], p.sessions[0][1]
	var refused *onnxruntime.WrongDeviceError
	if err := p.check(device); !errors.As(err, &refused) {
		t.Errorf("wrong products give %v", err)
	}
}
