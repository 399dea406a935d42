//go:build cgo

// Matrix products of learners, by onnxruntime.

package ort

import (
	"cmp"
	"errors"
	"fmt"
	goruntime "runtime"
	"sync"

	ort "github.com/yalue/onnxruntime_go"
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"

	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/internal/onnxruntime"
)

// Products multiplies float32 matrices in onnxruntime, on a CPU about ten times as fast as gonum.
// It is safe for concurrent use.
type Products struct {
	sessions [2][2]*ort.DynamicAdvancedSession // [a is transposed][b is transposed]
	calls    sync.Locker                       // held during calls on the sessions
}

// NewProducts opens the sessions. On the CPU each product uses one thread unless Options.Threads
// is set, because callers run several at once.
func NewProducts(o Options) (*Products, error) {
	if _, err := onnxruntime.Start(o.Library); err != nil {
		return nil, err
	}
	o.Threads = cmp.Or(o.Threads, 1)
	p := &Products{calls: o.settings().Locker()}
	for a := range p.sessions {
		for b := range p.sessions[a] {
			s, err := start(productModel(a, b), []string{"a", "b"}, []string{"c"}, o)
			if err != nil {
				p.Close()
				return nil, fmt.Errorf("matrix products in onnxruntime: %w", err)
			}
			p.sessions[a][b] = s
		}
	}
	if !o.onCPU() {
		if err := p.check(o); err != nil {
			p.Close()
			return nil, err
		}
	}
	return p, nil
}

// check compares products on a device with those of gonum.
func (p *Products) check(o Options) error {
	trans := map[bool]blas.Transpose{false: blas.NoTrans, true: blas.Trans}
	onCPU := func(transA, transB bool, a, b, c blas32.General) error {
		blas32.Gemm(trans[transA], trans[transB], 1, a, b, 0, c)
		return nil
	}
	return onnxruntime.CompareDevice(o.settings().DeviceName(), 0, products(onCPU), products(p.Gemm))
}

// products returns a function that adds products of drawn matrices.
func products(gemm func(transA, transB bool, a, b, c blas32.General) error) func(*onnxruntime.Computed) error {
	const n = 64
	return func(to *onnxruntime.Computed) error {
		r := ndarray.NewStream(1, "device")
		for i := range 4 {
			var m [3]blas32.General
			for j := range m {
				m[j] = blas32.General{Rows: n, Cols: n, Stride: n, Data: make([]float32, n*n)}
				for q := range m[j].Data {
					m[j].Data[q] = float32(r.NormFloat64())
				}
			}
			if err := gemm(i%2 == 1, i/2 == 1, m[0], m[1], m[2]); err != nil {
				return err
			}
			to.AddResults(m[2].Data)
		}
		return nil
	}
}

// productModel returns a model of one Gemm of matrices of any size.
func productModel(transA, transB int) *onnxpb.ModelProto {
	return &onnxpb.ModelProto{
		IrVersion:   8,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: deviceOpset}},
		Graph: &onnxpb.GraphProto{
			Name: "product",
			Node: []*onnxpb.NodeProto{{
				OpType: "Gemm", Name: "c", Input: []string{"a", "b"}, Output: []string{"c"},
				Attribute: []*onnxpb.AttributeProto{onnxpb.IntAttr("transA", int64(transA)), onnxpb.IntAttr("transB",
					int64(transB))},
			}},
			Input:  []*onnxpb.ValueInfoProto{anyMatrix("a"), anyMatrix("b")},
			Output: []*onnxpb.ValueInfoProto{anyMatrix("c")},
		},
	}
}

func anyMatrix(name string) *onnxpb.ValueInfoProto {
	return onnxpb.Value(name, onnxpb.TensorProto_FLOAT, onnxpb.Open(name+"0"), onnxpb.Open(name+"1"))
}

// Gemm sets c = a b, where a or b may be transposed first. The matrices must have no gaps between
// rows and matching sizes.
func (p *Products) Gemm(transA, transB bool, a, b, c blas32.General) error {
	i, j := 0, 0
	if transA {
		i = 1
	}
	if transB {
		j = 1
	}
	var tensors [3]*ort.Tensor[float32]
	for q, m := range []blas32.General{a, b, c} {
		if m.Stride != m.Cols || len(m.Data) < m.Rows*m.Cols {
			return fmt.Errorf("matrix products in onnxruntime: a matrix of %d by %d has gaps or is cut off", m.Rows, m.Cols)
		}
		t, err := ort.NewTensor(ort.NewShape(int64(m.Rows), int64(m.Cols)), m.Data[:m.Rows*m.Cols])
		if err != nil {
			return err
		}
		defer t.Destroy()
		tensors[q] = t
	}
	p.calls.Lock()
	err := p.sessions[i][j].Run([]ort.Value{tensors[0], tensors[1]}, []ort.Value{tensors[2]})
	p.calls.Unlock()
	goruntime.KeepAlive(tensors) // the session has only their C pointers
	goruntime.KeepAlive([]any{a, b, c})
	return err
}

// Close frees the sessions.
func (p *Products) Close() error {
	p.calls.Lock()
	defer p.calls.Unlock()
	var errs []error
	for _, row := range p.sessions {
		for _, s := range row {
			if s != nil {
				errs = append(errs, s.Destroy())
			}
		}
	}
	return errors.Join(errs...)
}
